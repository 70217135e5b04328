"""The neural methods: known properties of their parts, and scores on tables that they should learn."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from benchmarks.harness.methods.ant import ANT, AdaptiveTree, Leaf, Split, _pack
from benchmarks.harness.methods.dndt import DNDT, SoftBins, kronecker
from benchmarks.harness.methods.entmax import entmax15, entmoid15
from benchmarks.harness.methods.ndf import NDF, class_leaves, value_leaves
from benchmarks.harness.methods.node import NODE
from benchmarks.harness.methods.torch_training import TorchMethod
from tests.tolerances import FINITE_DIFFERENCE, assert_same

Rows = npt.NDArray[np.float32]
FAST: dict[type[TorchMethod], dict[str, Any]] = {
    DNDT: {"cuts": 2, "learning_rate": 0.05},
    NDF: {"hidden": 64, "batch_size": 50, "learning_rate": 0.01},
    ANT: {"layers": 1, "max_depth": 1, "batch_size": 50, "learning_rate": 0.01},
    NODE: {"trees": 16, "depth": 4, "batch_size": 50, "learning_rate": 0.05},
}
ITERATED = 1e-6
"""What 5000 steps leave of the distance to a solution that they approach by a factor each."""
ROUNDED_LOSS = 1e-12
"""By which a loss that stands still may seem to rise."""
METHODS = pytest.mark.parametrize("method", list(FAST))


def table(n: int, seed: int = 0) -> tuple[Rows, npt.NDArray[np.float64]]:
    """Three features; a function of two of them that is not linear, and noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    return x, np.abs(x[:, 0]) * 2 + x[:, 1] + 0.1 * rng.normal(size=n)


def classes(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Three classes of about equal size."""
    return np.digitize(values, [0.8, 2.2]).astype(np.int64)


def random(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


# entmax


def test_entmax_agrees_with_bisection() -> None:
    z = random(23, 50, scale=2.0)
    low, high = z.amax(0) / 2 - 1, z.amax(0) / 2
    for _ in range(80):
        middle = (low + high) / 2
        is_low = (z / 2 - middle).clamp(min=0).square().sum(0) > 1
        low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
    assert_same(entmax15(z), (z / 2 - low).clamp(min=0).square())


def test_entmax_has_the_gradient_of_finite_differences() -> None:
    z = random(8, 5, scale=2.0).requires_grad_()
    assert torch.autograd.gradcheck(entmax15, (z,), **FINITE_DIFFERENCE)


def test_entmoid_is_entmax_of_two() -> None:
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    assert_same(entmoid15(x), entmax15(torch.stack((x, torch.zeros_like(x))))[0])
    assert_same(entmoid15(x) + entmoid15(-x), torch.ones(61))


# DNDT


@pytest.mark.parametrize("features", [1, 2, 5])
def test_scores_by_halves_are_those_of_the_whole_product(features: int) -> None:
    module = SoftBins(features, cuts=2, outputs=4, temperature=0.5).double()
    module.scores.data = random(3**features, 4)
    x = random(11, features, seed=1)
    assert_same(module(x), kronecker(module.shares(x)) @ module.scores)


# NDF


def fixed_routes() -> Tensor:
    return random(200, 8, scale=2.0).softmax(1)


def test_the_update_of_class_leaves_never_increases_the_loss() -> None:
    routes, leaves = fixed_routes(), torch.full((8, 3), 1 / 3, dtype=torch.float64)
    y = (routes[:, :4].sum(1) * 3).long().clamp(max=2)
    losses = []
    for _ in range(30):
        leaves = class_leaves(routes, y, leaves, iterations=1)
        assert_same(leaves.sum(1), torch.ones(8))
        losses.append(-float((routes @ leaves).gather(1, y[:, None]).log().mean()))
    assert (np.diff(losses) <= ROUNDED_LOSS).all()
    assert losses[-1] < 0.9 * losses[0]


def test_the_update_of_value_leaves_never_increases_the_error_and_ends_at_least_squares() -> None:
    routes, leaves = fixed_routes(), torch.zeros(8, 1, dtype=torch.float64)
    y = random(200, 1, seed=1) + routes[:, :1]
    errors = []
    for _ in range(30):
        leaves = value_leaves(routes, y, leaves, iterations=1)
        errors.append(float((routes @ leaves - y).square().mean()))
    assert (np.diff(errors) <= ROUNDED_LOSS).all()
    best = torch.linalg.lstsq(routes, y).solution
    assert_same(value_leaves(routes, y, leaves, iterations=5000), best, tolerance=ITERATED)


# ANT


def test_a_leaf_and_what_is_around_it_make_the_prediction() -> None:
    leaves = [Leaf(3, 2, layers=1, dropout=0.0, classes=True).double() for _ in range(3)]
    tree = AdaptiveTree(Split(3, leaves[0], Split(3, *leaves[1:])), classes=True).double()
    x = random(10, 3)
    for leaf in leaves:
        packed = _pack(tree, leaf, x)
        reach, rest = packed[:, 3:4], packed[:, 4:]
        assert ((reach > 0) & (reach < 1)).all()
        assert_same(rest + reach * leaf(x), tree(x).exp())


# NODE


# All of them


@METHODS
def test_classes_are_learned(method: type[TorchMethod]) -> None:
    x, values = table(900)
    y = classes(values)
    fitted = method("classes", **FAST[method])
    predicted = fitted.fit(x[:400], y[:400], x[400:500], y[400:500]).predict(x[500:])
    assert predicted.dtype == np.int64
    assert (predicted != y[500:]).mean() < (0.45 if method is DNDT else 0.25)  # a constant errs by 0.6
    assert fitted.n_parameters > 0


@pytest.mark.parametrize("method", [NDF, ANT, NODE])
def test_values_are_learned_whatever_their_scale(method: type[TorchMethod]) -> None:
    x, y = table(900)
    y = 1000 * y + 5000
    predicted = method("values", **FAST[method]).fit(x[:400], y[:400], x[400:500], y[400:500]).predict(x[500:])
    assert predicted.dtype == np.float64
    assert np.mean((predicted - y[500:]) ** 2) < 0.15 * y.var()
