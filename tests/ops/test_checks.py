"""A user's mistake raises an error that is prunus's own and the standard one, and says what was given."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from prunus.errors import BackendError, InputTypeError, InputValueError, PrunusError
from prunus.ops import integer_pruning, path_rewards, tree_argmin, tree_traverse
from prunus.ops.routes import linear_leaves, tree_leaves, tree_routes

Call = Callable[..., Any]
Refused = list[tuple[Any, type[Exception], str]]

MATRIX = torch.zeros(4, 7)
MATRICES: dict[str, Call] = {
    "path_rewards": path_rewards,
    "tree_traverse": lambda s: tree_traverse(s, 1.0, backend="reference"),
    "tree_argmin": lambda q: tree_argmin(q, 1.0, backend="reference"),
    "integer_pruning": lambda q: integer_pruning(q, 1.0),
    "tree_leaves": tree_leaves,
    "tree_routes": lambda s: tree_routes(s, torch.ones(15)),
    "linear_leaves x": lambda x: linear_leaves(x, torch.zeros(3, 7), torch.zeros(3)),
    "linear_leaves weight": lambda weight: linear_leaves(torch.zeros(2, 7), weight, torch.zeros(7)),
}
"""Each operator as a function of a matrix alone."""
TREES = ["path_rewards", "tree_traverse", "tree_argmin", "integer_pruning", "tree_leaves", "tree_routes"]
PRICED = pytest.mark.parametrize("operator", [tree_argmin, tree_traverse, integer_pruning])


@pytest.mark.parametrize(
    ("error", "standard"), [(InputValueError, ValueError), (InputTypeError, TypeError), (BackendError, RuntimeError)]
)
def test_each_error_is_prunus_own_and_a_standard_one(error: type[Exception], standard: type[Exception]) -> None:
    assert issubclass(error, PrunusError)
    assert issubclass(error, standard)


def assert_refused(call: Call, refused: Refused) -> None:
    for value, error, message in refused:
        with pytest.raises(error, match=message):
            call(value)


@pytest.mark.parametrize("name", MATRICES)
def test_what_is_no_matrix_is_refused(name: str) -> None:
    wrong: Refused = [
        (x, InputTypeError, f"must be a torch.Tensor, got {type(x).__name__}")
        for x in ([[0.0] * 7], np.zeros((4, 7)), None, 1.0)
    ]
    wrong += [
        (MATRIX.to(dtype), InputTypeError, f"floating point.*got .*{dtype}")
        for dtype in (torch.int64, torch.bool, torch.complex64)
    ]
    wrong += [
        (MATRIX.to(dtype), InputTypeError, f"got .*{dtype}") for dtype in (torch.float8_e4m3fn, torch.float8_e5m2)
    ]
    wrong += [(MATRIX.to_sparse(), InputTypeError, r"must be dense, got .*\.layout=torch\.sparse_coo")]
    wrong += [
        (torch.zeros(shape), InputValueError, rf"two dimensions.*shape=\({str(shape)[1:-1]}\)")
        for shape in ((), (7,), (2, 4, 7))
    ]
    if name in TREES:
        wrong += [(torch.zeros(4, n), InputValueError, rf"must be 2\*\*.*got {n}") for n in (2, 4, 6, 8, 14)]
    assert_refused(MATRICES[name], wrong)


@PRICED
def test_a_strength_that_cannot_be_is_refused(operator: Call) -> None:
    wrong: Refused = []
    for lam in (-1.0, -1e-9, float("-inf"), float("nan")):
        wrong += [(lam, InputValueError, f"lam must be at least 0, got lam={lam}")]
        given = torch.tensor(lam)
        wrong += [(given, InputValueError, f"lam must be at least 0, got lam={float(given)}")]
    wrong += [
        (torch.ones(shape), InputValueError, rf"lam.shape=\({str(shape)[1:-1]}\)") for shape in ((1,), (7,), (4, 7))
    ]
    for lam_of_type in ("strong", "1.0", None, [1.0], 1j):
        message = f"lam must be a float or a 0-dim tensor, got {lam_of_type!r}"
        wrong += [(lam_of_type, InputTypeError, message.replace("[", r"\["))]
    wrong += [
        (torch.tensor(1j), InputTypeError, r"lam must be real, got lam.dtype=torch.complex64"),
        (torch.tensor(1.0, device="meta"), InputValueError, r"lam must be on the same device.*lam.device=meta"),
    ]
    assert_refused(lambda lam: operator(MATRIX, lam), wrong)


@PRICED
@pytest.mark.parametrize("lam", [1, True, np.float32(1.0), torch.tensor(1), torch.tensor(1.0, dtype=torch.float16)])
def test_lam_may_be_any_real_number(operator: Call, lam: object) -> None:
    assert all(map(torch.equal, operator(MATRIX, lam), operator(MATRIX, 1.0)))


@PRICED
def test_weights_that_cannot_be_are_refused(operator: Call) -> None:
    wrong: Refused = [
        (torch.ones(shape), InputValueError, rf"sample_weight.shape=\({str(shape)[1:-1]}\)")
        for shape in ((3,), (5,), (7,), (0,), (), (4, 1), (4, 7))
    ]
    for worst, second in ((-1e-9, -1e-10), (-2.0, -1e-10), (-torch.inf, -1e-10), (-2.0, torch.nan)):
        weight = torch.tensor([1.0, second, worst, 0.0])
        wrong += [(weight, InputValueError, r"sample_weight must not be negative, got sample_weight\[2\]=-")]
    for other in ([1.0] * 4, np.ones(4), 1.0, "balanced"):
        wrong += [(other, InputTypeError, f"sample_weight must be .*, got {type(other).__name__}")]
    ones = torch.ones(4)
    wrong += [
        (ones.to(torch.complex64), InputTypeError, r"sample_weight must be real, got .*complex64"),
        (ones.to_sparse(), InputTypeError, r"sample_weight must be dense, got .*layout=torch\.sparse_coo"),
        (ones.to("meta"), InputValueError, r"sample_weight must be on the same device.*device=meta"),
    ]
    assert_refused(lambda weight: operator(MATRIX, 1.0, sample_weight=weight), wrong)


@PRICED
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.float64])
def test_weight_may_have_any_real_dtype(operator: Call, dtype: torch.dtype) -> None:
    weight = torch.tensor([1, 0, 1, 1])
    result = operator(MATRIX, 1.0, sample_weight=weight.to(dtype))
    assert all(map(torch.equal, result, operator(MATRIX, 1.0, sample_weight=weight.float())))


@pytest.mark.parametrize("operator", [tree_argmin, tree_traverse])
def test_a_backend_that_cannot_be_is_refused(operator: Call) -> None:
    for backend in ("numpy", "", "CPP", None, 3):
        with pytest.raises(InputValueError, match=rf"backend must be one of .*'reference'.*, got {backend!r}"):
            operator(MATRIX, 1.0, backend=backend)
    names: list[Any] = [["cpp"], {}]
    for no_name in names:
        with pytest.raises(InputTypeError, match="backend must be a str, got ") as raised:
            operator(MATRIX, 1.0, backend=no_name)
        assert repr(no_name) in str(raised.value)
    with pytest.raises(InputValueError, match="tensors for backend 'triton' must be on cuda, got device='cpu'"):
        operator(MATRIX, 1.0, backend="triton")
    with pytest.raises(TypeError, match="positional"):
        operator(MATRIX, 1.0, torch.ones(4))


def test_masses_that_do_not_fit_the_scores_are_refused() -> None:
    count = r"a must have one entry for each of the 15 nodes, got a.shape=\("
    wrong: Refused = [(torch.ones(shape), InputValueError, count) for shape in ((14,), (16,), (7,), (15, 1), ())]
    wrong += [(a, InputTypeError, r"a must be a torch\.Tensor, got") for a in ([1.0, 1.0, 1.0], 1.0, None)]
    device = r"a must be on the same device as s, got a.device=meta, s.device=cpu"
    wrong += [(torch.ones(15, device="meta"), InputValueError, device)]
    assert_refused(lambda a: tree_routes(MATRIX, a), wrong)


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 5), (7, 4), (7,)),
        ((3, 5), (7, 6), (7,)),
        ((3, 5), (7, 5), (3,)),
        ((3, 5), (7, 5), (15,)),
        ((3, 5), (7, 5), (7, 1)),
    ],
)
def test_linear_splits_that_do_not_fit_are_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(InputValueError, match=r"shapes \(n, d\), \(splits, d\) and \(splits,\), got \(3, 5\)"):
        linear_leaves(*map(torch.zeros, shapes))  # broke: the kernel read beyond the arrays


def test_linear_splits_of_no_tree_or_of_several_dtypes_are_refused() -> None:
    for splits in (2, 6, 8):
        with pytest.raises(InputValueError, match=rf"must be 2\*\*depth - 1 .*, got {splits}"):
            linear_leaves(torch.zeros(3, 5), torch.zeros(splits, 5), torch.zeros(splits))
    with pytest.raises(InputTypeError, match=r"the same dtype, got torch\.float64, torch\.float32 and torch\.f"):
        linear_leaves(torch.zeros(3, 5).double(), torch.zeros(7, 5), torch.zeros(7))
