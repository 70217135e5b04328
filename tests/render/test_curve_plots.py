"""Curves drawn with matplotlib, compared with the record of the tree and with the rows."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import dates, pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from prunus import ArgminTreeClassifier, ArgminTreeRegressor, plot_curves, tree_summary
from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import as_pandas, labels, mixed, table

FRAME = as_pandas(mixed(200))
Y = np.nan_to_num(FRAME["size"].to_numpy()) * FRAME["count"].to_numpy() + (FRAME["color"] == "red").to_numpy(float)


@pytest.fixture(autouse=True)
def no_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


@cache
def fitted(kind: str = "numbers", **options: Any) -> Any:
    usual: Any = {"leaf": "additive", "pieces": 4, "depth": 1, "max_epochs": 3, "random_state": 0}
    if kind == "numbers":
        return ArgminTreeRegressor(**usual | options).fit(FRAME, Y)
    return ArgminTreeClassifier(**usual | options).fit(FRAME, labels(table(200), kind))


def by_name(axes: list[Axes]) -> dict[str, Axes]:
    return {ax.get_title(): ax for ax in axes}


def lines(ax: Axes) -> list[Any]:
    """The lines of an axes that are curves, with the diamonds of missing values."""
    return [line for line in ax.lines if line.get_zorder() >= 3]


def bars(ax: Axes, *, rows: bool) -> list[Any]:
    """The bars that are values of levels, or those that are numbers of rows."""
    found = [bar for container in ax.containers for bar in container]
    return [bar for bar in found if (bar.get_zorder() == 2) == rows]


def ticks(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_xticklabels()]


def test_the_strongest_columns_come_first() -> None:
    tree = fitted()
    names = [curve.name for curve in tree_summary(tree).curves]
    assert [ax.get_title() for ax in plot_curves(tree)] == names
    assert [ax.get_title() for ax in plot_curves(tree, max_curves=2)] == names[:2]
    assert "3 more columns" in pyplot.gcf().get_supxlabel()
    assert pyplot.gcf().get_supylabel() == "added to the value"


def test_numbers_have_a_line_and_missing_ones_a_diamond() -> None:
    tree = fitted()
    (curve,) = (curve for curve in tree_summary(tree).curves if curve.name == "size")
    line, diamond = lines(by_name(plot_curves(tree))["size"])
    points, values = curve.visible()
    assert_allclose(line.get_xdata(), np.array(points, dtype=float))
    assert_allclose(line.get_ydata(), values[:, 0])
    assert diamond.get_ydata() == [pytest.approx(curve.missing[0])]
    assert diamond.get_xdata()[0] > line.get_xdata()[-1]
    (plain,) = lines(by_name(plot_curves(tree))["count"])  # no count is missing
    assert len(plain.get_xdata()) > 2


def test_dates_are_dates() -> None:
    ax = by_name(plot_curves(fitted()))["since"]
    first, last = (dates.num2date(x).year for x in lines(ax)[0].get_xdata()[[0, -1]])  # type: ignore[no-untyped-call]
    assert (first, last) == (2020, 2022)
    assert "2021" in ticks(ax)


def test_levels_have_bars() -> None:
    tree = fitted()
    (curve,) = (curve for curve in tree_summary(tree).curves if curve.name == "color")
    ax = by_name(plot_curves(tree))["color"]
    assert ticks(ax) == ["blue", "green", "red", "any other", "missing"]
    heights = [bar.get_height() for bar in bars(ax, rows=False)]
    assert curve.other is not None
    assert_allclose(heights, [*(value[0] for value in curve.values), curve.other[0]])
    assert ticks(by_name(plot_curves(tree))["member"]) == ["false", "true"]


def test_of_many_levels_those_that_add_most_are_drawn() -> None:
    city = np.array([f"city {i:02}" for i in range(20)])[np.arange(400) % 20]
    y = (np.arange(400) % 20 == 3) * 100.0 + np.arange(400) % 2
    tree = ArgminTreeRegressor(leaf="additive", depth=0, max_epochs=5, random_state=0).fit(
        pd.DataFrame({"city": city}), y
    )
    (ax,) = plot_curves(tree)
    assert "city 03" in ticks(ax)
    assert len(ticks(ax)) == 12
    assert ax.get_xlabel() == "9 more levels add less"


def test_rows_are_counted_below_the_curves() -> None:
    axes = by_name(plot_curves(fitted(), X=FRAME))
    for name in ("color", "member"):
        counts = FRAME[name].value_counts(dropna=False)
        known = [*(counts.get(level, 0) for level in ("blue", "green", "red")), 0, FRAME[name].isna().sum()]
        expected = np.array(known if name == "color" else [counts[False], counts[True]])
        heights = np.array([bar.get_height() for bar in bars(axes[name], rows=True)])
        assert_allclose(heights / heights.max(), expected / expected.max())
    ax = axes["size"]
    *inside, missing = bars(ax, rows=True)
    low, high = (lines(ax)[0].get_xdata()[i] for i in (0, -1))
    areas = np.array([bar.get_height() * bar.get_width() for bar in inside])
    size = FRAME["size"]
    assert_allclose(
        missing.get_height() * missing.get_width() / areas.sum(), size.isna().sum() / size.between(low, high).sum()
    )
    assert not bars(by_name(plot_curves(fitted()))["size"], rows=True)


def test_curves_end_where_there_are_no_more_rows() -> None:
    tree = fitted(pieces=0)
    some = FRAME[FRAME["count"].between(2, 5)]
    (line,) = lines(by_name(plot_curves(tree, X=some))["count"])
    assert line.get_xdata()[[0, -1]].tolist() == [2.0, 5.0]
    (whole,) = lines(by_name(plot_curves(tree))["count"])
    assert_allclose(line.get_ydata(), np.interp([2, 5], whole.get_xdata(), whole.get_ydata()))


def test_one_row_and_a_column_without_values() -> None:
    axes = plot_curves(fitted(), X=FRAME.head(1).assign(size=np.nan))
    (missing,) = (bar for bar in bars(by_name(axes)["size"], rows=True) if bar.get_height() > 0)
    assert missing.get_x() > lines(by_name(axes)["size"])[0].get_xdata()[-1]


def test_all_axes_have_the_same_scale_and_the_rows_do_not_touch_the_curves() -> None:
    axes = plot_curves(fitted(), X=FRAME)
    assert len({ax.get_ylim() for ax in axes}) == 1
    low, high = axes[0].get_ylim()
    lowest = min(line.get_ydata().min() for ax in axes for line in lines(ax) if len(line.get_ydata()) > 1)
    tallest = max(bar.get_height() for ax in axes for bar in bars(ax, rows=True))
    assert (lowest - low) / (high - low) > tallest


def test_two_classes_have_one_curve() -> None:
    axes = plot_curves(fitted("ab"), class_names=["no", "yes"])
    assert pyplot.gcf().get_supylabel() == "added to the log odds of yes"
    assert len(lines(by_name(axes)["count"])) == 1
    assert not pyplot.gcf().legends


def test_more_classes_have_a_curve_each() -> None:
    axes = plot_curves(fitted("abc"))
    assert len(lines(by_name(axes)["count"])) == 3
    assert len(bars(by_name(axes)["color"], rows=False)) == 12
    (legend,) = pyplot.gcf().legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c"]


def test_logarithms_are_told() -> None:
    tree = ArgminTreeRegressor(leaf="additive", depth=1, max_epochs=3, loss="poisson", random_state=0)
    plot_curves(tree.fit(FRAME, np.abs(Y)))
    assert pyplot.gcf().get_supylabel() == "added to the log value"


def test_columns_have_other_names() -> None:
    names = ["$x_1$", "$\\frac", "c", "d", "e"]
    axes = plot_curves(fitted(), feature_names=names)
    assert {ax.get_title() for ax in axes} == set(names)
    pyplot.gcf().canvas.draw()  # a dollar sign in a name does not begin a formula


def test_axes_of_the_user_are_drawn_on() -> None:
    given = Figure().subplots(2, 3)
    given[0, 0].plot([1, 2])
    drawn = plot_curves(fitted("abc"), axes=given)
    assert drawn == given.ravel()[:5].tolist()
    assert not given[1, 2].axison
    assert drawn[0].get_ylabel() == "added to the score of the class"
    assert drawn[0].get_legend() is not None
    assert [ax.get_title() for ax in plot_curves(fitted(), axes=given[0])] == [
        curve.name for curve in tree_summary(fitted()).curves[:3]
    ]
    assert len(plot_curves(fitted(), axes=given[0, 0])) == 1
    assert pyplot.get_fignums() == []


def test_a_tree_without_any_effect_has_no_curves() -> None:
    tree = ArgminTreeRegressor(leaf="additive", depth=0, max_epochs=1, random_state=0).fit(
        np.zeros((9, 1)), np.arange(9)
    )
    assert plot_curves(tree) == []
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
def test_other_leaves_have_no_curves(leaf: str) -> None:
    with pytest.raises(InputValueError, match=f"must be a .* with additive leaves .*, got .* with {leaf} leaves"):
        plot_curves(fitted(leaf=leaf))


def test_options_that_cannot_be() -> None:
    with pytest.raises(InputValueError, match="max_curves must be an integer of at least 1, got 0"):
        plot_curves(fitted(), max_curves=0)
    for axes in ([], [1], "all"):
        with pytest.raises(InputTypeError, match="axes must be a list or an array of matplotlib Axes, got"):
            plot_curves(fitted(), axes=axes)
    with pytest.raises(ValueError, match="feature"):
        plot_curves(fitted(), X=FRAME[["size"]])
    with pytest.raises(NotFittedError):
        plot_curves(ArgminTreeRegressor(leaf="additive"))
    assert pyplot.get_fignums() == []
