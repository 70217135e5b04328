"""The leaf at the end of each sample's path: from scores, and straight from linear splits."""

from typing import Any

import pytest
import torch
from torch import Tensor

from prunus.errors import InputTypeError, InputValueError
from prunus.ops.routes import linear_leaves, tree_leaves
from tests.ops.conftest import Target, skip_unless_available
from tests.ops.problems import generator, scores

SIZES = [(1, 0), (9, 0), (1, 1), (63, 3), (500, 6), (3, 12)]
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def walk(s: Tensor) -> list[int]:
    """Each sample's leaf, one step after the other."""
    leaves = []
    for row in s.tolist():
        t = 0
        while t < len(row):
            t = 2 * t + 1 if row[t] < 0 else 2 * t + 2
        leaves.append(t)
    return leaves


def linear(n: int, depth: int, d: int, *, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, and weights and thresholds of linear splits, in small whole numbers: their scores are exact."""

    def whole(*size: int, seed: int) -> Tensor:
        return torch.randint(-4, 5, size, generator=generator(seed)).to(dtype)

    return whole(n, d, seed=0), whole(2**depth - 1, d, seed=1), whole(2**depth - 1, seed=2)


@pytest.mark.parametrize(("n", "depth"), SIZES)
def test_leaves_are_the_ends_of_paths(n: int, depth: int, chosen: Target) -> None:
    s = chosen.tensor(scores(n, depth))
    leaves = tree_leaves(s)
    assert leaves.tolist() == walk(s)
    assert leaves.dtype == torch.int64
    assert leaves.device == s.device


@pytest.mark.parametrize(
    ("n", "depth", "d"),
    [(1, 0, 7), (9, 0, 1), (1, 1, 9), (63, 3, 1), (63, 3, 8), (500, 6, 7), (500, 6, 100), (3, 12, 9)],
)
def test_leaves_of_linear_splits_are_those_of_their_scores(n: int, depth: int, d: int, chosen: Target) -> None:
    x, weight, bias = map(chosen.tensor, linear(n, depth, d))
    leaves = linear_leaves(x, weight, bias)
    assert leaves.tolist() == walk(x @ weight.T + bias)
    assert leaves.device == x.device


@pytest.mark.parametrize("dtype", DTYPES)
def test_leaves_of_linear_splits_in_any_precision(dtype: torch.dtype) -> None:
    x, weight, bias = linear(63, 4, 5, dtype=dtype)
    assert linear_leaves(x, weight, bias).tolist() == walk(x.double() @ weight.double().T + bias.double())


@pytest.mark.parametrize("dtype", DTYPES)
def test_leaves_of_scores_in_any_precision(dtype: torch.dtype) -> None:
    s = scores(63, 4).to(dtype)
    assert tree_leaves(s).tolist() == walk(s)


@pytest.mark.parametrize("score", [0.0, -0.0, float("nan"), float("inf"), 1e-30])
def test_ties_and_what_is_no_number_go_right(score: float, chosen: Target) -> None:
    s = chosen.tensor(torch.full((3, 7), score, dtype=torch.float64))
    assert tree_leaves(s).tolist() == [14, 14, 14]


@pytest.mark.parametrize("score", [-1e-30, -1.0, float("-inf")])
def test_negative_scores_go_left(score: float, chosen: Target) -> None:
    s = chosen.tensor(torch.full((3, 7), score, dtype=torch.float64))
    assert tree_leaves(s).tolist() == [7, 7, 7]


@pytest.mark.parametrize("spoiled", ["x", "weight", "bias", "none"])
def test_ties_and_what_is_no_number_go_right_in_linear_splits(spoiled: str, chosen: Target) -> None:
    parts = {"x": torch.ones(3, 5), "weight": torch.zeros(7, 5), "bias": torch.zeros(7)}
    if spoiled != "none":
        parts[spoiled].fill_(torch.nan)
    assert linear_leaves(*map(chosen.tensor, parts.values())).tolist() == [14, 14, 14]


def test_a_row_ends_in_the_same_leaf_alone_and_among_others() -> None:
    skip_unless_available("cpp")  # torch's matrix products round otherwise for other shapes
    x, weight, bias = (torch.randn(size, generator=generator(3)) for size in ((5000, 9), (15, 9), (15,)))
    bias = -(weight @ x[0])  # the first row lies on all splits but for rounding
    together = linear_leaves(x, weight, bias)
    assert torch.equal(torch.cat([linear_leaves(row, weight, bias) for row in torch.split(x[:99], 1)]), together[:99])
    assert torch.equal(linear_leaves(x.flip(0), weight, bias).flip(0), together)


def test_no_samples_end_in_no_leaves(chosen: Target) -> None:
    x, weight, bias = map(chosen.tensor, linear(0, 3, 5))
    assert linear_leaves(x, weight, bias).shape == (0,)
    assert tree_leaves(x @ weight.T).shape == (0,)


def test_inputs_without_columns_go_by_the_thresholds(chosen: Target) -> None:
    x, weight, bias = map(chosen.tensor, (torch.zeros(2, 0), torch.zeros(3, 0), torch.tensor([-1.0, 1.0, -1.0])))
    assert linear_leaves(x, weight, bias).tolist() == [4, 4]


def test_strided_inputs_are_read_right(chosen: Target) -> None:
    x, weight, bias = map(chosen.tensor, linear(63, 4, 5))
    expected = linear_leaves(x, weight, bias)
    transposed = (x.T.contiguous().T, weight.T.contiguous().T, torch.stack((bias, bias), 1)[:, 0])
    assert torch.equal(linear_leaves(*transposed), expected)


def test_parameters_are_taken() -> None:
    layer = torch.nn.Linear(5, 7)
    x = torch.randn(63, 5, generator=generator(0))
    assert linear_leaves(x, layer.weight, layer.bias).tolist() == walk(layer(x))


@pytest.mark.parametrize("splits", [2, 6, 8])
def test_numbers_of_splits_of_no_tree_are_refused(splits: int) -> None:
    with pytest.raises(InputValueError, match=rf"must be 2\*\*depth - 1 .*, got {splits}"):
        tree_leaves(torch.zeros(3, splits))
    with pytest.raises(InputValueError, match=rf"must be 2\*\*depth - 1 .*, got {splits}"):
        wrong((3, 5), (splits, 5), (splits,))


def wrong(*shapes: tuple[int, ...]) -> Tensor:
    return linear_leaves(*(torch.zeros(size) for size in shapes))


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
def test_shapes_that_do_not_fit_are_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(InputValueError, match=r"shapes \(n, d\), \(splits, d\) and \(splits,\), got \(3, 5\)"):
        wrong(*shapes)  # broke: the kernel read beyond the arrays


@pytest.mark.parametrize("shapes", [((5,), (7, 5), (7,)), ((2, 3, 5), (7, 5), (7,)), ((3, 5), (5,), (7,))])
def test_what_is_no_matrix_is_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(InputValueError, match="must have two dimensions"):
        wrong(*shapes)


def test_different_dtypes_are_refused() -> None:
    with pytest.raises(InputTypeError, match=r"the same dtype, got torch\.float64, torch\.float32 and torch\.f"):
        linear_leaves(torch.zeros(3, 5).double(), torch.zeros(7, 5), torch.zeros(7))


@pytest.mark.parametrize("s", [[[1.0]], None, torch.zeros(3, 7, dtype=torch.int64)])
def test_what_holds_no_scores_is_refused(s: Any) -> None:
    with pytest.raises(InputTypeError, match="s must"):
        tree_leaves(s)
