"""The best feature and threshold above two subtrees: all of them scored at once.

The score of a leaf is the number of rows that its answer gets right, or, for values, by how much its mean lowers their
sum of squares; it follows from a few sums over its rows, the statistics. As a threshold moves up, the rows that it
passes leave the right subtree and enter the left one, each into the leaf where it ends there. With rows sorted by leaf
and then by feature, running sums within the leaves give the score before and after each row enters; these differences,
back in the order of the feature, add up to the score of a side at each threshold. So all thresholds of a feature
take the time of a sort, whatever the number of leaves.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from benchmarks.harness.methods.interface import Rows, Targets, Task

__all__ = ["Evidence", "Found", "best_split", "score_of"]

Statistics = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.unsignedinteger]

AT_ONCE = 4_000_000
"""Entries of the arrays that several features share: as many features as fit."""


@dataclass
class Evidence:
    """Rows as sums of them need them.

    Attributes
    ----------
    task : {"classes", "values"}
    statistics : ndarray of shape (n, K) or (n, 2)
        Classes as indicators; or a one and the value, less the mean.
    ranks : ndarray of shape (n, d)
        Ranks of the features from 0; equal values have equal ranks.
    binary : ndarray of shape (d,)
        Features with at most two values.
    most, worst : float
        Score of a tree without errors, and the unit of errors: the number of rows, or the sum of squares of y.
    """

    task: Task
    statistics: Statistics
    ranks: Ranks
    binary: npt.NDArray[np.bool_]
    most: float
    worst: float

    @classmethod
    def of(cls, x: Rows, y: Targets, task: Task) -> Self:
        """Of a whole training set."""
        kind = np.uint16 if len(x) < 2**16 else np.uint32  # shorter ones are sorted faster
        columns = [np.unique(column, return_inverse=True)[1].astype(kind) for column in x.T]
        ranks = np.stack(columns, axis=1)
        binary = ranks.max(axis=0) < 2
        if task == "classes":
            statistics = (y[:, None] == np.unique(y)).astype(np.float64)
            return cls(task, statistics, ranks, binary, float(len(y)), float(len(y)))
        centered = y - y.mean()
        total = float((centered**2).sum())
        return cls(task, np.stack([np.ones(len(y)), centered], axis=1), ranks, binary, total, total or 1.0)

    def take(self, rows: Numbers) -> "Evidence":
        """Of some rows."""
        return Evidence(self.task, self.statistics[rows], self.ranks[rows], self.binary, self.most, self.worst)

    def score(self, sums: Statistics) -> Statistics:
        """Score of leaves by the sums of their statistics, (..., K)."""
        if self.task == "classes":
            best: Statistics = sums.max(axis=-1)
            return best
        count, total = sums[..., 0], sums[..., 1]
        return np.divide(total**2, count, out=np.zeros(total.shape), where=count > 0.5)


class Found(NamedTuple):
    """A split, and the score of the rows in the leaves below it."""

    feature: int
    threshold: float
    score: float


def score_of(leaves: Numbers, evidence: Evidence, rows: Numbers | None = None) -> float:
    """Score of all or some rows, in numbered leaves.

    >>> rows = Evidence.of(np.zeros((4, 1), np.float32), np.array([0, 0, 1, 1]), "classes")
    >>> score_of(np.array([0, 0, 0, 1]), rows)
    3.0
    """
    statistics = evidence.statistics if rows is None else evidence.statistics[rows]
    sums = [np.bincount(leaves, weights=column) for column in statistics.T]
    return float(evidence.score(np.stack(sums, axis=1)).sum())


def best_split(x: Rows, evidence: Evidence, left: Numbers, right: Numbers) -> Found | None:
    """The split with the best score above two subtrees.

    Parameters
    ----------
    x : array of shape (n, d)
    evidence : Evidence
        Of the same rows.
    left, right : int arrays of shape (n,)
        Leaf where each row ends if it goes left, and if it goes right.

    Returns
    -------
    Found or None
        None if all rows are equal.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)
    >>> evidence = Evidence.of(x, np.array([0, 0, 0, 1]), "classes")
    >>> best_split(x, evidence, np.zeros(4, int), np.zeros(4, int))
    Found(feature=0, threshold=2.5, score=4.0)
    """
    width = max(1, AT_ONCE // evidence.statistics.size)
    found: list[Found] = []
    for binary, search in ((False, _by_order), (True, _by_sums)):
        features = np.flatnonzero(evidence.binary == binary)
        for start in range(0, len(features), width):
            some = features[start : start + width]
            found += search(x[:, some], evidence.ranks[:, some], some, evidence, left, right)
    return max(found, key=lambda split: split.score, default=None)


def _by_order(
    x: Rows, ranks: Ranks, features: Numbers, evidence: Evidence, left: Numbers, right: Numbers
) -> list[Found]:
    """The best split by features with many values, if there is one."""
    order = ranks.argsort(axis=0, kind="stable")
    rising = _entering(order, left, evidence)
    falling = _entering(order[::-1], right, evidence)[::-1]
    scores = rising[:-1] + falling[1:]
    ordered = np.take_along_axis(ranks, order, axis=0)
    scores[ordered[1:] == ordered[:-1]] = -np.inf
    position, feature = np.unravel_index(scores.argmax(), scores.shape)
    values = x[order[position : position + 2, feature], feature].astype(np.float64)
    found = Found(int(features[feature]), float(values.mean()), float(scores[position, feature]))
    return [found] if np.isfinite(found.score) else []


def _by_sums(
    x: Rows, ranks: Ranks, features: Numbers, evidence: Evidence, left: Numbers, right: Numbers
) -> list[Found]:
    """The best split by features with two values, if there is one; these need no sorting, and are many if one-hot."""
    is_high = np.concatenate([ranks, np.ones((len(ranks), 1), ranks.dtype)], axis=1)
    low, high = (_sums_in_leaves(is_high, leaves, evidence.statistics) for leaves in (left, right))
    low = low[:, -1:] - low  # rows with the lower value go left
    scores = (evidence.score(low).sum(axis=0) + evidence.score(high).sum(axis=0))[:-1]
    n_high = ranks.sum(axis=0, dtype=np.int64)
    scores[(n_high == 0) | (n_high == len(ranks))] = -np.inf
    feature = int(scores.argmax())
    middle = (float(x[:, feature].min()) + float(x[:, feature].max())) / 2
    return [Found(int(features[feature]), middle, float(scores[feature]))] if np.isfinite(scores[feature]) else []


def _sums_in_leaves(chosen: Ranks, leaves: Numbers, statistics: Statistics) -> Statistics:
    """Sums in each leaf over the rows that each column chooses by a 1, (leaves, columns, K)."""
    order = leaves.argsort(kind="stable")
    starts = np.flatnonzero(np.diff(leaves[order], prepend=-1))
    sorted_rows = chosen[order].astype(np.float64)
    sums = [np.add.reduceat(sorted_rows * column[order, None], starts, axis=0) for column in statistics.T]
    return np.stack(sums, axis=-1)


def _entering(order: Numbers, leaves: Numbers, evidence: Evidence) -> Statistics:
    """Score of the rows that have entered their leaves, after each row, in each of several orders, (n, features)."""
    sizes = np.bincount(leaves)
    sizes = sizes[sizes > 0]
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    by_leaf = leaves.astype(np.uint16)[order].argsort(axis=0, kind="stable")
    entering = evidence.statistics[np.take_along_axis(order, by_leaf, axis=0)]  # (n, features, K)
    sums = entering.cumsum(axis=0)
    sums -= (sums - entering)[starts]
    gains = evidence.score(sums)
    gains[1:] -= np.where((starts[1:] == starts[:-1])[:, None], gains[:-1], 0.0)
    back = np.empty_like(gains)
    np.put_along_axis(back, by_leaf, gains, axis=0)
    return back.cumsum(axis=0)
