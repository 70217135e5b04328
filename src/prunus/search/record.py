"""The record of a readable tree: splits and leaves in the units of the table, as a person reads them.

Nodes have their numbers in heap order: the root is 0, the children of node t are 2t+1 (left) and 2t+2 (right). The
numbers of the record are the model: what is printed is what predicts.
"""

from dataclasses import dataclass, field

__all__ = ["Leaf", "LeafFormula", "NodeRows", "ReadableRecord", "Split", "Term"]


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
