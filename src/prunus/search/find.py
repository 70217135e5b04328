"""A readable tree for a table: kinds of trees compete on held-out rows, then the best is searched and rounded."""

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController  # scikit-learn needs it

from prunus.search.engine import EngineTable, Splits, read_table
from prunus.search.formulas import fit_formulas
from prunus.search.judge import Judged, judge
from prunus.search.kinds import THOROUGH, SearchedTree, candidates, search_best
from prunus.search.outcome import Outcome, read_outcome, sums_at
from prunus.search.predict import leaves_of, node_rows, route, some_rows
from prunus.search.problem import Doubles, FamilyMember, Found, Limits, Problem, Report
from prunus.search.record import Leaf, NodeRows, ReadableRecord, share_leaf, value_leaf
from prunus.search.rounding import round_splits
from prunus.search.sizes import grown, node_cells, pruned, without_debris
from prunus.search.terms import read_terms

__all__ = ["find_tree"]

ROUNDING = 1e-7
"""A spread that is smaller than this share of the mean comes from squares that cancel."""
CANCELED = 1e-12
"""A mean that is smaller than this share of the mean of all rows is what remains of numbers that cancel."""
LARGEST = 32
"""The most leaves of the trees of a family."""
AUTO_LEAVES = 16
"""Leaves of the tree that is searched first if their number is chosen."""
STARTS = 2
"""Searches of the tree of the best kind, of which the one that is worth most is taken."""
MOST_SEARCHED = 30_000
"""With more rows than this, this many are drawn for the search; all rows then fit rounded numbers and leaves."""


def find_tree(
    problem: Problem, limits: Limits, *, n_jobs: int = 1, seed: int = 0, report: Report | None = None
) -> Found:
    """Search a tree.

    Parameters
    ----------
    problem : Problem
    limits : Limits
    n_jobs : int, default=1
        Number of threads; the result does not depend on it.
    seed : int, default=0
        Seed of all random choices.
    report : callable, optional
        Called with a line for each stage.

    Returns
    -------
    Found

    Examples
    --------
    >>> from prunus.search.problem import Number
    >>> x = np.arange(40.0)
    >>> found = find_tree(Problem([Number(x)], (x[:, None] > 14) * 2.0), Limits(max_leaf_nodes=2))
    >>> found.record.splits[0].threshold, [leaf.outputs[0].constant for leaf in found.record.leaves.values()]
    (15.0, [0.0, 2.0])
    """
    with _thread_pools().limit(limits=1, user_api="blas"):  # its matrices are too small to be shared out
        return _found(problem, limits, n_jobs, seed, report)


@functools.cache
def _thread_pools() -> Any:
    return ThreadpoolController()


def _found(problem: Problem, limits: Limits, n_jobs: int, seed: int, report: Report | None) -> Found:
    part = _searched(problem, seed)
    table, outcome = read_table(part), read_outcome(part)
    leaves = AUTO_LEAVES if limits.max_leaf_nodes == "auto" else limits.max_leaf_nodes
    rivals = candidates(limits, len(part.columns), table.outputs, is_classes=part.n_classes > 0)
    judged = judge(
        table,
        outcome,
        rivals,
        leaves,
        leaf_terms=limits.max_leaf_features,
        largest=LARGEST,
        threads=n_jobs,
        seed=seed,
    )
    if report is not None:
        for name, score in judged.scores.items():
            report(f"{name}: {score:.4f} on held-out rows")
    if limits.max_leaf_nodes == "auto":
        leaves = judged.size_within_one_error()
    tree = search_best(table, judged.best, leaves, effort=THOROUGH, starts=STARTS, seed=seed, threads=n_jobs)
    return _finished(problem, table, outcome, tree, judged, n_jobs)


def _searched(problem: Problem, seed: int) -> Problem:
    n = len(problem.y)
    if n <= MOST_SEARCHED:
        return problem
    rows = np.sort(np.random.default_rng(seed).choice(n, MOST_SEARCHED, replace=False))
    weight = None if problem.weight is None else problem.weight[rows]
    return Problem(some_rows(problem.columns, rows), problem.y[rows], weight, problem.n_classes)


def _finished(
    problem: Problem, table: EngineTable, outcome: Outcome, tree: SearchedTree, judged: Judged, threads: int
) -> Found:
    """Round the numbers of a tree, and make the records of the trees of all sizes around it."""
    base, complete, family = _rounded_family(problem, table, outcome, tree, judged.best.least, threads)
    leaf = route(complete, problem.columns)
    nodes = node_statistics(complete, leaf, problem)
    prior = nodes[0].sums / nodes[0].weight
    ends = {t: statistics.leaf(prior) for t, statistics in nodes.items() if statistics.weight > 0}
    if judged.leaf_terms:
        ends |= formula_leaves(complete, leaf, problem, prior, judged.leaf_terms)
    members = []
    for own in family:
        if all(t in ends for q in own for t in (2 * q + 1, 2 * q + 2)):
            score, error = judged.at(len(own) + 1)
            members.append(FamilyMember(len(own) + 1, score, error, record_of(own, nodes, ends)))
    record = next(one.record for one in members if one.n_leaves == len(base) + 1)
    return Found(record, tuple(members), judged.notes)


def _rounded_family(
    problem: Problem, table: EngineTable, outcome: Outcome, tree: SearchedTree, least: float, threads: int
) -> tuple[Splits, Splits, list[Splits]]:
    """The tree with round numbers and without debris, the largest tree around it, and all sizes, the smallest first."""
    columns, everything = problem.columns, outcome
    if tree.slopes:
        table = table.as_numbers()
        outcome = replace(outcome, slopes=table.slope_values(tree.slopes, table.columns))
        everything = read_outcome(problem, table.slope_values(tree.slopes, columns))
    elif len(outcome) < len(problem.y):
        everything = read_outcome(problem)
    base = without_debris(round_splits(tree.splits, columns, everything, least=least), columns, everything)
    larger = grown(base, table, outcome, LARGEST, least, threads, slopes=tree.slopes)
    complete = round_splits(larger[-1] if larger else base, columns, everything, keep=base, least=least)
    smaller = pruned(base, node_cells(base, route(base, columns), everything), everything)
    return base, complete, [*smaller, *({t: complete[t] for t in own} for own in larger)]


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
