"""The curves of additive leaves as pictures, drawn with matplotlib."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from prunus.describe.checks import check_whole
from prunus.describe.columns import TableValues, counted_levels, table_columns
from prunus.describe.functions import log_odds
from prunus.describe.read import describe
from prunus.describe.record import Curve, LearnedTree, TreeDescription
from prunus.describe.words import in_lines
from prunus.errors import InputTypeError, InputValueError
from prunus.palette import class_color
from prunus.render.pyplot import pyplot_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_curves"]

Doubles = npt.NDArray[np.float64]

BINS = 30
_LONGEST = 28
"""Largest number of characters in a name."""
_MOST_LEVELS, _MOST_NAMES = 12, 10
"""Number of levels of a category that are drawn, those that add most; and of outputs that the legend names."""
_PANEL, _COLUMNS = (3.2, 2.5), 4
"""Size of the picture of one curve, in inches, and number of such pictures side by side."""
_BELOW, _ABOVE = 0.25, 0.14
"""Room below the lowest value for the distribution of the rows, and above the highest one, as shares of their range."""
_TALLEST = 0.13
"""Height of the largest bar of the distribution, as a share of the height of the axes."""
_LATEST = 6e10
"""Seconds from 1970, in both directions, within which dates are drawn as dates."""
_DAY = 86400.0


def plot_curves(
    estimator: Any,
    *,
    feature_names: Any = None,
    class_names: Any = None,
    max_curves: int = 12,
    X: Any = None,  # noqa: N803
    axes: Any = None,
) -> "list[Axes]":
    """Draw the curves of a tree with additive leaves: what each column of the table adds to the prediction.

    A prediction is the value of a leaf plus one value of each curve. Numbers and dates have lines, levels of categories
    have bars, and missing values have a diamond. Values are differences from a typical value of the column, whose value
    is 0. All axes have the same vertical scale, so that columns can be compared. The function needs matplotlib: ``pip
    install 'prunus[plot]'``.

    Parameters
    ----------
    estimator : ArgminTreeClassifier or ArgminTreeRegressor
        The fitted estimator, whose leaves must be additive (``leaf="additive"``).
    feature_names : list of n_features_in_ names, optional
        Names of the columns; by default those of the table, or "x0", "x1" and so on if it had no names.
    class_names : list of names, optional
        Names of the classes, in the order of `classes_`.
    max_curves : int, default=12
        Number of curves that are drawn, the strongest first.
    X : table of shape (n, n_features_in_), optional
        Rows whose distribution is drawn below each curve; curves then end where there are no more rows.
    axes : list or array of matplotlib Axes, optional
        The axes to draw on, one for each curve, which are cleared first; if they are fewer than the curves, the
        strongest ones are drawn, and if they are more, the last ones are hidden. By default a new figure is made.

    Returns
    -------
    list of matplotlib Axes
        The axes of the curves, strongest first; an empty list if no column adds anything.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from prunus import ArgminTreeRegressor
    >>> X, y = [[i, i % 3] for i in range(60)], [2 * i + i % 3 for i in range(60)]
    >>> tree = ArgminTreeRegressor(leaf="additive", depth=0, max_epochs=50, random_state=0).fit(X, y)
    >>> axes = plot_curves(tree, feature_names=["size", "color"], X=X, axes=Figure().subplots(1, 2))
    >>> [ax.get_title() for ax in axes]
    ['size', 'color']
    """
    check_whole("max_curves", max_curves, 1)
    tree = describe(estimator, feature_names, class_names)
    given = None if axes is None else _read_axes(axes)
    curves, outputs, of_what = _of_outputs(in_lines(tree, _LONGEST))
    drawn = curves[: max_curves if given is None else min(max_curves, len(given))]
    panels = [(curve, None) for curve in drawn] if X is None else _count_rows(tree, X, drawn)
    if given is None:
        chosen = _new_axes(len(drawn), len(curves) - len(drawn), of_what)
    else:
        chosen = given[: len(drawn)]
        for ax in given:
            ax.clear()
            ax.set_axis_off() if ax not in chosen else ax.set_ylabel(of_what)
    for ax, (curve, counts) in zip(chosen, panels, strict=True):
        _draw(ax, curve, outputs, counts)
    _set_limits(chosen, [curve for curve, _ in panels], with_rows=X is not None)
    _add_legend(chosen, outputs, whole_figure=given is None)
    return chosen


@dataclass(frozen=True)
class ColumnCounts:
    """Numbers of rows with certain values of a column."""

    counts: Doubles
    """Rows in each of `BINS` equal parts of the range that the curve shows; or of each level of a category, and then of
    all other levels if the curve has a value for them."""
    missing: int


def _count_rows(tree: TreeDescription, X: Any, curves: Sequence[Curve]) -> list[tuple[Curve, ColumnCounts]]:  # noqa: N803
    """The curves, shown where there are rows, and the numbers of rows; an error if X is not as in training."""
    assert isinstance(tree, LearnedTree)
    tree.encoder.transform(X)
    values = TableValues(X, table_columns(tree))
    return [_counted(curve, values) for curve in curves]


def _counted(curve: Curve, values: TableValues) -> tuple[Curve, ColumnCounts]:
    if not curve.is_number:
        counts = counted_levels(values.levels(curve.feature, curve.unit))
        missing = counts.pop(None, 0)
        named = [counts.pop(str(point), 0) for point in curve.points]
        others = [] if curve.kind == "boolean" else [sum(counts.values())]
        return curve, ColumnCounts(np.array([*named, *others], dtype=np.float64), missing)
    numbers = values.numbers(curve.feature)
    present = numbers[~np.isnan(numbers)]
    low, high = cast(tuple[float, float], curve.shown)
    inside = present[(low <= present) & (present <= high)]
    if len(inside) and inside.min() < inside.max():
        curve = replace(curve, shown=(float(inside.min()), float(inside.max())))
    found = np.histogram(inside, BINS, curve.shown)[0] if low < high else np.zeros(BINS)
    return curve, ColumnCounts(found.astype(np.float64), len(numbers) - len(present))


def _of_outputs(tree: TreeDescription) -> tuple[tuple[Curve, ...], tuple[str, ...], str]:
    """The curves, the names of their outputs, and what they are added to."""
    if not tree.root.offset:
        raise InputValueError(
            'the estimator for plot_curves must be a classifier or regressor with additive leaves (leaf="additive"), '
            f"which are the only ones with curves, got {tree.kind} with {tree.leaf} leaves"
        )
    if tree.classes is None:
        return tree.curves, tree.outputs, f"added to the {'log value' if tree.link == 'log' else 'value'}"
    if len(tree.outputs) == 2:
        second = tree.outputs[1:]
        return tuple(map(log_odds, tree.curves)), second, f"added to the log odds of {second[0]}"
    return tree.curves, tree.outputs, "added to the score of the class"


def _read_axes(axes: Any) -> "list[Axes]":
    pyplot_for("plot_curves")
    from matplotlib.axes import Axes

    found = np.ravel(np.asarray(axes, dtype=object)).tolist()
    wrong = [ax for ax in found if not isinstance(ax, Axes)]
    if wrong or not found:
        got = f"{wrong[0]!r}" if wrong else "none"
        raise InputTypeError(f"axes must be a list or an array of matplotlib Axes, got {got}")
    return found


def _new_axes(n: int, n_left_out: int, of_what: str) -> "list[Axes]":
    pyplot = pyplot_for("plot_curves")
    if n == 0:
        return []
    lines = -(-n // _COLUMNS)
    columns = -(-n // lines)
    figure = pyplot.figure(figsize=(max(columns * _PANEL[0], 4.0), max(lines * _PANEL[1], 3.0)), layout="constrained")
    grid: list[Axes] = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel().tolist()
    for ax in grid[n:]:
        ax.remove()
    figure.supylabel(of_what, fontsize="medium")
    if n_left_out:
        figure.supxlabel(f"{n_left_out} more columns add less", fontsize="small", color="0.3")
    return grid[:n]


def _draw(ax: "Axes", curve: Curve, outputs: Sequence[str], counts: ColumnCounts | None) -> None:
    ax.axhline(0.0, color="0.75", linewidth=0.8, zorder=1)
    ax.set_title(curve.title, fontsize="medium", parse_math=False)
    ax.tick_params(labelsize="small")
    if curve.is_number:
        _draw_number(ax, curve, outputs, counts)
    else:
        _draw_levels(ax, curve, outputs, counts)


def _draw_number(ax: "Axes", curve: Curve, outputs: Sequence[str], counts: ColumnCounts | None) -> None:
    points, values = curve.visible()
    x = _on_axis(ax, curve, np.array(points, dtype=np.float64))
    low, high = float(x[0]), float(x[-1])
    span = high - low if high > low else 1.0
    for k, name in enumerate(outputs):
        ax.plot(x, values[:, k], color=class_color(k), linewidth=1.6, label=name, zorder=3)
    ax.set_xlim(low - 0.03 * span, high + 0.03 * span)
    if counts is not None:
        width = span / BINS
        _add_bars(ax, low + width * (np.arange(BINS) + 0.5), counts.counts, width, _largest(counts.counts))
    if curve.has_missing:
        _add_missing(ax, curve, counts, high, span)


def _add_missing(ax: "Axes", curve: Curve, counts: ColumnCounts | None, high: float, span: float) -> None:
    """Draw what a missing number adds, in a band on the right."""
    middle, right, width = high + 0.14 * span, high + 0.25 * span, 0.1 * span
    ax.set_xticks([tick for tick in ax.get_xticks() if tick <= high + 0.01 * span])
    ax.axvspan(high + 0.03 * span, right, color="0.95", linewidth=0, zorder=0)
    ax.text(middle, 0.98, "missing", transform=ax.get_xaxis_transform(), ha="center", va="top", fontsize=7)
    _add_diamonds(ax, middle, curve.missing, 0.0)
    if counts is not None:  # rows are areas: the bar is as wide as several parts of the range
        height = counts.missing * (span / BINS) / width
        _add_bars(ax, np.array([middle]), np.array([height]), width, _largest(counts.counts))
    ax.set_xlim(high - 1.03 * span, right)


def _on_axis(ax: "Axes", curve: Curve, seconds: Doubles) -> Doubles:
    """Where points of a number are on the horizontal axis, which gets its ticks."""
    from matplotlib import ticker

    if curve.kind == "datetime" and np.abs(seconds).max() < _LATEST:
        dates: Any = import_module("matplotlib.dates")  # it has no types
        locator = dates.AutoDateLocator(minticks=2, maxticks=5)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        days: Doubles = seconds / _DAY + dates.date2num(np.datetime64(0, "s"))
        return days
    ax.xaxis.set_major_locator(ticker.MaxNLocator(4))
    if curve.kind in ("datetime", "duration"):
        unit = _DAY if curve.kind == "duration" and float(np.ptp(seconds)) > 3 * _DAY else 1.0
        ax.set_xlabel("seconds" if unit == 1 else "days", fontsize="small")
        seconds = seconds / unit
    return seconds


def _draw_levels(ax: "Axes", curve: Curve, outputs: Sequence[str], counts: ColumnCounts | None) -> None:
    names, values = [str(point) for point in curve.points], list(curve.values)
    if curve.other is not None:
        names, values = [*names, "any other"], [*values, curve.other]
    table = np.array(values)  # (levels, k)
    most = _MOST_LEVELS if curve.unit is None else len(names)
    shown = np.sort(np.argsort(-np.abs(table).max(1), kind="stable")[:most])
    at, width = np.arange(len(shown), dtype=np.float64), 0.8 / len(outputs)
    for k, name in enumerate(outputs):
        place = at + (k - (len(outputs) - 1) / 2) * width
        ax.bar(place, table[shown, k], width, color=class_color(k), label=name, zorder=3)
    ticks = [names[i] if curve.unit != "hour" or i % 3 == 0 else "" for i in shown.tolist()]
    if counts is not None:
        rows = np.array([*counts.counts[shown], *([counts.missing] if curve.has_missing else [])])
        _add_bars(ax, np.arange(len(rows)), rows, 0.8, _largest(rows))
    if curve.has_missing:
        ticks.append("missing")
        _add_diamonds(ax, float(len(shown)), curve.missing, width)
    slanted = sum(map(len, ticks)) > 24
    ax.set_xticks(range(len(ticks)), [_short(tick) for tick in ticks], parse_math=False)
    ax.tick_params(axis="x", labelrotation=40 if slanted else 0)
    for label in ax.get_xticklabels():
        label.set(ha="right" if slanted else "center", rotation_mode="anchor")
    if len(names) > len(shown):
        ax.set_xlabel(f"{len(names) - len(shown)} more levels add less", fontsize="small", color="0.3")


def _add_diamonds(ax: "Axes", x: float, values: Sequence[float], width: float) -> None:
    """Mark what a missing value adds to each output."""
    for k, value in enumerate(values):
        place = x + (k - (len(values) - 1) / 2) * width
        ax.plot([place], [value], "D", color=class_color(k), markersize=4.5, markeredgecolor="black", zorder=4)


def _add_bars(ax: "Axes", x: npt.NDArray[Any], counts: npt.NDArray[Any], width: float, largest: float) -> None:
    """Draw numbers of rows at the lower edge of the axes."""
    heights = _TALLEST * np.minimum(np.asarray(counts, dtype=np.float64) / largest, 1.0)
    look: Any = {"color": "0.8", "edgecolor": "white", "linewidth": 0.3, "zorder": 2}
    ax.bar(x, heights, width, transform=ax.get_xaxis_transform(), **look)


def _largest(counts: Doubles) -> float:
    return max(float(counts.max(initial=0.0)), 1.0)


def _short(name: str) -> str:
    return name if len(name) <= 12 else f"{name[:11]}…"


def _set_limits(axes: "list[Axes]", curves: Sequence[Curve], *, with_rows: bool) -> None:
    """Give all axes the same vertical range, with room for what is written and drawn above and below the curves."""
    values = [0.0]
    for curve in curves:
        values += curve.visible()[1].ravel().tolist()
        values += curve.missing if curve.has_missing else ()
        values += curve.other or ()
    known = [value for value in values if isfinite(value)]
    low, high = min(known), max(known)
    span = high - low if high > low else 1.0
    for ax in axes:
        ax.set_ylim(low - (_BELOW if with_rows else 0.06) * span, high + _ABOVE * span)


def _add_legend(axes: "list[Axes]", outputs: Sequence[str], *, whole_figure: bool) -> None:
    if len(outputs) < 2 or not axes:
        return
    handles, names = axes[0].get_legend_handles_labels()
    handles, names = handles[:_MOST_NAMES], names[:_MOST_NAMES]
    if whole_figure:
        axes[0].figure.legend(handles, names, loc="outside upper center", ncols=min(len(names), 5), fontsize="small")
    else:
        axes[0].legend(handles, names, fontsize="small")
