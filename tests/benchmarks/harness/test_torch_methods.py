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
from benchmarks.harness.methods.ndf import NDF, SoftTree, class_leaves, value_leaves
from benchmarks.harness.methods.node import NODE, ObliviousEnsemble, ObliviousTrees
from benchmarks.harness.methods.torch_training import TorchMethod, count_parameters, hold_out
from prunus.errors import InputValueError
from tests.tolerances import FINITE_DIFFERENCE, assert_same

Rows = npt.NDArray[np.float32]
FAST: dict[type[TorchMethod], dict[str, Any]] = {
    DNDT: {"cuts": 2, "learning_rate": 0.05},
    NDF: {"hidden": 64, "batch_size": 50, "learning_rate": 0.01},
    ANT: {"layers": 1, "max_depth": 1, "batch_size": 50, "learning_rate": 0.01},
    NODE: {"trees": 16, "depth": 4, "batch_size": 50, "learning_rate": 0.05},
}
SHIFTED = 1e-9
"""What is left of numbers near 1 in double precision, once 1e6 was added to them."""
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


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_entmax_sums_to_one(n: int, scale: float) -> None:
    p = entmax15(random(n, 5, scale=scale))
    assert (p >= 0).all()
    assert_same(p.sum(0), torch.ones(5))


def test_entmax_agrees_with_bisection() -> None:
    z = random(23, 50, scale=2.0)
    low, high = z.amax(0) / 2 - 1, z.amax(0) / 2
    for _ in range(80):
        middle = (low + high) / 2
        is_low = (z / 2 - middle).clamp(min=0).square().sum(0) > 1
        low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
    assert_same(entmax15(z), (z / 2 - low).clamp(min=0).square())


def test_entmax_is_sparse_and_keeps_the_order() -> None:
    z = random(50, 20, scale=2.0)
    p = entmax15(z)
    assert 0.3 < (p == 0).double().mean() < 1
    ordered = p.gather(0, z.argsort(0, descending=True))
    assert (ordered.diff(dim=0) <= 0).all()


def test_entmax_ranges_from_equal_shares_to_the_largest_as_softmax_does() -> None:
    z = random(6, 1)
    assert_same(entmax15(z * 1e-14), torch.full((6, 1), 1 / 6, dtype=torch.float64))
    assert_same(entmax15(z * 1e6), (z == z.max()).double())
    assert_same(entmax15(torch.zeros(4, 2)), torch.full((4, 2), 0.25))


def test_entmax_does_not_change_with_a_shift() -> None:
    z = random(9, 4)
    assert_same(entmax15(z + 1e6), entmax15(z), tolerance=SHIFTED)


def test_entmax_has_the_gradient_of_finite_differences() -> None:
    z = random(8, 5, scale=2.0).requires_grad_()
    assert torch.autograd.gradcheck(entmax15, (z,), **FINITE_DIFFERENCE)


def test_entmoid_is_entmax_of_two() -> None:
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    assert_same(entmoid15(x), entmax15(torch.stack((x, torch.zeros_like(x))))[0])
    assert_same(entmoid15(x) + entmoid15(-x), torch.ones(61))


