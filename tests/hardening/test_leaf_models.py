"""Linear models of leaves: how they are refitted, and which columns they use if only few are allowed."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening import leaf_columns, leaf_models
from prunus.hardening.leaf_columns import best_groups, best_price, with_few_columns
from prunus.hardening.leaf_models import LeafData, LeafModels, read_models, refit
from prunus.search.terms import best_subsets
from prunus.training import LOSSES
from tests.hardening.problems import Doubles, rows, soft_tree
from tests.tolerances import ROUNDING

D, K = 3, 2
LARGE = 10_000
"""With this many rows a penalty matters little."""
Case = dict[str, Any]


def zero_models(nodes: int = 3, *, d: int = D, k: int = K) -> LeafModels:
    return LeafModels(np.zeros((nodes, k)), np.zeros((nodes, k, d)))


def random_models(seed: int = 3) -> LeafModels:
    random = np.random.default_rng(seed)
    return LeafModels(random.normal(size=(3, K)), random.normal(size=(3, K, D)))


def values(n: int = 4000, *, noise: float = 0.0, seed: int = 0) -> Case:
    """Rows whose targets are known linear functions, one for each of two leaves, and a map to other coordinates."""
    random = np.random.default_rng(seed)
    x = rows(n, D, seed=seed)
    ends = np.where(x[:, 0] < 0, 1, 2)
    matrix, offset = random.normal(size=(D, D)), random.normal(size=D)
    wanted = random_models().outputs(x, ends) + noise * random.normal(size=(n, K))
    return {"matrix": matrix, "offset": offset, "held_out": np.arange(n) % 4 == 0} | leaf_data(wanted, x, ends)


def classes(n: int, *, seed: int = 0) -> Case:
    """Rows whose classes are drawn with probabilities that are known in each of two leaves."""
    case, random = values(n, seed=seed), np.random.default_rng(seed + 1)
    odds = np.exp(case["wanted"][:, 1] - case["wanted"][:, 0])
    case["wanted"] = np.eye(K)[(random.random(n) < odds / (1 + odds)).astype(int)]
    return case | {"loss": LOSSES["cross_entropy"], "matrix": np.eye(D), "offset": np.zeros(D)}


def leaf_data(wanted: Any, x: Any, ends: Any = None) -> Case:
    n = len(x)
    return {
        "x": x,
        "wanted": wanted,
        "shared": np.zeros_like(wanted),
        "weight": np.ones(n),
        "ends": np.zeros(n, dtype=np.int64) if ends is None else ends,
        "fitted": np.ones(n, dtype=bool),
        "loss": LOSSES["squared_error"],
    }


def refitted(case: Case, models: LeafModels | None = None, **changed: Any) -> LeafModels:
    return refit(models or zero_models(), LeafData(**case | changed))


def chosen(case: Case, rows: Any) -> Case:
    """The case with these rows alone."""
    return case | {name: case[name][rows] for name in ("x", "wanted", "shared", "weight", "ends", "held_out", "fitted")}


def assert_near(found: LeafModels, expected: LeafModels, tolerance: float = 0.0) -> None:
    for part, wanted in ((found.constant, expected.constant), (found.slope, expected.slope)):
        assert_allclose(part, wanted, rtol=1e-7, atol=tolerance)


def error(models: LeafModels, case: Case) -> float:
    found: Doubles = models.outputs(case["x"], case["ends"]) - case["wanted"]
    return float(case["weight"] @ np.square(found).mean(1) / case["weight"].sum())


def test_outputs_are_those_of_the_leaf_of_each_row() -> None:
    models, x = random_models(), rows(20, D)
    ends = np.arange(20) % 3
    expected = [models.slope[node] @ row + models.constant[node] for node, row in zip(ends, x, strict=True)]
    assert_allclose(models.outputs(x, ends), expected)
    assert models.outputs(x[:0], ends[:0]).shape == (0, K)


def test_models_of_a_trained_tree_are_sums_along_paths() -> None:
    tree = soft_tree(d=D, k=K)
    models, x = read_models(tree), rows(30, D)
    leaf = torch.tensor([3, 4, 5, 6]).repeat(8)[:30]
    z = torch.zeros(30, 7)
    z[torch.arange(30), leaf] = z[torch.arange(30), (leaf - 1) // 2] = z[:, 0] = 1.0
    z[:, 0] = 1.0
    with torch.no_grad():
        expected = tree.head(tree.inputs(torch.from_numpy(x)), z).numpy()
    assert_allclose(models.outputs(x, leaf.numpy()), expected, rtol=1e-4, atol=1e-4)


def ridge(case: Case, models: LeafModels, strength: float) -> LeafModels:
    """What a refit of values is to find: a penalized least squares fit of what is missing, leaf by leaf."""
    constant, slope = models.constant.copy(), models.slope.copy()
    design = np.column_stack((np.ones(len(case["x"])), case["x"] @ case["matrix"].T + case["offset"]))
    missing = case["wanted"] - case["shared"] - models.outputs(case["x"], case["ends"])
    weight, penalty = case["weight"] * case["fitted"], strength * np.array([0.1, *[1.0] * case["x"].shape[1]])
    for node in np.unique(case["ends"][weight > 0]):
        own = (case["ends"] == node) & (weight > 0)
        root = np.sqrt(weight[own])[:, None]
        rows = np.concatenate((root * design[own], np.diag(np.sqrt(penalty))))
        change = np.linalg.lstsq(rows, np.concatenate((root * missing[own], np.zeros((len(penalty), K)))), rcond=None)[
            0
        ]
        slope[node] += change[1:].T @ case["matrix"]
        constant[node] += change[0] + change[1:].T @ case["offset"]
    return LeafModels(constant, slope)


@pytest.mark.parametrize("seed", range(4))
def test_values_are_refitted_by_penalized_least_squares(seed: int) -> None:
    random = np.random.default_rng(seed)
    case = values(90, noise=1.0, seed=seed)
    case |= {"weight": random.choice([0.0, 0.5, 2.0], 90), "shared": random.normal(size=(90, K))}
    case |= {"fitted": random.random(90) < 0.7, "held_out": np.zeros(90, dtype=bool)}
    before = random_models(8)
    assert_near(refitted(case, before), ridge(case, before, leaf_models.USUAL_STRENGTH), tolerance=1e-9)
    assert_near(before, random_models(8))  # is not changed


def test_models_do_not_change_if_that_is_best_for_held_out_rows() -> None:
    case, models = values(60, noise=5.0), random_models()
    wanted = case["wanted"].copy()
    wanted[case["held_out"]] = models.outputs(case["x"], case["ends"])[case["held_out"]]
    assert refitted(case, models, wanted=wanted) is models


def test_held_out_rows_choose_the_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    here = np.arange(80) % 2 == 0
    case = values(80, noise=3.0) | {"held_out": here, "fitted": ~here}

    def losses(models: LeafModels) -> Doubles:
        squares: Doubles = np.square(models.outputs(case["x"][here], case["ends"][here]) - case["wanted"][here]).mean(1)
        return squares

    by_held_out, of_strengths = refitted(case), {np.inf: losses(zero_models())}
    for strength in leaf_models.STRENGTHS:
        monkeypatch.setattr(leaf_models, "USUAL_STRENGTH", strength)
        of_strengths[strength] = losses(refitted(case, held_out=np.zeros(80, dtype=bool)))
    assert_allclose(losses(by_held_out), of_strengths[leaf_models.strongest(of_strengths)])


def test_the_strongest_of_equally_good_strengths_is_chosen() -> None:
    losses = np.random.default_rng(0).random(100)
    noise = np.random.default_rng(1).normal(size=100)
    assert leaf_models.strongest({1.0: losses, 2.0: losses + 1.0, 3.0: losses + noise - noise.mean()}) == 3.0
    assert leaf_models.strongest({1.0: losses, 2.0: losses + 1.0, np.inf: losses + 0.5}) == 1.0
    assert leaf_models.strongest({1.0: losses + 1.0, np.inf: losses}) == np.inf
    assert leaf_models.strongest({1.0: losses[:1], 2.0: losses[:1]}) == 2.0


def test_weights_of_classes_are_repetitions_and_rows_that_do_not_count_do_not_matter() -> None:
    nothing, some, times = np.zeros(60, dtype=bool), np.arange(60) % 3 > 0, 1 + np.arange(60) % 3
    case = classes(60) | {"held_out": nothing}
    weighted = refitted(case, weight=times.astype(np.float64))
    assert_near(weighted, refitted(chosen(case, np.arange(60).repeat(times))), tolerance=1e-5)
    wrong = np.where(some[:, None], case["wanted"], 0.5)
    assert_near(refitted(case, fitted=some, wanted=wrong), refitted(chosen(case, some)), tolerance=1e-9)


def test_with_many_columns_only_constants_are_refitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaf_models, "MAX_REFITTED", D - 1)
    case = values(LARGE)
    found = refitted(case)
    assert not found.slope.any()
    for node in (1, 2):
        assert_allclose(found.constant[node], case["wanted"][case["ends"] == node].mean(0), atol=1e-2)


def test_copies_of_a_column_make_no_trouble() -> None:
    case = values(200)
    case |= {"x": np.concatenate((case["x"], case["x"]), axis=1)}
    case |= {"matrix": np.kron(np.eye(2), case["matrix"]), "offset": np.tile(case["offset"], 2)}
    found = refitted(case, zero_models(d=2 * D))
    assert_allclose(found.slope[..., :D], found.slope[..., D:])
    assert error(found, case) < 1e-3


def test_classes_are_fitted_to_what_the_shared_part_leaves() -> None:
    case = classes(2000)
    shared = random_models().outputs(case["x"], case["ends"])  # knows all
    found = refitted(case, shared=shared)
    assert np.abs(found.outputs(case["x"], case["ends"])).mean() < 0.2


def test_known_probabilities_are_found() -> None:
    found, expected = refitted(classes(LARGE)), random_models()
    for part, true in ((found.constant, expected.constant), (found.slope, expected.slope)):
        assert_allclose(part[1:, 1] - part[1:, 0], true[1:, 1] - true[1:, 0], atol=0.2)


def test_separable_classes_have_finite_models() -> None:
    case = classes(100)
    case["wanted"] = np.eye(K)[(case["x"][:, 1] > 0).astype(int)]
    found = refitted(case)
    assert np.isfinite(found.slope).all()
    assert (found.outputs(case["x"], case["ends"]).argmax(1) == case["wanted"].argmax(1)).mean() > 0.95


@pytest.mark.parametrize("name", ["cross_entropy", "huber", "poisson"])
def test_the_gradient_of_a_refit_is_that_of_its_loss(name: str) -> None:
    random = np.random.default_rng(0)
    designs = [random.normal(size=(n, D)) for n in (5, 1, 8)]
    start, weight = random.normal(size=(K, 14)), random.uniform(size=(1, 14))
    wanted = random.dirichlet(np.ones(K), size=14).T
    change = torch.from_numpy(random.normal(size=(3, D, K))).requires_grad_()
    outputs = torch.cat([torch.from_numpy(x) @ own for x, own in zip(designs, change, strict=True)])
    losses = LOSSES[name](outputs + torch.from_numpy(start.T), torch.from_numpy(wanted.T))
    expected = (losses * torch.from_numpy(weight[0])).sum() + 0.3 * change.square().sum()
    (slope,) = torch.autograd.grad(expected, change)
    slopes = leaf_models.slopes_of(LOSSES[name])
    loss, grad = leaf_models._Penalized(designs, start, wanted, weight, 0.3, slopes)(change.detach().numpy())
    assert loss == pytest.approx(float(expected.detach()), rel=ROUNDING[torch.float64])
    assert_allclose(grad, slope, atol=ROUNDING[torch.float64])


def correlated(n: int = 600, d: int = 6) -> Any:
    return (rows(n, d) + 0.9 * np.random.default_rng(0).normal(size=(n, 1))).astype(np.float32)


def narrow(wanted: Any, x: Any, ends: Any = None, **changed: Any) -> Case:
    """Rows for models of few columns."""
    n, d = x.shape
    held_out = np.arange(n) % 4 == 0
    return {"matrix": np.eye(d), "offset": np.zeros(d), "held_out": held_out} | leaf_data(wanted, x, ends) | changed


def short(case: Case, most: int, owner: Any = None, *, price: float = 1.0, models: Any = None) -> LeafModels:
    """Models with few columns."""
    k, d = case["wanted"].shape[1], case["x"].shape[1]
    if models is None:
        models = refitted(case, zero_models(int(case["ends"].max()) + 1, d=d, k=k))
    return with_few_columns(models, LeafData(**case), np.arange(d) if owner is None else owner, most, price)


def used(models: LeafModels, owner: Any = None) -> list[list[int]]:
    """The columns of the table with a slope in each node."""
    owner = np.arange(models.slope.shape[2]) if owner is None else owner
    return [sorted(set(owner[slope.any(0)].tolist())) for slope in models.slope]


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_the_best_and_those_of_one_column_are_chosen_as_in_readable_trees(seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=(40, 5)) @ random.normal(size=(5, 7))[:, :5]
    gram, cross = x.T @ x, x.T @ random.normal(size=(40, 2))
    singles = [np.array([i]) for i in range(5)]
    assert best_groups(gram, cross, singles, 3, 0.5) == best_subsets(gram, cross, np.full(5, 0.5), 3)
    x = random.normal(size=(60, 8)) + random.normal(size=(60, 1))
    gram, cross, groups = x.T @ x, x.T @ (x @ random.normal(size=(8, 1))), np.split(np.arange(8), [3, 5, 6])

    def explained(chosen: Any) -> float:
        columns = np.concatenate([groups[i] for i in chosen])
        return float((cross[columns] * np.linalg.solve(gram[np.ix_(columns, columns)], cross[columns])).sum())

    found = best_groups(gram, cross, groups, 2, 0.0)[-1]
    assert explained(found) == pytest.approx(max(map(explained, combinations(range(4), 2))))


def test_groups_that_gain_no_more_than_chance_are_not_chosen() -> None:
    cross, groups = np.array([[1.0], [3.0], [0.1], [0.1]]), [np.array([0]), np.array([1]), np.array([2, 3])]
    assert best_groups(np.eye(4), cross, groups, 3, 0.5) == [[], [1], [1, 0]]
    assert best_groups(np.eye(4), cross, groups, 3, 100.0) == [[]]
    assert best_groups(np.eye(4), cross, [], 3, 0.5) == [[]]


def test_each_leaf_finds_its_own_columns_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    x, ends = correlated(4000), np.arange(4000) % 2
    true = zero_models(2, d=6, k=1)
    true.constant[:], true.slope[0, 0, [1, 4]], true.slope[1, 0, [0, 5]] = [[1.0], [-2.0]], (2.0, -1.0), (0.5, 3.0)
    case = narrow(true.outputs(x, ends), x, ends)
    models = short(case, 2)
    assert used(models) == [[1, 4], [0, 5]]
    assert_near(models, true, tolerance=2e-3)
    monkeypatch.setattr(leaf_columns, "MOST_VALUES", 500 * 6)  # some rows of a large leaf are enough
    assert_near(short(case, 2), true, tolerance=2e-3)


def test_the_model_is_that_of_least_squares_on_its_columns() -> None:
    x = correlated(5000)
    case = narrow(x @ np.ones((6, 1)) + np.random.default_rng(0).normal(size=(5000, 1)), x)
    models = short(case, 2)
    design = np.column_stack((np.ones(len(x)), x[:, used(models)[0]]))
    best = np.linalg.lstsq(design, case["wanted"], rcond=None)[0]
    assert error(models, case) == pytest.approx(float(np.square(design @ best - case["wanted"]).mean()), rel=1e-3)
    few = narrow(case["wanted"][:600], x[:600])
    assert error(short(few, 6), few) == pytest.approx(error(refitted(few, zero_models(1, d=6, k=1)), few), rel=0.02)


def test_levels_of_a_category_are_one_column() -> None:
    level = np.random.default_rng(0).integers(4, size=500)
    x = np.column_stack((np.eye(4)[level], rows(500, 2))).astype(np.float32)
    owner = np.array([0, 0, 0, 0, 1, 2])
    case = narrow(np.array([0.0, 5.0, -3.0, 1.0])[level][:, None] + x[:, 4:5] + 0.1 * x[:, 5:], x)
    models = short(case, 1, owner)
    assert used(models, owner) == [[0]]
    assert np.count_nonzero(models.slope[0]) == 4
    assert used(short(case, 2, owner), owner) == [[0, 1]]


def test_columns_that_say_nothing_are_used_only_at_a_price_of_0() -> None:
    x = correlated()
    case = narrow(2 * x[:, :1] + np.random.default_rng(1).normal(size=(600, 1)), x)
    assert used(short(case, 6, price=4.0)) == [[0]]
    assert used(short(narrow(np.ones((600, 1)), x), 6)) == [[]]
    assert len(used(short(case, 2, price=0.0))[0]) == 2


@pytest.mark.parametrize("loss", ["cross_entropy", "binary_cross_entropy", "poisson"])
def test_columns_that_matter_for_other_losses_are_found(loss: str) -> None:
    random = np.random.default_rng(0)
    x, ends = correlated(3000), np.arange(3000) % 2
    score = np.where(ends == 0, 1.5 * x[:, 1] - x[:, 4], x[:, 0] + 0.7 * x[:, 5])
    if loss == "poisson":
        wanted = random.poisson(np.exp(np.clip(0.5 * score, -3, 3)))[:, None].astype(np.float64)
    else:
        wanted = (random.random(3000) < 1 / (1 + np.exp(-score)))[:, None].astype(np.float64)
        wanted = np.column_stack((1 - wanted, wanted)) if loss == "cross_entropy" else wanted
    models = short(narrow(wanted, x, ends, loss=LOSSES[loss]), 2)
    assert used(models) == [[1, 4], [0, 5]]
    out = models.outputs(x, ends)
    assert np.corrcoef(out[:, -1] - (out[:, 0] if out.shape[1] == 2 else 0.0), score)[0, 1] > 0.97


def test_classes_share_the_columns_of_a_leaf() -> None:
    x = correlated(2000)
    label = (x[:, [0, 2, 2]] * [1.0, 1.0, -1.0]).argmax(1)
    case = narrow(np.eye(3)[label], x, loss=LOSSES["cross_entropy"])
    models = short(case, 2)
    assert used(models) == [[0, 2]]
    assert (models.outputs(x, case["ends"]).argmax(1) == label).mean() > 0.9


@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_weights_choose_columns_as_repetitions_do(loss: str) -> None:
    x, times, nothing = correlated(90), 1 + np.arange(90) % 3, np.zeros(90, dtype=bool)
    wanted = np.eye(2)[(x[:, 0] + x[:, 3] > 0).astype(int)]
    weighted = narrow(wanted, x, loss=LOSSES[loss], weight=times.astype(np.float64), held_out=nothing)
    models = LeafModels(np.zeros((1, 2)), np.random.default_rng(0).normal(size=(1, 2, 6)))
    repeated = chosen(weighted | {"weight": np.ones(90)}, np.arange(90).repeat(times))
    first, second = (short(case, 2, price=0.0, models=models) for case in (weighted, repeated))
    assert used(first) == used(second)
    some = (np.arange(90) % 5 > 0).astype(np.float64)
    wrong = np.where(some[:, None] > 0, wanted, 1e6 * x[:, 2:3])
    first, second = (short(narrow(y, x, weight=some), 2) for y in (wanted, wrong))
    assert_array_equal(first.slope, second.slope)


@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_few_rows_are_believed_less_than_the_model(loss: str) -> None:
    models = zero_models(1, d=6)
    models.slope[0, :, 2] = 3.0, -3.0
    noise = np.eye(2)[np.random.default_rng(1).integers(2, size=8)]
    case = narrow(noise, rows(8, 6), loss=LOSSES[loss], held_out=np.zeros(8, dtype=bool))
    assert used(short(case, 1, models=models)) == [[2]]


def test_nodes_without_rows_copies_and_constants_do_no_harm() -> None:
    x = correlated()
    models = LeafModels(np.zeros((3, 1)), np.ones((3, 1, 6)))
    assert list(map(len, used(short(narrow(x[:, :1], x, np.full(600, 2)), 1, models=models)))) == [0, 0, 1]
    x[:, 1], x[:, 2] = x[:, 0], 3.0
    case = narrow(x[:, :1] + 2 * x[:, 3:4], x)
    found = short(case, 3)
    assert np.isfinite(found.slope).all()
    assert error(found, case) < 1e-4
    assert not found.slope[0, 0, 2]


def test_more_columns_than_are_looked_at_together() -> None:
    x = rows(400, 500)
    case = narrow(2 * x[:, 17:18] - x[:, 321:322], x)
    found = short(case, 2, models=zero_models(1, d=500, k=1))
    assert used(found) == [[17, 321]]
    assert error(found, case) < 0.05


def test_held_out_rows_choose_the_price() -> None:
    x, random, held_out = correlated(120), np.random.default_rng(2), np.arange(120) >= 60
    strong = x[:, :1] + 0.3 * random.normal(size=(120, 1))
    weak = x @ np.full((6, 1), 0.3) + 1.5 * random.normal(size=(120, 1))
    weak[held_out] = x[held_out] @ np.full((6, 1), 0.3)
    for wanted, price in ((strong, max(leaf_columns.PRICES)), (weak, min(leaf_columns.PRICES))):
        case = narrow(wanted, x, held_out=held_out, fitted=~held_out)
        models = refitted(case, zero_models(1, d=6, k=1))
        assert best_price(models, LeafData(**case), np.arange(6), 6) == price
