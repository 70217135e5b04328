"""The hard tree: which nodes are kept, which paths rows take, and what they predict at their ends."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.tree import Tree
from tests.estimators.problems import KINDS, Floats, classifier, labels, regressor, table, values
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


def pruned(kind: Any = regressor, **options: Any) -> Any:
    """A tree of depth 4 of which some nodes are pruned."""
    tree = kind(depth=4, pruning_strength=4.0, **options).fit(X, labels(X) if kind is classifier else values(X))
    assert 1 < tree.kept_nodes_.sum() < 31
    return tree


@pytest.mark.parametrize("split", ["linear", "elu"])
def test_rows_end_where_a_walk_through_the_tree_ends(split: str) -> None:
    tree = pruned(split=split)
    encoded = tree.encoder_.transform(NEW)
    assert_array_equal(tree.apply(NEW), [walk(tree.tree_, row)[-1] for row in encoded])


def test_hard_predictions_depend_on_the_end_of_the_walk_alone() -> None:
    tree = pruned()
    ends = [walk(tree.tree_, row)[-1] for row in tree.encoder_.transform(NEW)]
    value = dict(zip(tree.apply(X).tolist(), tree.predict(X, hard=True).tolist(), strict=True))
    predicted = tree.predict(NEW, hard=True)
    assert_array_equal(predicted, [value.get(end, alone) for end, alone in zip(ends, predicted, strict=True)])
    assert set(predicted) <= set(value.values())


def test_a_decision_path_has_the_nodes_of_the_walk() -> None:
    tree = pruned()
    paths = tree.decision_path(NEW)
    assert paths.shape == (300, 31)
    assert paths.dtype == bool
    for row, encoded in enumerate(tree.encoder_.transform(NEW)):
        assert paths[[row]].nonzero()[1].tolist() == walk(tree.tree_, encoded)


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_the_last_node_of_a_path_is_where_a_row_ends(split: str, leaf: str) -> None:
    tree = classifier(depth=3, split=split, leaf=leaf, pruning_strength=4.0).fit(X, labels(X))
    paths = tree.decision_path(NEW).toarray()
    assert_array_equal(paths.shape[1] - 1 - paths[:, ::-1].argmax(1), tree.apply(NEW))
    assert tree.kept_nodes_[paths.any(0)].all()


@pytest.mark.parametrize("strength", [0.0, 1.0, 4.0, 1e9])
def test_depth_and_leaves_are_those_of_the_kept_nodes(strength: float) -> None:
    tree = regressor(depth=4, pruning_strength=strength).fit(X, values(X))
    kept = np.flatnonzero(tree.kept_nodes_)
    assert tree.get_depth() == max(len(bin(t + 1)) - 3 for t in kept)
    assert tree.get_n_leaves() == sum(2 * t + 1 not in kept and 2 * t + 2 not in kept for t in kept)
    assert tree.get_depth() <= tree.depth


def test_parents_of_kept_nodes_are_kept() -> None:
    kept = pruned().kept_nodes_
    assert kept[0]
    assert all(kept[(t - 1) // 2] for t in np.flatnonzero(kept)[1:])


def test_masses_fall_along_paths() -> None:
    mass = pruned().node_mass_
    assert all(mass[t] <= mass[(t - 1) // 2] for t in range(1, len(mass)))


@pytest.mark.parametrize("kind", [classifier, regressor])
def test_no_pruning_keeps_every_node(kind: Any) -> None:
    tree = kind(depth=4, pruning_strength=0).fit(X, labels(X))
    assert tree.kept_nodes_.all()
    assert tree.get_n_leaves() == 16


@pytest.mark.parametrize("kind", [classifier, regressor])
def test_huge_pruning_keeps_the_root_only(kind: Any) -> None:
    tree = kind(pruning_strength=1e9).fit(X, labels(X))
    assert np.flatnonzero(tree.kept_nodes_).tolist() == [0]
    assert tree.get_depth() == 0
    assert not tree.apply(X).any()
    assert len(set(tree.predict(X, hard=True))) == 1


def test_more_pruning_keeps_fewer_nodes() -> None:
    kept = [regressor(depth=5, pruning_strength=s).fit(X, values(X)).kept_nodes_.sum() for s in (0.0, 3.0, 10.0)]
    assert kept == sorted(kept, reverse=True)
    assert len(set(kept)) == 3


def test_shares_are_those_of_the_training_rows() -> None:
    tree = pruned()
    passing = tree.decision_path(X).toarray().mean(0)
    assert_allclose(tree.tree_.share, passing, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_at_the_ends_are_the_means_of_the_training_rows_there(weighted: bool) -> None:
    weight = np.linspace(0.5, 2, len(X)) if weighted else np.ones(len(X))
    y = 1000 + values(X)
    tree = regressor(depth=3, pruning_strength=3.0).fit(X, y, sample_weight=weight)
    ends = tree.apply(X)
    for node in np.unique(ends):
        there = ends == node
        expected = np.average(y[there], weights=weight[there])
        assert_allclose(tree.predict(X[there], hard=True), expected, rtol=0, atol=SAME_TRAINING * y.std())


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


def test_linear_models_at_the_ends_have_no_mean_error_there() -> None:
    tree = regressor(depth=3, leaf="linear", pruning_strength=3.0).fit(X, values(X))
    ends, error = tree.apply(X), tree.predict(X, hard=True) - values(X)
    for node in np.unique(ends):
        assert abs(error[ends == node].mean()) < SAME_TRAINING


@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
@pytest.mark.parametrize("split", ["linear", "mlp"])
def test_a_tree_of_one_node(split: str, leaf: str) -> None:
    tree = regressor(depth=0, split=split, leaf=leaf, max_epochs=60).fit(X, X[:, 0])
    assert tree.get_n_leaves() == 1
    assert tree.decision_path(X).sum() == len(X)
    assert (tree.feature_importances_[0] > 0.5) == (leaf != "constant")
    assert tree.feature_importances_.any() == (leaf != "constant")
    assert (tree.score(X, X[:, 0]) > 0.5) == (leaf != "constant")
    assert_allclose(tree.predict(X, hard=True), tree.predict(X), atol=0.05)


@pytest.mark.parametrize("split", ["linear", "elu", "mlp", "sparse_mlp"])
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


def test_a_category_of_many_levels_is_not_important_for_their_number() -> None:
    """Each level's weight counted as much as a number's: 30 levels that say nothing had an importance of 0.8."""
    x = table(400, 1).astype(object)
    level = np.random.default_rng(2).integers(0, 30, size=400).astype(str)
    tree = regressor(depth=1, max_epochs=200).fit(np.column_stack((x, level)), x[:, 0].astype(float))
    assert tree.feature_importances_[0] > 0.7
