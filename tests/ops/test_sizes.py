"""The C++ kernels refuse arrays whose sizes do not fit each other: none reads or writes beyond one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

core = pytest.importorskip("prunus._core")

N, D, K, S = 5, 3, 2, 7
T = 2 * S + 1


def floats(*shape: int) -> Tensor:
    return torch.zeros(shape)


CALLS: dict[str, dict[str, Any]] = {
    "traverse_forward": {"s": floats(N, S), "lam": 1.0, "weight": floats(N), "z": floats(N, T), "a": floats(T)},
    "traverse_backward": {
        "grad_z": floats(N, T),
        "grad_a": floats(T),
        "s": floats(N, S),
        "a": floats(T),
        "lam": 1.0,
        "weight": floats(N),
        "grad_s": floats(N, S),
        "grad_lam": floats(),
        "grad_weight": floats(N),
    },
    "argmin_forward": {
        "q": floats(N, T),
        "lam": 1.0,
        "weight": floats(N),
        "z": floats(N, T),
        "a": floats(T),
        "group": torch.zeros(T, dtype=torch.int64),
    },
    "argmin_backward": {
        "grad_z": floats(N, T),
        "grad_a": floats(T),
        "q": floats(N, T),
        "a": floats(T),
        "group": torch.arange(T),
        "lam": 1.0,
        "weight": floats(N),
        "grad_q": floats(N, T),
        "grad_lam": floats(),
        "grad_weight": floats(N),
    },
    "routes": {"s": floats(N, S), "a": floats(T), "z": floats(N, T)},
    "sums_above": {
        "s": floats(N, S),
        "weight": floats(N),
        "a": floats(T),
        "total": floats(T).double(),
        "active_weight": floats(T).double(),
    },
    "linear_leaves": {
        "x": floats(N, D),
        "weight": floats(S, D),
        "bias": floats(S),
        "leaf": torch.zeros(N, dtype=torch.int64),
    },
    "predict": {
        "x": floats(N, D),
        "weight": floats(S, D),
        "bias": floats(S),
        "a": floats(T),
        "slope": floats(T, K, D),
        "constant": floats(T, K),
        "out": floats(N, K),
    },
    "scale_columns": {"x": floats(N, D), "scaling": floats(4, D).double() + 1, "out": floats(N, D)},
    "table_leaves": {
        "x": floats(N, D),
        "scaling": floats(4, D).double() + 1,
        "weight": floats(S, D),
        "bias": floats(S),
        "leaf": torch.zeros(N, dtype=torch.int32),
    },
}
ARRAYS = [
    (name, argument, dimension)
    for name, arguments in CALLS.items()
    for argument, value in arguments.items()
    if isinstance(value, Tensor)
    for dimension in range(value.ndim)
]


def resized(tensor: Tensor, dimension: int, change: int) -> Tensor:
    shape = list(tensor.shape)
    shape[dimension] += change
    return torch.ones(shape, dtype=tensor.dtype)


@pytest.mark.parametrize("name", CALLS)
def test_sizes_that_fit_are_taken(name: str) -> None:
    kernel: Callable[..., Any] = getattr(core, name)
    kernel(**CALLS[name], threads=1)


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize(("name", "argument", "dimension"), ARRAYS)
def test_an_array_of_another_size_is_refused(name: str, argument: str, dimension: int, change: int) -> None:
    kernel: Callable[..., Any] = getattr(core, name)
    other = resized(CALLS[name][argument], dimension, change)
    with pytest.raises(ValueError, match="must"):
        kernel(**(CALLS[name] | {argument: other}), threads=1)
