"""What the engine of searches computes, in plain numpy: slow, and plainly right. README.md has the formulas.

Trees are lists of nodes in pre-order, as the engine returns them: None for a leaf, and for a split `SearchNode`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.search.engine import MISSING, BinnedColumns
from prunus.search.outcome import RIDGE

__all__ = [
    "Cut",
    "SearchNode",
    "SearchRows",
    "SearchTree",
    "best_cut",
    "ends_of_rows",
    "greedy_tree",
    "soft_gradient",
    "soft_worth",
    "tree_worth",
    "worth",
]

Doubles = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MOST_DEPTH = 10
"""Leaves this deep are not split."""
LEAST_GAIN = 1e-9
"""A split that gains no more than this is none."""
LARGEST_SLOPE_VALUE = 1000.0
"""Larger numbers count as this in linear predictions: in sums their squares would drown all others."""


class SearchNode(NamedTuple):
    """A split: rows go left if the sum of its terms is below the threshold, or if their level is in the group."""

    left: int
    right: int
    is_group: bool
    terms: list[tuple[int, float, list[int] | None]]
    """A column, its weight and, of a category, the levels that count 1."""
    threshold: float
    missing_left: bool


SearchTree = list[SearchNode | None]


@dataclass(frozen=True)
class SearchRows:
    """The rows of a search and what is wanted of it."""

    columns: BinnedColumns
    weight: Doubles
    """(n,), positive."""
    y: Doubles
    """Values, or the share of each class, (n, k)."""
    least: float = 1.0
    """Least weight of a leaf."""
    accuracy: float = 0.0
    """How much accuracy counts beside Gini's impurity, from 0 to 1; 0 for numbers."""
    is_classes: bool = False
    slopes: tuple[int, ...] = ()
    """Columns of numbers from which leaves predict linearly; without them leaves predict constants."""


class Cut(NamedTuple):
    """The best cut of some rows by one column."""

    gain: float
    left: Flags
    """Whether each of the 256 bins goes left."""
    last: int
    """The last bin below the threshold, -1 for a group."""


def worth(rows: SearchRows, some: Places) -> float:
    """By how much a constant prediction for some rows, or a linear one, lowers their loss."""
    if not len(some):
        return 0.0
    weight, y = rows.weight[some], rows.y[some]
    mean = np.average(y, axis=0, weights=weight)
    lowered = float(weight @ (y**2).sum(1) - weight @ ((y - mean) ** 2).sum(1))
    if rows.slopes:
        return lowered + _explained(rows, some)
    if rows.accuracy == 0:
        return lowered
    return (1 - rows.accuracy) * lowered + rows.accuracy * float((weight @ y).max())


def _explained(rows: SearchRows, some: Places) -> float:
    """By how much a ridge regression on the slopes lowers the loss of some rows further; missing numbers count 0."""
    weight, y = rows.weight[some], rows.y[some]
    x = np.nan_to_num(rows.columns.values[list(rows.slopes)][:, some].T.astype(np.float64))
    x = x.clip(-LARGEST_SLOPE_VALUE, LARGEST_SLOPE_VALUE)
    x, y = (own - np.average(own, axis=0, weights=weight) for own in (x, y))
    spread = x.T @ (weight[:, None] * x) + RIDGE * weight.sum() * np.eye(x.shape[1])
    common = x.T @ (weight[:, None] * y)
    return float((common * np.linalg.solve(spread, common)).sum())


def best_cut(rows: SearchRows, some: Places, column: int) -> Cut:
    """The best cut of some rows by a column; its gain is -1 if there is none."""
    bins = rows.columns.bins[column, some]
    if rows.columns.is_category[column]:
        found = _best(rows, some, bins, ((left, -1) for left in _groups(rows, some, bins)))
        chance = _chance(rows, some, len(np.unique(bins)))
        return found._replace(gain=max(0.0, found.gain - chance)) if found.gain > 0 else found
    return _best(rows, some, bins, _thresholds(rows, bins, column))


def _best(rows: SearchRows, some: Places, bins: npt.NDArray[np.uint8], candidates: Iterator[tuple[Flags, int]]) -> Cut:
    found = Cut(-1.0, np.zeros(256, dtype=bool), -1)
    for left, last in candidates:
        here = left[bins]
        if min(rows.weight[some[here]].sum(), rows.weight[some[~here]].sum()) < rows.least or here.all():
            continue
        gain = worth(rows, some[here]) + worth(rows, some[~here]) - worth(rows, some)
        if gain > found.gain:
            found = Cut(gain, left, last)
    return found


