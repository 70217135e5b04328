"""Which rows can be picked in the interactive page: some of all of them, and those that are worth a look."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.explain.readable_rows import ReadableRows
from prunus.explain.rows import RowsInTree, largest_routes
from prunus.targets import Target

__all__ = ["class_positions", "forest_lists", "row_lists"]

Rows = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

MAX_LEAVES = 32
"""With at most this many leaves there are rows of each leaf."""
MAX_ROUTES = 1 << 22
"""Largest number of routes that are looked at to find the rows that are divided most."""
DIVIDED = 0.01
"""A row is divided if at least this share of it does not follow its largest route."""


def row_lists(
    target: Target, passed: RowsInTree | ReadableRows, truth: npt.NDArray[Any] | None, few: int
) -> tuple[Rows, dict[str, list[int]]]:
    """At most `few` rows, without repetition, and lists of positions among them.

    The lists are "steps", rows at equal steps, which come first; "worst", those of the largest errors; "uncertain",
    those of the smallest margin between two classes, or that are divided most among the routes of a soft tree. A list
    that would be empty, or that makes no sense, is left out. Beside them some rows of each leaf are chosen.
    """
    predicted = passed.predicted(target)
    uncertain = _closest(predicted) if target.task == "classes" else _divided(passed)
    lists = {"worst": _worst(target, predicted, truth), "uncertain": uncertain}
    return _listed(len(passed.ends), lists, _of_leaves(passed, 4 * max(1, few // 10)), few)


def forest_lists(
    target: Target, mean: Doubles, spread: Doubles, truth: npt.NDArray[Any] | None, few: int
) -> tuple[Rows, dict[str, list[int]]]:
    """The same for a forest, by the means of what its trees predict, (n, k), and their standard deviations, (n, k).

    Its "uncertain" rows of numbers are those about which the trees differ most.
    """
    if target.task == "classes":
        uncertain = _closest(mean)
    else:
        differs = (spread / np.maximum(mean.std(0), np.finfo(np.float64).tiny)).max(1)
        uncertain = _largest(differs)[: np.count_nonzero(differs)]
    lists = {"worst": _worst(target, mean, truth), "uncertain": uncertain}
    return _listed(len(mean), lists, np.zeros(0, dtype=np.int64), few)


def _listed(n: int, lists: dict[str, Rows], also: Rows, few: int) -> tuple[Rows, dict[str, list[int]]]:
    """At most `few` of n rows: some at equal steps, the first ones of each list, and those that are chosen also."""
    found = {name: rows[: max(1, few // 10)] for name, rows in lists.items()}
    others = np.concatenate([*found.values(), also])
    steps = _steps(n, few if n <= few else max(1, few - len(np.unique(others))))
    rows = np.array(list(dict.fromkeys([*steps.tolist(), *others.tolist()])), dtype=np.int64)[:few]
    position = {row: i for i, row in enumerate(rows.tolist())}
    kept = {"steps": list(range(len(steps)))}
    for name, some in found.items():
        known = [position[row] for row in some.tolist() if row in position]
        if known:
            kept[name] = known
    return rows, kept


def _steps(n: int, few: int) -> Rows:
    """At most `few` of n rows, at equal steps."""
    return np.unique(np.linspace(0, n - 1, few).astype(np.int64))


def _worst(target: Any, predicted: Doubles, truth: npt.NDArray[Any] | None) -> Rows:
    """The rows by the size of their errors, largest first: distances, or how improbable their class was."""
    if truth is None or target.task == "clusters":
        return np.zeros(0, dtype=np.int64)
    if target.task == "numbers":
        scale = np.maximum(predicted.std(0) + truth.std(0), np.finfo(np.float64).tiny)
        return _largest((np.abs(predicted - truth) / scale).max(1))
    classes = class_positions(target, truth)
    known = predicted[np.arange(len(classes)), classes]
    return _largest(np.where(classes < 0, 1.0, 1.0 - known))


def class_positions(target: Any, truth: npt.NDArray[Any]) -> Rows:
    """The position of each row's class among the classes of training, (n,); -1 if it is none of them."""
    position = {label: k for k, label in enumerate(target.labels.tolist())}
    return np.array([position.get(label, -1) for label in truth.tolist()], dtype=np.int64)


def _closest(predicted: Doubles) -> Rows:
    """The rows by the margin between their two most probable classes, smallest first."""
    shares = np.sort(predicted, axis=1)
    return _largest(shares[:, -2] - shares[:, -1]) if shares.shape[1] > 1 else np.zeros(0, dtype=np.int64)


def _divided(passed: RowsInTree | ReadableRows) -> Rows:
    """The rows that are divided among routes, most divided first."""
    if isinstance(passed, ReadableRows) or passed.is_hard:
        return np.zeros(0, dtype=np.int64)
    n = len(passed.x)
    rows = _steps(n, max(1, min(n, MAX_ROUTES // passed.tree.n_nodes)))
    divided = 1.0 - largest_routes(passed, rows)
    order = _largest(divided)
    return rows[order[divided[order] > DIVIDED]]


def _of_leaves(passed: RowsInTree | ReadableRows, most: int) -> Rows:
    """Some rows of each leaf, at most this many in all; none if there are too many leaves."""
    leaves = passed.leaves
    each = most // len(leaves)
    if len(leaves) > MAX_LEAVES or each == 0:
        return np.zeros(0, dtype=np.int64)
    own = [passed.at(t) for t in leaves]
    return np.concatenate([rows[_steps(len(rows), min(each, len(rows)))] for rows in own if len(rows)])


def _largest(values: Doubles) -> Rows:
    """The positions of the values, largest first."""
    return np.argsort(-values, kind="stable").astype(np.int64)
