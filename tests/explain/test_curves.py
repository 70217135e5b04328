"""Curves of additive leaves, and splits of one column, compared with what the estimator does."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import (
    ArgminTreeClassifier,
    ArgminTreeClusterer,
    ArgminTreeRegressor,
    export_dict,
    export_text,
    tree_summary,
)
from prunus.data import OutputColumn, TableEncoder
from prunus.describe.functions import read_curve, split_column
from tests.estimators.problems import as_pandas, labels, mixed, table
from tests.tolerances import CURVES

FRAME = as_pandas(mixed(200))
Y = np.nan_to_num(FRAME["size"].to_numpy()) * FRAME["count"].to_numpy() + (FRAME["color"] == "red").to_numpy(float)


def cells(frame: pd.DataFrame) -> list[list[Any]]:
    """Values as curves take them."""

    def cell(value: Any) -> Any:
        if pd.isna(value):
            return None
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        return value.timestamp() if isinstance(value, pd.Timestamp) else value

    return [[cell(value) for value in row] for row in frame.itertuples(index=False)]


@cache
def fitted(kind: str, **options: Any) -> Any:
    is_class = kind == "classes"
    usual: Any = {"leaf": "additive", "pieces": 4, "depth": 2, "max_epochs": 5, "random_state": 0}
    estimator = (ArgminTreeClassifier if is_class else ArgminTreeRegressor)(**usual | options)
    target: Any = labels(table(200), "abc") if is_class else Y
    if kind == "two outputs":
        target = np.stack([1000 * Y + 5, -Y], 1)
    return estimator.fit(FRAME, target)


def sums(tree: Any, frame: pd.DataFrame) -> Any:
    """The offset of the leaf of each row plus all its curves."""
    summary = tree_summary(tree)
    offsets = {node.node: np.array(node.offset) for node in summary.nodes}
    return np.array(
        [
            offsets[end] + sum(curve.at(row[curve.feature]) for curve in summary.curves)
            for end, row in zip(tree.apply(frame).tolist(), cells(frame), strict=True)
        ]
    )


@pytest.mark.parametrize("routing", ["soft", "hard"])
@pytest.mark.parametrize("kind", ["numbers", "two outputs"])
@pytest.mark.parametrize("pieces", [0, 4])
def test_a_value_is_the_offset_of_its_leaf_plus_the_curves(kind: str, routing: str, pieces: int) -> None:
    tree = fitted(kind, routing=routing, pieces=pieces)
    predicted = tree.predict(FRAME, hard=True).reshape(len(FRAME), -1)
    assert_allclose(sums(tree, FRAME), predicted, atol=CURVES * np.abs(predicted).max())


@pytest.mark.parametrize("routing", ["soft", "hard"])
def test_scores_of_classes_are_the_offset_of_a_leaf_plus_the_curves(routing: str) -> None:
    tree = fitted("classes", routing=routing)
    scores = sums(tree, FRAME)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    assert_allclose(weights / weights.sum(1, keepdims=True), tree.predict_proba(FRAME, hard=True), atol=CURVES)


def test_unseen_levels_and_far_numbers() -> None:
    tree = fitted("numbers", routing="hard")
    far = FRAME.head(4).assign(size=[1e9, -1e9, 0.0, None], color=["pink", "pink", None, "red"])
    assert_allclose(sums(tree, far), tree.predict(far)[:, None], atol=CURVES * np.abs(Y).max())


def test_a_row_of_typical_values_is_predicted_by_the_offset_of_its_leaf() -> None:
    for curve in tree_summary(fitted("numbers", routing="hard")).curves:
        reachable = np.array([*curve.values, *([] if curve.other is None else [curve.other])])
        assert (reachable.min(0) <= 1e-12).all()
        assert (reachable.max(0) >= -1e-12).all()


def test_the_strongest_curve_comes_first() -> None:
    strengths = [curve.strength for curve in tree_summary(fitted("numbers")).curves]
    assert strengths == sorted(strengths, reverse=True)
    assert strengths[0] > 0


def test_only_additive_leaves_have_curves() -> None:
    x = table()
    assert tree_summary(fitted("numbers", leaf="linear")).curves == ()
    assert tree_summary(ArgminTreeClusterer(depth=2, leaf="additive", random_state=0).fit(x)).curves == ()


def test_levels_without_a_column_are_the_others() -> None:
    encoder = TableEncoder().fit(pd.DataFrame({"color": ["red", "red", "blue"]}))
    curve = read_curve(encoder.columns_, np.array([[2.0]]))
    assert curve.points == ("blue",)
    assert curve.at("red").tolist() == curve.at("pink").tolist() == [0.0]
    assert curve.at("blue") == pytest.approx(2.0 * encoder.columns_[0].high)


def test_infrequent_levels_are_the_others() -> None:
    encoder = TableEncoder(max_categories=2).fit(pd.DataFrame({"color": list("aaabbcd")}))
    curve = read_curve(encoder.columns_, np.array([[1.0, 2.0, 3.0]]))
    assert curve.points == ("a", "b")
    encoded = encoder.transform(pd.DataFrame({"color": ["c", "new"]})) @ [1.0, 2.0, 3.0]
    assert_allclose(encoded, curve.at("c")[0], rtol=1e-6)


def test_curves_are_part_of_the_dict_and_of_the_text() -> None:
    tree = fitted("numbers", routing="hard")
    curves = export_dict(tree, feature_names=list("ABCDE"))["curves"]
    assert {curve["column"] for curve in curves} == set("ABCDE")
    by_name = {curve["column"]: curve for curve in curves}
    assert by_name["C"]["x"] == ["blue", "green", "red"]
    assert len(by_name["A"]["x"]) == len(by_name["A"]["y"]) > 2
    lines = export_text(tree, feature_names=list("ABCDE")).splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("Curves"))
    assert [line.strip().split(":")[0] for line in lines[begin + 1 :]] == [curve["column"] for curve in curves]
    assert all("+ curves" in line for line in lines[:begin] if "of rows" in line)


def test_two_classes_have_one_curve_in_text() -> None:
    tree = ArgminTreeClassifier(leaf="additive", depth=1, max_epochs=5, random_state=0).fit(FRAME, Y > 0)
    text = export_text(tree, class_names=["no", "yes"])
    assert "Curves of the log odds of yes" in text
    assert "size: from " in text


SIZE = OutputColumn(0, "size", "number", None, 10.0, 2.0, -5.0, 5.0)
MISSING = OutputColumn(0, "size", "missing", None, 0.0, 1.0, 0.0, 1.0)


@pytest.mark.parametrize(("weight", "low_left"), [(1.0, True), (-1.0, False)])
def test_a_split_of_a_number_is_a_threshold(weight: float, low_left: bool) -> None:
    found = split_column([SIZE], np.array([weight]), -weight * 0.5)
    assert found is not None
    assert found.thresholds == pytest.approx((11.0,))
    assert (found.low_left, found.missing_left) == (low_left, None)


def test_missing_values_go_to_the_side_of_their_score() -> None:
    for weight, side in ((-1.0, True), (1.0, False)):
        found = split_column([SIZE, MISSING], np.array([1.0, weight]), -0.5)
        assert found is not None
        assert found.missing_left is side


def test_a_split_that_parts_nothing_has_no_words_of_its_own() -> None:
    assert split_column([SIZE], np.array([1.0]), 9.0) is None
    found = split_column([SIZE, MISSING], np.array([0.0, 1.0]), -0.5)
    assert found is not None
    assert (found.thresholds, found.low_left, found.missing_left) == ((), True, False)


def test_pieces_give_several_thresholds() -> None:
    pieces = [OutputColumn(0, "size", "number", None, at, 1.0, 0.0, 1.0, piece=True) for at in (0.0, 1.0)]
    found = split_column([SIZE, *pieces], np.array([0.0, 2.0, -2.0]), -1.0)
    assert found is not None
    assert found.thresholds == pytest.approx((0.5, 1.5))
    assert found.low_left


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [{"leaf": "constant"}, {"leaf": "linear"}, {"leaf": "constant", "routing": "soft"}])
def test_words_of_splits_send_rows_where_they_go(options: dict[str, Any], seed: int) -> None:
    tree = fitted(
        "numbers", **{"routing": "hard", "max_split_features": 1, "random_state": seed, "pieces": 0} | options
    )
    path = tree.decision_path(FRAME).toarray()
    names = list(FRAME.columns)
    for node in tree_summary(tree).nodes:
        if node.is_leaf or node.column is None:
            continue
        split, own = node.column, names.index(node.column.name)
        for row, cell in enumerate(cells(FRAME)):
            if path[row, node.node] and 2 * node.node + 2 < path.shape[1]:
                value = cell[own]
                if value is None:
                    left = split.missing_left
                elif split.left or split.right:
                    left = value in split.left or (split.other_left and value not in split.right)
                else:
                    turns = sum(value > threshold for threshold in split.thresholds)
                    left = split.low_left == (turns % 2 == 0)
                taken = tree.tree_.kept[2 * node.node + 1] and path[row, 2 * node.node + 1]
                assert bool(left) == bool(taken) or not tree.tree_.kept[2 * node.node + (1 if left else 2)]
