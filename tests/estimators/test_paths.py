"""The hard tree: which nodes are kept, which paths rows take, and what they predict at their ends."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.tree import Tree
from tests.estimators.problems import KINDS, SPLITS, Floats, classifier, labels, regressor, table, values
from tests.tolerances import SAME_ROW, SAME_TRAINING

X = table(columns=4)
NEW = table(300, columns=4, seed=1)


def walk(tree: Tree, row: Floats) -> list[int]:
    """The nodes on the path of an encoded row, by the definition of the tree."""
    assert tree.weight is not None
    assert tree.bias is not None
    path = [0]
    while path[-1] < len(tree.bias):
        t = path[-1]
        score = sum(float(w) * float(x) for w, x in zip(tree.weight[t], row, strict=True)) + float(tree.bias[t])
        child = 2 * t + 1 if score < 0 else 2 * t + 2
        if not tree.kept[child]:
            break
        path.append(child)
    return path


@cache
def pruned(**options: Any) -> Any:
    """A tree of depth 4 of which some nodes are pruned."""
    tree = regressor(depth=4, pruning_strength=4.0, **options).fit(X, values(X))
    assert 1 < tree.kept_nodes_.sum() < 31
    return tree


@pytest.mark.parametrize("split", ["linear", "elu"])
def test_rows_walk_through_the_tree(split: str) -> None:
    tree = pruned(split=split)
    walks = [walk(tree.tree_, row) for row in tree.encoder_.transform(NEW)]
    ends = [nodes[-1] for nodes in walks]
    assert_array_equal(tree.apply(NEW), ends)
    paths = tree.decision_path(NEW)
    assert (paths.shape, paths.dtype) == ((300, 31), bool)
    assert [paths[[row]].nonzero()[1].tolist() for row in range(300)] == walks
    value = dict(zip(tree.apply(X).tolist(), tree.predict(X, hard=True).tolist(), strict=True))
    predicted = tree.predict(NEW, hard=True)
    assert_array_equal(predicted, [value.get(end, alone) for end, alone in zip(ends, predicted, strict=True)])
    assert set(predicted) <= set(value.values())


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_the_last_node_of_a_path_is_where_a_row_ends(split: str, leaf: str) -> None:
    tree = classifier(depth=3, split=split, leaf=leaf, pruning_strength=4.0).fit(X, labels(X))
    paths = tree.decision_path(NEW).toarray()
    assert_array_equal(paths.shape[1] - 1 - paths[:, ::-1].argmax(1), tree.apply(NEW))
    assert tree.kept_nodes_[paths.any(0)].all()


def test_kept_nodes_are_a_tree_whose_masses_fall() -> None:
    tree = pruned()
    kept, mass = tree.kept_nodes_, tree.node_mass_
    assert kept[0]
    assert all(kept[(t - 1) // 2] for t in np.flatnonzero(kept)[1:])
    assert all(mass[t] <= mass[(t - 1) // 2] for t in range(1, len(mass)))
    assert_allclose(tree.tree_.share, tree.decision_path(X).toarray().mean(0), rtol=1e-12)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_more_pruning_keeps_fewer_nodes(make: Any) -> None:
    sizes = []
    for strength in (0.0, 3.0, 10.0, 1e9):
        tree = make(depth=5, pruning_strength=strength).fit(X, labels(X) if make is classifier else values(X))
        kept = np.flatnonzero(tree.kept_nodes_)
        assert tree.get_depth() == max(len(bin(t + 1)) - 3 for t in kept) <= tree.depth
        assert tree.get_n_leaves() == sum(2 * t + 1 not in kept and 2 * t + 2 not in kept for t in kept)
        sizes.append(len(kept))
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (63, 1)
    assert make is classifier or len(set(sizes)) == 4
    assert not tree.apply(X).any()
    assert len(set(tree.predict(X, hard=True))) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_values_at_the_ends_are_the_means_of_the_training_rows_there(weighted: bool) -> None:
    weight = np.linspace(0.5, 2, len(X)) if weighted else np.ones(len(X))
    y = 1000 + values(X)
    tree = regressor(depth=3, pruning_strength=3.0).fit(X, y, sample_weight=weight)
    linear = regressor(depth=3, leaf="linear", pruning_strength=3.0).fit(X, y, sample_weight=weight)
    ends, error = tree.apply(X), linear.predict(X, hard=True) - y
    for node in np.unique(ends):
        there = ends == node
        expected = np.average(y[there], weights=weight[there])
        assert_allclose(tree.predict(X[there], hard=True), expected, rtol=0, atol=SAME_TRAINING * y.std())
    for node in np.unique(linear.apply(X)):
        there = linear.apply(X) == node
        assert abs(np.average(error[there], weights=weight[there])) < SAME_TRAINING * y.std()


def test_means_at_the_ends_are_exact_for_many_rows() -> None:
    """Sums in single precision were off by more than the rounding of the sum."""
    x = table(200_000, 2)
    tree = regressor(depth=1, max_epochs=1, early_stopping_rounds=None).fit(x, x[:, 0])
    ends = tree.apply(x)
    means = np.array([x[ends == node, 0].mean() if (ends == node).any() else np.nan for node in range(3)])
    assert_allclose(tree.predict(x, hard=True), means[ends], rtol=0, atol=SAME_ROW)


def test_probabilities_at_the_ends_are_frequencies_with_one_row_more() -> None:
    y = labels(X, "abc")
    tree = classifier(depth=3, pruning_strength=3.0).fit(X, y)
    ends = tree.apply(X)
    one_hot = (y[:, None] == tree.classes_).astype(float)
    for node in np.unique(ends):
        there = one_hot[ends == node]
        expected = (there.sum(0) + one_hot.mean(0)) / (len(there) + 1)
        assert_allclose(tree.predict_proba(X[ends == node], hard=True)[0], expected, rtol=SAME_TRAINING)


@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
@pytest.mark.parametrize("split", ["linear", "mlp"])
def test_a_tree_of_one_node(split: str, leaf: str) -> None:
    tree = regressor(depth=0, split=split, leaf=leaf, max_epochs=60).fit(X, X[:, 0])
    assert tree.get_n_leaves() == 1
    assert tree.decision_path(X).sum() == len(X)
    assert (tree.feature_importances_[0] > 0.5) == tree.feature_importances_.any() == (leaf != "constant")
    assert (tree.score(X, X[:, 0]) > 0.5) == (leaf != "constant")
    assert_allclose(tree.predict(X, hard=True), tree.predict(X), atol=0.05)


@pytest.mark.parametrize("split", SPLITS)
def test_importances_find_the_feature_that_matters(split: str) -> None:
    x = table(200, columns=4)
    tree = regressor(depth=1, split=split, max_epochs=30).fit(x, x[:, 2])
    assert tree.feature_importances_.sum() == pytest.approx(1.0)
    assert tree.feature_importances_[2] > 0.8


def test_importances_of_categories_are_those_of_their_levels() -> None:
    x = np.column_stack((table(200, 1)[:, 0].astype(object), np.array(list("abcd"))[np.arange(200) % 4]))
    tree = regressor(depth=2, max_epochs=30).fit(x, np.arange(200) % 4 == 2)
    assert len(tree.feature_importances_) == 2
    assert tree.feature_importances_[1] > 0.8
    # Each level's weight counted as much as a number's: 30 levels that say nothing had an importance of 0.8.
    x = table(400, 1).astype(object)
    level = np.random.default_rng(2).integers(0, 30, size=400).astype(str)
    tree = regressor(depth=1, max_epochs=200).fit(np.column_stack((x, level)), x[:, 0].astype(float))
    assert tree.feature_importances_[0] > 0.7
