"""Leaves with short formulas: least squares for numbers, logistic regression for classes, on a few columns each."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from prunus.search.class_formulas import class_leaves
from prunus.search.number_formulas import number_leaves
from prunus.search.outcome import Outcome
from prunus.search.problem import Doubles
from prunus.search.record import Leaf
from prunus.search.terms import SPARE_ROWS, TermTable

__all__ = ["fit_formulas"]

Rows = npt.NDArray[np.int64]

MOST_ROWS = 30_000
"""Of the rows of a leaf this many, at most, are looked at: few numbers need no more."""


def fit_formulas(
    table: TermTable, members: Mapping[int, Rows], outcome: Outcome, prior: Doubles, most: int
) -> dict[int, list[Leaf | None]]:
    """The leaves that some nodes would be, with formulas.

    Parameters
    ----------
    table : TermTable
    members : dict of arrays
        The rows of each node.
    outcome : Outcome
        Of all rows, in the units of the formulas.
    prior : array of shape (outputs,)
        Shares of the classes in all rows; not used for numbers.
    most : int
        Largest number of terms.

    Returns
    -------
    dict of lists of length most + 1
        For each node the leaf with at most 0, 1, ... terms a formula; None if constants are best.

    Examples
    --------
    >>> from prunus.search.problem import Number
    >>> from prunus.search.terms import read_terms
    >>> x = np.arange(30.0)
    >>> outcome = Outcome(2 * x[:, None] + 1, None, np.ones(30), 1)
    >>> leaves = fit_formulas(read_terms([Number(x)]), {0: np.arange(30)}, outcome, np.empty(0), 1)
    >>> (formula,) = leaves[0][1].outputs
    >>> formula.constant, formula.terms[0].weight, formula.low, formula.high
    (1.0, 2.0, 1.0, 59.0)
    """
    fitted = {t: _some(rows) for t, rows in members.items()}
    with np.errstate(over="ignore", invalid="ignore"):  # numbers that are too large to be squared are no terms
        return {t: _leaves(table, rows, outcome.part(rows), prior, most) for t, rows in fitted.items()}


def _some(rows: Rows) -> Rows:
    n = len(rows)
    return rows if n <= MOST_ROWS else rows[np.linspace(0, n - 1, MOST_ROWS).astype(np.int64)]


def _leaves(table: TermTable, rows: Rows, outcome: Outcome, prior: Doubles, most: int) -> list[Leaf | None]:
    """The leaf of some rows, whose outcome is given, with at most 0, 1, ... terms a formula."""
    total = float(outcome.weight.sum())
    count = total**2 / float((outcome.weight**2).sum()) if total > 0 else 0.0
    possible = min(most, int(count) - SPARE_ROWS)
    if possible < 1:
        return [None] * (most + 1)
    weight = outcome.weight * (count / total)
    if outcome.labels is not None:
        found = class_leaves(table, rows, outcome.labels, weight, prior, possible)
    else:
        assert outcome.values is not None
        found = number_leaves(table, rows, outcome.values, weight, possible)
    return found + found[-1:] * (most + 1 - len(found))
