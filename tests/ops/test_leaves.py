"""The leaf at the end of each sample's path: from scores, and straight from linear splits."""

import pytest
import torch
from torch import Tensor

from prunus.ops.routes import linear_leaves, tree_leaves
from tests.ops.conftest import Target, skip_unless_available
from tests.ops.problems import generator, scores

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


SIZES = [(0, 3, 5), (1, 0, 7), (9, 0, 1), (1, 1, 9), (63, 3, 1), (63, 3, 8), (500, 6, 7), (500, 6, 100), (3, 12, 9)]


def test_leaves_are_the_ends_of_paths(chosen: Target) -> None:
    for n, depth, d in SIZES:
        x, weight, bias = map(chosen.tensor, linear(n, depth, d))
        s = chosen.tensor(scores(n, depth))
        for leaves, expected in (
            (tree_leaves(s), walk(s)),
            (linear_leaves(x, weight, bias), walk(x @ weight.T + bias)),
        ):
            assert leaves.tolist() == expected
            assert (leaves.shape, leaves.dtype, leaves.device) == ((n,), torch.int64, x.device)


@pytest.mark.parametrize("dtype", DTYPES)
def test_leaves_in_any_precision(dtype: torch.dtype) -> None:
    x, weight, bias = linear(63, 4, 5, dtype=dtype)
    assert linear_leaves(x, weight, bias).tolist() == walk(x.double() @ weight.double().T + bias.double())
    s = scores(63, 4).to(dtype)
    assert tree_leaves(s).tolist() == walk(s)


@pytest.mark.parametrize(
    ("leaf", "values"),
    [(14, [0.0, -0.0, float("nan"), float("inf"), 1e-30]), (7, [-1e-30, -1.0, float("-inf")])],
)
def test_negative_scores_go_left_and_others_right(leaf: int, values: list[float], chosen: Target) -> None:
    for score in values:
        s = chosen.tensor(torch.full((3, 7), score, dtype=torch.float64))
        assert tree_leaves(s).tolist() == [leaf] * 3


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


def test_inputs_without_columns_go_by_the_thresholds(chosen: Target) -> None:
    x, weight, bias = map(chosen.tensor, (torch.zeros(2, 0), torch.zeros(3, 0), torch.tensor([-1.0, 1.0, -1.0])))
    assert linear_leaves(x, weight, bias).tolist() == [4, 4]


def test_strided_inputs_and_parameters_are_read_right(chosen: Target) -> None:
    x, weight, bias = map(chosen.tensor, linear(63, 4, 5))
    transposed = (x.T.contiguous().T, weight.T.contiguous().T, torch.stack((bias, bias), 1)[:, 0])
    assert torch.equal(linear_leaves(*transposed), linear_leaves(x, weight, bias))
    layer = torch.nn.Linear(5, 7)
    rows = torch.randn(63, 5, generator=generator(0))
    assert linear_leaves(rows, layer.weight, layer.bias).tolist() == walk(layer(rows))
