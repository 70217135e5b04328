"""A user's mistake raises an error that is prunus's own and the standard one, and says what was given."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from prunus.errors import BackendError, InputTypeError, InputValueError, PrunusError
from prunus.ops import integer_pruning, path_rewards, tree_argmin, tree_traverse

Call = Callable[..., Any]

MATRIX = torch.zeros(4, 7)
SOLVERS = pytest.mark.parametrize("operator", [tree_argmin, tree_traverse])
PRICED = pytest.mark.parametrize("operator", [tree_argmin, tree_traverse, integer_pruning])


def any_operator(name: str) -> Call:
    """An operator as a function of its matrix alone."""
    calls: dict[str, Call] = {
        "path_rewards": path_rewards,
        "tree_traverse": lambda s: tree_traverse(s, 1.0, backend="reference"),
        "tree_argmin": lambda q: tree_argmin(q, 1.0, backend="reference"),
        "integer_pruning": lambda q: integer_pruning(q, 1.0),
    }
    return calls[name]


EVERY = pytest.mark.parametrize("name", ["path_rewards", "tree_traverse", "tree_argmin", "integer_pruning"])


@pytest.mark.parametrize("error", [InputValueError, InputTypeError, BackendError])
def test_each_error_is_prunus_own(error: type[Exception]) -> None:
    assert issubclass(error, PrunusError)


@pytest.mark.parametrize(
    ("error", "standard"), [(InputValueError, ValueError), (InputTypeError, TypeError), (BackendError, RuntimeError)]
)
def test_each_error_is_a_standard_one(error: type[Exception], standard: type[Exception]) -> None:
    assert issubclass(error, standard)


@EVERY
@pytest.mark.parametrize("x", [[[0.0] * 7], np.zeros((4, 7)), None, 1.0])
def test_matrix_is_no_tensor(name: str, x: object) -> None:
    with pytest.raises(InputTypeError, match=f"must be a torch.Tensor, got {type(x).__name__}"):
        any_operator(name)(x)


@EVERY
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_matrix_is_not_floating_point(name: str, dtype: torch.dtype) -> None:
    with pytest.raises(InputTypeError, match=f"floating point.*got .*{dtype}"):
        any_operator(name)(MATRIX.to(dtype))


@pytest.mark.parametrize("name", ["tree_traverse", "tree_argmin", "integer_pruning"])
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_matrix_is_too_short_a_float(name: str, dtype: torch.dtype) -> None:
    with pytest.raises(InputTypeError, match=f"got .*{dtype}"):
        any_operator(name)(MATRIX.to(dtype))


@EVERY
def test_matrix_is_sparse(name: str) -> None:
    with pytest.raises(InputTypeError, match=r"must be dense, got .*\.layout=torch\.sparse_coo"):
        any_operator(name)(MATRIX.to_sparse())


@EVERY
@pytest.mark.parametrize("shape", [(), (7,), (2, 4, 7)])
def test_matrix_has_not_two_dimensions(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputValueError, match=r"two dimensions.*shape=\(") as raised:
        any_operator(name)(torch.zeros(shape))
    assert str(shape) in str(raised.value)


@EVERY
@pytest.mark.parametrize("columns", [2, 4, 6, 8, 14])
def test_number_of_columns_makes_no_tree(name: str, columns: int) -> None:
    with pytest.raises(InputValueError, match=rf"must be 2\*\*.*got {columns}"):
        any_operator(name)(torch.zeros(4, columns))


@PRICED
@pytest.mark.parametrize("lam", [-1.0, -1e-9, float("-inf"), float("nan")])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_lam_is_negative_or_nan(operator: Call, lam: float, as_tensor: bool) -> None:
    with pytest.raises(InputValueError, match="lam must be at least 0, got lam=") as raised:
        operator(MATRIX, torch.tensor(lam) if as_tensor else lam)
    assert f"{float(torch.tensor(lam)) if as_tensor else lam}" in str(raised.value)


@PRICED
@pytest.mark.parametrize("shape", [(1,), (7,), (4, 7)])
def test_lam_has_dimensions(operator: Call, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputValueError, match=r"lam.shape=\(") as raised:
        operator(MATRIX, torch.ones(shape))
    assert str(shape) in str(raised.value)


@PRICED
@pytest.mark.parametrize("lam", ["strong", "1.0", None, [1.0], 1j])
def test_lam_is_no_number(operator: Call, lam: object) -> None:
    with pytest.raises(InputTypeError, match="lam must be a float or a 0-dim tensor, got ") as raised:
        operator(MATRIX, lam)
    assert repr(lam) in str(raised.value)


@PRICED
def test_lam_is_complex(operator: Call) -> None:
    with pytest.raises(InputTypeError, match=r"lam must be real, got lam.dtype=torch.complex64"):
        operator(MATRIX, torch.tensor(1j))


@PRICED
def test_lam_is_on_another_device(operator: Call) -> None:
    with pytest.raises(InputValueError, match=r"lam must be on the same device.*lam.device=meta"):
        operator(MATRIX, torch.tensor(1.0, device="meta"))


@PRICED
@pytest.mark.parametrize("lam", [1, True, np.float32(1.0), torch.tensor(1), torch.tensor(1.0, dtype=torch.float16)])
def test_lam_may_be_any_real_number(operator: Call, lam: object) -> None:
    result, expected = operator(MATRIX, lam), operator(MATRIX, 1.0)
    assert all(map(torch.equal, result, expected))


@PRICED
@pytest.mark.parametrize("shape", [(3,), (5,), (7,), (0,)])
def test_weight_has_another_length(operator: Call, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputValueError, match=r"each of the 4 samples, got sample_weight.shape=\(") as raised:
        operator(MATRIX, 1.0, sample_weight=torch.ones(shape))
    assert str(shape) in str(raised.value)


@PRICED
@pytest.mark.parametrize("shape", [(), (4, 1), (4, 7)])
def test_weight_has_not_one_dimension(operator: Call, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputValueError, match=r"sample_weight.shape=\(") as raised:
        operator(MATRIX, 1.0, sample_weight=torch.ones(shape))
    assert str(shape) in str(raised.value)


@PRICED
@pytest.mark.parametrize("worst", [-1e-9, -2.0, -torch.inf])
def test_weight_is_negative(operator: Call, worst: float) -> None:
    weight = torch.tensor([1.0, -1e-10, worst, 0.0])
    with pytest.raises(InputValueError, match=r"not be negative, got sample_weight\[2\]=-"):
        operator(MATRIX, 1.0, sample_weight=weight)


@PRICED
def test_weight_is_negative_beside_a_nan(operator: Call) -> None:
    weight = torch.tensor([1.0, torch.nan, -2.0, 0.0])
    with pytest.raises(InputValueError, match=r"not be negative, got sample_weight\[2\]=-2"):
        operator(MATRIX, 1.0, sample_weight=weight)


@PRICED
@pytest.mark.parametrize("weight", [[1.0] * 4, np.ones(4), 1.0, "balanced"])
def test_weight_is_no_tensor(operator: Call, weight: object) -> None:
    with pytest.raises(InputTypeError, match=f"sample_weight must be .*, got {type(weight).__name__}"):
        operator(MATRIX, 1.0, sample_weight=weight)


@PRICED
def test_weight_is_complex(operator: Call) -> None:
    with pytest.raises(InputTypeError, match=r"sample_weight must be real, got .*complex64"):
        operator(MATRIX, 1.0, sample_weight=torch.ones(4, dtype=torch.complex64))


@PRICED
def test_weight_is_sparse(operator: Call) -> None:
    with pytest.raises(InputTypeError, match=r"sample_weight must be dense, got .*layout=torch\.sparse_coo"):
        operator(MATRIX, 1.0, sample_weight=torch.ones(4).to_sparse())


@PRICED
def test_weight_is_on_another_device(operator: Call) -> None:
    with pytest.raises(InputValueError, match=r"sample_weight must be on the same device.*device=meta"):
        operator(MATRIX, 1.0, sample_weight=torch.ones(4, device="meta"))


@PRICED
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.float64])
def test_weight_may_have_any_real_dtype(operator: Call, dtype: torch.dtype) -> None:
    weight = torch.tensor([1, 0, 1, 1])
    result = operator(MATRIX, 1.0, sample_weight=weight.to(dtype))
    assert all(map(torch.equal, result, operator(MATRIX, 1.0, sample_weight=weight.float())))


@SOLVERS
@pytest.mark.parametrize("backend", ["numpy", "", "CPP", None, 3])
def test_backend_is_unknown(operator: Call, backend: object) -> None:
    with pytest.raises(InputValueError, match=r"backend must be one of .*'reference'.*, got ") as raised:
        operator(MATRIX, 1.0, backend=backend)
    assert repr(backend) in str(raised.value)


@SOLVERS
@pytest.mark.parametrize("backend", [["cpp"], {}])
def test_backend_is_no_name(operator: Call, backend: object) -> None:
    with pytest.raises(InputTypeError, match="backend must be a str, got ") as raised:
        operator(MATRIX, 1.0, backend=backend)
    assert repr(backend) in str(raised.value)


@SOLVERS
def test_backend_does_not_take_the_device(operator: Call) -> None:
    with pytest.raises(InputValueError, match="tensors for backend 'triton' must be on cuda, got device='cpu'"):
        operator(MATRIX, 1.0, backend="triton")


@SOLVERS
def test_options_are_given_by_name(operator: Call) -> None:
    with pytest.raises(TypeError, match="positional"):
        operator(MATRIX, 1.0, torch.ones(4))
