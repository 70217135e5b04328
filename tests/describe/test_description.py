"""The description of a tree, compared with what the estimator does: whoever follows it gets the predictions."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import r2_score

from prunus import ArgminTreeClusterer, tree_summary
from prunus.data import OutputColumn, TableEncoder
from prunus.describe import Formula, NodeSummary, TreeSummary
from prunus.describe.functions import read_curve, split_column
from prunus.targets.links import LINKS
from tests.estimators.problems import KINDS, as_pandas, classifier, labels, mixed, regressor, table, values
from tests.render.problems import EXAMPLES, example
from tests.tolerances import CURVES, ENCODED, SAME_TRAINING

X = table(columns=3) * [1.0, 100.0, 0.01] + [0.0, 5000.0, 1.0]
FRAME = as_pandas(mixed(200))
Y = np.nan_to_num(FRAME["size"].to_numpy()) * FRAME["count"].to_numpy() + (FRAME["color"] == "red").to_numpy(float)
LEAVES = ("constant", "hard", "linear", "additive")
OTHERS = ("dates", "towns", "readable")
FOLLOWED = [name for name in EXAMPLES if any(leaf in name for leaf in LEAVES) and not name.startswith(OTHERS)]


def nodes(tree: Any) -> dict[int, NodeSummary]:
    return {node.node: node for node in tree_summary(tree).nodes}


def pruned(**options: Any) -> Any:
    tree = regressor(depth=4, pruning_strength=4.0, **options).fit(X, values(X))
    assert 1 < tree.kept_nodes_.sum() < 31
    return tree


def cell(value: Any) -> Any:
    """A value as curves take it."""
    if pd.isna(value):
        return None
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return value.timestamp() if isinstance(value, pd.Timestamp) else value


def counted(label: str, row: dict[str, Any]) -> float:
    """What the weight of a formula is multiplied by."""
    if label in row:
        value = row[label]
        return float(value == "true") if isinstance(value, str) else float(value)
    name, sign, level = label.partition(" = ")
    return float(row[name] == level) if sign else float(row[label.removesuffix(" is missing")] is None)


def at(formula: Formula, row: dict[str, Any]) -> float:
    total = formula.constant
    for part in formula.weights:
        total += part.weight * counted(part.label, row)
    low, high = (-np.inf if formula.low is None else formula.low, np.inf if formula.high is None else formula.high)
    return float(np.clip(total, low, high))


def told(summary: TreeSummary, node: NodeSummary, row: dict[str, Any], names: list[str]) -> npt.NDArray[np.float64]:
    """The prediction where a path ends, as the description tells it."""
    if node.value:
        return np.array(node.value)
    if node.offset:
        found = np.array(node.offset) + sum(curve.at(row[names[curve.feature]]) for curve in summary.curves)
    else:
        by_name = {formula.output.split(" ")[-1]: at(formula, row) for formula in node.formulas}
        found = np.array([by_name.get(name, np.nan) for name in summary.outputs])
        found = found[~np.isnan(found)]
    if summary.classes is None:
        return np.exp(found) if summary.link == "log" else found
    if len(found) == 1:
        second = LINKS["logit"].means(found[None])[0, 0]
        return np.array([1 - second, second])
    shares: npt.NDArray[np.float64] = LINKS["softmax"].means(found[None])[0]
    return shares


@pytest.mark.parametrize("name", FOLLOWED)
def test_who_follows_a_description_gets_the_prediction(name: str) -> None:
    tree, frame = example(name)
    frame, summary = frame.dropna()[:40], tree_summary(tree)
    by_number = {node.node: node for node in summary.nodes}
    is_classes = summary.classes is not None
    expected = np.asarray((tree.predict_proba if is_classes else tree.predict)(frame, hard=True)).reshape(40, -1)
    ends = tree.apply(frame).tolist()
    for i, (end, row) in enumerate(zip(ends, frame.itertuples(index=False), strict=True)):
        values_of_row = {column: cell(value) for column, value in zip(frame.columns, row, strict=True)}
        found = told(summary, by_number[end], values_of_row, list(frame.columns))
        assert_allclose(found, expected[i], atol=CURVES * max(1.0, np.abs(expected).max()))


def test_weights_in_units_of_the_table_give_the_scores() -> None:
    tree = pruned()
    encoded = tree.encoder_.transform(X)
    inside = (np.abs(encoded) < 5).all(1)
    for t, node in nodes(tree).items():
        assert bool(node.split) != node.is_leaf
        if node.threshold is None:
            continue
        expected = encoded @ tree.tree_.weight[t] + tree.tree_.bias[t]
        weights = np.zeros(3)
        weights[[int(weight.label[1:]) for weight in node.split]] = [weight.weight for weight in node.split]
        score = X @ weights - node.threshold
        assert_allclose(score[inside], expected[inside], atol=ENCODED * max(1.0, np.abs(expected).max()))
        assert_array_equal(tree.decision_path(X).toarray()[:, 1], score < 0) if t == 0 else None
        strengths = [abs(weight.strength) for weight in node.split]
        assert strengths == sorted(strengths, reverse=True)


def test_a_strength_does_not_depend_on_units() -> None:
    first, second = (nodes(regressor().fit(x, values(table())))[0].split for x in (table(), table() * 1000))
    assert_allclose([w.strength for w in first], [w.strength for w in second], rtol=SAME_TRAINING)
    assert_allclose([w.weight for w in first], [w.weight * 1000 for w in second], rtol=SAME_TRAINING)


def test_categories_have_names_and_constant_columns_take_no_part() -> None:
    frame = as_pandas(mixed()).assign(same=1.0)
    found = {weight.label for weight in nodes(regressor().fit(frame, frame["count"]))[0].split}
    colors = {"color = blue", "color = green", "color = red"}
    missing = {"color is missing", "size is missing", "since is missing"}
    assert found == {"size", "count", "member", "since"} | colors | missing


def test_a_category_of_a_row_gives_the_score() -> None:
    frame = as_pandas(mixed())[["color"]].dropna()
    tree = regressor().fit(frame, (frame["color"] == "red").astype(float))
    root = nodes(tree)[0]
    assert root.threshold is not None
    of_color = {weight.label.removeprefix("color = "): weight.weight for weight in root.split}
    left = tree.decision_path(frame).toarray()[:, 1]
    assert_array_equal(left, [of_color[color] < root.threshold for color in frame["color"]])


def test_nodes_are_the_kept_ones() -> None:
    tree = pruned()
    found, kept = tree_summary(tree).nodes, tree.kept_nodes_
    assert [node.node for node in found] == np.flatnonzero(kept).tolist()
    assert [node.is_leaf for node in found] == tree.tree_.is_leaf[kept].tolist()
    assert [node.mass for node in found] == tree.node_mass_[kept].tolist()
    assert [node.depth for node in found] == [len(bin(node.node + 1)) - 3 for node in found]
    assert_allclose([node.share for node in found], tree.decision_path(X).toarray().mean(0)[kept], rtol=1e-12)
    for node in found:
        below = [child for child in (2 * node.node + 1, 2 * node.node + 2) if child < len(kept)]
        assert node.n_pruned == sum(not kept[child] for child in below)


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_sizes(split: str, leaf: str) -> None:
    tree = classifier(depth=3, split=split, leaf=leaf).fit(X, labels(X, "abc"))
    summary = tree_summary(tree)
    assert (summary.kind, summary.leaf, summary.classes) == ("ArgminTreeClassifier", leaf, ("a", "b", "c"))
    assert (summary.depth, summary.n_leaves) == (tree.get_depth(), tree.get_n_leaves())
    assert (summary.n_nodes, summary.n_active) == (15, int((tree.node_mass_ > 0).sum()))
    assert summary.n_parameters == sum(parameter.numel() for parameter in tree.model_.parameters())
    root = summary.nodes[0]
    assert bool(root.split) == (root.threshold is not None) == (split in {"linear", "elu"})
    for node in summary.nodes:
        assert bool(node.value) == (leaf == "constant")
        assert bool(node.offset) == (leaf == "additive")
        assert not node.formulas or leaf == "linear"


def test_agreement_compares_hard_and_soft_predictions() -> None:
    tree = classifier(max_epochs=2).fit(X, labels(X, "abc"))
    assert 1 > np.mean(tree.predict(X) == tree.predict(X, hard=True)) == tree_summary(tree, X).agreement
    tree = regressor().fit(X, values(X))
    expected = r2_score(tree.predict(X), tree.predict(X, hard=True))
    assert tree_summary(tree, X).agreement == pytest.approx(expected)
    assert tree_summary(tree).agreement is None
    assert tree_summary(tree).classes is None
    assert tree_summary(regressor().fit(X, np.ones(len(X))), X).agreement == 1.0


def test_distributions_are_those_of_the_training_rows_that_pass() -> None:
    y, classes = values(X), labels(X)
    trees = (pruned(), classifier(depth=3).fit(X, classes), ArgminTreeClusterer(depth=2, random_state=0).fit(X))
    for tree, of_rows in zip(trees, (y[:, None], np.eye(2)[classes], X), strict=True):
        path = tree.decision_path(X).toarray()
        for t, node in nodes(tree).items():
            passing = of_rows[path[:, t]]
            assert_allclose(node.distribution, passing.mean(0), rtol=1e-4, atol=1e-6)
            expected = () if of_rows.shape[1] == 2 else passing.std(0)
            assert_allclose(node.spread, expected, rtol=1e-3, atol=1e-4)
    assert [tree_summary(tree).outputs for tree in trees] == [("y",), ("0", "1"), ("x0", "x1", "x2")]


def test_shares_of_absent_classes_are_zero() -> None:
    tree = classifier(depth=3, max_epochs=30).fit(X, labels(X, "abc"))
    found = [share for node in tree_summary(tree).nodes for share in node.distribution]
    assert min(found) == 0.0
    assert all(share == 0 or share > 0.01 for share in found)


def test_formulas_of_classes_come_in_the_order_of_their_shares() -> None:
    tree = classifier(leaf="linear", routing="hard").fit(X, labels(X, "abc"))
    for node in tree_summary(tree).nodes:
        if node.is_leaf:
            shares = dict(zip("abc", node.distribution, strict=True))
            order = [shares[formula.output[-1]] for formula in node.formulas]
            assert order == sorted(order, reverse=True)
    many = tree_summary(classifier(leaf="linear", depth=1).fit(X, labels(X, range(20))))
    assert {len(node.formulas) for node in many.nodes if node.is_leaf} == {10}


def test_curves_are_zero_for_typical_values_and_the_strongest_comes_first() -> None:
    tree = regressor(leaf="additive", pieces=4, routing="hard").fit(FRAME, Y)
    curves = tree_summary(tree).curves
    strengths = [curve.strength for curve in curves]
    assert strengths == sorted(strengths, reverse=True)
    assert strengths[0] > 0
    for curve in curves:
        reachable = np.array([*curve.values, *([] if curve.other is None else [curve.other])])
        assert (reachable.min(0) <= 1e-12).all()
        assert (reachable.max(0) >= -1e-12).all()
    far = FRAME.head(4).assign(size=[1e9, -1e9, 0.0, None], color=["pink", "pink", None, "red"])
    by_number, summary = nodes(tree), tree_summary(tree)
    for end, row, expected in zip(tree.apply(far), far.itertuples(index=False), tree.predict(far), strict=True):
        cells = dict(zip(far.columns, map(cell, row), strict=True))
        assert_allclose(
            told(summary, by_number[end], cells, list(far.columns)), expected, atol=CURVES * np.abs(Y).max()
        )
    assert tree_summary(ArgminTreeClusterer(depth=2, leaf="additive", random_state=0).fit(X)).curves == ()


def test_levels_without_a_column_are_the_others() -> None:
    encoder = TableEncoder().fit(pd.DataFrame({"color": ["red", "red", "blue"]}))
    curve = read_curve(encoder.columns_, np.array([[2.0]]))
    assert curve.points == ("blue",)
    assert curve.at("red").tolist() == curve.at("pink").tolist() == [0.0]
    assert curve.at("blue") == pytest.approx(2.0 * encoder.columns_[0].high)
    encoder = TableEncoder(max_categories=2).fit(pd.DataFrame({"color": list("aaabbcd")}))
    curve = read_curve(encoder.columns_, np.array([[1.0, 2.0, 3.0]]))
    assert curve.points == ("a", "b")
    encoded = encoder.transform(pd.DataFrame({"color": ["c", "new"]})) @ [1.0, 2.0, 3.0]
    assert_allclose(encoded, curve.at("c")[0], rtol=1e-6)


SIZE = OutputColumn(0, "size", "number", None, 10.0, 2.0, -5.0, 5.0)
MISSING = OutputColumn(0, "size", "missing", None, 0.0, 1.0, 0.0, 1.0)
PIECES = [OutputColumn(0, "size", "number", None, at, 1.0, 0.0, 1.0, piece=True) for at in (0.0, 1.0)]


@pytest.mark.parametrize(
    ("columns", "weight", "bias", "thresholds", "low_left", "missing_left"),
    [
        ([SIZE], [1.0], -0.5, (11.0,), True, None),
        ([SIZE], [-1.0], 0.5, (11.0,), False, None),
        ([SIZE, MISSING], [1.0, -1.0], -0.5, (11.0,), True, True),
        ([SIZE, MISSING], [1.0, 1.0], -0.5, (11.0,), True, False),
        ([SIZE, MISSING], [0.0, 1.0], -0.5, (), True, False),
        ([SIZE, *PIECES], [0.0, 2.0, -2.0], -1.0, (0.5, 1.5), True, None),
    ],
)
def test_a_split_of_one_column_has_thresholds(
    columns: Any, weight: Any, bias: float, thresholds: Any, low_left: bool, missing_left: bool | None
) -> None:
    found = split_column(columns, np.array(weight), bias)
    assert found is not None
    assert found.thresholds == pytest.approx(thresholds)
    assert (found.low_left, found.missing_left) == (low_left, missing_left)


def test_a_split_that_parts_nothing_is_none_of_one_column() -> None:
    assert split_column([SIZE], np.array([1.0]), 9.0) is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [{"leaf": "linear"}, {"leaf": "constant", "routing": "soft"}])
def test_splits_of_one_column_send_rows_where_they_go(options: dict[str, Any], seed: int) -> None:
    options = {"routing": "hard", "max_split_features": 1, "random_state": seed} | options
    tree = regressor(**options).fit(FRAME, Y)
    path, kept = tree.decision_path(FRAME).toarray(), tree.tree_.kept
    for node in tree_summary(tree).nodes:
        if node.is_leaf or node.column is None:
            continue
        split, own = node.column, FRAME[node.column.name].map(cell)
        for row in np.flatnonzero(path[:, node.node]).tolist():
            value = cell(own.iloc[row])
            if value is None:
                left = split.missing_left
            elif split.left or split.right:
                left = value in split.left or (split.other_left and value not in split.right)
            else:
                left = split.low_left == (sum(value > threshold for threshold in split.thresholds) % 2 == 0)
            taken = kept[2 * node.node + 1] and path[row, 2 * node.node + 1]
            assert bool(left) == bool(taken) or not kept[2 * node.node + (1 if left else 2)]


def test_a_warning_says_that_paths_do_not_explain_the_tree() -> None:
    tree = classifier(depth=1).fit(X, labels(X))
    for agreement, is_told in ((0.9, True), (1.0, False), (None, False)):
        tree.tree_ = replace(tree.tree_, agreement=agreement)
        assert ('10% of the rows another class. With routing="hard"' in (tree_summary(tree).warning or "")) == is_told
