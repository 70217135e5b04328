"""How good a readable tree is at each size, drawn with matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prunus.errors import InputTypeError
from prunus.estimators.readable import ReadableTree
from prunus.palette import COLORS
from prunus.render.pyplot import pyplot_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_family"]


def plot_family(estimator: Any, *, ax: Any = None) -> "Axes":
    """Draw how good a readable tree is at each number of leaves, so that one can choose it.

    A fit finds trees of all sizes up to 32 leaves, each a part of the next, and `with_leaves` returns them. The line is
    their score on rows that were held out in the fit, accuracy or R^2, in a band of one standard error; a ring marks
    the size of the estimator itself. The function needs matplotlib: ``pip install 'prunus[plot]'``.

    Parameters
    ----------
    estimator : ReadableTreeClassifier or ReadableTreeRegressor
        The fitted estimator.
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
    if not isinstance(estimator, ReadableTree):
        raise InputTypeError(
            "the estimator for plot_family must be a ReadableTreeClassifier or a ReadableTreeRegressor, which know "
            f"trees of several sizes, got {type(estimator).__name__}"
        )
    check_is_fitted(estimator)
    pyplot = pyplot_for("plot_family")
    ax = pyplot.gca() if ax is None else ax
    ax.clear()
    _draw(ax, estimator)
    return ax  # type: ignore[no-any-return]


def _draw(ax: "Axes", estimator: ReadableTree) -> None:
    sizes, chosen = [one.n_leaves for one in estimator.family_], estimator.get_n_leaves()
    score, error = (np.array([getattr(one, name) for one in estimator.family_]) for name in ("score", "standard_error"))
    label = f"{type(estimator).__name__}, on rows held out in its fit"
    ax.plot(sizes, score, marker=".", color=COLORS[0], label=label)
    ax.fill_between(sizes, score - error, score + error, color=COLORS[0], alpha=0.15, linewidth=0)
    ring: Any = {"marker": "o", "markersize": 11, "fillstyle": "none", "color": COLORS[0], "linestyle": "none"}
    leaves = "leaf" if chosen == 1 else "leaves"
    ax.plot([chosen], [score[sizes.index(chosen)]], label=f"this tree, {chosen} {leaves}", **ring)
    ax.set_xscale("log", base=2)
    ticks = [size for size in (1, 2, 4, 8, 16, 32) if size <= max(sizes)]
    ax.set_xticks(ticks, [str(size) for size in ticks])
    ax.set_xlabel("leaves")
    ax.set_ylabel("$R^2$" if not estimator.target_.is_classes else "accuracy")
    ax.grid(color="0.9")
    ax.legend(loc="lower right", frameon=False, fontsize="small")
