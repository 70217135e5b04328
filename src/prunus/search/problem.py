"""What a search is given: columns of a table, targets and limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from prunus.search.record import ReadableRecord

__all__ = ["Category", "FamilyMember", "Found", "Limits", "Number", "Problem"]

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Number:
    """A column of numbers; booleans are 0 and 1, dates and durations seconds."""

    values: Doubles
    """(n,); NaN is missing."""
    kind: str = "number"
    """"number", "boolean", "datetime" or "duration"."""


@dataclass(frozen=True)
class Category:
    """A column of levels."""

    codes: npt.NDArray[np.integer]
    """Positions in `levels`, (n,); -1 is missing."""
    levels: tuple[str, ...]
    ordered: bool = False
    """Whether levels have an order, that of `levels`; splits then cut it at one place."""


@dataclass(frozen=True)
class Problem:
    """Rows of positive weight, and what is to be predicted."""

    columns: Sequence[Number | Category]
    y: npt.NDArray[Any]
    """Class numbers, (n,), int64; or values, (n, k), float64."""
    weight: Doubles | None = None
    """(n,), positive; None if all rows count 1. For classes it already contains the weights of classes."""
    n_classes: int = 0
    """0 if numbers are to be predicted."""


@dataclass(frozen=True)
class Limits:
    """How large a tree may be."""

    max_leaf_nodes: int | Literal["auto"] = 8
    max_split_features: int = 2
    max_leaf_features: int = 0
    """At most this many terms in the formula of a leaf."""
    min_samples_leaf: int | Literal["auto"] = "auto"


@dataclass(frozen=True)
class FamilyMember:
    """The tree of one size."""

    n_leaves: int
    score: float
    """Accuracy or R^2 on held-out rows, of a tree of this size that did not see them."""
    standard_error: float
    record: ReadableRecord
    """The tree of this size, learned from all rows."""


@dataclass(frozen=True)
class Found:
    """What a search has found."""

    record: ReadableRecord
    family: tuple[FamilyMember, ...]
    """Nested trees of all sizes up to 32 leaves, the smallest first; `record` is that of one of them."""
    notes: dict[str, Any]
    """What was chosen on held-out rows, and the scores of the alternatives."""


Report = Callable[[str], None]
