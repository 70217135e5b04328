"""Curves and points of training: active nodes over the epochs, and error against time."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from prunus.errors import InputValueError

__all__ = ["COLORS", "plot_active_nodes", "plot_error_over_time", "styles"]

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours that can be told apart with any kind of colour vision (Okabe and Ito)."""
LINES = ("-", "--", "-.", ":")
MARKERS = "os^DvPX*"


def styles() -> Iterator[dict[str, Any]]:
    """A colour, a kind of line and a marker for each of as many things as wanted."""
    for i in count():
        yield {
            "color": COLORS[i % len(COLORS)],
            "linestyle": LINES[i % len(LINES)],
            "marker": MARKERS[i % len(MARKERS)],
        }


def plot_active_nodes(curves: Mapping[str, tuple[Any, Any]], ax: Axes) -> None:
    """Draw the percentage of nodes that are not pruned over the epochs of training.

    Parameters
    ----------
    curves : dict
        By name: the epochs, and the share of active nodes after each.
    ax : matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> plot_active_nodes({"seed 1": ([1, 2], [1.0, 0.5])}, ax)
    >>> ax.lines[0].get_ydata().tolist()
    [100.0, 50.0]
    """
    for (name, (epochs, shares)), style in zip(curves.items(), styles(), strict=False):
        percent = 100 * np.asarray(shares, dtype=np.float64)
        ax.plot(epochs, percent, label=name, color=style["color"], linestyle=style["linestyle"])
    ax.set(xlabel="epoch", ylabel="active nodes (%)", ylim=(0, 103))
    ax.locator_params(axis="x", integer=True)
    _finish(ax)


def plot_error_over_time(
    records: Mapping[str, tuple[Any, Any]], ax: Axes, looks: Mapping[str, dict[str, Any]] | None = None
) -> None:
    """Draw the error of methods against the time they took to train, which has a log axis.

    Parameters
    ----------
    records : dict
        By the name of a method: seconds and error of each seed, drawn as their mean with bars of a standard deviation.
    ax : matplotlib Axes
    looks : dict, optional
        By the name of a method, one of the `styles`; by default they follow each other.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> plot_error_over_time({"fast": ([3.0], [0.40]), "good": ([500.0, 700.0], [0.33, 0.35])}, ax)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['fast', 'good']
    """
    looks = dict(zip(records, styles(), strict=False)) if looks is None else looks
    ax.set_xscale("log")
    for name, (seconds, errors) in records.items():
        style = looks[name] | {"linestyle": "none", "label": name, "capsize": 3, "markersize": 7}
        ax.errorbar(**_mean_with_bars(name, seconds, errors), **style)
    ax.set(xlabel="training time (s)", ylabel="error")
    _label_times(ax)
    _finish(ax)


def _mean_with_bars(name: str, seconds: Any, errors: Any) -> dict[str, Any]:
    """A bar of time does not reach beyond the fastest seed, as a log axis has no zero."""
    x, y = (np.asarray(values, dtype=np.float64) for values in (seconds, errors))
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (x > 0).all()):
        raise InputValueError(f"seconds must be positive, and all numbers finite, got others for {name!r}")
    mean_x, mean_y = x.mean(keepdims=True), y.mean(keepdims=True)
    if len(x) == 1:
        return {"x": mean_x, "y": mean_y, "xerr": None, "yerr": None}
    bar_x, bar_y = x.std(ddof=1, keepdims=True), y.std(ddof=1, keepdims=True)
    before = np.minimum(bar_x, mean_x - x.min())
    return {"x": mean_x, "y": mean_y, "xerr": np.stack((before, bar_x)), "yerr": np.stack((bar_y, bar_y))}


def _label_times(ax: Axes) -> None:
    """Plain numbers on a log axis: those of decades, or more of them where there are few decades."""
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 50 * low else (1.0, 2.0, 3.0, 5.0)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _finish(ax: Axes) -> None:
    ax.grid(alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
