"""From the splits of a tree to its record: what is known of the rows of each node, and what its leaves predict."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prunus.search.engine import Splits
from prunus.search.formulas import fit_formulas
from prunus.search.leaves import share_leaf, value_leaf
from prunus.search.outcome import Outcome, sums_at
from prunus.search.problem import Doubles, Problem
from prunus.search.record import Leaf, NodeRows, ReadableRecord
from prunus.search.routes import leaves_of, node_rows
from prunus.search.terms import read_terms

__all__ = ["NodeStatistics", "formula_leaves", "node_statistics", "record_of"]

ROUNDING = 1e-7
"""A spread that is smaller than this share of the mean comes from squares that cancel."""
CANCELED = 1e-12
"""A mean that is smaller than this share of the mean of all rows is what remains of numbers that cancel."""


@dataclass(frozen=True)
class NodeStatistics:
    """The rows that pass a node."""

    weight: float
    square: float
    """The sum of their squared weights."""
    sums: Doubles
    """Weighted sums of the values, or the weight of each class, (k,)."""
    squares: Doubles
    """Weighted sums of the squared differences from the mean of all rows, (k,); empty for classes."""
    shift: Doubles
    """The mean of all rows, from which values are measured, (k,); empty for classes."""

    def __add__(self, other: "NodeStatistics") -> "NodeStatistics":
        return NodeStatistics(
            self.weight + other.weight,
            self.square + other.square,
            self.sums + other.sums,
            self.squares + other.squares,
            self.shift,
        )

    @property
    def rows(self) -> NodeRows:
        """The same for the record."""
        if not len(self.squares):
            return NodeRows(self.weight, tuple((self.sums / self.weight).tolist()))
        return NodeRows(self.weight, tuple(self._mean().tolist()), tuple(self._spread().tolist()))

    def leaf(self, prior: Doubles) -> Leaf:
        """A leaf of these rows with constant values."""
        rows = self.weight**2 / self.square
        if not len(self.squares):
            return share_leaf(self.sums, prior, rows)
        return value_leaf(self._mean(), self._spread() / np.sqrt(max(rows - 1, 1.0)))

    def _mean(self) -> Doubles:
        found: Doubles = self.sums / self.weight + self.shift
        found[np.abs(found) <= CANCELED * np.abs(self.shift)] = 0.0
        return found

    def _spread(self) -> Doubles:
        mean = self.sums / self.weight
        found: Doubles = np.sqrt(np.maximum(self.squares / self.weight - mean**2, 0.0))
        found[found <= ROUNDING * np.abs(mean) + np.finfo(np.float64).eps * np.abs(self.shift)] = 0.0
        return found


def node_statistics(splits: Splits, leaf: npt.NDArray[np.int64], problem: Problem) -> dict[int, NodeStatistics]:
    """What is known of the rows of each node, where `leaf` is the leaf of each row."""
    leaves = leaves_of(splits)
    place = {t: i for i, t in enumerate(leaves)}
    found, where = np.unique(leaf, return_inverse=True)
    at, count = np.array([place[t] for t in found.tolist()], dtype=np.int64)[where], len(leaves)
    weight = np.ones(len(leaf)) if problem.weight is None else problem.weight
    weights, square = sums_at(at, weight, count), sums_at(at, weight**2, count)
    if problem.n_classes:
        of_classes = sums_at(at * problem.n_classes + problem.y, weight, count * problem.n_classes)
        sums, squares, shift = of_classes.reshape(count, -1), np.empty((count, 0)), np.empty(0)
    else:
        y = problem.y.reshape(len(at), -1)
        shift = np.average(y, axis=0, weights=weight)
        sums, squares = (
            np.stack([sums_at(at, weight * own**power, count) for own in (y - shift).T], axis=1) for power in (1, 2)
        )
    nodes = {
        t: NodeStatistics(float(weights[i]), float(square[i]), sums[i], squares[i], shift) for t, i in place.items()
    }
    for t in sorted(splits, reverse=True):
        nodes[t] = nodes[2 * t + 1] + nodes[2 * t + 2]
    return nodes


def formula_leaves(
    splits: Splits, leaf: npt.NDArray[np.int64], problem: Problem, prior: Doubles, most: int
) -> dict[int, Leaf]:
    """The leaves with formulas of at most this many terms that nodes would be; without those that are best constant."""
    weight = np.ones(len(leaf)) if problem.weight is None else problem.weight
    if problem.n_classes:
        outcome = Outcome(None, problem.y.astype(np.int64), weight, problem.n_classes)
    else:
        values = problem.y.astype(np.float64).reshape(len(leaf), -1)
        outcome = Outcome(values, None, weight, values.shape[1])
    rows = {t: own for t, own in node_rows(splits, leaf).items() if len(own)}
    found = fit_formulas(read_terms(problem.columns), rows, outcome, prior, most)
    return {t: best for t, own in found.items() if (best := own[most]) is not None}


def record_of(splits: Splits, nodes: dict[int, NodeStatistics], leaves: dict[int, Leaf]) -> ReadableRecord:
    """The record of a tree, whose leaves are given."""
    ends = leaves_of(splits)
    rows = {t: nodes[t].rows for t in sorted((*splits, *ends))}
    return ReadableRecord(dict(sorted(splits.items())), {t: leaves[t] for t in sorted(ends)}, rows)
