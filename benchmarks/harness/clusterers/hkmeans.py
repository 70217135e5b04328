"""Hierarchical k-means."""

import warnings
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness.clusterers.heap import Matrix, Nodes

__all__ = ["HKMeans"]


class HKMeans:
    """All rows are cut in two by k-means, and so is each part, down to a depth or until its rows are equal.

    A row goes to the nearer of two centres at each node.

    Parameters
    ----------
    depth : int
        Of the tree, at most.
    n_init : int
        Starts of each k-means.
    random_state : int
    """

    def __init__(self, depth: int = 6, *, n_init: int = 4, random_state: int = 0) -> None:
        self.depth = depth
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Matrix) -> Self:  # noqa: N803
        """Cut the rows of X, (n, d), and their parts."""
        rows = np.asarray(X, dtype=np.float64)
        self.centers_: dict[int, Matrix] = {}
        """Of each node that is cut, the centres of its children, (2, d); parents come before their children."""
        parts: dict[int, Matrix] = {0: rows}
        for _ in range(self.depth):
            below: dict[int, Matrix] = {}
            for node, part in parts.items():
                if (part == part[0]).all():
                    continue
                centers = self._centers(part)
                right = _is_right(part, centers)
                if 0 < right.sum() < len(part):
                    self.centers_[node] = centers
                    below[2 * node + 1], below[2 * node + 2] = part[~right], part[right]
            parts = below
        return self

    def apply(self, X: Matrix) -> Nodes:  # noqa: N803
        """The node of each row, (n,)."""
        rows = np.asarray(X, dtype=np.float64)
        nodes = np.zeros(len(rows), dtype=np.int64)
        for node, centers in self.centers_.items():
            here = np.flatnonzero(nodes == node)
            nodes[here] = 2 * node + 1 + _is_right(rows[here], centers)
        return nodes

    def _centers(self, part: Matrix) -> Matrix:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # rows that rounding makes equal
            found = KMeans(2, n_init=self.n_init, random_state=self.random_state).fit(part)
        centers: Matrix = found.cluster_centers_
        return centers


def _is_right(rows: Matrix, centers: Matrix) -> npt.NDArray[np.bool_]:
    """Whether the second of the centres is nearer."""
    left, right = centers
    nearer: npt.NDArray[np.bool_] = rows @ (right - left) > (right @ right - left @ left) / 2
    return nearer
