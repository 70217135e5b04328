"""The best few of many columns for least squares, from their products alone."""

import numpy as np

from prunus.search.problem import Doubles

__all__ = ["best_subsets"]

COLLINEAR = 1e-6
"""A column of which less than this share is not explained by the others adds nothing."""
NEARLY_EQUAL = 1e-9


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
