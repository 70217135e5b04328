"""How much each column of the table matters in a readable tree."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prunus.search.columns import KnownColumn
from prunus.search.record import NodeRows, ReadableRecord, Term

__all__ = ["importances", "term_spread"]

Doubles = npt.NDArray[np.float64]


def importances(record: ReadableRecord, columns: Sequence[KnownColumn]) -> Doubles:
    """How much the splits and formulas with each column lower the impurity of the training rows, as shares, (p,).

    The impurity is that of Gini, or the variance as a share of the whole. The terms of a split share what it lowers by
    their weights, measured in standard deviations of the columns. All are 0 if nothing lowers the impurity.
    """
    found = np.zeros(len(columns))
    total = record.rows.get(0)
    if total is None:
        return found
    unit = np.array(total.spread) ** 2
    for t, split in record.splits.items():
        if all(node in record.rows for node in (t, 2 * t + 1, 2 * t + 2)):
            before, *after = (_impurity(record.rows[node], unit) for node in (t, 2 * t + 1, 2 * t + 2))
            _share(found, split.terms, columns, max(before - sum(after), 0.0))
    for t, leaf in record.leaves.items():
        for j, formula in enumerate(leaf.outputs):
            strengths = [(term.weight * term_spread(term, columns[term.feature])) ** 2 for term in formula.terms]
            scale = float(unit[j]) if len(unit) else 1.0
            if t in record.rows and scale > 0:
                limit = _impurity(record.rows[t], unit)
                _share(found, formula.terms, columns, min(record.rows[t].count * sum(strengths) / scale, limit))
    sum_of_all = found.sum()
    return found / sum_of_all if sum_of_all > 0 else found


def term_spread(term: Term, column: KnownColumn) -> float:
    """The standard deviation of what a term weighs, over the training rows."""
    if term.levels is None:
        return column.scale
    shares = dict(zip(column.levels, column.shares, strict=True))
    share = sum(shares.get(level, 0.0) for level in term.levels) + term.missing * column.missing
    return float(max(share * (1 - share), 0.0) ** 0.5)


def _impurity(rows: NodeRows, unit: Doubles) -> float:
    """The impurity of a node times its rows."""
    if not rows.spread:
        return rows.count * (1 - sum(share**2 for share in rows.mean))
    return float(rows.count * (np.array(rows.spread) ** 2)[unit > 0] @ (1 / unit[unit > 0]))


def _share(found: Doubles, terms: Sequence[Term], columns: Sequence[KnownColumn], amount: float) -> None:
    """Add an amount to the columns of these terms, in proportion to their strengths."""
    strengths = np.array([abs(term.weight) * term_spread(term, columns[term.feature]) for term in terms])
    if not strengths.sum() > 0:
        strengths = np.ones(len(terms))
    for term, strength in zip(terms, strengths / strengths.sum(), strict=True):
        found[term.feature] += amount * strength
