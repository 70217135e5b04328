"""The formulas of linear leaves: in the units of the table, equal to predictions along one path."""

from typing import Any

import numpy as np
import pytest

from prunus import export_dict, export_graphviz, export_text, tree_summary
from prunus.describe import Formula
from prunus.targets.links import LINKS
from tests.estimators.problems import classifier, labels, regressor, table, values

X = table(200)


def at(formula: Formula, x: Any) -> float:
    total = float(formula.constant + sum(part.weight * x[part.feature] for part in formula.weights))
    return total if formula.low is None or formula.high is None else min(max(total, formula.low), formula.high)


def told(tree: Any, x: Any) -> list[float]:
    nodes = {node.node: node for node in tree_summary(tree).nodes}
    (end,) = tree.apply(x[None])
    return [at(formula, x) for formula in nodes[end].formulas]


@pytest.mark.parametrize("options", [{}, {"routing": "hard"}, {"pruning_strength": 4.0, "depth": 4}])
def test_values(options: Any) -> None:
    y = 1000 + 100 * values(X)
    tree = regressor(leaf="linear", **options).fit(X, y)
    found = [told(tree, x) for x in X]
    np.testing.assert_allclose(np.ravel(found), tree.predict(X, hard=True), rtol=1e-5)


def test_several_outputs() -> None:
    tree = regressor(leaf="linear", routing="hard").fit(X, np.stack([values(X), 5 - values(X)], 1))
    np.testing.assert_allclose([told(tree, x) for x in X], tree.predict(X), atol=1e-5)
    assert "y1: " in export_text(tree)


def test_logarithms() -> None:
    tree = regressor(leaf="linear", loss="poisson").fit(X, np.exp(values(X)))
    np.testing.assert_allclose(np.exp([told(tree, x)[0] for x in X]), tree.predict(X, hard=True), rtol=1e-4)
    assert "log value: " in export_text(tree)


@pytest.mark.parametrize("loss", ["cross_entropy", "binary_cross_entropy"])
def test_log_odds(loss: str) -> None:
    tree = classifier(leaf="linear", routing="hard", loss=loss).fit(X, labels(X, ["no", "yes"]))
    odds = np.array([told(tree, x) for x in X])
    np.testing.assert_allclose(LINKS["logit"].means(odds)[:, 0], tree.predict_proba(X)[:, 1], atol=1e-5)
    assert "log odds of yes: " in export_text(tree)
    assert "log odds of ill: " in export_text(tree, class_names=["healthy", "ill"])
    assert "log odds of yes = " in str(export_graphviz(tree))


def test_scores_of_classes_come_in_the_order_of_their_shares() -> None:
    tree = classifier(leaf="linear", routing="hard").fit(X, labels(X, "abc"))
    for node in tree_summary(tree).nodes:
        if node.is_leaf:
            shares = dict(zip("abc", node.distribution, strict=True))
            order = [shares[formula.output[-1]] for formula in node.formulas]
            assert order == sorted(order, reverse=True)
    for x in X[:20]:
        nodes = {node.node: node for node in tree_summary(tree).nodes}
        scores = {formula.output[-1]: at(formula, x) for formula in nodes[int(tree.apply(x[None])[0])].formulas}
        chances = LINKS["softmax"].means(np.array([[scores[name] for name in "abc"]]))
        np.testing.assert_allclose(chances, tree.predict_proba(x[None]), atol=1e-5)


def test_many_classes_have_few_formulas() -> None:
    tree = classifier(leaf="linear", depth=1).fit(X, labels(X, range(20)))
    leaves = [node for node in tree_summary(tree).nodes if node.is_leaf]
    assert {len(node.formulas) for node in leaves} == {10}
    assert "and 7 more" in export_text(tree)


def test_a_dict_has_formulas_where_paths_end() -> None:
    tree = regressor(leaf="linear", routing="hard").fit(X, values(X))
    root = export_dict(tree, feature_names=["a", "b", "c"])["tree"]
    assert root["formulas"] == []
    leaf = root
    while not leaf["is_leaf"]:
        leaf = leaf["left"]
    (formula,) = leaf["formulas"]
    assert {part["feature"] for part in formula["weights"]} == {"a", "b", "c"}
    assert formula["low"] < formula["high"]


@pytest.mark.parametrize("leaf", ["constant", "additive", "mlp"])
def test_other_leaves_have_none(leaf: str) -> None:
    tree = regressor(leaf=leaf).fit(X, values(X))
    assert not any(node.formulas for node in tree_summary(tree).nodes)
