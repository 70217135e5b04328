"""Linear functions of encoded rows as weighted sums in the units of the table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.explain.scale import Scale
from prunus.tree import Tree
from prunus.tree.prediction import outputs_at

__all__ = ["Formula", "SplitWeight", "TableSum", "leaf_formulas", "table_sum"]

Floats = npt.NDArray[np.floating]

MOST_FORMULAS = 10
"""Largest number of classes with formulas in a leaf."""


@dataclass(frozen=True)
class SplitWeight:
    """The weight of one feature, or of one level of a category, in a split or in the formula of a leaf."""

    label: str
    """The name of the feature, or the level, such as "age" or "color = red"."""
    weight: float
    """Change of the sum for one unit of the feature in the table; for a piece, from its beginning to its end."""
    strength: float
    """Change of the sum for one standard unit of the feature, which can be compared between features."""
    column: int = -1
    """Position of the encoded column in ``encoder_.columns_``."""
    feature: int = -1
    """Position of the column in the table; -1 if it is not known."""
    missing: float | None = None
    """In the formula of a readable tree, what a missing number counts as, if numbers were missing in training."""


class TableSum(NamedTuple):
    """A weighted sum of features, in the units of the table."""

    weights: tuple[SplitWeight, ...]
    """Strongest first."""
    constant: float


@dataclass(frozen=True)
class Formula:
    """What a leaf predicts for a row: a weighted sum of its features, in the units of the table."""

    output: str
    """What the sum is: the name of the output, such as "y", or "log of y", "log odds of yes" or "score of red"."""
    constant: float
    weights: tuple[SplitWeight, ...]
    """Strongest first."""
    low: float | None = None
    """The smallest value of the sum that is predicted, if there is one; smaller sums predict this."""
    high: float | None = None
    exact: bool = False
    """Whether the numbers are those that predict, as in readable trees; all terms are then written."""


def table_sum(columns: Sequence[OutputColumn], weight: Floats, constant: float) -> TableSum:
    """The function ``weight @ x + constant`` of encoded rows in the units of the table.

    Encoded numbers are (value - center) / scale. A piece is 0 below its range, so it adds nothing to the constant.
    """
    found = []
    for i in np.flatnonzero(weight).tolist():
        column, strength = columns[i], float(weight[i])
        if column.low == column.high:
            continue
        if column.piece:
            found.append(SplitWeight(column.label, strength, strength, i, column.feature))
            continue
        found.append(SplitWeight(column.label, strength / column.scale, strength, i, column.feature))
        constant -= strength * (column.center / column.scale)  # in this order it does not overflow
    return TableSum(tuple(sorted(found, key=lambda part: -abs(part.strength))), constant)


def leaf_formulas(
    tree: Tree, columns: Sequence[OutputColumn], scale: Scale, t: int, shares: npt.NDArray[np.float64] | None
) -> tuple[Formula, ...]:
    """What paths that end in node t predict, one formula for each number that is told; leaves have to be linear.

    Classes are in the order of their shares in the node, (k,), and only the first ten have formulas.
    """
    outputs = outputs_at(tree, t)
    weight, constant = scale.matrix @ outputs.weight, scale.at(outputs.constant)
    limits: list[tuple[float | None, float | None]] = [(None, None)] * len(scale.names)
    if tree.limits is not None:
        limits = [(low, high) for low, high in np.sort(scale.at(tree.limits[:, t]), axis=0).T.tolist()]
    told: Sequence[int] = range(len(scale.names))
    if shares is not None and len(told) > 1:
        told = np.argsort(-shares, kind="stable")[:MOST_FORMULAS].tolist()
    sums = {m: table_sum(columns, weight[m], float(constant[m])) for m in told}
    return tuple(Formula(scale.names[m], found.constant, found.weights, *limits[m]) for m, found in sums.items())
