"""Columns from which the leaves of a tree would predict linearly, and trees that are searched with them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from prunus.search.choice import Candidate, Effort
from prunus.search.engine import EngineTable, Splits, best_tree, limited, search_trees
from prunus.search.outcome import RIDGE, sums_at
from prunus.search.problem import Doubles
from prunus.search.routes import route

__all__ = ["SearchedTree", "choose_slopes", "search_best", "search_kinds"]

Rows = npt.NDArray[np.int64]

MOST_CANDIDATES = 40
"""Of many columns this many, the best alone, are looked at together."""


@dataclass(frozen=True)
class SearchedTree:
    """What a search has found."""

    splits: Splits
    slopes: tuple[int, ...] = ()
    """The columns from which leaves predicted linearly; the formulas of leaves need not have them."""


def search_kinds(
    table: EngineTable,
    tasks: Sequence[tuple[Candidate, int]],
    parts: Sequence[Rows],
    leaves: int,
    *,
    effort: Effort,
    seed: int,
    threads: int,
) -> list[SearchedTree]:
    """The tree that a search finds for each task: a kind of tree, and the number of a part of the rows.

    The slopes of a linear kind are those that help the tree of the same kind with constant leaves most.
    """
    known = list(dict.fromkeys((kind.constant, i) for kind, i in tasks))
    jobs = [kind.job(parts[i], leaves, seed, effort) for kind, i in known]
    found = {task: SearchedTree(own) for task, own in zip(known, search_trees(table, jobs, threads), strict=True)}
    linear = [(kind, i) for kind, i in tasks if kind.slopes]
    if linear:
        numbers = table.as_numbers()
        slopes = [choose_slopes(numbers, parts[i], found[kind.constant, i].splits, kind.slopes) for kind, i in linear]
        jobs = [
            replace(kind.job(parts[i], leaves, seed, effort), slopes=own)
            for (kind, i), own in zip(linear, slopes, strict=True)
        ]
        trees = search_trees(numbers, jobs, threads)
        found |= dict(zip(linear, map(SearchedTree, trees, slopes), strict=True))
    return [found[task] for task in tasks]


def search_best(
    table: EngineTable, kind: Candidate, leaves: int, *, effort: Effort, starts: int, seed: int, threads: int
) -> SearchedTree:
    """The tree of a kind that is worth most for all rows, of this many searches."""
    rows = np.arange(len(table.weight))
    constant = best_tree(table, kind.constant.job(rows, leaves, seed, effort), starts, threads)
    if not kind.slopes:
        return SearchedTree(constant)
    numbers = table.as_numbers()
    slopes = choose_slopes(numbers, rows, constant, kind.slopes)
    job = replace(kind.job(rows, leaves, seed, effort), slopes=slopes)
    return SearchedTree(best_tree(numbers, job, starts, threads), slopes)


def choose_slopes(table: EngineTable, rows: Rows, splits: Splits, count: int) -> tuple[int, ...]:
    """The columns of numbers by which leaves explain most beyond their means, one after the other."""
    assert table.targets is not None
    leaf = np.unique(route(splits, table.columns, rows), return_inverse=True)[1]
    within = _Within(leaf, table.weight[rows])
    numbers = np.flatnonzero((table.binned.is_category == 0) & (table.binned.bin_count > 1))
    candidates = {int(j): within.centered(limited(table.binned.values[j, rows].astype(np.float64))) for j in numbers}
    rest = [within.centered(own) for own in table.targets[rows].T]
    chosen: list[int] = []
    while candidates and len(chosen) < count:
        gains = {j: sum(within.explained(x, y) for y in rest) for j, x in candidates.items()}
        if not chosen:
            strong = sorted(gains, key=lambda j: -gains[j])[:MOST_CANDIDATES]
            candidates = {j: candidates[j] for j in sorted(strong)}
        best = max(gains, key=lambda j: gains[j])
        if gains[best] <= 0:
            break
        chosen.append(best)
        x = candidates.pop(best)
        rest = [within.without(x, y) for y in rest]
        candidates = {j: within.without(x, other) for j, other in candidates.items()}
    return tuple(chosen)


class _Within:
    """Least squares on one number in each leaf."""

    def __init__(self, leaf: Rows, weight: Doubles) -> None:
        self.leaf, self.weight, self.count = leaf, weight, int(leaf.max()) + 1
        self.total = self.sums(np.ones(len(leaf)))

    def sums(self, values: Doubles) -> Doubles:
        return sums_at(self.leaf, self.weight * values, self.count)

    def centered(self, values: Doubles) -> Doubles:
        """Differences from the mean of the leaf."""
        found: Doubles = values - (self.sums(values) / self.total)[self.leaf]
        return found

    def _slopes(self, x: Doubles, y: Doubles) -> tuple[Doubles, Doubles]:
        common = self.sums(x * y)
        return common, common / (self.sums(x * x) + RIDGE * self.total)

    def explained(self, x: Doubles, y: Doubles) -> float:
        """By how much the squared error of y falls if leaves predict it from x."""
        common, slopes = self._slopes(x, y)
        return float(common @ slopes)

    def without(self, x: Doubles, y: Doubles) -> Doubles:
        """What x does not explain of y."""
        found: Doubles = y - self._slopes(x, y)[1][self.leaf] * x
        return found
