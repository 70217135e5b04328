"""Leaves with short formulas: least squares for numbers, logistic regression for classes, on a few columns each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log, log10

import numpy as np
import numpy.typing as npt

from prunus.search.class_formulas import class_leaves
from prunus.search.outcome import Outcome
from prunus.search.problem import Doubles
from prunus.search.record import MOST_DIGITS, Leaf, LeafFormula, round_value
from prunus.search.terms import (
    FLAT,
    SPARE_ROWS,
    LeafTerms,
    TermTable,
    best_subsets,
    cheapest,
    cost_of_terms,
    group_terms,
    leaf_terms,
    round_terms,
)

__all__ = ["fit_formulas"]

Rows = npt.NDArray[np.int64]

RIDGE = 1e-6
"""Added to the variance of each term, so that terms that are nearly sums of others keep moderate weights."""
CLOSE = 0.01
"""Limits are rounded by steps of at most this share of the range of the leaf."""
TINY = 1e-9
"""Rounding errors of quotients."""
MOST_ROWS = 30_000
"""Of the rows of a leaf this many, at most, are looked at: few numbers need no more."""


def number_leaves(table: TermTable, rows: Rows, values: Doubles, weight: Doubles, most: int) -> list[Leaf | None]:
    """The leaf of some rows with at most 0, 1, ... terms a formula; None if all formulas are constants.

    Parameters
    ----------
    table : TermTable
    rows : array of shape (n,)
    values : array of shape (n, k)
        What is to be predicted.
    weight : array of shape (n,)
        Its sum is the number of rows that have as much to say.
    most : int
    """
    outputs = [_formulas(table, rows, own, weight, most) for own in values.T]
    leaves = [Leaf(tuple(own[cap] for own in outputs)) for cap in range(most + 1)]
    return [leaf if any(formula.terms for formula in leaf.outputs) else None for leaf in leaves]


def _formulas(table: TermTable, rows: Rows, y: Doubles, weight: Doubles, most: int) -> list[LeafFormula]:
    """The formula of one column of y, for each largest number of terms."""
    count = float(weight.sum())
    mean = float(weight @ y) / count
    rest = y - mean
    square = float(weight @ rest**2)
    constant = LeafFormula(round_value(mean, (square / max(count - 1, 1.0) / count) ** 0.5))
    if not isfinite(square) or square <= FLAT**2 * count * mean**2:
        return [constant] * (most + 1)
    terms = leaf_terms(table, rows, rest[:, None], weight)
    fit = _squares(terms, rest, weight)
    if table.categories and terms.terms:  # what is left may be explained by other groups
        chosen = fit.subsets(most)[-1]
        left = rest - terms.design(chosen) @ fit.weights(chosen)
        terms = terms + group_terms(table, rows, left[:, None], weight)
        fit = _squares(terms, rest, weight)
    limits = _inside(float(y.min()), float(y.max()))
    subsets = fit.subsets(most)
    formulas = [constant, *(_rounded(terms, chosen, mean, fit, limits) for chosen in subsets[1:])]
    return cheapest(formulas, [fit.cost(chosen) for chosen in subsets], most)


@dataclass(frozen=True)
class _Squares:
    """Sums of products of the standardized terms of a leaf, and of what they explain."""

    gram: Doubles
    """(p, p)."""
    cross: Doubles
    """(p,)."""
    price: Doubles
    """(p,)."""
    square: float
    """The squared error of a constant."""
    count: float

    def subsets(self, most: int) -> list[list[int]]:
        """The best terms, for each number of them."""
        return best_subsets(self.gram, self.cross[:, None], self.price * (self.square / self.count), most)

    def weights(self, chosen: Sequence[int]) -> Doubles:
        """Of standardized terms, (len(chosen),)."""
        found = np.linalg.solve(self.gram[np.ix_(chosen, chosen)], self.cross[list(chosen)])
        return found.astype(np.float64)

    def error(self, chosen: Sequence[int]) -> float:
        """The squared error that is left."""
        if not chosen:
            return self.square
        return max(self.square - float(self.cross[list(chosen)] @ self.weights(chosen)), 1e-14 * self.square)

    def cost(self, chosen: Sequence[int]) -> float:
        """Minus twice the log likelihood, and what the terms cost."""
        price = float(self.price[list(chosen)].sum())
        fitted = self.count * log(self.error(chosen) / self.count)
        return fitted + price + cost_of_terms(len(chosen), 1 + log(max(len(self.price), 1)), self.count)


def _squares(terms: LeafTerms, rest: Doubles, weight: Doubles) -> _Squares:
    design, count = terms.design(), float(weight.sum())
    weighted = weight[:, None] * design
    gram: Doubles = weighted.T @ design
    gram[np.diag_indices_from(gram)] += RIDGE * count
    return _Squares(gram, weighted.T @ rest, terms.price, float(weight @ rest**2), count)


def _rounded(
    terms: LeafTerms, chosen: Sequence[int], mean: float, fit: _Squares, limits: tuple[float, float]
) -> LeafFormula:
    """The formula with round weights; its constant keeps the mean."""
    noise = (fit.error(chosen) / max(fit.count - len(chosen) - 1, 1.0)) ** 0.5
    error = noise / np.sqrt(fit.gram.diagonal()[list(chosen)])
    found, constant = round_terms(terms, chosen, fit.weights(chosen), error, mean)
    return LeafFormula(round_value(constant, noise / fit.count**0.5), found, *limits)


def _inside(low: float, high: float) -> tuple[float, float]:
    """Limits with few digits that are not outside of these.

    >>> _inside(0.123456, 11.98765)
    (0.2, 11.9)
    """
    width = CLOSE * (high - low)
    place = -floor(log10(width)) if width > 0 else MOST_DIGITS
    step = 10.0**-place if abs(place) < 300 else 0.0
    if step <= 0 or not isfinite(max(abs(low), abs(high)) / step):
        return low, high
    bottom, top = round(ceil(low / step - TINY) * step, place), round(floor(high / step + TINY) * step, place)
    return (bottom if bottom >= low else low) + 0.0, (top if top <= high else high) + 0.0


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
