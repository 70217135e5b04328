"""The compiled search: columns in bins, jobs, and trees as it returns them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prunus import _core
from prunus.search.problem import Category, Doubles, Number, Problem
from prunus.search.record import Split, Term

__all__ = [
    "MISSING",
    "BinnedColumns",
    "EngineTable",
    "Job",
    "Splits",
    "best_tree",
    "bin_columns",
    "limited",
    "read_table",
    "search_trees",
]

MISSING = 255
"""The bin of missing values."""
MOST_BINS = 254
"""The most bins of a column."""
LARGEST = 1e30
"""Numbers farther away than this many standard units count as this, which single precision can hold."""
Rows = npt.NDArray[np.int64]
Splits = dict[int, Split]
"""The splits of a tree by the numbers of their nodes; children that are not among them are leaves."""
LARGEST_SLOPE_VALUE = 1000.0
"""Larger numbers, in standard units, count as this where leaves predict linearly: their squares would drown others."""


@dataclass(frozen=True)
class BinnedColumns:
    """The columns of a table, d of them, with n rows."""

    bins: npt.NDArray[np.uint8]
    """The bin of each value, (d, n); for categories the position of the level, and one more for other levels."""
    bin_count: npt.NDArray[np.int32]
    """The number of bins of each column, (d,)."""
    is_category: npt.NDArray[np.uint8]
    """Whether the levels of a column have no order, (d,)."""
    values: npt.NDArray[np.float32]
    """Numbers in standard units, (d, n); NaN if missing, 0 for categories."""
    edges: npt.NDArray[np.float32]
    """A number is in bin b if it is below edge b, and not below edge b - 1, (d, 256)."""
    center: Doubles
    """What a number has in the table if it is 0 in standard units, (d,)."""
    scale: Doubles
    """The size of a standard unit, (d,)."""


def bin_columns(columns: Sequence[Number | Category]) -> BinnedColumns:
    """Divide each column into bins that hold equally many rows, and scale its numbers.

    Examples
    --------
    >>> binned = bin_columns([Number(np.array([1.0, 2.0, 4.0, np.nan]))])
    >>> binned.bins.tolist(), (binned.edges[0, :2] * binned.scale[0] + binned.center[0]).round(3).tolist()
    ([[0, 1, 2, 255]], [1.5, 3.0])
    """
    n = len(columns[0].codes if isinstance(columns[0], Category) else columns[0].values)
    d = len(columns)
    binned = BinnedColumns(
        bins=np.empty((d, n), dtype=np.uint8),
        bin_count=np.ones(d, dtype=np.int32),
        is_category=np.zeros(d, dtype=np.uint8),
        values=np.zeros((d, n), dtype=np.float32),
        edges=np.zeros((d, 256), dtype=np.float32),
        center=np.zeros(d),
        scale=np.ones(d),
    )
    for j, column in enumerate(columns):
        if isinstance(column, Number):
            _bin_numbers(binned, j, column.values)
        elif column.ordered:
            _bin_numbers(binned, j, np.where(column.codes < 0, np.nan, column.codes.astype(np.float64)))
        else:
            _bin_levels(binned, j, column)
    return binned


def _bin_numbers(binned: BinnedColumns, j: int, values: Doubles) -> None:
    present = values[~np.isnan(values)]
    if len(present):
        low, center, high = np.quantile(present, [0.05, 0.5, 0.95])
        scale = (high - low) / 3.3 or float(present.std()) or 1.0  # the standard deviation of a normal distribution
        binned.center[j], binned.scale[j] = center, scale
    binned.values[j] = np.clip((values - binned.center[j]) / binned.scale[j], -LARGEST, LARGEST)
    scaled = binned.values[j]
    edges = _edges(np.sort(scaled[~np.isnan(scaled)]))
    binned.edges[j, : len(edges)] = edges
    binned.bin_count[j] = len(edges) + 1
    binned.bins[j] = np.where(np.isnan(scaled), MISSING, np.searchsorted(edges, scaled, side="right"))


def _edges(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The places between sorted numbers where bins end: between all different ones if they are few."""
    ends = np.flatnonzero(values[1:] > values[:-1])
    if len(ends) >= MOST_BINS:
        wanted = np.linspace(0, len(values), MOST_BINS + 1)[1:-1]
        ends = np.unique(ends[np.minimum(np.searchsorted(ends, wanted), len(ends) - 1)])
    below, above = values[ends], values[ends + 1]
    middle = below + (above - below) / 2
    edges: npt.NDArray[np.float32] = np.where(middle > below, middle, above)
    return edges


def _bin_levels(binned: BinnedColumns, j: int, column: Category) -> None:
    codes = np.asarray(column.codes)
    binned.is_category[j] = 1
    binned.bin_count[j] = max(1, len(column.levels) + bool((codes == len(column.levels)).any()))
    binned.bins[j] = np.where(codes < 0, MISSING, codes)


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
