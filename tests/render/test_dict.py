"""A tree as plain data."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from prunus import ArgminTreeClusterer, export_dict, tree_summary
from tests.estimators.problems import KINDS, classifier, labels, regressor, table, values

X = table()


def walk(node: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if node is not None:
        yield node
        yield from walk(node["left"])
        yield from walk(node["right"])


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_nodes_are_those_of_the_record(split: str, leaf: str) -> None:
    tree = regressor(depth=3, split=split, leaf=leaf).fit(X, values(X))
    summary, found = tree_summary(tree), {node["node"]: node for node in walk(export_dict(tree)["tree"])}
    assert sorted(found) == [node.node for node in summary.nodes]
    for node in summary.nodes:
        expected = json.loads(json.dumps(asdict(node)))
        assert expected.pop("question") is None
        for formula in expected["formulas"]:
            del formula["exact"]
        for part in sum((formula["weights"] for formula in expected["formulas"]), expected["split"]):
            part["feature"] = part.pop("label")
            assert part.pop("missing") is None
            del part["column"]
        assert {name: found[node.node][name] for name in expected} == expected


def test_pruned_children_are_none() -> None:
    tree = regressor(depth=4, pruning_strength=4.0).fit(X, values(X))
    kept = set(np.flatnonzero(tree.kept_nodes_).tolist())
    for node in walk(export_dict(tree)["tree"]):
        assert (node["left"] is None) == (2 * node["node"] + 1 not in kept)
        assert (node["right"] is None) == (2 * node["node"] + 2 not in kept)


def test_what_is_told_of_the_tree() -> None:
    tree = classifier().fit(X, labels(X))
    found = export_dict(tree, class_names=["no", "yes"])
    assert found.pop("tree")["node"] == 0
    assert found == {
        "kind": "ArgminTreeClassifier",
        "routing": "soft",
        "leaf": "constant",
        "link": "softmax",
        "classes": [0, 1],
        "outputs": ["no", "yes"],
        "depth": tree.get_depth(),
        "n_leaves": tree.get_n_leaves(),
        "curves": [],
    }


def test_features_have_other_names() -> None:
    found = export_dict(regressor().fit(X, values(X)), feature_names=["a\nb", "b", "c"])
    assert {part["feature"] for part in found["tree"]["split"]} == {"a\nb", "b", "c"}


def test_classes_that_json_does_not_have_are_texts() -> None:
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    found = export_dict(classifier(depth=0).fit(X, days[labels(X)]))
    assert found["classes"] == ["2020-01-01", "2020-01-02"]


def test_leaves_of_clusterers_have_clusters() -> None:
    tree = ArgminTreeClusterer(depth=2, n_clusters=2, random_state=0).fit(X)
    for node in walk(export_dict(tree)["tree"]):
        assert (node["cluster"] in ("cluster 0", "cluster 1")) == node["is_leaf"]
