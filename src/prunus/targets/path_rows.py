"""Rows that follow one path each, with their outputs."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["PathRows"]

Doubles = npt.NDArray[np.float64]
Nodes = npt.NDArray[np.int64]


class PathRows(NamedTuple):
    """Rows that follow one path to a node of a tree each."""

    wanted: npt.NDArray[np.floating]
    """What is wanted of each row, (n, k), see `prunus.targets.Target.wanted`."""
    outputs: npt.NDArray[np.floating]
    """The outputs that the rows have, (n, k)."""
    weight: Doubles | None
    """(n,)."""
    ends: Nodes
    """The node that the path of each row ends in, (n,)."""
    n_nodes: int

    def sums(self, values: npt.NDArray[np.floating]) -> Doubles:
        """Weighted sums of values, (n, k), over the rows that end in each node, (T, k).

        >>> rows = PathRows(np.zeros((3, 1)), np.zeros((3, 1)), np.array([1.0, 1.0, 2.0]), np.array([1, 2, 2]), 3)
        >>> rows.sums(np.array([[1.0], [2.0], [3.0]])).tolist()
        [[0.0], [1.0], [8.0]]
        """
        columns = (values[:, i].astype(np.float64) for i in range(values.shape[1]))
        weighted = (column if self.weight is None else column * self.weight for column in columns)
        return np.stack([np.bincount(self.ends, weights=column, minlength=self.n_nodes) for column in weighted], axis=1)

    @property
    def total(self) -> Doubles:
        """Total weight of the rows that end in each node, (T, 1)."""
        return self.sums(np.ones((len(self.ends), 1)))

    def by_node(self) -> Iterator[tuple[int, Nodes]]:
        """Each node that rows end in, with the numbers of these rows."""
        order = np.argsort(self.ends, kind="stable")
        nodes, begins = np.unique(self.ends[order], return_index=True)
        yield from zip(nodes.tolist(), np.split(order, begins[1:]), strict=True)

    def residual_quantiles(self, level: float, prior_rows: float) -> Doubles:
        """Quantiles of the differences of what is wanted and of the outputs of the rows in each node, (T, k).

        They are drawn to 0 as if `prior_rows` rows had told that it is 0. A quantile near 0 or 1 is known less well
        than the median, so that these rows then count as more.
        """
        found = np.zeros((self.n_nodes, self.wanted.shape[1]))
        residual = self.wanted.astype(np.float64) - self.outputs
        prior = prior_rows / (4 * level * (1 - level))
        for node, here in self.by_node():
            weight = np.ones(len(here)) if self.weight is None else self.weight[here]
            share = weight.sum() / (weight.sum() + prior)
            for k in range(residual.shape[1]):
                found[node, k] = share * weighted_quantile(residual[here, k], weight, level)
        return found


def weighted_quantile(values: Doubles, weight: Doubles, level: float) -> float:
    """The smallest value such that values up to it have at least this share of the weight.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    first = int(np.searchsorted(below, level * below[-1] * (1 - 1e-12)))
    return float(values[order[min(first, len(values) - 1)]])