def _thresholds(rows: SearchRows, bins: npt.NDArray[np.uint8], column: int) -> Iterator[tuple[Flags, int]]:
    """Bins up to each one go left, and missing values with them or not."""
    place = np.arange(256)
    for missing_left in (False, True) if (bins == MISSING).any() else (False,):
        for last in range(int(rows.columns.bin_count[column])):
            if (bins == last).any():
                yield np.where(place == MISSING, missing_left, place <= last), last


def _groups(rows: SearchRows, some: Places, bins: npt.NDArray[np.uint8]) -> Iterator[Flags]:
    """The first levels in the order of their mean outputs, which one more row with the mean of all draws together."""
    weight, y = rows.weight[some], rows.y[some]
    outputs = [1] if rows.is_classes and y.shape[1] == 2 else range(y.shape[1])
    for j in outputs if len(np.unique(bins)) > 2 else outputs[:1]:
        mean = np.average(y[:, j], weights=weight)
        drawn = {
            int(level): (weight[bins == level] @ y[bins == level, j] + mean) / (weight[bins == level].sum() + 1)
            for level in np.unique(bins)
        }
        order = sorted(drawn, key=lambda level: (drawn[level], level))
        for count in range(1, len(order)):
            yield np.isin(np.arange(256), order[:count])


def _chance(rows: SearchRows, some: Places, levels: int) -> float:
    """What the best group of this many levels gains if they mean nothing."""
    weight, y = rows.weight[some], rows.y[some]
    variance = float(np.average(((y - np.average(y, axis=0, weights=weight)) ** 2).sum(1), weights=weight))
    return 0.64 * variance * max(0, levels - 2)


def greedy_tree(rows: SearchRows, leaves: int, price: float = 0.0) -> SearchTree:
    """Split the leaf that gains most until there are this many; then take back splits that gain less than a price."""
    root = _Branch(np.arange(len(rows.weight)))
    root.look(rows)
    while len(root.leaves()) < leaves:
        best = max(root.leaves(), key=lambda leaf: leaf.cut.gain)
        if best.cut.gain <= LEAST_GAIN:
            break
        best.split(rows)
    while weak := [(gain, branch) for branch in root.twigs() if (gain := branch.gained(rows)) < price]:
        min(weak, key=lambda pair: pair[0])[1].below = []
    return root.nodes(rows)


class _Branch:
    """A leaf, or a split with two branches."""

    def __init__(self, some: Places, depth: int = 0) -> None:
        self.some, self.depth, self.column = some, depth, -1
        self.cut = Cut(-1.0, np.zeros(256, dtype=bool), -1)
        self.below: list[_Branch] = []

    def look(self, rows: SearchRows) -> None:
        """Find the best split."""
        if rows.weight[self.some].sum() < 2 * rows.least or self.depth >= MOST_DEPTH:
            return
        for column in range(len(rows.columns.bins)):
            cut = best_cut(rows, self.some, column)
            if cut.gain > self.cut.gain:
                self.cut, self.column = cut, column

    def split(self, rows: SearchRows) -> None:
        left = self.cut.left[rows.columns.bins[self.column, self.some]]
        self.below = [_Branch(part, self.depth + 1) for part in (self.some[left], self.some[~left])]
        for branch in self.below:
            branch.look(rows)

    def gained(self, rows: SearchRows) -> float:
        return sum(worth(rows, branch.some) for branch in self.below) - worth(rows, self.some)

    def leaves(self) -> "list[_Branch]":
        return [leaf for branch in self.below for leaf in branch.leaves()] if self.below else [self]

    def twigs(self) -> "list[_Branch]":
        """Splits above two leaves."""
        if self.below and not any(branch.below for branch in self.below):
            return [self]
        return [twig for branch in self.below for twig in branch.twigs()]

    def nodes(self, rows: SearchRows, first: int = 0) -> SearchTree:
        """The nodes from here on, of which this one has the number `first`."""
        if not self.below:
            return [None]
        left = self.below[0].nodes(rows, first + 1)
        right = self.below[1].nodes(rows, first + 1 + len(left))
        is_group = self.cut.last < 0
        group = np.flatnonzero(self.cut.left).tolist() if is_group else None
        edges = rows.columns.edges[self.column]
        within = 0 <= self.cut.last < rows.columns.bin_count[self.column] - 1
        threshold = 0.0 if is_group else float(edges[self.cut.last]) if within else np.inf
        bins = rows.columns.bins[self.column, self.some]
        goes_left = self.cut.left[bins]
        weight = rows.weight[self.some]
        larger_left = weight[goes_left].sum() >= weight[~goes_left].sum()
        missing_left = bool(self.cut.left[MISSING] if (bins == MISSING).any() else larger_left) and not is_group
        split = SearchNode(
            first + 1, first + 1 + len(left), is_group, [(self.column, 1.0, group)], threshold, missing_left
        )
        return [split, *left, *right]


