"""How good a readable tree is at each size, drawn with matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np

from prunus.explain.family_scores import FamilyScores, SizeScores, family_scores
from prunus.palette import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_family"]

OWN, CART, FOREST = COLORS[0], COLORS[5], COLORS[2]


def plot_family(
    estimator: Any,
    *,
    X: Any = None,  # noqa: N803
    y: Any = None,
    ax: Any = None,
) -> "Axes":
    """Draw how good a readable tree is at each number of leaves, so that one can choose it.

    A fit finds trees of all sizes up to 32 leaves, each a part of the next, and `with_leaves` returns them. The line is
    their score on rows that were held out in the fit, accuracy or R^2, in a band of one standard error; a ring marks
    the size of the estimator itself. If rows are given, scikit-learn's CART of the same sizes and a forest are drawn
    beside it, which are cross-validated on these rows: give those of the fit. The function needs matplotlib: ``pip
    install 'prunus[plot]'``.

    Parameters
    ----------
    estimator : ReadableTreeClassifier or ReadableTreeRegressor
        The fitted estimator.
    X : table of shape (n, n_features_in_), optional
        Rows for CART and the forest; of more than 20,000 this many are drawn.
    y : array-like of shape (n,) or (n, n_outputs), optional
        Their classes or values.
    ax : matplotlib Axes, optional
        The axes to draw on, which are cleared first; by default those of the current figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from prunus import ReadableTreeRegressor
    >>> X, y = [[i % 7, i % 5] for i in range(70)], [float(i % 7 > 3) for i in range(70)]
    >>> tree = ReadableTreeRegressor(max_leaf_nodes=2, random_state=0).fit(X, y)
    >>> plot_family(tree, ax=Figure().add_subplot()).get_xlabel()
    'leaves'
    """
    found = family_scores(estimator, X, y)
    if ax is None:
        ax = _pyplot().gca()
    ax.clear()
    _draw(ax, found)
    return ax  # type: ignore[no-any-return]


def _draw(ax: "Axes", found: FamilyScores) -> None:
    _line(ax, found.own, OWN)
    if found.cart is not None:
        _line(ax, found.cart, CART)
    if found.forest is not None:
        ax.axhline(found.forest[1], color=FOREST, linestyle="--", label=found.forest[0])
    place = found.own.sizes.index(found.chosen)
    ax.plot(
        [found.chosen],
        [found.own.scores[place]],
        marker="o",
        markersize=11,
        fillstyle="none",
        color=OWN,
        linestyle="none",
        label=f"this tree, {found.chosen} {'leaf' if found.chosen == 1 else 'leaves'}",
    )
    ax.set_xscale("log", base=2)
    ticks = [size for size in (1, 2, 4, 8, 16, 32) if size <= max(found.own.sizes)]
    ax.set_xticks(ticks, [str(size) for size in ticks])
    ax.set_xlabel("leaves")
    ax.set_ylabel("accuracy" if found.measure == "accuracy" else "$R^2$")
    ax.grid(color="0.9")
    ax.legend(loc="lower right", frameon=False, fontsize="small")


def _line(ax: "Axes", one: SizeScores, color: str) -> None:
    """A line through the scores, in a band of one standard error where that is known."""
    ax.plot(one.sizes, one.scores, marker=".", color=color, label=one.label)
    if one.standard_errors:
        score, error = np.array(one.scores), np.array(one.standard_errors)
        ax.fill_between(one.sizes, score - error, score + error, color=color, alpha=0.15, linewidth=0)


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plot_family needs matplotlib: pip install 'prunus[plot]'") from error
    return pyplot
