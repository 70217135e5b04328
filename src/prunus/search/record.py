"""The record of a readable tree: splits and leaves in the units of the table, as a person reads them.

Nodes have their numbers in heap order: the root is 0, the children of node t are 2t+1 (left) and 2t+2 (right). The
numbers of the record are the model: what is printed is what predicts, with no more digits than it is worth.
"""

from dataclasses import dataclass, field
from math import floor, isfinite, log10

import numpy as np
import numpy.typing as npt

__all__ = [
    "Leaf",
    "LeafFormula",
    "NodeRows",
    "ReadableRecord",
    "Split",
    "Term",
    "round_value",
    "share_leaf",
    "value_leaf",
]

Doubles = npt.NDArray[np.float64]
SHARE_OF_ERROR = 0.5
"""Steps between values that can be written, as a share of their standard error; its square then grows by 2 %."""
MOST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Term:
    """A weighted column of the table, or a weighted group of its levels."""

    feature: int
    """Position of the column in the table."""
    weight: float
    levels: tuple[str, ...] | None = None
    """None for a number, whose value counts; for a category the levels for which the term counts 1, and 0 for all
    others, also for levels that were not seen in training."""
    missing: float = 0.0
    """What a missing value counts as: 0 or 1 for a group of levels, any number in a formula. Splits say it themselves
    for numbers, see `Split.missing_left`."""


@dataclass(frozen=True, slots=True)
class Split:
    """A row goes left if the sum of the terms is below the threshold, and right otherwise."""

    terms: tuple[Term, ...]
    """The first term is positive; a split of one number has the weight 1. A group of levels alone has the weight -1 if
    it goes left."""
    threshold: float
    missing_left: bool = False
    """The side of rows for which a number of the terms is missing."""


@dataclass(frozen=True, slots=True)
class LeafFormula:
    """One output of a leaf: a constant and its terms, kept between two limits."""

    constant: float
    terms: tuple[Term, ...] = ()
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a path."""

    outputs: tuple[LeafFormula, ...]
    """For numbers, one for each column of y, in its units. For classes without terms, the probability of each class.
    With terms, the log odds of the second of two classes, or the score of each class before softmax."""


@dataclass(frozen=True, slots=True)
class NodeRows:
    """The training rows that pass a node."""

    count: float
    """Their number, or their weight where rows have weights."""
    mean: tuple[float, ...]
    """Share of each class, or the mean of each column of y."""
    spread: tuple[float, ...] = ()
    """Standard deviation of each column of y; empty for classes."""


@dataclass(frozen=True, slots=True)
class ReadableRecord:
    """A readable tree.

    Examples
    --------
    >>> tree = ReadableRecord({0: Split((Term(0, 1.0),), 2.5)}, {t: Leaf((LeafFormula(float(t)),)) for t in (1, 2)})
    >>> tree.n_leaves
    2
    """

    splits: dict[int, Split]
    leaves: dict[int, Leaf]
    rows: dict[int, NodeRows] = field(default_factory=dict)
    """What is known of the training rows at each split and leaf."""

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaves)


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
