"""Rules: one line for each leaf, with the conditions of a column merged."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prunus import ArgminTreeClusterer, export_rules
from prunus.describe.record import ColumnSplit, LearnedTree, NodeSummary, SplitWeight
from prunus.render.rules import _line, _Path
from tests.estimators.problems import classifier, labels, regressor, table, values

X = table(300)


def split(column: ColumnSplit | None, feature: int = 0) -> NodeSummary:
    weight = SplitWeight("any", 1.0, 1.0, feature, feature)
    return NodeSummary(0, 0, 1.0, None, False, (weight,), 0.0, column=column)


def numbers(*thresholds: float, low_left: bool = True, missing_left: bool | None = None) -> ColumnSplit:
    return ColumnSplit("rooms", "number", thresholds, low_left, missing_left=missing_left)


def levels(left: str, right: str, other_left: bool | None = False, missing_left: bool | None = None) -> ColumnSplit:
    return ColumnSplit(
        "color", "category", left=tuple(left), right=tuple(right), other_left=other_left, missing_left=missing_left
    )


def rule(*path: tuple[NodeSummary, bool], share: float = 0.5) -> str | None:
    """The rule of a path to a leaf with the value 2, without its end."""
    leaf = NodeSummary(1, 1, share, None, True, value=(2.0,))
    plain: Any = {"target": None, "model": None, "encoder": None, "inputs": ()}
    tree = LearnedTree("tree", "constant", 1, 2, 3, 3, 1, None, ("y",), (), None, **plain)
    line = _line(tree, _Path(path, leaf, share), str, 3)
    if line is None:
        return None
    assert line.endswith(": value 2.0 (50% of rows)")
    return line.removesuffix(": value 2.0 (50% of rows)")


def test_ranges_of_a_column_are_merged() -> None:
    low, high = split(numbers(2.0)), split(numbers(6.0))
    assert rule((high, True)) == "if rooms < 6.0"
    assert rule((low, False), (high, True)) == "if 2.0 <= rooms < 6.0"
    assert rule((high, False), (low, False)) == "if rooms >= 6.0"
    falling = split(numbers(2.0, low_left=False))
    assert rule((falling, True), (split(numbers(6.0, low_left=False)), False)) == "if 2.0 < rooms <= 6.0"


def test_several_ranges_of_a_column() -> None:
    middle = split(numbers(1.0, 3.0))
    assert rule((middle, True)) == "if (rooms < 1.0 or rooms > 3.0)"
    assert rule((middle, False)) == "if 1.0 <= rooms <= 3.0"
    assert rule((middle, True), (split(numbers(2.0)), False)) == "if rooms > 3.0"


def test_missing_numbers() -> None:
    left, right = split(numbers(2.0, missing_left=True)), split(numbers(6.0, missing_left=False))
    assert rule((left, True)) == "if (rooms < 2.0 or rooms is missing)"
    assert rule((left, False), (right, False)) == "if rooms >= 6.0"
    only = split(numbers(missing_left=True, low_left=False))
    assert rule((only, True)) == "if rooms is missing"
    assert rule((only, False)) == "if rooms is not missing"


def test_levels_of_a_column_are_merged() -> None:
    first, second = split(levels("ab", "cd")), split(levels("ac", "bd"))
    assert rule((first, True)) == "if color is a or b"
    assert rule((first, False)) == "if color is not a or b"
    assert rule((first, True), (second, True)) == "if color is a"
    assert rule((first, False), (second, False)) == "if color is d or another level"
    named = split(levels("ab", "c", None, True))
    assert rule((named, True)) == "if color is a, b or missing"
    assert rule((named, False)) == "if color is c"


def test_many_levels_are_counted() -> None:
    assert rule((split(levels("abcdefgh", "ijklmnopqrst")), True)) == "if color is a, b, c, d, e or 3 more"


def test_conditions_of_several_columns() -> None:
    rooms, color = split(numbers(2.0), 0), split(levels("ab", "cd"), 1)
    assert rule((rooms, True), (color, True)) == "if rooms < 2.0 and color is a or b"


def test_conditions_that_cannot_hold_make_no_rule() -> None:
    low, high = split(numbers(2.0)), split(numbers(6.0))
    assert rule((low, True), (high, False)) is None
    assert rule((split(levels("a", "b", None)), True), (split(levels("b", "a", None)), True)) is None
    assert rule((low, True), share=0.0) is None


def test_splits_that_all_rows_pass_one_way_are_left_out() -> None:
    assert rule((split(None), True)) == "always"


def test_the_rules_of_single_columns_hold_for_the_rows_of_their_leaves() -> None:
    frame = pd.DataFrame(X[:200], columns=["a", "b", "c"])
    tree = classifier(routing="hard", depth=4, max_split_features=1, leaf="constant", max_epochs=20)
    tree.fit(frame, labels(X[:200], "xy"))
    lines = export_rules(tree, decimals=12).splitlines()
    assert len(lines) == tree.get_n_leaves() > 3
    found = np.zeros(len(frame), dtype=int)
    for line in lines:
        conditions, kind, share = re.fullmatch(r"if (.*): class (.) \((.*)% of rows\)", line).groups()  # type: ignore[union-attr]
        holds = frame.eval(conditions).to_numpy()
        assert (tree.predict(frame[holds]) == kind).all()
        assert 100 * holds.mean() == pytest.approx(float(share), abs=0.06)
        found += holds
    assert (found == 1).all()
    shares = [float(line.split("(")[-1].split("%")[0]) for line in lines]
    assert shares == sorted(shares, reverse=True)


def test_sums_are_those_of_export_text() -> None:
    tree = regressor(routing="hard", depth=1, leaf="constant", max_epochs=20).fit(X, values(X))
    lines = export_rules(tree, feature_names=["a", "b", "c"], max_features=2).splitlines()
    assert all(re.fullmatch(r"if .* and 1 more (<|>=) \S+: value \S+ \(\S+ of rows\)", line) for line in lines)


def test_clusters_have_names_and_traits() -> None:
    tree = ArgminTreeClusterer(depth=2, max_epochs=5, random_state=0).fit(X)
    names = [f"group {i}" for i in range(tree.n_clusters_)]
    assert "cluster 0" in export_rules(tree)
    assert "group 0" in export_rules(tree, class_names=names)


def test_rows_of_a_pruned_branch_have_a_rule_of_their_own() -> None:
    tree = classifier(depth=5, pruning_strength=10.0, max_epochs=20).fit(X, labels(X, "xyz"))
    shares = [line.split("(")[-1].split("%")[0] for line in export_rules(tree).splitlines() if "% of rows" in line]
    assert sum(0.05 if share == "<0.1" else float(share) for share in shares) == pytest.approx(100, abs=0.5)


def test_a_tree_without_splits_has_one_rule() -> None:
    tree = regressor(depth=0).fit(X, values(X))
    assert re.fullmatch(r"always: value \S+ \(100% of rows\)\n", export_rules(tree))


def test_paths_that_do_not_explain_a_soft_tree_are_mentioned() -> None:
    tree = regressor(depth=3, max_epochs=5).fit(X, values(X))
    assert export_rules(tree).splitlines()[-1].startswith("This tree predicts along all routes")
