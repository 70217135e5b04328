"""A readable tree for a table: kinds of trees compete on held-out rows, then the best is searched and rounded."""

import functools
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController  # scikit-learn needs it

from prunus.search.choice import THOROUGH, candidates
from prunus.search.debris import without_debris
from prunus.search.engine import EngineTable, Splits, read_table
from prunus.search.finish import formula_leaves, node_statistics, record_of
from prunus.search.judge import Judged, judge
from prunus.search.outcome import Outcome, read_outcome
from prunus.search.problem import FamilyMember, Found, Limits, Problem, Report
from prunus.search.rounding import round_splits
from prunus.search.routes import route, some_rows
from prunus.search.sizes import grown, node_cells, pruned
from prunus.search.slopes import SearchedTree, search_best

__all__ = ["find_tree"]

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
