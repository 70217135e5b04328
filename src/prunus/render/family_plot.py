"""How good a readable tree is at each size, drawn with matplotlib."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from prunus.data import TableEncoder
from prunus.data.tables import read_table
from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.readable import ReadableTree
from prunus.palette import COLORS
from prunus.render.pyplot import pyplot_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FamilyScores", "SizeScores", "family_scores", "plot_family"]

FOLDS = 5
N_TREES = 100
MOST_ROWS = 20_000
"""Of more rows this many are drawn for the other models, which would take minutes otherwise."""


@dataclass(frozen=True)
class SizeScores:
    """The scores of trees of several sizes."""

    label: str
    """Whose scores they are, and how they were found."""
    sizes: tuple[int, ...]
    """Numbers of leaves."""
    scores: tuple[float, ...]
    standard_errors: tuple[float, ...] = ()
    """Empty if they are not known."""


@dataclass(frozen=True)
class FamilyScores:
    """The scores of a readable tree at each size, and of other models."""

    measure: str
    """"accuracy" or "R^2"."""
    own: SizeScores
    chosen: int
    """The number of leaves of the tree itself."""
    cart: SizeScores | None = None
    forest: tuple[str, float] | None = None
    """How the score of a forest was found, and the score."""


def family_scores(estimator: Any, X: Any = None, y: Any = None) -> FamilyScores:  # noqa: N803
    """The scores of the trees in `family_`, and those of other models by cross-validation on rows, if they are given.

    Examples
    --------
    >>> from prunus import ReadableTreeRegressor
    >>> X, y = [[i % 7, i % 5] for i in range(70)], [float(i % 7 > 3) for i in range(70)]
    >>> found = family_scores(ReadableTreeRegressor(max_leaf_nodes=2, random_state=0).fit(X, y))
    >>> found.measure, found.chosen, found.own.sizes[:2]
    ('R^2', 2, (1, 2))
    """
    if not isinstance(estimator, ReadableTree):
        raise InputTypeError(
            "the estimator for plot_family must be a ReadableTreeClassifier or a ReadableTreeRegressor, which know "
            f"trees of several sizes, got {type(estimator).__name__}"
        )
    check_is_fitted(estimator)
    if (X is None) != (y is None):
        raise InputValueError(f"X and y must be given together, got only {'y' if X is None else 'X'}")
    is_classes = estimator.target_.classes is not None
    own = SizeScores(
        f"{type(estimator).__name__}, on rows held out in its fit",
        tuple(one.n_leaves for one in estimator.family_),
        tuple(one.score for one in estimator.family_),
        tuple(one.standard_error for one in estimator.family_),
    )
    cart, forest = (None, None) if X is None else _others(own.sizes, X, y, is_classes=is_classes)
    return FamilyScores("accuracy" if is_classes else "R^2", own, estimator.get_n_leaves(), cart, forest)


def _others(
    sizes: Sequence[int],
    X: Any,  # noqa: N803
    y: Any,
    *,
    is_classes: bool,
) -> tuple[SizeScores, tuple[str, float]]:
    """CART of these sizes, and a forest, both of scikit-learn."""
    rows, target = _rows(X, y)
    how = (
        f"{FOLDS}-fold cross-validation on {'the' if len(target) == read_table(X).shape[0] else f'{MOST_ROWS:,}'} rows"
    )
    tree, forest = (
        (DecisionTreeClassifier, RandomForestClassifier)
        if is_classes
        else (
            DecisionTreeRegressor,
            RandomForestRegressor,
        )
    )

    def score(model: Any) -> float:
        found = cross_val_predict(model, rows, target, cv=KFold(FOLDS, shuffle=True, random_state=0))
        return float(accuracy_score(target, found) if is_classes else r2_score(target, found))

    larger = [size for size in sizes if size > 1]  # a tree has a split
    cart = SizeScores(
        f"CART, {how}", tuple(larger), tuple(score(tree(max_leaf_nodes=size, random_state=0)) for size in larger)
    )
    return cart, (f"forest of {N_TREES} trees, {how}", score(forest(N_TREES, random_state=0, n_jobs=-1)))


def _rows(X: Any, y: Any) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:  # noqa: N803
    """The rows as scikit-learn takes them, encoded, (n, d), and their targets."""
    encoded, target = TableEncoder().fit(X).transform(X), np.asarray(y)
    n = len(encoded)
    if target.ndim == 0 or len(target) != n:
        got = "a single value" if target.ndim == 0 else f"{len(target)}"
        raise InputValueError(f"y must have a value for each of the {n} rows of X, got {got}")
    if n < FOLDS:
        raise InputValueError(f"X must have at least {FOLDS} rows for {FOLDS}-fold cross-validation, got {n}")
    if n <= MOST_ROWS:
        return encoded, target
    chosen = np.sort(np.random.default_rng(0).choice(n, MOST_ROWS, replace=False))
    return encoded[chosen], target[chosen]


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
        ax = pyplot_for("plot_family").gca()
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
