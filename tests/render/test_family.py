"""How good a readable tree is at each size."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from prunus import ArgminTreeRegressor, ReadableTreeClassifier, ReadableTreeRegressor, plot_family
from prunus.errors import InputTypeError
from tests.estimators.problems import labels, table, values

X = table(120, 3)


def test_the_picture_has_a_line_a_band_and_a_ring() -> None:
    tree = ReadableTreeRegressor(random_state=0, max_leaf_nodes=4).fit(X, values(X))
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
    tree = ReadableTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, labels(X, "abc"))
    ax = plot_family(tree, ax=Figure().add_subplot())
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "ReadableTreeClassifier, on rows held out in its fit",
        f"this tree, {tree.get_n_leaves()} leaves",
    ]
    assert ax.get_ylabel() == "accuracy"


def test_other_estimators_have_no_family() -> None:
    with pytest.raises(InputTypeError, match=r"must be a ReadableTreeClassifier or a .*got ArgminTreeRegressor"):
        plot_family(ArgminTreeRegressor())
    with pytest.raises(NotFittedError):
        plot_family(ReadableTreeRegressor())
