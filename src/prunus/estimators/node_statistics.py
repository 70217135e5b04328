"""Means and spreads of the rows that pass each node."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.ops.heap import depth_of_nodes, level

__all__ = ["NodeStatistics", "node_statistics"]

Floats = npt.NDArray[np.float64]


class NodeStatistics(NamedTuple):
    """Of values, (n, k), in each node of a tree."""

    mean: Floats
    """(T, k); the parent's, if no row passes."""
    spread: Floats
    """Standard deviations, (T, k); zero, if no row passes."""


def node_statistics(
    values: npt.NDArray[np.floating], ends: npt.NDArray[np.int64], weight: Floats | None, n_nodes: int
) -> NodeStatistics:
    """Statistics of rows whose paths end in these nodes, (n,), in heap order.

    Examples
    --------
    >>> node_statistics(np.array([[1.0], [3.0]]), np.array([1, 2]), None, 3).mean.tolist()
    [[2.0], [1.0], [3.0]]
    """
    total = _passing(_sums(ends, weight, n_nodes))
    mean, spread = np.zeros((2, n_nodes, values.shape[1]))
    for k in range(values.shape[1]):
        column = values[:, k].astype(np.float64)
        middle = np.average(column, weights=weight)  # so that squares are of deviations
        column -= middle
        first = column if weight is None else column * weight
        mean[:, k] = _passing(_sums(ends, first, n_nodes)) / np.maximum(total, 1e-30)
        square = _passing(_sums(ends, first * column, n_nodes)) / np.maximum(total, 1e-30)
        spread[:, k] = np.sqrt(np.maximum(square - mean[:, k] ** 2, 0.0))
        mean[:, k] += middle
    for d in range(1, depth_of_nodes(n_nodes) + 1):
        empty = np.arange(n_nodes)[level(d)][total[level(d)] <= 0]
        mean[empty] = mean[(empty - 1) // 2]
    return NodeStatistics(mean, spread)


def _sums(ends: npt.NDArray[np.int64], values: Floats | None, n_nodes: int) -> Floats:
    return np.bincount(ends, weights=values, minlength=n_nodes).astype(np.float64)


def _passing(ending: Floats) -> Floats:
    """Sums over the rows that pass each node, (T,), from those over the rows that end there."""
    for d in range(depth_of_nodes(len(ending)), 0, -1):
        ending[level(d - 1)] += ending[level(d)].reshape(-1, 2).sum(1)
    return ending