def ends_of_rows(tree: SearchTree, columns: BinnedColumns) -> Places:
    """The leaf of each row, by its place in the list of nodes, (n,)."""
    ends = np.zeros(columns.bins.shape[1], dtype=np.int64)
    for q, node in enumerate(tree):
        if node is not None:
            here = ends == q
            ends[here] = np.where(_goes_left(SearchNode(*node), columns)[here], node[0], node[1])
    return ends


def _goes_left(node: SearchNode, columns: BinnedColumns) -> Flags:
    if node.is_group:
        column, _, levels = node.terms[0]
        return np.isin(columns.bins[column], levels or [])
    total = _sums(node, columns)
    return np.where(np.isnan(total), node.missing_left, total < np.float32(node.threshold)).astype(bool)


def _sums(node: SearchNode, columns: BinnedColumns) -> npt.NDArray[np.float32]:
    """The sum of the terms for each row in single precision, (n,); NaN if a number is missing."""
    parts = [np.float32(weight) * _term_values(column, group, columns) for column, weight, group in node.terms]
    total: npt.NDArray[np.float32] = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    return total


def _term_values(column: int, group: list[int] | None, columns: BinnedColumns) -> npt.NDArray[np.float32]:
    return columns.values[column] if group is None else np.isin(columns.bins[column], group).astype(np.float32)


def tree_worth(tree: SearchTree, rows: SearchRows, price: float = 0.0) -> float:
    """What the leaves of a tree are worth, less the price of each."""
    ends = ends_of_rows(tree, rows.columns)
    return sum(worth(rows, np.flatnonzero(ends == q)) - price for q, node in enumerate(tree) if node is None)


def soft_worth(tree: SearchTree, rows: SearchRows, beta: float) -> float:
    """What the leaves are worth if rows pass each split to both sides, by a sigmoid of beta times their distance."""
    shares, _ = _shares(tree, rows.columns, beta)
    cells = rows.weight * shares  # (m, n)
    sums, sizes = cells @ rows.y, cells.sum(1)
    return float(sum((sums[q] ** 2).sum() / sizes[q] for q, node in enumerate(tree) if node is None))


def soft_gradient(tree: SearchTree, rows: SearchRows, beta: float) -> Doubles:
    """The gradient of the soft worth by the weights of each split and by its threshold, (m, 3)."""
    shares, right = _shares(tree, rows.columns, beta)
    values, gradient = np.zeros(shares.shape), np.zeros((len(tree), 3))
    for q in reversed(range(len(tree))):
        node = tree[q]
        if node is None:
            cell = rows.weight * shares[q]
            mean = cell @ rows.y / cell.sum()
            values[q] = rows.weight * (2 * rows.y @ mean - mean @ mean)
            continue
        node = SearchNode(*node)
        values[q] = (1 - right[q]) * values[node.left] + right[q] * values[node.right]
        by_score = shares[q] * beta * right[q] * (1 - right[q]) * (values[node.right] - values[node.left])
        for j, (column, _, group) in enumerate(node.terms if _moves(node) else []):
            gradient[q, j] = by_score @ np.nan_to_num(_term_values(column, group, rows.columns).astype(np.float64))
        gradient[q, 2] = -by_score.sum() if _moves(node) else 0.0
    return gradient


def _moves(node: SearchNode) -> bool:
    """Whether rows pass to both sides; groups of levels, and splits of missing values from others, stay."""
    return not node.is_group and bool(np.isfinite(node.threshold))


def _shares(tree: SearchTree, columns: BinnedColumns, beta: float) -> tuple[Doubles, Doubles]:
    """How much of each row reaches each node, and how much of that goes right there, (m, n) each."""
    shares, right = np.zeros((2, len(tree), columns.bins.shape[1]))
    shares[0] = 1
    for q, node in enumerate(tree):
        if node is None:
            continue
        node = SearchNode(*node)
        right[q] = ~_goes_left(node, columns)
        if _moves(node):
            score = -node.threshold + sum(w * _term_values(c, g, columns).astype(np.float64) for c, w, g in node.terms)
            soft = 1 / (1 + np.exp(-np.clip(beta * score, -30, 30)))
            right[q] = np.where(np.isnan(score), right[q], soft)
        shares[node.left], shares[node.right] = shares[q] * (1 - right[q]), shares[q] * right[q]
    return shares, right
