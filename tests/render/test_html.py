"""The file of the page: what is in it, and what is not."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, export_html, tree_summary
from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values
from tests.render.browser import record

X = table(60, 3)
TREE = regressor(max_epochs=1).fit(X, values(X))
CLASSES = classifier(max_epochs=1).fit(X, labels(X))


def fitted(**options: Any) -> Any:
    return ArgminTreeClassifier(**{"depth": 2, "max_epochs": 5, "random_state": 0} | options).fit(X, labels(X))


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    text = export_html(fitted(), tmp_path / "tree.html", X).read_text()
    links = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert links == ["data:,"]
    assert not re.search(r"@import|fetch\(|XMLHttpRequest|\burl\(", text)


@pytest.mark.parametrize("leaf", ["constant", "additive", "linear", "mlp"])
def test_a_page_of_depth_6_with_100_features_is_small(tmp_path: Path, leaf: str) -> None:
    x = np.random.default_rng(0).normal(size=(2_000, 100))
    y = (x[:, :3] > 0) @ [1, 2, 4]
    tree = ArgminTreeClassifier(depth=6, leaf=leaf, pruning_strength=0.0, max_epochs=2, random_state=0).fit(x, y)
    assert export_html(tree, tmp_path / "tree.html", x, y).stat().st_size < 500_000


def test_without_rows_there_are_none(tmp_path: Path) -> None:
    found = record(export_html(fitted(), tmp_path / "tree.html"))
    assert found["samples"] == []
    assert "scores" not in found["nodes"][0]


def test_paths_that_do_not_explain_the_tree_are_told_of(tmp_path: Path) -> None:
    tree = fitted()
    tree.tree_ = replace(tree.tree_, agreement=0.5)
    assert "50% of the rows another class" in record(export_html(tree, tmp_path / "tree.html"))["warning"]
    with_rows = record(export_html(tree, tmp_path / "tree.html", X))["warning"]
    assert (with_rows is None) == ((tree_summary(tree, X).agreement or 0.0) >= 0.95)


def test_scores_are_counted(tmp_path: Path) -> None:
    tree = fitted()
    for node in record(export_html(tree, tmp_path / "tree.html", X))["nodes"]:
        if not node["leaf"]:
            assert sum(node["scores"]["counts"]) == tree.decision_path(X).toarray()[:, node["node"]].sum()


def test_values_that_are_missing_are_none(tmp_path: Path) -> None:
    frame = as_pandas(mixed())
    tree = ArgminTreeClusterer(depth=2, random_state=0).fit(frame)
    found = record(export_html(tree, tmp_path / "tree.html", frame))
    kinds = {feature["name"]: feature["kind"] for feature in found["features"]}
    assert (kinds["color"], kinds["member"], kinds["since"]) == ("category", "boolean", "datetime")
    blank = frame.isna().to_numpy()
    for sample in found["samples"]:
        assert [value is None for value in sample["values"]] == blank[sample["row"]].tolist()


def test_an_old_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "tree.html"
    path.write_text("old")
    assert export_html(fitted(), str(path)) == path
    assert path.read_text().startswith("<!doctype html>")


def test_several_outputs(tmp_path: Path) -> None:
    y = np.stack([values(X), -values(X)], 1)
    tree = ArgminTreeRegressor(depth=2, max_epochs=5, random_state=0).fit(X, y)
    found = record(export_html(tree, tmp_path / "tree.html", X, y))
    assert found["outputs"] == ["y0", "y1"]
    assert len(found["samples"][0]["outputs"]) == 2


def test_values_need_rows(tmp_path: Path) -> None:
    with pytest.raises(InputValueError, match="X must be given if y is"):
        export_html(TREE, tmp_path / "t.html", y=values(X))
    assert not (tmp_path / "t.html").exists()


@pytest.mark.parametrize("title", [7, ["a"], np.array([1, 2])], ids=str)
def test_a_title_is_text(title: Any, tmp_path: Path) -> None:
    with pytest.raises(InputTypeError, match="title must be a string or None"):
        export_html(TREE, tmp_path / "t.html", title=title)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(3), "y must have a value for each of the 60 rows of X, got 3"),
        (7, "y must have a value for each of the 60 rows of X, got a single value"),
        (np.zeros((60, 5)), "y must have 1 outputs"),
        (np.full(60, np.nan), "Input y contains NaN"),
        (["a"] * 60, "y must be an array of numbers"),
        (torch.zeros(60).requires_grad_(), "y must be an array of the classes or values"),
    ],
    ids=["short", "single", "wide", "missing", "text", "with gradients"],
)
def test_true_values_of_a_page_fit_its_rows(y: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputValueError, match=message):
        export_html(TREE, tmp_path / "t.html", X, y)


def test_true_classes_of_a_page_are_one_for_each_row(tmp_path: Path) -> None:
    with pytest.raises(InputValueError, match="y must have one class for each row of X"):
        export_html(CLASSES, tmp_path / "t.html", X, np.zeros((60, 2)))


def test_unknown_classes_of_a_page_are_shown_as_text(tmp_path: Path) -> None:
    y = np.array([float("nan"), None, [1, 2], {"a": 1}, *range(56)], dtype=object)
    assert export_html(CLASSES, tmp_path / "t.html", X, y).exists()
