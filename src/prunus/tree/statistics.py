"""Means and standard deviations of the rows that pass each node."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.ops.heap import depth_of_nodes, level
from prunus.tree.paths import passing

__all__ = ["NodeStatistics", "node_statistics"]

Floats = npt.NDArray[np.float64]


class NodeStatistics(NamedTuple):
    """Statistics of values, (n, k), over the rows that pass each node of a tree."""

    mean: Floats
    """Means, (T, k); a node that no row passes has the mean of its parent."""
    spread: Floats
    """Standard deviations, (T, k); 0 for a node that no row passes."""


def node_statistics(
    values: npt.NDArray[np.floating], ends: npt.NDArray[np.int64], weight: Floats | None, n_nodes: int
) -> NodeStatistics:
    """Means and standard deviations, given the node that the path of each row ends in, (n,).

    Examples
    --------
    >>> node_statistics(np.array([[1.0], [3.0]]), np.array([1, 2]), None, 3).mean.tolist()
    [[2.0], [1.0], [3.0]]
    """
    total = passing(ends, weight, n_nodes)
    mean, spread = np.zeros((2, n_nodes, values.shape[1]))
    for k in range(values.shape[1]):
        column = values[:, k].astype(np.float64)
        middle = np.average(column, weights=weight)  # sums of squares around it lose fewer digits
        column -= middle
        first = column if weight is None else column * weight
        mean[:, k] = passing(ends, first, n_nodes) / np.maximum(total, 1e-30)
        square = passing(ends, first * column, n_nodes) / np.maximum(total, 1e-30)
        spread[:, k] = np.sqrt(np.maximum(square - mean[:, k] ** 2, 0.0))
        mean[:, k] = np.clip(mean[:, k] + middle, values[:, k].min(), values[:, k].max())  # up to rounding it is there
    for d in range(1, depth_of_nodes(n_nodes) + 1):
        empty = np.arange(n_nodes)[level(d)][total[level(d)] <= 0]
        mean[empty] = mean[(empty - 1) // 2]
    return NodeStatistics(mean, spread)
