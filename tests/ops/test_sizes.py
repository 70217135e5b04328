"""The C++ kernels refuse arrays whose sizes do not fit each other: none reads or writes beyond one."""

from collections.abc import Callable
from itertools import product
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
SINGLE = {"scale_columns": ("out",), "table_leaves": ("weight", "bias")}
"""Arrays that are in single precision, whatever the precision of the others is."""


def resized(tensor: Tensor, dimension: int, change: int) -> Tensor:
    shape = list(tensor.shape)
    shape[dimension] += change
    return torch.ones(shape, dtype=tensor.dtype)


@pytest.mark.parametrize("name", CALLS)
def test_an_array_of_another_size_is_refused(name: str) -> None:
    kernel: Callable[..., Any] = getattr(core, name)
    kernel(**CALLS[name], threads=1)
    for argument, value in CALLS[name].items():
        for dimension, change in product(range(value.ndim if isinstance(value, Tensor) else 0), (-1, 1)):
            with pytest.raises(ValueError, match="must"):
                kernel(**(CALLS[name] | {argument: resized(value, dimension, change)}), threads=1)


@pytest.mark.parametrize("top", [-1, 1, T, 2**40, -(2**62)])
def test_groups_beyond_the_tree_are_refused(top: int) -> None:
    """They would be used as positions."""
    group = torch.arange(T)
    group[0] = top
    with pytest.raises(ValueError, match="group must name for each node the node itself or one before it"):
        core.argmin_backward(**(CALLS["argmin_backward"] | {"group": group}), threads=1)


def test_more_splits_than_can_be_counted_are_refused() -> None:
    """An array without rows may have as many columns as it likes."""
    with pytest.raises(ValueError, match=r"the number of splits must be below 2\*\*30"):
        core.traverse_forward(**(CALLS["traverse_forward"] | {"s": floats(0, 2**33 - 1)}), threads=1)


def test_rows_without_columns_are_scaled_at_once() -> None:
    assert core.scale_columns(floats(2**40, 0), floats(4, 0).double(), floats(2**40, 0), threads=1)


SIZES = list(product([0, 1, 5, 300], [0, 1, 9], [0, 1, 3], [0, 1, 7, 63]))
"""Numbers of rows, columns, outputs and splits."""


def filled(tensor: Tensor, shape: tuple[int, ...], source: torch.Generator) -> Tensor:
    """Random numbers, some of them odd, in the dtype of an array that has another shape."""
    if not tensor.is_floating_point():
        return torch.zeros(shape, dtype=tensor.dtype)
    numbers = torch.randn(shape, generator=source, dtype=torch.float64)
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.5, 0.5], dtype=torch.float64)
    rare = torch.rand(shape, generator=source) < 0.1
    numbers[rare] = odd[torch.randint(len(odd), (int(rare.sum()),), generator=source)]
    return numbers.to(tensor.dtype)


@pytest.mark.parametrize("threads", [-1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CALLS)
def test_all_sizes_that_fit_are_taken(name: str, dtype: torch.dtype, threads: int) -> None:
    """Under a sanitizer this shows that no access is out of bounds; elsewhere that nothing crashes."""
    source = torch.Generator().manual_seed(0)
    kernel: Callable[..., Any] = getattr(core, name)
    for n, d, k, s in SIZES:
        sizes = {N: n, D: d, K: k, S: s, T: 2 * s + 1, 4: 4}
        arguments = dict(CALLS[name])
        for argument, value in CALLS[name].items():
            if isinstance(value, Tensor) and argument != "group":
                other = filled(value, tuple(sizes[size] for size in value.shape), source)
                single = value.dtype == torch.float32 and not (name in SINGLE and argument in SINGLE[name])
                arguments[argument] = other.to(dtype) if single else other
        if "group" in arguments:
            arguments["group"] = torch.arange(2 * s + 1)
        kernel(**arguments, threads=threads)
