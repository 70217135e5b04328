"""Where training starts: samples spread evenly over the leaves."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputTypeError
from prunus.nn import ELUSplit, LinearSplit, MLPSplit, SparseMLPSplit, spread_splits
from prunus.ops.heap import level
from prunus.ops.routes import tree_leaves
from tests.nn.problems import generator, inputs
from tests.tolerances import SINGLE_PRECISION_SPREAD

SPLITS = [LinearSplit, ELUSplit, MLPSplit, SparseMLPSplit]


def spread(split: nn.Module, x: Tensor, *, seed: int = 7, **options: Any) -> nn.Module:
    spread_splits(split, x, generator=generator(seed), **options)
    return split


def counts(split: nn.Module, x: Tensor, depth: int) -> Tensor:
    """Samples that arrive at each node, (2**(depth + 1) - 1,)."""
    with torch.no_grad():
        arrived = tree_leaves(split.eval()(x)).bincount(minlength=2 ** (depth + 1) - 1)
    for t in range(2 ** (depth + 1) - 2, 0, -1):
        arrived[(t - 1) // 2] += arrived[t]
    return arrived


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("n", "depth"), [(64, 1), (64, 3), (64, 6), (800, 3), (1024, 5)])
def test_leaves_get_equal_numbers_of_samples(split: type[nn.Module], n: int, depth: int) -> None:
    x = inputs(n)
    made = spread(split(5, depth), x)
    assert (counts(made, x, depth)[level(depth)] == n // 2**depth).all()


@pytest.mark.parametrize("wanted", [1.0, 0.25])
@pytest.mark.parametrize("split", [LinearSplit, MLPSplit])
def test_scores_have_the_spread_among_the_samples_that_arrive(split: type[nn.Module], wanted: float) -> None:
    x = inputs(512)
    made = spread(split(5, 4), x, spread=wanted)
    with torch.no_grad():
        scores = made(x)
    arrived = {0: torch.arange(512)}
    for t in range(15):
        rows = arrived[t]
        here = scores[rows, t]
        assert float(here.std(correction=0)) == pytest.approx(wanted, rel=SINGLE_PRECISION_SPREAD)
        arrived[2 * t + 1], arrived[2 * t + 2] = rows[here < 0], rows[here >= 0]


@pytest.mark.parametrize("split", SPLITS)
def test_the_same_generator_gives_the_same_splits(split: type[nn.Module]) -> None:
    made = split(5, 3)
    first = [p.clone() for p in spread(made, inputs(99)).parameters()]
    spread(made, inputs(99), seed=8)
    again = spread(made, inputs(99)).parameters()
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_dropout_is_off_meanwhile_and_on_afterwards() -> None:
    made, x = MLPSplit(5, 3, hidden=(32,), dropout=0.5), inputs(64)
    random = torch.get_rng_state()
    spread(made, x)  # broke: medians were those of features with some dropped at random
    assert torch.equal(random, torch.get_rng_state())
    assert made.training
    assert (counts(made, x, 3)[level(3)] == 8).all()


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("n", [1, 2, 3, 64])
def test_duplicates_of_one_row_give_finite_splits(split: type[nn.Module], n: int) -> None:
    made = spread(split(5, 3), inputs(1).expand(n, 5).contiguous())
    assert all(p.isfinite().all() for p in made.parameters())


def test_fewer_samples_than_leaves_spread_as_far_as_they_go() -> None:
    x = inputs(8)
    at_leaves = counts(spread(LinearSplit(5, 6), x), x, 6)[level(6)]
    assert at_leaves.max() == 1


def test_any_module_with_scores_and_features_can_be_spread() -> None:
    x = inputs(64)
    assert (counts(spread(Squares(), x), x, 2)[level(2)] == 16).all()


class Squares(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(5, 3)

    def features(self, x: Tensor) -> Tensor:
        return x.square()

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.scores(self.features(x))
        return scores


@pytest.mark.parametrize("split", [nn.Linear(5, 7), nn.Identity(), nn.ModuleDict({"scores": nn.Linear(5, 7)})])
def test_another_module_is_refused(split: nn.Module) -> None:
    with pytest.raises(InputTypeError, match=f"split must have .* for spread_splits, got {type(split).__name__}"):
        spread_splits(split, inputs(9))


@pytest.mark.parametrize("n", [1, 2, 5, 200])
def test_a_split_is_placed_at_the_median(n: int) -> None:
    x = inputs(n, 3)
    split = spread(LinearSplit(3, depth=1), x)
    scores = split(x).detach().flatten()
    assert float(scores.quantile(0.5, interpolation="midpoint")) == pytest.approx(0.0, abs=SINGLE_PRECISION_SPREAD)


def test_inputs_that_are_always_zero_have_no_weight() -> None:
    x = inputs(200)
    x[:, 3] = 0
    weight = spread(LinearSplit(5, depth=2), x).scores.weight  # type: ignore[union-attr]
    assert torch.equal(weight != 0, torch.tensor([True, True, True, False, True]).expand(3, 5))  # type: ignore[arg-type]


def bent(x: Tensor) -> Tensor:
    """Bends along the sum of the first two columns; along the third one it is steeper, but straight."""
    return (x[:, :1] + x[:, 1:2]).abs() + 3 * x[:, 2:3]


@pytest.mark.parametrize("wanted", [bent, lambda x: torch.cat((bent(x), -bent(x), 0 * x), 1)], ids=["", "several"])
def test_the_root_starts_where_what_is_wanted_bends_most(wanted: Callable[[Tensor], Tensor]) -> None:
    x = inputs(2_000)
    roots = []
    for seed in (1, 2):
        split = LinearSplit(5, depth=2)
        spread_splits(split, x, wanted=wanted(x), generator=generator(seed))
        roots.append(split.scores.weight[0].detach())
        assert counts(split, x, 2).tolist() == [2_000, 1_000, 1_000, 500, 500, 500, 500]
    assert torch.equal(*roots)
    direction = roots[0] / roots[0].norm()
    assert (direction[:2] > 0.65).all()
    assert direction[2:].abs().max() < 0.2


@pytest.mark.parametrize(
    "wanted", [torch.zeros(300, 1), torch.full((300, 1), torch.nan), torch.zeros(300, 257)], ids=["0", "nan", "many"]
)
def test_the_root_is_drawn_if_nothing_is_known_of_it(wanted: Tensor) -> None:
    x = inputs(300)
    drawn, split = spread(LinearSplit(5, 2), x), LinearSplit(5, 2)
    spread_splits(split, x, wanted=wanted, generator=generator(7))
    assert torch.equal(split.scores.weight, drawn.scores.weight)  # type: ignore[union-attr, arg-type]
