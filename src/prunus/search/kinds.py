"""The kinds of trees that compete, and the searches for them, also with linear predictions in leaves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from prunus.search.engine import EngineTable, Job, Splits, best_tree, limited, search_trees
from prunus.search.outcome import RIDGE, Outcome, sums_at
from prunus.search.predict import route
from prunus.search.problem import Doubles, Limits

__all__ = [
    "QUICK",
    "THOROUGH",
    "Candidate",
    "Fold",
    "SearchedTree",
    "candidates",
    "choose_slopes",
    "folds",
    "search_best",
    "search_kinds",
]

Rows = npt.NDArray[np.int64]

SMALL_LEAF, LARGE_LEAF = 5, 20
"""Smallest numbers of rows in a leaf that compete: many rows guard against outliers, few fit tables without noise."""
ROWS_OF_FOLDS = 4000
"""With more rows, one part of them is held out; with fewer, parts are held out in turn, so that about as many count."""
ACCURACY = 0.5
"""How much the accuracy of classes counts in a search beside Gini's impurity. Few leaves say little but a class."""


MOST_SLOPES, MOST_SUMS = 4, 64
"""Columns from which all leaves predict linearly, and numbers that a search adds up for each leaf, at most."""
MOST_CANDIDATES = 40
"""Of many columns this many, the best alone, are looked at together."""


@dataclass(frozen=True)
class Effort:
    """How long a search goes on."""

    rounds: int
    """Changes of large neighbourhoods."""
    polish: int
    """Changes of single splits that leave everything below."""
    anneal: int
    """Steps of gradients."""


QUICK, THOROUGH = Effort(100, 300, 60), Effort(150, 500, 60)
"""To compare kinds of trees, and to find the tree of the best kind."""


@dataclass(frozen=True)
class Candidate:
    """A kind of tree."""

    stage: str
    """"greedy" or "search"."""
    terms: int
    """Largest number of columns in a split."""
    least: float
    """Smallest weight of the rows of a leaf."""
    accuracy: float = 0.0
    """How much accuracy counts in a search, from 0 to 1."""
    slopes: int = 0
    """Number of columns from which leaves predict linearly while the tree is searched, the same in all leaves."""

    @property
    def constant(self) -> "Candidate":
        """The same kind with constant predictions in leaves."""
        return replace(self, slopes=0)

    def job(self, rows: Rows, leaves: int, seed: int, effort: Effort) -> Job:
        """The search for such a tree, without its slopes."""
        if self.stage == "greedy":
            return Job(rows, leaves, self.terms, self.least)
        accuracy = 0.0 if self.slopes else self.accuracy
        return Job(rows, leaves, self.terms, self.least, accuracy=accuracy, seed=seed, **vars(effort))

    @property
    def name(self) -> str:
        """Stage, columns and rows of a leaf in words."""
        columns = "1 column" if self.terms == 1 else f"{self.terms} columns"
        linear = f", linear in {self.slopes}" if self.slopes else ""
        return f"{self.stage}{linear}, {columns}, {self.least:g} rows a leaf"

    def name_with(self, leaf_terms: int) -> str:
        """The same with the length of the formulas in leaves."""
        if not leaf_terms:
            return self.name
        return f"{self.name}, {leaf_terms} {'term' if leaf_terms == 1 else 'terms'} a leaf"


@dataclass(frozen=True)
class Fold:
    """Rows that learn, and rows that judge."""

    learned: Rows
    held_out: Rows


def candidates(limits: Limits, columns: int, outputs: int, *, is_classes: bool) -> list[Candidate]:
    """The kinds of trees that compete, the simplest first.

    If leaves may have formulas, trees that are searched with linear predictions in their leaves compete, too.
    """
    accuracy = ACCURACY if is_classes else 0.0
    least = [LARGE_LEAF, SMALL_LEAF] if limits.min_samples_leaf == "auto" else [limits.min_samples_leaf]
    terms = range(1, min(limits.max_split_features, columns, 2) + 1)
    kinds = [("greedy", 1), *(("search", k) for k in terms)]
    found = [Candidate(stage, k, float(n), accuracy) for stage, k in kinds for n in least]
    slopes = _slopes(limits.max_leaf_features, columns, outputs)
    return found + [Candidate("search", k, float(least[0]), accuracy, slopes) for k in terms if slopes]


def _slopes(wanted: int, columns: int, outputs: int) -> int:
    """As many slopes as the limit on the sums of a leaf allows."""
    found = min(wanted, columns, MOST_SLOPES)
    while found and 1 + outputs + found * (found + 3) // 2 + found * outputs > MOST_SUMS:
        found -= 1
    return found


def folds(outcome: Outcome, rows: Rows, seed: int) -> list[Fold]:
    """How rows are divided: classes in equal shares."""
    n = len(rows)
    if n < 4:
        return []
    parts = 3 if n > 2000 else 5 if n > 500 else min(10, n)
    wanted = max(1, min(parts, round(ROWS_OF_FOLDS / n * parts / (parts - 1))))
    order = np.random.default_rng(seed).permutation(n)
    if outcome.labels is not None:
        order = order[outcome.labels[rows][order].argsort(kind="stable")]
    part = np.empty(n, dtype=np.int64)
    part[order] = np.arange(n) % parts
    return [Fold(rows[part != i], rows[part == i]) for i in range(wanted)]


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
