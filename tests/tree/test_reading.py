"""The record that is read from trained arrays and rows."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prunus.tree import reading
from prunus.tree.prediction import find_ends, find_leaves, hard_outputs
from prunus.tree.reading import TrainedRows, best_pruning, keep_pairs, read_tree
from tests.estimators.problems import classifier, labels, table
from tests.tree.problems import LEAVES, MASS, SPLITS, D, K, T, floats

X = floats(200, D, seed=9)
WANTED = floats(200, K, seed=10)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, size=200)


def residual(wanted: Any, outputs: Any, weight: Any, ends: Any, n_nodes: int) -> Any:
    """The mean residual of the rows that end in each node."""
    found = np.zeros((n_nodes, K))
    for t in np.unique(ends):
        here = ends == t
        given = None if weight is None else weight[here]
        found[t] = np.average(wanted[here].astype(np.float64) - outputs[here], axis=0, weights=given)
    return found


def read(leaves: str = "slope", *, weight: Any = WEIGHT, lam: float = 20.0) -> Any:
    rows = TrainedRows(X, WANTED, weight, np.array([0, 1, 1]), 2)
    return read_tree(
        SPLITS["linear"],
        LEAVES[leaves],
        MASS,
        rows,
        prune=lambda total, _leaf: best_pruning(total, lam),
        correct=residual,
        compared=lambda outputs: outputs,
        n_parameters=1,
    )


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
def test_statistics_are_those_of_the_rows_that_pass(weight: Any) -> None:
    tree = read(weight=weight)
    ends = find_ends(tree, X)
    given = np.ones(len(X)) if weight is None else weight
    for t in np.flatnonzero(tree.kept).tolist():
        below = [t, *(s for s in range(T) if t in _ancestors(s))]
        passes = np.isin(ends, below)
        assert tree.share[t] == pytest.approx(given[passes].sum() / given.sum())
        mean = np.average(WANTED[passes], axis=0, weights=given[passes])
        assert_allclose(tree.mean[t], mean, rtol=1e-5, atol=1e-6)
        variance = np.average((WANTED[passes] - mean) ** 2, axis=0, weights=given[passes])
        assert_allclose(tree.spread[t], variance**0.5, rtol=1e-5)


def _ancestors(t: int) -> list[int]:
    return [] if t == 0 else [(t - 1) // 2, *_ancestors((t - 1) // 2)]


@pytest.mark.parametrize("leaves", LEAVES)
def test_the_correction_leaves_no_mean_residual_in_a_node(leaves: str) -> None:
    tree = read(leaves)
    ends = find_ends(tree, X)
    residuals = (WANTED - hard_outputs(tree, X, ends)) * WEIGHT[:, None]
    for t in np.unique(ends):
        assert_allclose(residuals[ends == t].sum(0), 0.0, atol=1e-4)


def test_rows_descend_once(monkeypatch: pytest.MonkeyPatch) -> None:
    descents = []

    def counted(splits: Any, x: Any) -> Any:
        descents.append(len(x))
        return find_leaves(splits, x)

    monkeypatch.setattr(reading, "find_leaves", counted)
    read()
    assert descents == [200]


def test_importances_add_up_to_one_and_are_of_columns_of_the_table() -> None:
    importances = read().importances
    assert importances.shape == (2,)
    assert importances.sum() == pytest.approx(1.0)


def test_pairs_are_kept_where_a_split_parts_rows() -> None:
    total = np.array([10.0, 6.0, 4.0, 6.0, 0.0, 3.0, 1.0])
    kept = np.array([True, True, False, True, False, False, False])
    assert keep_pairs(kept, total).tolist() == [True, True, True, False, False, False, False]


def test_soft_and_hard_predictions_are_compared_at_the_end_of_a_fit() -> None:
    x = table()
    tree = classifier(depth=2).fit(x, labels(x))
    assert tree.tree_.agreement == np.mean(tree.predict(x) == tree.predict(x, hard=True))


def test_a_tree_of_one_node_has_nothing_to_compare() -> None:
    x = table()
    assert classifier(depth=0).fit(x, labels(x)).tree_.agreement is None
