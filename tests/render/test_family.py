"""How good a readable tree is at each size: the record, and the picture."""

import re
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from prunus import ArgminTreeRegressor, ReadableTreeClassifier, ReadableTreeRegressor, plot_family
from prunus.errors import InputTypeError, InputValueError
from prunus.render.family_plot import family_scores
from tests.estimators.problems import labels, table, values
from tests.estimators.readable_problems import classes, stones

X = table(120, 3)


def regressor(**options: Any) -> Any:
    return ReadableTreeRegressor(random_state=0, **options).fit(X, values(X))


def classifier() -> Any:
    return ReadableTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, labels(X, "abc"))


def test_the_scores_are_those_of_the_family() -> None:
    tree = regressor(max_leaf_nodes=4)
    found = family_scores(tree)
    assert (found.measure, found.chosen, found.cart, found.forest) == ("R^2", tree.get_n_leaves(), None, None)
    rows = zip(found.own.sizes, found.own.scores, found.own.standard_errors, strict=True)
    assert [*rows] == [tuple(one) for one in tree.family_]


def test_cart_is_cross_validated_on_the_rows() -> None:
    folds = KFold(5, shuffle=True, random_state=0)
    numbers, y = family_scores(regressor(), X, values(X)), values(X)
    assert numbers.cart is not None
    for size, score in zip(numbers.cart.sizes[:4], numbers.cart.scores, strict=False):
        cart = DecisionTreeRegressor(max_leaf_nodes=size, random_state=0)
        assert score == pytest.approx(r2_score(y, cross_val_predict(cart, X, y, cv=folds)), abs=0.02)
    names = labels(X, "abc")
    found = family_scores(classifier(), X, names)
    assert found.measure == "accuracy"
    assert found.cart is not None
    cart = DecisionTreeClassifier(max_leaf_nodes=2, random_state=0)
    assert found.cart.scores[0] == pytest.approx(
        accuracy_score(names, cross_val_predict(cart, X, names, cv=folds)), abs=0.02
    )
    assert found.forest is not None
    assert found.forest[1] > 0.5


def test_tables_with_categories_dates_and_missing_values_have_rivals() -> None:
    frame = stones(150)
    y = classes(frame, "abc")
    found = family_scores(ReadableTreeClassifier(max_leaf_nodes=3, random_state=0).fit(frame, y), frame, y)
    assert found.cart is not None
    assert all(0 <= score <= 1 for score in found.cart.scores)


def test_of_many_rows_some_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.render.family_plot.MOST_ROWS", 60)
    found = family_scores(regressor(max_leaf_nodes=2), X, values(X))
    assert found.cart is not None
    assert found.cart.label == "CART, 5-fold cross-validation on 60 rows"


def test_the_picture_has_a_line_a_band_and_a_ring() -> None:
    tree = regressor(max_leaf_nodes=4)
    ax = Figure().add_subplot()
    assert plot_family(tree, ax=ax) is ax
    line, ring = ax.lines
    assert line.get_xydata().tolist() == [[one.n_leaves, one.score] for one in tree.family_]  # type: ignore[union-attr]
    chosen = next(one for one in tree.family_ if one.n_leaves == tree.get_n_leaves())
    assert ring.get_xydata().tolist() == [[chosen.n_leaves, chosen.score]]  # type: ignore[union-attr]
    band = np.concatenate([path.vertices for path in ax.collections[0].get_paths()])
    assert {(chosen.n_leaves, chosen.score + s * chosen.standard_error) for s in (-1, 1)} <= set(map(tuple, band))
    assert ax.get_ylabel() == "$R^2$"


def test_lines_say_how_they_were_scored() -> None:
    ax = plot_family(classifier(), X=X, y=labels(X, "abc"), ax=Figure().add_subplot())
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][:3] == [
        "ReadableTreeClassifier, on rows held out in its fit",
        "CART, 5-fold cross-validation on the rows",
        "forest of 100 trees, 5-fold cross-validation on the rows",
    ]
    assert len(ax.lines) == 4


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"X": X}, "X and y must be given together, got only X"),
        ({"y": values(X)}, "X and y must be given together, got only y"),
        ({"X": X, "y": values(X)[:7]}, "y must have a value for each of the 120 rows of X, got 7"),
        ({"X": X[:4], "y": values(X)[:4]}, "X must have at least 5 rows for 5-fold cross-validation, got 4"),
    ],
)
def test_wrong_rows(rows: Any, message: str) -> None:
    with pytest.raises(InputValueError, match=re.escape(message)):
        plot_family(regressor(max_leaf_nodes=2), ax=Figure().add_subplot(), **rows)


def test_other_estimators_have_no_family() -> None:
    with pytest.raises(InputTypeError, match=r"must be a ReadableTreeClassifier or a .*got ArgminTreeRegressor"):
        plot_family(ArgminTreeRegressor())
    with pytest.raises(NotFittedError):
        plot_family(ReadableTreeRegressor())
