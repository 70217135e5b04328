"""The record that pictures of a tree are made from, compared with what the estimator does."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeRegressor

from prunus import ArgminTreeClusterer, tree_summary
from prunus.describe import NodeSummary
from prunus.errors import InputTypeError
from tests.estimators.problems import KINDS, as_pandas, classifier, labels, mixed, regressor, table, values
from tests.tolerances import ENCODED, SAME_TRAINING

X = table(columns=3) * [1.0, 100.0, 0.01] + [0.0, 5000.0, 1.0]


def nodes(tree: Any) -> dict[int, NodeSummary]:
    return {node.node: node for node in tree_summary(tree).nodes}


def pruned(**options: Any) -> Any:
    tree = regressor(depth=4, pruning_strength=4.0, **options).fit(X, values(X))
    assert 1 < tree.kept_nodes_.sum() < 31
    return tree


def test_weights_in_units_of_the_table_give_the_scores() -> None:
    tree = pruned()
    encoded = tree.encoder_.transform(X)
    inside = (np.abs(encoded) < 5).all(1)
    position = {f"x{feature}": feature for feature in range(3)}
    for t, node in nodes(tree).items():
        if node.threshold is None:
            continue
        expected = encoded @ tree.tree_.weight[t] + tree.tree_.bias[t]
        weights = np.zeros(3)
        weights[[position[weight.label] for weight in node.split]] = [weight.weight for weight in node.split]
        score = X @ weights - node.threshold
        assert_allclose(score[inside], expected[inside], atol=ENCODED * max(1.0, np.abs(expected).max()))


def test_rows_go_left_below_the_threshold() -> None:
    tree = pruned()
    root = nodes(tree)[0]
    assert root.threshold is not None
    sums = sum(weight.weight * X[:, int(weight.label[1:])] for weight in root.split)
    left = tree.decision_path(X).toarray()[:, 1]
    assert_array_equal(left, np.asarray(sums) < root.threshold)


def test_the_strongest_weight_comes_first() -> None:
    for node in nodes(pruned()).values():
        strengths = [abs(weight.strength) for weight in node.split]
        assert strengths == sorted(strengths, reverse=True)


def test_a_strength_does_not_depend_on_units() -> None:
    first, second = (nodes(regressor().fit(x, values(table())))[0].split for x in (table(), table() * 1000))
    assert_allclose([w.strength for w in first], [w.strength for w in second], rtol=SAME_TRAINING)
    assert_allclose([w.weight for w in first], [w.weight * 1000 for w in second], rtol=SAME_TRAINING)


def test_categories_have_names() -> None:
    frame = as_pandas(mixed())
    labels_of_root = {weight.label for weight in nodes(regressor().fit(frame, frame["count"]))[0].split}
    colors = {"color = blue", "color = green", "color = red"}
    missing = {"color is missing", "size is missing", "since is missing"}
    assert labels_of_root == {"size", "count", "member", "since"} | colors | missing


def test_a_category_of_a_row_gives_the_score() -> None:
    frame = as_pandas(mixed())[["color"]].dropna()
    tree = regressor().fit(frame, (frame["color"] == "red").astype(float))
    root = nodes(tree)[0]
    assert root.threshold is not None
    of_color = {weight.label.removeprefix("color = "): weight.weight for weight in root.split}
    left = tree.decision_path(frame).toarray()[:, 1]
    assert_array_equal(left, [of_color[color] < root.threshold for color in frame["color"]])


def test_constant_columns_take_no_part() -> None:
    x = np.column_stack((X, np.ones(len(X))))
    split = nodes(regressor().fit(x, values(X)))[0].split
    assert {weight.label for weight in split} == {"x0", "x1", "x2"}


@pytest.mark.parametrize("split", ["linear", "elu", "mlp", "sparse_mlp"])
def test_only_splits_that_are_linear_have_weights(split: str) -> None:
    root = nodes(regressor(split=split).fit(X, values(X)))[0]
    assert bool(root.split) == (root.threshold is not None) == (split in {"linear", "elu"})


def test_leaves_have_no_split() -> None:
    for node in nodes(pruned()).values():
        assert bool(node.split) != node.is_leaf


def test_nodes_are_the_kept_ones() -> None:
    tree = pruned()
    summary = tree_summary(tree)
    assert [node.node for node in summary.nodes] == np.flatnonzero(tree.kept_nodes_).tolist()
    assert [node.is_leaf for node in summary.nodes] == tree.tree_.is_leaf[tree.kept_nodes_].tolist()
    assert [node.mass for node in summary.nodes] == tree.node_mass_[tree.kept_nodes_].tolist()
    assert [node.depth for node in summary.nodes] == [len(bin(node.node + 1)) - 3 for node in summary.nodes]


def test_shares_are_those_of_the_training_rows() -> None:
    tree = pruned()
    passing = tree.decision_path(X).toarray().mean(0)
    assert_allclose([node.share for node in tree_summary(tree).nodes], passing[tree.kept_nodes_], rtol=1e-12)


def test_values_are_hard_predictions() -> None:
    tree = pruned()
    value = {t: node.value for t, node in nodes(tree).items()}
    for end, predicted in zip(tree.apply(X).tolist(), tree.predict(X, hard=True), strict=True):
        assert value[end] == (predicted,)


def test_values_of_several_outputs() -> None:
    tree = regressor().fit(X, np.column_stack((values(X), X[:, 1])))
    value = {t: node.value for t, node in nodes(tree).items()}
    assert_array_equal([value[end] for end in tree.apply(X).tolist()], tree.predict(X, hard=True))


def test_values_of_classes_are_probabilities() -> None:
    tree = classifier().fit(X, labels(X, "abc"))
    value = {t: node.value for t, node in nodes(tree).items()}
    assert_array_equal([value[end] for end in tree.apply(X).tolist()], tree.predict_proba(X, hard=True))


@pytest.mark.parametrize("leaf", ["linear", "mlp"])
def test_leaves_that_are_not_constant_have_no_value(leaf: str) -> None:
    assert all(node.value == () for node in nodes(regressor(leaf=leaf).fit(X, values(X))).values())


def test_agreement_of_classes_is_the_share_of_equal_labels() -> None:
    tree = classifier(max_epochs=2).fit(X, labels(X, "abc"))
    expected = np.mean(tree.predict(X) == tree.predict(X, hard=True))
    assert expected < 1
    assert tree_summary(tree, X).agreement == expected


def test_agreement_of_values_is_the_variance_explained() -> None:
    tree = regressor().fit(X, values(X))
    expected = r2_score(tree.predict(X), tree.predict(X, hard=True))
    assert tree_summary(tree, X).agreement == pytest.approx(expected)


def test_agreement_of_a_tree_that_predicts_a_constant() -> None:
    assert tree_summary(regressor().fit(X, np.ones(len(X))), X).agreement == 1.0


def test_no_rows_no_agreement() -> None:
    assert tree_summary(regressor().fit(X, values(X))).agreement is None


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_sizes(split: str, leaf: str) -> None:
    tree = classifier(depth=3, split=split, leaf=leaf).fit(X, labels(X, "abc"))
    summary = tree_summary(tree)
    assert (summary.kind, summary.leaf, summary.classes) == ("ArgminTreeClassifier", leaf, ("a", "b", "c"))
    assert (summary.depth, summary.n_leaves) == (tree.get_depth(), tree.get_n_leaves())
    assert (summary.n_nodes, summary.n_active) == (15, int((tree.node_mass_ > 0).sum()))
    assert summary.n_parameters == sum(parameter.numel() for parameter in tree.model_.parameters())


def test_a_regressor_has_no_classes() -> None:
    assert tree_summary(regressor().fit(X, values(X))).classes is None


def test_a_tree_of_one_node() -> None:
    (root,) = tree_summary(regressor(depth=0).fit(X, values(X))).nodes
    assert root.is_leaf
    assert root.share == 1.0


def test_an_estimator_that_is_not_fitted() -> None:
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        tree_summary(regressor())


@pytest.mark.parametrize("other", [DecisionTreeRegressor(), 3, regressor().get_params()])
def test_what_is_not_ours(other: Any) -> None:
    with pytest.raises(InputTypeError, match="estimator must be one of prunus, got"):
        tree_summary(other)


def test_distributions_are_those_of_the_training_rows_that_pass() -> None:
    tree, y = pruned(), values(X)
    path = tree.decision_path(X).toarray()
    for t, node in nodes(tree).items():
        passing = y[path[:, t]]
        assert_allclose(node.distribution, [passing.mean()], rtol=1e-5)
        assert_allclose(node.spread, [passing.std()], rtol=1e-5, atol=1e-6)


def test_distributions_of_classes_are_shares() -> None:
    y = labels(X)
    tree = classifier(depth=3).fit(X, y)
    path = tree.decision_path(X).toarray()
    for t, node in nodes(tree).items():
        assert_allclose(node.distribution, [(y[path[:, t]] == name).mean() for name in tree.classes_], atol=1e-6)
        assert node.spread == ()
    assert tree_summary(tree).outputs == tuple(map(str, tree.classes_))


def test_distributions_of_clusters_are_means_in_units_of_the_table() -> None:
    tree = ArgminTreeClusterer(depth=2, random_state=0).fit(X)
    path = tree.decision_path(X).toarray()
    summary = tree_summary(tree)
    assert summary.outputs == ("x0", "x1", "x2")
    for node in summary.nodes:
        passing = X[path[:, node.node]]
        assert_allclose(node.distribution, passing.mean(0), rtol=1e-4)
        assert_allclose(node.spread, passing.std(0), rtol=1e-3, atol=1e-4)


def test_pruned_children_are_counted() -> None:
    tree = pruned()
    kept = tree.kept_nodes_
    for t, node in nodes(tree).items():
        below = [child for child in (2 * t + 1, 2 * t + 2) if child < len(kept)]
        assert node.n_pruned == sum(not kept[child] for child in below)


def test_outputs_of_regressors_are_numbered() -> None:
    y = values(X)
    assert tree_summary(regressor().fit(X, y)).outputs == ("y",)
    assert tree_summary(regressor().fit(X, np.stack([y, -y], 1))).outputs == ("y0", "y1")
