"""The record behind pictures of routes: how much of some rows passes each node."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.base import ArgminTree
from prunus.estimators.prediction import chunked
from prunus.estimators.torch_state import plain_torch
from prunus.ops.heap import depth_of_nodes, level, n_nodes

__all__ = ["Routing", "class_rows", "routing"]

Floats = npt.NDArray[np.float64]
PIECE = 16_384
"""Rows whose routes are held in memory at a time."""


@dataclass(frozen=True)
class Routing:
    """The upper part of a complete tree, in heap order, T nodes."""

    depth: int
    mass: npt.NDArray[np.float32]
    """(T,): 0 is pruned, 1 is kept wholly."""
    percent: Floats
    """(T,): of the rows that are routed through a node, among the nodes of its level."""


def routing(
    estimator: Any,
    X: Any = None,  # noqa: N803
    *,
    rows: npt.NDArray[np.bool_] | None = None,
    max_depth: int | None = None,
) -> Routing:
    """How rows of X, all or some, are routed; without X the training rows, each along its one path."""
    if not isinstance(estimator, ArgminTree):
        raise InputTypeError(f"estimator must be one of prunus, however: {type(estimator).__name__}")
    check_is_fitted(estimator)
    deepest = depth_of_nodes(len(estimator.node_mass_))
    depth = deepest if max_depth is None else min(_whole(max_depth), deepest)
    shown = slice(n_nodes(depth))
    passing = estimator.tree_.share if X is None else _passing(estimator, X, rows)
    return Routing(depth, estimator.node_mass_[shown], _percent_of_level(passing[shown], depth))


def class_rows(estimator: Any, y: Any, label: Any) -> npt.NDArray[np.bool_]:
    """Which rows are of one class, (n,)."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise InputValueError(f"y must have shape (n,), however: y.shape={y.shape}")
    rows = np.asarray([value == label for value in y.tolist()], dtype=bool)
    if rows.any():
        return rows
    if label in getattr(estimator, "classes_", np.array([])).tolist():
        raise InputValueError(f"y must have rows of the class to draw, however: none is {label!r}")
    raise InputValueError(f"label must be one of those in y, {_some(y)}, however: {label!r}")


@plain_torch()
def _passing(estimator: ArgminTree, X: Any, rows: npt.NDArray[np.bool_] | None) -> Floats:  # noqa: N803
    """Sums of the routes z over rows, (T,)."""
    x, model = estimator._encode(X), estimator.model_
    if rows is not None:
        if len(rows) != len(x):
            raise InputValueError(f"y must have a label for each of the {len(x)} rows of X, however: {len(rows)}")
        x = x[rows]
    total = np.zeros(len(estimator.node_mass_))
    for begin in range(0, len(x), PIECE):
        piece = x[begin : begin + PIECE]
        z = chunked(lambda some: model.tree(model.inputs(some)).z, piece, model.tree.a.device)
        total += z.double().sum(0).numpy()
    return total


def _percent_of_level(passing: Floats, depth: int) -> Floats:
    percent = np.zeros(len(passing))
    for d in range(depth + 1):
        total = passing[level(d)].sum()
        if total > 0:
            percent[level(d)] = 100 * passing[level(d)] / total
    return percent


def _whole(max_depth: Any) -> int:
    if isinstance(max_depth, bool) or not isinstance(max_depth, (int, np.integer)) or max_depth < 0:
        raise InputValueError(f"max_depth must be an integer of at least 0 or None, however: {max_depth!r}")
    return int(max_depth)


def _some(y: npt.NDArray[Any]) -> str:
    found = list(dict.fromkeys(y.tolist()))
    return ", ".join(map(repr, found[:8])) + (" and so on" if len(found) > 8 else "")
