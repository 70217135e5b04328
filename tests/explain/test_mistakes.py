"""Options and rows that pictures of trees cannot use are refused by errors that name them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from prunus import export_graphviz, export_html, export_text
from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import classifier, labels, regressor, table, values

X = table(12)
TREE = regressor(max_epochs=1).fit(X, values(X))
CLASSES = classifier(max_epochs=1).fit(X, labels(X))


@pytest.mark.parametrize("title", [7, ["a"], np.array([1, 2])], ids=str)
def test_a_title_is_text(title: Any, tmp_path: Path) -> None:
    with pytest.raises(InputTypeError, match="title must be a string or None"):
        export_html(TREE, tmp_path / "t.html", title=title)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(3), "y must have a value for each of the 12 rows of X, got 3"),
        (7, "y must have a value for each of the 12 rows of X, got a single value"),
        (np.zeros((12, 5)), "y must have 1 outputs"),
        (np.full(12, np.nan), "Input y contains NaN"),
        (["a"] * 12, "y must be an array of numbers"),
        (torch.zeros(12).requires_grad_(), "y must be an array of the classes or values"),
    ],
    ids=["short", "single", "wide", "missing", "text", "with gradients"],
)
def test_true_values_of_a_page_fit_its_rows(y: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputValueError, match=message):
        export_html(TREE, tmp_path / "t.html", X, y)


def test_true_classes_of_a_page_are_one_for_each_row(tmp_path: Path) -> None:
    with pytest.raises(InputValueError, match="y must have one class for each row of X"):
        export_html(CLASSES, tmp_path / "t.html", X, np.zeros((12, 2)))


def test_unknown_classes_of_a_page_are_shown_as_text(tmp_path: Path) -> None:
    y = np.array([float("nan"), None, [1, 2], {"a": 1}, *range(8)], dtype=object)
    assert export_html(CLASSES, tmp_path / "t.html", X, y).exists()


def test_names_must_be_a_list() -> None:
    with pytest.raises(InputTypeError, match="feature_names must be a list of names"):
        export_text(TREE, feature_names=np.array(1))


@pytest.mark.parametrize("option", ["rotate", "filled", "special_characters", "fontname", "label"])
def test_options_of_dot(option: str) -> None:
    wrong: dict[str, Any] = {option: np.array([1, 2])}
    with pytest.raises((InputTypeError, InputValueError), match=f"{option} must be "):
        export_graphviz(TREE, **wrong)


def test_weights_are_shown_or_not() -> None:
    with pytest.raises(InputTypeError, match="show_weights must be True or False"):
        export_text(TREE, show_weights="yes")  # type: ignore[arg-type]
