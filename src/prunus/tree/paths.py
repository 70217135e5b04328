"""Sums along the paths of a complete tree in heap order."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from prunus.ops.heap import depth_of_nodes, level

__all__ = ["last_kept", "parts_rows", "passing", "path_nodes", "path_sums"]

Bools = npt.NDArray[np.bool_]
Nodes = npt.NDArray[np.int64]
Number = TypeVar("Number", bound=np.floating[Any])


def last_kept(kept: Bools) -> Nodes:
    """The last kept node on the path from the root to each node, (T,); the root counts as kept.

    >>> last_kept(np.array([True, True, False, False, True, True, True])).tolist()
    [0, 1, 0, 1, 4, 0, 0]
    """
    last = np.zeros(len(kept), dtype=np.int64)
    node = np.arange(len(kept))
    for d in range(1, depth_of_nodes(len(kept)) + 1):
        above = last[level(d - 1)].repeat(2)
        connected = kept[level(d)] & (above == node[level(d - 1)].repeat(2))
        last[level(d)] = np.where(connected, node[level(d)], above)
    return last


def passing(leaves: Nodes, values: npt.NDArray[np.float64] | None, n_nodes: int) -> npt.NDArray[np.float64]:
    """Sum of the values, (n,), of the rows that pass each node, (T,), given the leaf or node that each row ends in.

    Without values, rows are counted.

    >>> passing(np.array([1, 2, 2]), np.array([1.0, 10.0, 100.0]), 3).tolist()
    [111.0, 1.0, 110.0]
    """
    sums = np.bincount(leaves, weights=values, minlength=n_nodes).astype(np.float64)
    for d in range(depth_of_nodes(n_nodes), 0, -1):
        sums[level(d - 1)] += sums[level(d)].reshape(-1, 2).sum(1)
    return sums


def path_sums(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Sums of the nodes' values, (T, ...), over each node and its ancestors.

    >>> path_sums(np.array([1.0, 10.0, 100.0])).tolist()
    [1.0, 11.0, 101.0]
    """
    sums = values.copy()
    for d in range(1, depth_of_nodes(len(values)) + 1):
        sums[level(d)] += sums[level(d - 1)].repeat(2, axis=0)
    return sums


def parts_rows(rows: npt.NDArray[np.float64]) -> Bools:
    """Whether each split, (S,), or a split below it, sends rows both ways, given how many rows pass each node, (T,)."""
    splits = len(rows) // 2
    parts: Bools = np.zeros(len(rows), dtype=bool)
    parts[:splits] = (rows[1:].reshape(-1, 2) > 0).all(1)
    for d in range(depth_of_nodes(len(rows)) - 1, 0, -1):
        parts[level(d - 1)] |= parts[level(d)].reshape(-1, 2).any(1)
    return parts[:splits]


def path_nodes(ends: Nodes) -> tuple[Nodes, Nodes]:
    """The nodes from the root to each of these nodes, (n,), one path after another, and where paths begin, (n + 1,).

    >>> path_nodes(np.array([4, 0]))
    (array([0, 1, 4, 0]), array([0, 3, 4]))
    """
    numbers = ends + 1  # in binary a leading 1, then 0 for each left turn and 1 for each right turn
    depth = np.frexp(numbers)[1] - 1
    levels_above = depth[:, None] - np.arange(depth.max(initial=0) + 1)  # how many levels each level lies above the end
    path = (numbers[:, None] >> levels_above.clip(min=0)) - 1
    begins = np.concatenate(([0], np.cumsum(depth + 1)))
    return path[levels_above >= 0], begins