def test_entmoid_has_the_gradient_of_finite_differences() -> None:
    x = torch.tensor([-5.0, -1.9, -0.3, 0.0, 1.2, 1.99, 4.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(entmoid15, (x,), **FINITE_DIFFERENCE)


# DNDT


@pytest.mark.parametrize("cuts", [1, 2])
def test_soft_bins_partition_each_feature_and_all_of_them(cuts: int) -> None:
    module = SoftBins(3, cuts, outputs=2, temperature=0.3)
    x = torch.randn(40, 3)
    module.initialize(x)
    shares = module.shares(x)
    assert_same(shares.sum(2), torch.ones(40, 3))
    assert_same(kronecker(shares).sum(1), torch.ones(40))


def test_soft_bins_of_low_temperature_are_those_between_the_cuts() -> None:
    module = SoftBins(1, cuts=2, outputs=2, temperature=1e-4)
    module.cuts.data = torch.tensor([[1.5, -0.5]])  # in any order
    x = torch.linspace(-3, 3, 99).unsqueeze(1)
    expected = torch.from_numpy(np.digitize(x[:, 0].numpy(), [-0.5, 1.5]))
    assert torch.equal(module.shares(x)[:, 0].argmax(1), expected)
    assert_same(module.shares(x).amax(2), torch.ones(99, 1))


@pytest.mark.parametrize("features", [1, 2, 5])
def test_scores_by_halves_are_those_of_the_whole_product(features: int) -> None:
    module = SoftBins(features, cuts=2, outputs=4, temperature=0.5).double()
    module.scores.data = random(3**features, 4)
    x = random(11, features, seed=1)
    assert_same(module(x), kronecker(module.shares(x)) @ module.scores)


def test_cuts_start_between_the_values_of_a_binary_feature() -> None:
    module = SoftBins(1, cuts=1, outputs=2, temperature=0.1)
    module.initialize(torch.tensor([[0.0], [0.0], [0.0], [1.0]]))
    assert module.cuts.item() == 0.5


@pytest.mark.parametrize("features", [28, 2000])
def test_too_many_bins_are_an_error_before_they_are_made(features: int) -> None:
    with pytest.raises(MemoryError, match=rf"make 3\*\*{features} bins, which with 2 classes need 10\*\*\d+"):
        DNDT("classes", cuts=2).fit(np.zeros((10, features), np.float32), np.arange(10) % 2)


def test_dndt_is_for_classes_only() -> None:
    with pytest.raises(InputValueError, match="task must be 'classes' for DNDT"):
        DNDT("values")


# NDF


@pytest.mark.parametrize("depth", [1, 4])
def test_routes_sum_to_one(depth: int) -> None:
    routes = SoftTree(3, 8, depth, 2, classes=True).routes(torch.randn(30, 3))
    assert routes.shape == (30, 2**depth)
    assert_same(routes.sum(1), torch.ones(30))


def test_rows_go_to_the_leaf_that_the_splits_say() -> None:
    tree = SoftTree(1, 1, 2, 2, classes=True)
    splits = tree.score[2]
    assert isinstance(splits, torch.nn.Linear)
    splits.weight.data.zero_()
    splits.bias.data = torch.tensor([-50.0, 0.0, 50.0])  # right at the root, then left
    assert_same(tree.routes(torch.zeros(1, 1)), torch.tensor([[0.0, 0.0, 1.0, 0.0]]))


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


def test_value_leaves_start_at_the_means_of_their_rows() -> None:
    routes, y = fixed_routes(), random(200, 1, seed=1)
    means = (routes.T @ y) / routes.sum(0)[:, None]
    assert_same(value_leaves(routes, y, torch.full((8, 1), 0.3, dtype=torch.float64), iterations=1), means)


def test_a_leaf_that_no_row_reaches_stays_as_it_was() -> None:
    routes = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert_same(class_leaves(routes, torch.tensor([0, 1]), torch.full((2, 2), 0.5)), torch.full((2, 2), 0.5))
    values = value_leaves(routes, torch.tensor([[1.0], [3.0]]), torch.zeros(2, 1))
    assert_same(values, torch.tensor([[2.0], [0.0]]))


def test_ndf_has_the_parameters_of_the_paper_but_for_one_split() -> None:
    tree = SoftTree(11, 1024, 6, 2, classes=True)
    assert count_parameters(tree) + tree.leaves.numel() == 78016 - 1025


# ANT


def xor(n: int) -> tuple[Rows, npt.NDArray[np.int64]]:
    x = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int64)


def linear_solvers() -> ANT:
    """More than 1% of the validation loss is not saved by chance."""
    return ANT("classes", layers=0, max_depth=1, batch_size=50, learning_rate=0.02, min_gain=0.01)


def test_a_tree_of_linear_solvers_grows_on_xor() -> None:
    x, y = xor(700)
    tree = linear_solvers().fit(x[:400], y[:400], x[400:500], y[400:500])
    assert tree.module_.root.n_leaves == 2
    assert (tree.predict(x[500:]) == y[500:]).mean() > 0.9


def test_a_tree_of_linear_solvers_does_not_grow_on_a_linear_problem() -> None:
    x, _ = xor(1400)
    noise = np.random.default_rng(1).logistic(size=1400)
    y = (2 * x[:, 0] + x[:, 1] + noise > 0).astype(np.int64)
    tree = linear_solvers().fit(x[:800], y[:800], x[800:], y[800:])
    assert tree.module_.root.n_leaves == 1


def test_a_tree_does_not_grow_beyond_its_depth() -> None:
    x, y = xor(200)
    tree = ANT("classes", layers=0, max_depth=0, growing_epochs=2, tuning_epochs=2).fit(x, y)
    assert tree.module_.root.n_leaves == 1


def test_a_leaf_and_what_is_around_it_make_the_prediction() -> None:
    leaves = [Leaf(3, 2, layers=1, dropout=0.0, classes=True).double() for _ in range(3)]
    tree = AdaptiveTree(Split(3, leaves[0], Split(3, *leaves[1:])), classes=True).double()
    x = random(10, 3)
    for leaf in leaves:
        packed = _pack(tree, leaf, x)
        reach, rest = packed[:, 3:4], packed[:, 4:]
        assert ((reach > 0) & (reach < 1)).all()
        assert_same(rest + reach * leaf(x), tree(x).exp())


@pytest.mark.parametrize(("features", "layers", "count"), [(90, 4, 179265), (136, 2, 17217), (699, 2, 53249)])
def test_a_solver_has_the_parameters_of_the_paper(features: int, layers: int, count: int) -> None:
    assert count_parameters(Leaf(features, 1, layers, dropout=0.0, classes=False)) == count


def test_tuning_that_worsens_the_validation_loss_is_undone() -> None:
    x, y = xor(300)
    tree = ANT("classes", layers=1, max_depth=0, growing_epochs=2, tuning_epochs=1).fit(x[:200], y[:200])
    before = {name: values.clone() for name, values in tree.module_.state_dict().items()}
    train, valid = tree._samples(x[:200], y[:200]), tree._samples(x[200:], y[200:])
    tree.learning_rate = 3.0
    tree._tune(0.5, train, valid)
    assert min(tree.history_["valid_loss"]) > 0.5
    for name, values in tree.module_.state_dict().items():
        assert torch.equal(values, before[name])


# NODE


def test_shares_of_an_oblivious_tree_sum_to_one() -> None:
    trees = ObliviousTrees(5, trees=4, depth=3, outputs=2)
    x = torch.randn(50, 5)
    trees.initialize(x)
    assert trees.shares(x).shape == (50, 4, 8)
    assert_same(trees.shares(x).sum(2), torch.ones(50, 4))


def test_thresholds_start_inside_the_data_with_no_row_wholly_on_a_side() -> None:
    trees = ObliviousTrees(5, trees=4, depth=3, outputs=2)
    x = 100 + 3 * torch.randn(50, 5)
    trees.initialize(x)
    chosen = trees.chosen(x)
    assert ((trees.threshold >= chosen.amin(0)) & (trees.threshold <= chosen.amax(0))).all()
    assert (trees.shares(x) > 0).all()


def test_a_later_layer_sees_the_table_and_the_layers_before() -> None:
    ensemble = ObliviousEnsemble(5, trees=[4, 6, 2], depth=2, outputs=2)
    seen = [layer.choice.shape[0] for layer in ensemble.layers]  # type: ignore[index]
    assert seen == [5, 5 + 4 * 3, 5 + 10 * 3]


def test_an_ensemble_says_the_same_in_pieces() -> None:
    ensemble = ObliviousEnsemble(5, trees=[4, 4], depth=2, outputs=2)
    x = torch.randn(1300, 5)
    together = ensemble.train()(x)
    assert_same(ensemble.eval()(x), together)


def test_two_layers_fit_a_table() -> None:
    x, y = table(400)
    node = NODE("values", trees=8, layers=2, depth=3, learning_rate=0.05, batch_size=32, max_epochs=30).fit(x, y)
    assert np.mean((node.predict(x) - y) ** 2) < 0.3 * y.var()


# All of them


@METHODS
def test_a_log_loss_is_that_of_the_logits(method: type[TorchMethod]) -> None:
    x, values = table(80)
    y = classes(values)
    fitted = method("classes", **FAST[method]).fit(x, y)
    with torch.no_grad():
        expected = torch.nn.functional.cross_entropy(fitted.module_(torch.from_numpy(x)), torch.from_numpy(y))
    assert fitted.log_loss(x, y) == pytest.approx(float(expected), rel=1e-4)


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


SHORT: dict[type[TorchMethod], dict[str, Any]] = {
    method: options | ({"growing_epochs": 2, "tuning_epochs": 2} if method is ANT else {"max_epochs": 2})
    for method, options in FAST.items()
}


@METHODS
def test_the_same_seed_gives_the_same_predictions_and_leaves_torch_as_it_was(method: type[TorchMethod]) -> None:
    x, values = table(100)
    state = torch.get_rng_state()
    first, again = (method("classes", random_state=3, **SHORT[method]).fit(x, classes(values)) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    for one, other in zip(first.module_.state_dict().values(), again.module_.state_dict().values(), strict=True):
        assert torch.equal(one, other)


@METHODS
@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_are_enough(method: type[TorchMethod], n: int) -> None:
    x, values = table(n)
    assert method("classes", **SHORT[method]).fit(x, classes(values)).predict(x).shape == (n,)


@METHODS
def test_a_class_that_only_validation_has_is_no_error(method: type[TorchMethod]) -> None:
    x, _ = table(40)
    for valid in (np.arange(20) % 3, np.full(20, 2)):
        fitted = method("classes", **SHORT[method]).fit(x[:20], np.arange(20) % 2, x[20:], valid)
        assert set(fitted.predict(x)) <= {0, 1}


def test_rows_held_out_are_not_trained_with() -> None:
    rows, held_out = hold_out(101, seed=0)
    assert len(held_out) == 20
    assert sorted([*rows, *held_out]) == list(range(101))


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (DNDT, {"temperature": 0}, "temperature must be from 1e-06 to 1, got 0"),
        (NDF, {"depth": 0}, "depth must be from 1 to 16, got 0"),
        (ANT, {"dropout": 1}, "dropout must be from 0 to 0.99, got 1"),
        (NODE, {"trees": 2, "layers": 3}, "layers must be from 1 to 2, got 3"),
    ],
)
def test_options_out_of_range_are_named(method: type[TorchMethod], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputValueError, match=message):
        method("classes", **options)
