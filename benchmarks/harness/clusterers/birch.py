"""BIRCH, with a hierarchy above its subclusters."""

from typing import Self

import numpy as np
from scipy.cluster.hierarchy import linkage
from sklearn.cluster import Birch
from sklearn.metrics import pairwise_distances_argmin

from benchmarks.harness.clusterers.heap import Matrix, Nodes, heap_numbers

__all__ = ["BirchTree"]

SAMPLE = 20_000
"""Rows on which the threshold is sought: a CF-tree of many more takes long."""
STEPS = 12
CLOSE = 0.9
"""A share of the leaves allowed that is close enough to all of them."""
GROWTH = 1.03
"""Factor of the threshold where all rows make more subclusters than the sample did."""


class BirchTree:
    """Subclusters of scikit-learn's CF-tree, joined by Ward's linkage of their centres.

    The threshold is the smallest found by bisection that leaves at most `2**depth` subclusters. The upper levels of the
    CF-tree have up to 50 children each; Ward's linkage, which does not weigh the centres, makes a binary hierarchy
    instead. A row belongs to the subcluster with the nearest centre.

    Parameters
    ----------
    depth : int
        There are at most `2**depth` leaves; the tree may be deeper than this.
    random_state : int
        Draws the rows on which the threshold is sought.
    """

    def __init__(self, depth: int = 6, *, random_state: int = 0) -> None:
        self.depth = depth
        self.random_state = random_state

    def fit(self, X: Matrix) -> Self:  # noqa: N803
        """Find subclusters of the rows of X, (n, d), and their hierarchy."""
        rows = np.asarray(X, dtype=np.float64)
        limit = 2**self.depth
        self.threshold_ = self._seek(rows, limit)
        self.centers_ = _subclusters(rows, self.threshold_)
        while len(self.centers_) > limit:
            self.threshold_ *= GROWTH
            self.centers_ = _subclusters(rows, self.threshold_)
        self.nodes_ = heap_numbers(linkage(self.centers_, "ward")) if len(self.centers_) > 1 else np.zeros(1, np.int64)
        return self

    def apply(self, X: Matrix) -> Nodes:  # noqa: N803
        """The node of each row, (n,)."""
        nearest = pairwise_distances_argmin(np.asarray(X, dtype=np.float64), self.centers_)
        nodes: Nodes = self.nodes_[nearest]
        return nodes

    def _seek(self, rows: Matrix, limit: int) -> float:
        """A threshold that leaves a few subclusters less than the limit, on a sample."""
        if len(rows) > SAMPLE:
            rows = rows[np.random.default_rng(self.random_state).choice(len(rows), SAMPLE, replace=False)]
        low, high = 0.0, float(np.sqrt(rows.var(axis=0).sum())) or 1.0
        while len(_subclusters(rows, high)) > limit:
            low, high = high, 2 * high
        for _ in range(STEPS):
            middle = (low + high) / 2
            found = len(_subclusters(rows, middle))
            low, high = (middle, high) if found > limit else (low, middle)
            if CLOSE * limit <= found <= limit:
                break
        return high


def _subclusters(rows: Matrix, threshold: float) -> Matrix:
    """Centres of the subclusters, (k, d)."""
    found: Matrix = Birch(threshold=threshold, n_clusters=None).fit(rows).subcluster_centers_
    return found
