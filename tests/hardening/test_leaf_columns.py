"""Linear models of few columns: which columns leaves choose, and how good the models are."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening import leaf_columns as module
from prunus.hardening.leaf_columns import best_groups, best_price, with_few_columns
from prunus.hardening.leaf_models import Fit, LeafModels, refit
from prunus.search.subsets import best_subsets
from prunus.training import LOSSES
from tests.hardening.problems import Doubles, rows

D = 6
ONE_EACH = np.arange(D)


def fit_rows(wanted: Any, x: Any, ends: Any = None, **changed: Any) -> Fit:
    n = len(x)
    usual: dict[str, Any] = {
        "x": x,
        "matrix": np.eye(x.shape[1]),
        "offset": np.zeros(x.shape[1]),
        "wanted": wanted,
        "shared": np.zeros_like(wanted),
        "weight": np.ones(n),
        "ends": np.zeros(n, dtype=np.int64) if ends is None else ends,
        "held_out": np.arange(n) % 4 == 0,
        "fitted": np.ones(n, dtype=bool),
        "loss": LOSSES["squared_error"],
    }
    return Fit(**usual | changed)


def short(fit: Fit, most: int, owner: Any = ONE_EACH, *, price: float = 1.0) -> tuple[LeafModels, LeafModels]:
    """The models with all columns, and those with few."""
    k, d = fit.wanted.shape[1], fit.x.shape[1]
    nodes = int(fit.ends.max()) + 1
    models = refit(LeafModels(np.zeros((nodes, k)), np.zeros((nodes, k, d))), fit)
    return models, with_few_columns(models, fit, np.asarray(owner), most, price)


def used(models: LeafModels, node: int, owner: Any = ONE_EACH) -> list[int]:
    """The columns of the table with a slope in a node."""
    return sorted(set(np.asarray(owner)[models.slope[node].any(0)].tolist()))


def error(models: LeafModels, fit: Fit) -> float:
    found: Doubles = models.outputs(fit.x, fit.ends) - fit.wanted
    return float(fit.weight @ np.square(found).mean(1) / fit.weight.sum())


def correlated(n: int = 600, *, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    x = rows(n, D, seed=seed)
    return (x + 0.9 * random.normal(size=(n, 1))).astype(np.float32)


@pytest.mark.parametrize("seed", range(5))
def test_groups_of_one_column_are_chosen_as_in_readable_trees(seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=(40, 5)) @ random.normal(size=(5, 7))[:, :5]
    gram, cross = x.T @ x, x.T @ random.normal(size=(40, 2))
    singles = [np.array([i]) for i in range(5)]
    assert best_groups(gram, cross, singles, 3, 0.5) == best_subsets(gram, cross, np.full(5, 0.5), 3)


@pytest.mark.parametrize("seed", range(5))
def test_two_groups_are_the_best_two_of_all_pairs(seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=(60, 8)) + random.normal(size=(60, 1))
    y = x @ random.normal(size=(8, 1))
    gram, cross = x.T @ x, x.T @ y
    groups = np.split(np.arange(8), [3, 5, 6])

    def explained(chosen: Any) -> float:
        columns = np.concatenate([groups[i] for i in chosen])
        return float((cross[columns] * np.linalg.solve(gram[np.ix_(columns, columns)], cross[columns])).sum())

    found = best_groups(gram, cross, groups, 2, 0.0)[-1]
    assert explained(found) == pytest.approx(max(map(explained, combinations(range(4), 2))))


def test_groups_that_gain_no_more_than_chance_are_not_chosen() -> None:
    cross = np.array([[1.0], [3.0], [0.1], [0.1]])
    groups = [np.array([0]), np.array([1]), np.array([2, 3])]
    assert best_groups(np.eye(4), cross, groups, 3, 0.5) == [[], [1], [1, 0]]
    assert best_groups(np.eye(4), cross, groups, 3, 100.0) == [[]]
    assert best_groups(np.eye(4), cross, [], 3, 0.5) == [[]]


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 2])
def test_no_leaf_uses_more_columns(most: int, k: int) -> None:
    x = correlated()
    wanted = x @ np.random.default_rng(1).normal(size=(D, k))
    _, models = short(fit_rows(wanted, x, np.arange(len(x)) % 3), most)
    assert [len(used(models, node)) for node in range(3)] == [most] * 3


def test_each_leaf_finds_its_own_columns_and_weights() -> None:
    x, ends = correlated(4000), np.arange(4000) % 2
    slope = np.zeros((2, 1, D))
    slope[0, 0, [1, 4]], slope[1, 0, [0, 5]] = (2.0, -1.0), (0.5, 3.0)
    true = LeafModels(np.array([[1.0], [-2.0]]), slope)
    fit = fit_rows(true.outputs(x, ends), x, ends)
    _, models = short(fit, 2)
    assert [used(models, node) for node in (0, 1)] == [[1, 4], [0, 5]]
    assert_allclose(models.slope, slope, atol=2e-3)
    assert_allclose(models.constant, true.constant, atol=2e-3)


def test_the_model_is_that_of_least_squares_on_its_columns() -> None:
    x = correlated(5000)
    wanted = x @ np.ones((D, 1)) + np.random.default_rng(0).normal(size=(5000, 1))
    fit = fit_rows(wanted, x)
    _, models = short(fit, 2)
    columns = used(models, 0)
    design = np.column_stack((np.ones(len(x)), x[:, columns]))
    best = np.linalg.lstsq(design, wanted, rcond=None)[0]
    assert error(models, fit) == pytest.approx(float(np.square(design @ best - wanted).mean()), rel=1e-3)


def test_levels_of_a_category_are_one_column() -> None:
    level = np.random.default_rng(0).integers(4, size=500)
    x = np.column_stack((np.eye(4)[level], rows(500, 2))).astype(np.float32)
    owner = np.array([0, 0, 0, 0, 1, 2])
    wanted = np.array([0.0, 5.0, -3.0, 1.0])[level][:, None] + x[:, 4:5] + 0.1 * x[:, 5:]
    _, models = short(fit_rows(wanted, x), 1, owner)
    assert used(models, 0, owner) == [0]
    assert np.count_nonzero(models.slope[0]) == 4
    _, models = short(fit_rows(wanted, x), 2, owner)
    assert used(models, 0, owner) == [0, 1]


def test_columns_that_say_nothing_are_not_used() -> None:
    x = correlated()
    wanted = 2 * x[:, :1] + np.random.default_rng(1).normal(size=(600, 1))
    _, models = short(fit_rows(wanted, x), D, price=4.0)
    assert used(models, 0) == [0]
    _, models = short(fit_rows(np.ones((600, 1)), x), D)
    assert used(models, 0) == []


def test_a_price_of_0_takes_as_many_columns_as_allowed() -> None:
    x = correlated(200)
    wanted = 2 * x[:, :1] + np.random.default_rng(1).normal(size=(200, 1))
    assert len(used(short(fit_rows(wanted, x), 2, price=0.0)[1], 0)) == 2


def test_as_many_columns_as_there_are_change_little() -> None:
    x = correlated()
    wanted = x @ np.random.default_rng(1).normal(size=(D, 2)) + 0.1 * np.random.default_rng(2).normal(size=(600, 2))
    fit = fit_rows(wanted, x)
    full, models = short(fit, D)
    assert error(models, fit) == pytest.approx(error(full, fit), rel=0.02)


@pytest.mark.parametrize("loss", ["cross_entropy", "binary_cross_entropy", "poisson"])
def test_columns_that_matter_for_other_losses_are_found(loss: str) -> None:
    random = np.random.default_rng(0)
    x, ends = correlated(3000), np.arange(3000) % 2
    score = np.where(ends == 0, 1.5 * x[:, 1] - x[:, 4], x[:, 0] + 0.7 * x[:, 5])
    if loss == "poisson":
        wanted = random.poisson(np.exp(np.clip(0.5 * score, -3, 3)))[:, None].astype(np.float64)
    else:
        second = random.random(3000) < 1 / (1 + np.exp(-score))
        wanted = second[:, None].astype(np.float64)
        if loss == "cross_entropy":
            wanted = np.column_stack((1 - wanted, wanted))
    fit = fit_rows(wanted, x, ends, loss=LOSSES[loss])
    _, models = short(fit, 2)
    assert [used(models, node) for node in (0, 1)] == [[1, 4], [0, 5]]
    out = models.outputs(x, ends)
    found = out[:, -1] - (out[:, 0] if out.shape[1] == 2 else 0.0)
    assert np.corrcoef(found, score)[0, 1] > 0.97


def test_classes_share_the_columns_of_a_leaf() -> None:
    x = correlated(2000)
    label = (x[:, [0, 2, 2]] * [1.0, 1.0, -1.0]).argmax(1)
    fit = fit_rows(np.eye(3)[label], x, loss=LOSSES["cross_entropy"])
    _, models = short(fit, 2)
    assert used(models, 0) == [0, 2]
    assert (models.outputs(x, fit.ends).argmax(1) == label).mean() > 0.9


@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_weights_are_repetitions(loss: str) -> None:
    x = correlated(90)
    wanted = np.eye(2)[(x[:, 0] + x[:, 3] > 0).astype(int)]
    times = 1 + np.arange(90) % 3
    nothing = np.zeros(90, dtype=bool)
    weighted = fit_rows(wanted, x, loss=LOSSES[loss], weight=times.astype(np.float64), held_out=nothing)
    again = np.arange(90).repeat(times)
    repeated = fit_rows(wanted[again], x[again], loss=LOSSES[loss], held_out=nothing[again])
    models = LeafModels(np.zeros((1, 2)), np.random.default_rng(0).normal(size=(1, 2, D)))
    fits = (module.with_few_columns(models, fit, ONE_EACH, 2, 0.0) for fit in (weighted, repeated))
    first, second = fits
    assert used(first, 0) == used(second, 0)


def test_a_weight_of_0_is_no_row() -> None:
    x = correlated(200)
    weight = (np.arange(200) % 5 > 0).astype(np.float64)
    wanted = x[:, :1] + x[:, 3:4]
    wrong = np.where(weight[:, None] > 0, wanted, 1e6 * x[:, 2:3])
    first, second = (short(fit_rows(y, x, weight=weight), 2)[1] for y in (wanted, wrong))
    assert_array_equal(first.slope, second.slope)


@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_few_rows_are_believed_less_than_the_model(loss: str) -> None:
    x = rows(8, D)
    models = LeafModels(np.zeros((1, 2)), np.zeros((1, 2, D)))
    models.slope[0, :, 2] = 3.0, -3.0
    noise = np.eye(2)[np.random.default_rng(1).integers(2, size=8)]
    fit = fit_rows(noise, x, loss=LOSSES[loss], held_out=np.zeros(8, dtype=bool))
    assert used(with_few_columns(models, fit, ONE_EACH, 1, 1.0), 0) == [2]


def test_nodes_without_rows_use_no_columns() -> None:
    x = correlated()
    models = LeafModels(np.zeros((3, 1)), np.ones((3, 1, D)))
    found = with_few_columns(models, fit_rows(x[:, :1], x, np.full(600, 2)), ONE_EACH, 1, 1.0)
    assert [len(used(found, node)) for node in range(3)] == [0, 0, 1]


def test_copies_and_constants_do_no_harm() -> None:
    x = correlated()
    x[:, 1], x[:, 2] = x[:, 0], 3.0
    wanted = x[:, :1] + 2 * x[:, 3:4]
    fit = fit_rows(wanted, x)
    _, models = short(fit, 3)
    assert np.isfinite(models.slope).all()
    assert error(models, fit) < 1e-4
    assert not models.slope[0, 0, 2]


def test_more_columns_than_are_looked_at_together() -> None:
    d = 500
    x = rows(400, d)
    wanted = 2 * x[:, 17:18] - x[:, 321:322]
    fit = fit_rows(wanted, x)
    models = LeafModels(np.zeros((1, 1)), np.zeros((1, 1, d)))
    found = with_few_columns(models, fit, np.arange(d), 2, 1.0)
    assert used(found, 0, np.arange(d)) == [17, 321]
    assert error(found, fit) < 0.05


def test_held_out_rows_choose_the_price() -> None:
    x = correlated(120)
    random = np.random.default_rng(2)
    held_out = np.arange(120) >= 60
    wanted = x[:, :1] + 0.3 * random.normal(size=(120, 1))
    fit = fit_rows(wanted, x, held_out=held_out, fitted=~held_out)
    models = refit(LeafModels(np.zeros((1, 1)), np.zeros((1, 1, D))), fit)
    assert best_price(models, fit, ONE_EACH, D) == max(module.PRICES)
    weak = x @ np.full((D, 1), 0.3) + 1.5 * random.normal(size=(120, 1))
    weak[held_out] = x[held_out] @ np.full((D, 1), 0.3)
    fit = fit_rows(weak, x, held_out=held_out, fitted=~held_out)
    models = refit(LeafModels(np.zeros((1, 1)), np.zeros((1, 1, D))), fit)
    assert best_price(models, fit, ONE_EACH, D) == min(module.PRICES)


def test_some_rows_of_a_large_leaf_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    x = correlated(3000)
    fit = fit_rows(x[:, :1] - 2 * x[:, 4:5], x)
    monkeypatch.setattr(module, "MOST_VALUES", 500 * D)
    _, models = short(fit, 2)
    assert used(models, 0) == [0, 4]
    assert error(models, fit) < 1e-4
