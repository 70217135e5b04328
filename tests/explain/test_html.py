"""The file of the page: what is in it, and what is not."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, export_html, tree_summary
from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import as_pandas, labels, mixed, table, values

X = table(60, 3)


def record(path: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="record">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    read: dict[str, Any] = json.loads(found[1])
    return read


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


def test_rows_are_few(tmp_path: Path) -> None:
    x = table(5_000, 3)
    tree = ArgminTreeRegressor(depth=1, max_epochs=1).fit(x, values(x))
    found = record(export_html(tree, tmp_path / "tree.html", x, values(x)))
    samples, steps = found["samples"], found["lists"]["steps"]
    assert 150 < len(samples) <= 200
    assert len({sample["row"] for sample in samples}) == len(samples)
    assert (samples[steps[0]]["row"], samples[steps[-1]]["row"]) == (0, 4_999)
    assert samples[steps[-1]]["values"] == x[-1].tolist()


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


def test_values_without_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputValueError, match="X must be given if y is"):
        export_html(fitted(), tmp_path / "tree.html", y=labels(X))


def test_classes_of_other_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputValueError, match="y must have a value for each of the 60 rows of X, got 59"):
        export_html(fitted(), tmp_path / "tree.html", X, labels(X)[:-1])
    assert not (tmp_path / "tree.html").exists()


def test_what_cannot_be_shown(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        export_html(ArgminTreeClassifier(), tmp_path / "tree.html")
    with pytest.raises(InputTypeError, match="must be one of prunus"):
        export_html("tree", tmp_path / "tree.html")
