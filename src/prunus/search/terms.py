"""The terms that a formula in a leaf can have, numbers and groups of levels, and how the best few are chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from prunus.search.problem import Category, Doubles, Number
from prunus.search.record import Term, round_value

__all__ = [
    "FLAT",
    "SPARE_ROWS",
    "LeafTerms",
    "TermTable",
    "best_subsets",
    "cheapest",
    "cost_of_terms",
    "group_terms",
    "leaf_terms",
    "read_terms",
    "round_terms",
]

COLLINEAR = 1e-6
"""A column of which less than this share is not explained by the others adds nothing."""
NEARLY_EQUAL = 1e-9
Rows = npt.NDArray[np.int64]
Choice = TypeVar("Choice")
MOST_TERMS = 256
"""If there are more numbers, those are looked at that say most by themselves."""
PRICE_OF_LEVEL = 0.64
"""What a group of levels gains by chance for each level beyond two, in units of the variance: 2 / pi. The standard
deviation of that is about the root of their number, and is part of the price."""
FEW_MISSING = 5.0
"""What missing values count as is drawn to the mean as strongly as by this many rows."""
SPARE_ROWS = 3
"""A formula needs this many rows more than it has terms."""
FLAT = 1e-9
"""Numbers whose spread is smaller than this share of their mean are constant, up to rounding errors."""


def best_subsets(gram: Doubles, cross: Doubles, price: Doubles, most: int) -> list[list[int]]:
    """Columns that lower a squared error most: none of them, one, two and so on.

    The column that gains most is added; then each column gives way to a better one, as long as there is one.

    Parameters
    ----------
    gram : array of shape (p, p)
        Products of the columns with each other.
    cross : array of shape (p, k)
        Products of the columns with each output.
    price : array of shape (p,)
        What a column must gain, as it was chosen among several.
    most : int
        Largest number of columns.

    Returns
    -------
    list of list of int
        The columns for each number of them; it is shorter if more columns gain nothing.

    Examples
    --------
    >>> best_subsets(np.eye(3), np.array([[1.0], [3.0], [2.0]]), np.zeros(3), 2)
    [[], [1], [1, 2]]
    """
    found: list[list[int]] = [[]]
    while len(found) <= most:
        gains = _gains(gram, cross, price, found[-1])
        if not gains.size or gains.max() <= 0:
            break
        found.append(_swapped(gram, cross, price, [*found[-1], int(gains.argmax())]))
    return found


def _swapped(gram: Doubles, cross: Doubles, price: Doubles, chosen: list[int]) -> list[int]:
    """Columns of which none is better replaced by another one."""
    waiting = len(chosen) if len(chosen) > 1 else 0
    seen = {frozenset(chosen)}  # rounding errors of nearly collinear columns could lead around in a circle
    while waiting:  # the first is looked at next, and goes to the end
        others = chosen[1:]
        gains = _gains(gram, cross, price, others)
        best = int(gains.argmax())
        other = frozenset((*others, best))
        if other not in seen and gains[best] - NEARLY_EQUAL * abs(gains[best]) > gains[chosen[0]]:
            chosen, waiting = [*others, best], len(chosen)
            seen.add(other)
        else:
            chosen, waiting = [*others, chosen[0]], waiting - 1
    return chosen


def _gains(gram: Doubles, cross: Doubles, price: Doubles, chosen: list[int]) -> Doubles:
    """By how much each column lowers the squared error beside those chosen, less its price, (p,).

    It is minus infinity for those chosen, and for columns that the chosen ones explain.
    """
    left, error = gram.diagonal(), cross
    if chosen:
        weights = np.linalg.solve(gram[np.ix_(chosen, chosen)], gram[chosen])
        left = left - (gram[chosen] * weights).sum(0)
        error = cross - weights.T @ cross[chosen]
    usable = left > COLLINEAR * gram.diagonal()
    usable[chosen] = False
    gains = (error**2).sum(1) / np.where(usable, left, 1.0) - price
    found: Doubles = np.where(usable, gains, -np.inf)
    return found


@dataclass(frozen=True)
class TermTable:
    """The columns of a table that formulas can use: all but dates and durations, since nobody weighs seconds."""

    numbers: Doubles
    """(n, p)."""
    features: Rows
    """Their positions in the table, (p,)."""
    missing: npt.NDArray[np.bool_]
    """Whether values of these numbers are missing, (p,)."""
    categories: Sequence[tuple[int, Category]]
    """Positions in the table, and columns."""


@dataclass(frozen=True)
class LeafTerms:
    """What a formula can add up in one leaf."""

    terms: list[Term]
    """Of weight 1."""
    values: Doubles
    """What each term counts for each row, (n, p)."""
    center: Doubles
    """(p,)."""
    scale: Doubles
    """Standard deviations, (p,); all are positive."""
    price: Doubles
    """By how much more than other terms a term lowers the squared error by chance, in units of the variance, (p,)."""

    def __add__(self, other: "LeafTerms") -> "LeafTerms":
        new = [i for i, term in enumerate(other.terms) if term not in self.terms]
        arrays = (
            np.concatenate((own, more[..., new]), axis=-1) for own, more in zip(self.arrays, other.arrays, strict=True)
        )
        return LeafTerms([*self.terms, *(other.terms[i] for i in new)], *arrays)

    @property
    def arrays(self) -> tuple[Doubles, Doubles, Doubles, Doubles]:
        """Values, centers, scales and prices."""
        return self.values, self.center, self.scale, self.price

    def design(self, chosen: Sequence[int] | None = None) -> Doubles:
        """Terms with the mean 0 and the standard deviation 1, (n, len(chosen)); all by default."""
        which = slice(None) if chosen is None else list(chosen)
        found: Doubles = (self.values[:, which] - self.center[which]) / self.scale[which]
        return found


def read_terms(columns: Sequence[Number | Category]) -> TermTable:
    """The columns that can be terms."""
    numbers = [
        (i, column.values)
        for i, column in enumerate(columns)
        if isinstance(column, Number) and column.kind in ("number", "boolean")
    ]
    n = len(columns[0].values if isinstance(columns[0], Number) else columns[0].codes)
    matrix = np.stack([values for _, values in numbers], axis=1) if numbers else np.empty((n, 0))
    return TermTable(
        matrix,
        np.array([i for i, _ in numbers], dtype=np.int64),
        np.atleast_1d(np.isnan(matrix).any(0)),
        [(i, column) for i, column in enumerate(columns) if isinstance(column, Category)],
    )


def leaf_terms(table: TermTable, rows: Rows, response: Doubles, weight: Doubles) -> LeafTerms:
    """All terms for the rows of a leaf.

    Parameters
    ----------
    table : TermTable
    rows : array of shape (n,)
    response : array of shape (n, k)
        What is to be explained, with the mean 0: groups of levels, and what missing values count as, depend on it.
    weight : array of shape (n,)
        With the sum n.

    Examples
    --------
    >>> table = read_terms([Number(np.array([1.0, 2.0, 6.0])), Category(np.array([0, 1, 0]), ("a", "b"))])
    >>> found = leaf_terms(table, np.arange(3), np.array([[-1.0], [2.0], [-1.0]]), np.ones(3))
    >>> [(term.feature, term.levels) for term in found.terms], found.center.tolist()
    ([(0, None), (1, ('a',))], [3.0, 0.6666666666666666])
    """
    return _number_terms(table, rows, response, weight) + group_terms(table, rows, response, weight)


def group_terms(table: TermTable, rows: Rows, response: Doubles, weight: Doubles) -> LeafTerms:
    """For each category the group of levels that explains most of the response."""
    found = [_group(i, column, column.codes[rows], response, weight) for i, column in table.categories]
    groups = [group for group in found if group is not None]
    values = np.stack([group[1] for group in groups], axis=1) if groups else np.empty((len(rows), 0))
    price = np.array([group[2] for group in groups])
    return _usable([group[0] for group in groups], values, price, weight)


def _usable(terms: list[Term], values: Doubles, price: Doubles, weight: Doubles) -> LeafTerms:
    """The terms that are not the same in all rows."""
    total = weight.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        center = weight @ values / total
        scale = np.sqrt(weight @ (values - center) ** 2 / total)
        good = np.isfinite(scale) & (scale > FLAT * np.abs(center))
    if good.all():
        return LeafTerms(terms, values, center, scale, price)
    kept = np.flatnonzero(good)
    return LeafTerms([terms[i] for i in kept.tolist()], values[:, kept], center[kept], scale[kept], price[kept])


def _number_terms(table: TermTable, rows: Rows, response: Doubles, weight: Doubles) -> LeafTerms:
    values = table.numbers[rows]
    counts = np.zeros(values.shape[1])
    with_missing = np.flatnonzero(table.missing)
    for j in with_missing.tolist():
        values[:, j], counts[j] = _filled(values[:, j], response, weight)
    found = _usable([Term(i, 1.0) for i in table.features.tolist()], values, np.zeros(values.shape[1]), weight)
    known = {int(table.features[j]): float(counts[j]) for j in with_missing.tolist()}
    middle = zip(found.terms, found.center.tolist(), found.scale.tolist(), strict=True)
    found.terms[:] = [
        replace(term, missing=known.get(term.feature, round_value(center, scale / 2))) for term, center, scale in middle
    ]
    if len(found.terms) <= MOST_TERMS:
        return found
    strength = (((weight[:, None] * response).T @ found.design()) ** 2).sum(0)
    kept = np.sort(np.argsort(-strength, kind="stable")[:MOST_TERMS])
    return LeafTerms([found.terms[i] for i in kept.tolist()], *(own[..., kept] for own in found.arrays))


def _filled(values: Doubles, response: Doubles, weight: Doubles) -> tuple[Doubles, float]:
    """Numbers without gaps, and what missing ones count as: the number for which others have the same response.

    It is drawn to the mean, and does not leave the range of the numbers.
    """
    missing = np.isnan(values)
    if missing.all():
        return np.zeros(len(values)), 0.0
    present, own = values[~missing], weight[~missing]
    mean = float(own @ present / own.sum())
    moved = present - mean
    square = float(own @ moved**2)
    if square <= 0:
        return np.where(missing, mean, values), mean
    slope = (own * moved) @ response[~missing] / square
    count = float(weight[missing].sum())
    apart = (weight[missing] @ response[missing] - count * (own @ response[~missing] / own.sum())) / (
        count + FEW_MISSING
    )
    step = float(slope @ apart) / max(float(slope @ slope), 1e-300)
    spread = sqrt(square / own.sum())
    filled = min(max(mean + step, float(present.min())), float(present.max()))
    filled = round_value(filled, spread / sqrt(max(count, 4.0)))
    return np.where(missing, filled, values), filled


def _group(
    feature: int, column: Category, codes: npt.NDArray[np.integer], response: Doubles, weight: Doubles
) -> tuple[Term, Doubles, float] | None:
    """The best group of the levels of a category, what it counts, and its price."""
    n = len(column.levels)  # behind the levels come all that are not known, and missing values
    cell = np.where(codes < 0, n + 1, np.minimum(codes, n)).astype(np.int64)
    count: Doubles = np.bincount(cell, weight, minlength=n + 2).astype(np.float64)
    sums: Doubles = np.stack([np.bincount(cell, weight * own, minlength=n + 2) for own in response.T], axis=1)
    present = np.flatnonzero(count)
    if len(present) < 2:
        return None
    means = sums[present] / (count[present, None] + 1)
    orders = [present] if column.ordered else [present[np.argsort(own, kind="stable")] for own in means.T]
    gain, chosen = max((_best_beginning(order, count, sums) for order in orders), key=lambda found: found[0])
    if gain <= 0:
        return None
    inside = np.zeros(n + 2, dtype=bool)
    inside[chosen] = True
    if inside[n] or 2 * np.count_nonzero(inside[:n]) > np.count_nonzero(count[:n]):
        inside = ~inside & (count > 0)
    levels = tuple(level for level, own in zip(column.levels, inside.tolist(), strict=False) if own)
    if not levels:
        return None
    price = 0.0 if column.ordered else PRICE_OF_LEVEL * (len(present) - 2) + sqrt(len(present) - 2)
    return Term(feature, 1.0, levels, float(inside[n + 1])), inside[cell].astype(np.float64), price


def _best_beginning(order: Rows, count: Doubles, sums: Doubles) -> tuple[float, Rows]:
    """How much the best beginning of some levels explains, and its levels."""
    inside, total = count[order].cumsum()[:-1], count[order].sum()
    gains = (sums[order].cumsum(0)[:-1] ** 2).sum(1) / (inside * (1 - inside / total))
    best = int(gains.argmax())
    return float(gains[best]), order[: best + 1]


def cost_of_terms(chosen: int, price: float, count: float) -> float:
    """What this many terms must gain, in units of twice the log likelihood.

    That is Akaike's criterion, corrected for few rows.

    Parameters
    ----------
    chosen : int
        Number of terms.
    price : float
        Of one term: the weights that it has, and what the best of many terms gains by chance.
    count : float
        Number of rows.

    Examples
    --------
    >>> cost_of_terms(2, 1.0, 1000.0) < cost_of_terms(2, 1.0, 10.0)
    True
    """
    if not chosen:
        return 0.0
    return 2 * chosen * price * count / (count - chosen - SPARE_ROWS + 1)


def cheapest(choices: Sequence[Choice], costs: Sequence[float], most: int) -> list[Choice]:
    """For each limit from 0 to `most` the cheapest of the choices up to it; of equal ones the first.

    Examples
    --------
    >>> cheapest("abc", [3.0, 1.0, 2.0], 3)
    ['a', 'b', 'b', 'b']
    """
    found, best = [], 0
    for i in range(most + 1):
        if i < len(costs) and costs[i] < costs[best]:
            best = i
        found.append(choices[best])
    return found


def round_terms(
    terms: LeafTerms, chosen: Sequence[int], weights: Doubles, error: Doubles, mean: float
) -> tuple[tuple[Term, ...], float]:
    """Terms in the units of the table, the strongest first, and the constant with which their mean is kept.

    Parameters
    ----------
    terms : LeafTerms
    chosen : sequence of int
    weights, error : array of shape (len(chosen),)
        Weights of the standardized terms, and their standard errors if all others are known: a weight has no more
        digits than it is worth.
    mean : float
        The sum of the formula where all terms have their means.
    """
    found = []
    for place in np.argsort(-np.abs(weights), kind="stable").tolist():
        i = chosen[place]
        scale = float(terms.scale[i])
        weight = round_value(float(weights[place]) / scale, float(error[place]) / scale)
        if weight:
            found.append(replace(terms.terms[i], weight=weight))
            mean -= weight * float(terms.center[i])
    return tuple(found), mean
