"""What is told of trees whose rows follow one path."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prunus import (
    ArgminTreeClassifier,
    ArgminTreeClusterer,
    ArgminTreeRegressor,
    export_dict,
    export_graphviz,
    export_html,
    export_text,
    tree_summary,
)
from prunus.describe import NodeSummary
from prunus.describe.read import describe
from prunus.describe.record import ColumnSplit
from prunus.describe.words import split_text
from prunus.render.page_record import page_record
from tests.estimators.problems import as_pandas, mixed

FRAME = as_pandas(mixed(200))
Y = np.nan_to_num(FRAME["size"].to_numpy()) * FRAME["count"].to_numpy() + (FRAME["color"] == "red").to_numpy(float)
KINDS = ("constant", "linear", "additive", "classes", "clusters")


@cache
def hard(kind: str, **options: Any) -> Any:
    chosen: Any = {"routing": "hard", "depth": 2, "max_epochs": 5, "random_state": 0} | options
    if kind == "clusters":
        return ArgminTreeClusterer(**chosen).fit(FRAME)
    if kind == "classes":
        return ArgminTreeClassifier(**chosen).fit(FRAME, Y > 0)
    return ArgminTreeRegressor(leaf=kind, **chosen).fit(FRAME, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_speaks_of_masses_and_routes(kind: str) -> None:
    tree = hard(kind)
    record = {name: part for name, part in page_record(describe(tree), FRAME).items() if name not in ("hard", "model")}
    told = [export_text(tree), str(export_graphviz(tree)), json.dumps(export_dict(tree)), json.dumps(record)]
    for text in told:
        assert not re.search(r"mass|route|soft|prune[^_sd]|all its", re.sub("n_pruned|softmax", "", text))


@pytest.mark.parametrize("kind", KINDS)
def test_a_summary_has_no_masses(kind: str) -> None:
    summary = tree_summary(hard(kind), FRAME)
    assert summary.routing == "hard"
    assert (summary.agreement, summary.warning) == (None, None)
    assert all(node.mass is None for node in summary.nodes)


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    text = export_html(hard("additive"), tmp_path / "tree.html", FRAME, Y).read_text()
    assert re.findall(r'(?:src|href)="([^"]*)"', text) == ["data:,"]


def test_splits_of_one_column_are_thresholds_and_levels() -> None:
    text = export_text(hard("constant", max_split_features=1, depth=4))
    assert re.search(r"--- count < [\d.]+$", text, re.MULTILINE)
    assert re.search(r"--- size < -?[\d.]+( or missing)?$", text, re.MULTILINE)


def test_splits_of_few_columns_are_written_in_full() -> None:
    assert " more" not in export_text(hard("constant", max_split_features=2))


def words(column: ColumnSplit, *, left: bool = True) -> str:
    return split_text(NodeSummary(0, 0, 1.0, None, is_leaf=False, threshold=0.0, column=column), left=left)


@pytest.mark.parametrize(
    ("column", "left", "right"),
    [
        (ColumnSplit("rooms", "number", (5.5,)), "rooms < 5.5", "rooms >= 5.5"),
        (ColumnSplit("rooms", "number", (5.5,), low_left=False), "rooms > 5.5", "rooms <= 5.5"),
        (ColumnSplit("rooms", "number", (5.5,), missing_left=True), "rooms < 5.5 or missing", "rooms >= 5.5"),
        (ColumnSplit("rooms", "number", (2.0, 4.0)), "rooms < 2 or > 4", "rooms from 2 to 4"),
        (ColumnSplit("rooms", "number", missing_left=True, low_left=False), "rooms is missing", "rooms is not missing"),
        (ColumnSplit("on", "datetime", (86400.0,)), "on < 1970-01-02", "on >= 1970-01-02"),
        (ColumnSplit("on", "datetime", (1e300,)), "on < 1e300", "on >= 1e300"),
        (ColumnSplit("age > 3", "number", (1.0,)), "(age > 3) < 1", "(age > 3) >= 1"),
        (ColumnSplit("ok", "boolean", left=("false",), right=("true",)), "ok is false", "ok is true"),
        (
            ColumnSplit("color", "category", left=("red", "blue"), right=("green",), other_left=False),
            "color is red or blue",
            "color is not red or blue",
        ),
        (
            ColumnSplit(
                "color", "category", left=("red", "blue"), right=("green",), other_left=True, missing_left=True
            ),
            "color is not green",
            "color is green",
        ),
        (
            ColumnSplit("x", "category", left=tuple("abcdefgh"), right=tuple("ijklmnopq"), other_left=False),
            "x is a, b, c, d, e or 3 more",
            "x is not a, b, c, d, e or 3 more",
        ),
    ],
)
def test_words_of_both_sides(column: ColumnSplit, left: str, right: str) -> None:
    assert (words(column), words(column, left=False)) == (left, right)
