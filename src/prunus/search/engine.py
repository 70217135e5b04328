"""Searches by the compiled engine: jobs over one table, and the splits that they find in the units of the table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prunus import _core
from prunus.search.bins import MISSING, BinnedColumns, bin_columns
from prunus.search.problem import Category, Doubles, Number, Problem
from prunus.search.record import Split, Term

__all__ = ["EngineTable", "Job", "Splits", "best_tree", "in_units", "limited", "read_table", "search_trees"]

LARGEST_SLOPE_VALUE = 1000.0
"""Larger numbers, in standard units, count as this where leaves predict linearly: their squares would drown others."""
Rows = npt.NDArray[np.int64]
Splits = dict[int, Split]
"""The splits of a tree by the numbers of their nodes; children that are not among them are leaves."""


@dataclass(frozen=True)
class EngineTable:
    """Columns and targets as the engine reads them."""

    columns: Sequence[Number | Category]
    binned: BinnedColumns
    weight: Doubles
    """(n,)."""
    targets: Doubles | None
    """Values of unit variance, (n, k), or the share of the second of two classes, (n, 1); None if there are labels."""
    labels: npt.NDArray[np.int32] | None
    """Class numbers, (n,), if there are more than two classes."""
    is_share: bool

    @property
    def outputs(self) -> int:
        """Sums that the engine keeps in each cell beside the weight."""
        if self.targets is not None:
            return int(self.targets.shape[1])
        return int(self.labels.max()) + 1 if self.labels is not None else 1

    def as_numbers(self) -> "EngineTable":
        """The same with shares of classes as numbers, around their means; with two classes the second alone."""
        if self.targets is not None:
            return replace(self, is_share=False)
        shares = np.eye(self.outputs)[self.labels]
        return self.with_targets(shares - np.average(shares, axis=0, weights=self.weight))

    def slope_values(self, slopes: Sequence[int], columns: Sequence[Number | Category]) -> Doubles:
        """Numbers of some rows in standard units, 0 where they are missing, (n, len(slopes))."""
        found = [(_numbers(columns[j]) - self.binned.center[j]) / self.binned.scale[j] for j in slopes]
        return limited(np.stack(found, axis=1))

    def with_targets(self, targets: Doubles) -> "EngineTable":
        """The same columns with other values to predict."""
        return replace(self, targets=np.ascontiguousarray(targets), labels=None, is_share=False)


@dataclass(frozen=True)
class Job:
    """One search: which rows, how large a tree, and how much effort."""

    rows: Rows
    leaves: int
    terms: int = 1
    least: float = 5.0
    price: float = 0.0
    accuracy: float = 0.0
    cycles: int = 1
    rounds: int = 0
    polish: int = 0
    anneal: int = 0
    seed: int = 0
    slopes: tuple[int, ...] = ()
    """Columns of numbers from which leaves predict linearly while the tree is searched."""

    def as_dict(self) -> dict[str, Any]:
        """The job for the engine."""
        return {**vars(self), "rows": self.rows.astype(np.int32), "slopes": list(self.slopes)}


def read_table(problem: Problem) -> EngineTable:
    """Bin the columns of a problem, and bring its targets to unit variance."""
    n = len(problem.y)
    weight = np.ones(n) if problem.weight is None else np.asarray(problem.weight, dtype=np.float64)
    binned = bin_columns(problem.columns)
    if problem.n_classes > 2:
        return EngineTable(problem.columns, binned, weight, None, problem.y.astype(np.int32), is_share=False)
    targets = problem.y.astype(np.float64).reshape(n, -1)
    if problem.n_classes == 0:
        mean = np.average(targets, axis=0, weights=weight)
        spread = np.average((targets - mean) ** 2, axis=0, weights=weight) ** 0.5
        targets = (targets - mean) / np.where(spread > 0, spread, 1.0)
    return EngineTable(
        problem.columns, binned, weight, np.ascontiguousarray(targets), None, is_share=problem.n_classes > 0
    )


def search_trees(table: EngineTable, jobs: Sequence[Job], threads: int) -> list[Splits]:
    """The splits that each of some searches finds, (len(jobs),)."""
    return [_splits(nodes, table) for nodes, _ in _search(table, jobs, threads)]


def best_tree(table: EngineTable, job: Job, starts: int, threads: int) -> Splits:
    """The splits of the tree that is worth most, of searches with other seeds."""
    jobs = [replace(job, seed=job.seed + i) for i in range(starts if job.rounds else 1)]
    nodes, _ = max(_search(table, jobs, threads), key=lambda found: found[1])
    return _splits(nodes, table)


def _search(table: EngineTable, jobs: Sequence[Job], threads: int) -> list[tuple[list[Any], float]]:
    """The nodes of the trees as the engine returns them, and what the trees are worth."""
    binned = table.binned
    return _core.search(
        binned.bins, binned.bin_count, binned.is_category, binned.values, binned.edges, table.weight, table.targets,
        table.labels, table.outputs, table.is_share, [job.as_dict() for job in jobs], threads,
    )  # fmt: skip


def limited(values: Doubles) -> Doubles:
    """Numbers as leaves predict linearly from them: missing ones are 0, none is far away.

    >>> limited(np.array([-2000.0, 2.0, np.nan])).tolist()
    [-1000.0, 2.0, 0.0]
    """
    found: Doubles = np.clip(np.nan_to_num(values), -LARGEST_SLOPE_VALUE, LARGEST_SLOPE_VALUE)
    return found


def _numbers(column: Number | Category) -> Doubles:
    if isinstance(column, Number):
        return column.values
    return np.where(column.codes < 0, np.nan, column.codes.astype(np.float64))


def _splits(nodes: Sequence[Any], table: EngineTable) -> Splits:
    splits: Splits = {}
    waiting = [(0, 0)]
    while waiting:
        place, t = waiting.pop()
        if nodes[place] is None:
            continue
        left, right, is_group, terms, threshold, missing_left = nodes[place]
        splits[t], is_turned = (
            _group_split(terms[0], table) if is_group else _sum_split(terms, threshold, missing_left, table)
        )
        left, right = (right, left) if is_turned else (left, right)
        waiting += [(left, 2 * t + 1), (right, 2 * t + 2)]
    return splits


def in_units(split: Split, columns: Sequence[Number | Category]) -> tuple[Split, bool]:
    """A split whose first term has the weight 1, and whether its sides have been exchanged for that.

    The first term is the number with the smallest weight, so that no other weight is a small fraction; what only takes
    the values 0 and 1 comes after numbers.
    """

    def order(term: Term) -> tuple[bool, float]:
        column = columns[term.feature]
        return (not isinstance(column, Number) or column.kind == "boolean", abs(term.weight))

    terms = sorted((term for term in split.terms if term.weight != 0), key=order)
    unit = terms[0].weight
    scaled = tuple(replace(term, weight=term.weight / unit) for term in terms)
    is_turned = unit < 0
    return Split(scaled, split.threshold / unit, split.missing_left is not is_turned), is_turned


def _group_split(term: tuple[int, float, list[int]], table: EngineTable) -> tuple[Split, bool]:
    """A split that sends a named group of levels to the left, and whether the engine had sent it to the right."""
    feature, _, bins = term
    named, constant = _group_term(feature, 1.0, bins, table)
    return Split((replace(named, weight=-1.0),), -0.5), constant != 0


def _sum_split(
    terms: Sequence[tuple[int, float, list[int] | None]], threshold: float, missing_left: bool, table: EngineTable
) -> tuple[Split, bool]:
    """A split in the units of the table, and whether its sides are exchanged."""
    binned, found, limit = table.binned, [], float(threshold)
    for feature, weight, bins in terms:
        if bins is not None:
            term, constant = _group_term(feature, float(weight), bins, table)
            limit += constant
        else:
            own = float(weight) / float(binned.scale[feature])
            limit += own * float(binned.center[feature])
            term = Term(feature, own)
        found.append(term)
    return in_units(Split(tuple(found), limit, missing_left), table.columns)


def _group_term(feature: int, weight: float, bins: list[int], table: EngineTable) -> tuple[Term, float]:
    """The term of a group of levels, and what it adds to the threshold.

    Of the levels that count and those that do not, the fewer are named; levels that the tree does not know never are.
    """
    column = cast(Category, table.columns[feature])
    chosen, others = set(bins), len(column.levels) in bins
    has_others = bool(table.binned.bin_count[feature] > len(column.levels))
    inside = sum(b < len(column.levels) for b in chosen)
    is_turned = others or (not has_others and 2 * inside > len(column.levels))
    levels = tuple(level for b, level in enumerate(column.levels) if (b in chosen) is not is_turned)
    has_missing = bool((column.codes < 0).any())
    missing = float(has_missing and (MISSING in chosen) is not is_turned)
    if not levels and not missing:
        return Term(feature, weight, column.levels, 1.0), 0.0
    if is_turned:
        return Term(feature, -weight, levels, missing), -weight
    return Term(feature, weight, levels, missing), 0.0
