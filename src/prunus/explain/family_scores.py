"""How good a readable tree is at each size, and other models beside it, as a plain record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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

__all__ = ["FamilyScores", "SizeScores", "family_scores"]

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
    is_classes = estimator.target_.task == "classes"
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
