"""What leaves with constant values predict: means and shares, with no more digits than they are worth."""

from math import floor, isfinite, log10

import numpy as np

from prunus.search.problem import Doubles
from prunus.search.record import Leaf, LeafFormula

__all__ = ["round_value", "share_leaf", "value_leaf"]

SHARE_OF_ERROR = 0.5
"""Steps between values that can be written, as a share of their standard error; its square then grows by 2 %."""
MOST_DIGITS = 12


def value_leaf(mean: Doubles, error: Doubles) -> Leaf:
    """A leaf that predicts these values, known up to standard errors, (k,)."""
    return Leaf(tuple(LeafFormula(round_value(float(x), float(e))) for x, e in zip(mean, error, strict=True)))


def round_value(x: float, error: float) -> float:
    """A number with as few digits as its standard error allows.

    Examples
    --------
    >>> round_value(394378.123, 2500.0), round_value(0.123456, 0.002), round_value(1 / 3, 0.0)
    (394000.0, 0.123, 0.333333333333)
    """
    if x == 0 or not isfinite(x):
        return x
    if error > 0 and isfinite(error):
        place = floor(log10(SHARE_OF_ERROR * error))
    else:
        place = floor(log10(abs(x))) - MOST_DIGITS + 1
    return round(x, -place) + 0.0


def share_leaf(weights: Doubles, prior: Doubles, rows: float) -> Leaf:
    """A leaf that predicts shares of classes.

    Parameters
    ----------
    weights : array of shape (n_classes,)
        Weight of the rows of each class.
    prior : array of shape (n_classes,)
        Shares over all rows: they count as one more row, so that no class that exists has the probability 0.
    rows : float
        The number of rows that have as much to say as those of the leaf, whose weights may differ.

    Examples
    --------
    >>> [one.constant for one in share_leaf(np.array([44.0, 956.0]), np.array([0.3, 0.7]), 1000.0).outputs]
    [0.044, 0.956]
    """
    total = float(weights.sum())
    shares = (weights / total * rows + prior) / (rows + 1) if total > 0 else prior
    present = shares[shares > 0]
    error = float(np.sqrt((present * (1 - present)).max() / (rows + 1))) if len(present) > 1 else 0.0
    digits = min(MOST_DIGITS, max(2, -floor(log10(SHARE_OF_ERROR * error)))) if error > 0 else MOST_DIGITS
    while True:
        found = _rounded_shares(shares, digits)
        same_class = found.argmax() == shares.argmax() and np.count_nonzero(found == found.max()) == 1
        if digits >= MOST_DIGITS or (same_class and (found[shares > 0] > 0).all()):
            return Leaf(tuple(LeafFormula(float(share)) for share in found))
        if np.count_nonzero(shares == shares.max()) > 1 and (found[shares > 0] > 0).all():
            return Leaf(tuple(LeafFormula(float(share)) for share in found))
        digits += 1


def _rounded_shares(shares: Doubles, digits: int) -> Doubles:
    """Shares of this many digits that add up to 1: those that lose most by rounding down are rounded up."""
    units = shares * 10**digits
    counts = np.floor(units + 1e-9)
    missing = round(10**digits - counts.sum())
    counts[np.argsort(-(units - counts), kind="stable")[:missing]] += 1
    found: Doubles = np.round(counts / 10**digits, digits)
    return found
