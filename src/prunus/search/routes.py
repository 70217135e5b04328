"""Rows in a tree that is given by its splits alone, while it is searched."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prunus.search.engine import Splits
from prunus.search.predict import goes_left, n_rows
from prunus.search.problem import Category, Number

__all__ = ["leaves_of", "node_rows", "route", "some_rows"]

Rows = npt.NDArray[np.int64]
Columns = Sequence[Number | Category]


def leaves_of(splits: Splits, root: int = 0) -> list[int]:
    """The leaves below a node from left to right, in heap order.

    Examples
    --------
    >>> from prunus.search.record import Split
    >>> leaves_of({0: Split((), 0.0), 2: Split((), 0.0)})
    [1, 5, 6]
    """
    if root not in splits:
        return [root]
    return leaves_of(splits, 2 * root + 1) + leaves_of(splits, 2 * root + 2)


def route(splits: Splits, columns: Columns, rows: Rows | None = None, root: int = 0) -> Rows:
    """The leaf of each of some rows that are sent down from a node, (len(rows),)."""
    rows = np.arange(n_rows(columns)) if rows is None else rows
    found = np.full(len(rows), root, dtype=np.int64)
    waiting = [(root, np.arange(len(rows)))]
    while waiting:
        t, own = waiting.pop()
        if t not in splits:
            found[own] = t
            continue
        left = goes_left(splits[t], columns, rows[own])
        waiting += [(2 * t + 1, own[left]), (2 * t + 2, own[~left])]
    return found


def node_rows(splits: Splits, leaf: Rows) -> dict[int, Rows]:
    """The rows that pass each node, where `leaf` is the leaf of each row.

    Examples
    --------
    >>> from prunus.search.record import Split
    >>> {t: rows.tolist() for t, rows in node_rows({0: Split((), 0.0)}, np.array([2, 1, 2])).items()}
    {1: [1], 2: [0, 2], 0: [0, 1, 2]}
    """
    nodes = {t: np.flatnonzero(leaf == t) for t in leaves_of(splits)}
    for t in sorted(splits, reverse=True):
        nodes[t] = np.sort(np.concatenate((nodes[2 * t + 1], nodes[2 * t + 2])))
    return nodes


def some_rows(columns: Columns, rows: Rows) -> list[Number | Category]:
    """The columns of some rows."""
    return [
        Number(column.values[rows], column.kind)
        if isinstance(column, Number)
        else Category(column.codes[rows], column.levels, column.ordered)
        for column in columns
    ]
