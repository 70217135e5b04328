"""Splits that use one column of the table, told by thresholds or levels of that column."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.data.calendar import Unit, titled
from prunus.explain.curves import read_curve

__all__ = ["ColumnSplit", "split_column"]

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True)
class ColumnSplit:
    """A split that uses one column of the table: which of its values go left."""

    name: str
    kind: str
    thresholds: tuple[float, ...] = ()
    """Where the side changes, in increasing order, if the column is a number (seconds for times)."""
    low_left: bool = True
    """Whether numbers below the first threshold go left."""
    left: tuple[str, ...] = ()
    """The levels that go left, if the column is a category or a boolean."""
    right: tuple[str, ...] = ()
    other_left: bool | None = None
    """Whether all other levels go left; None if there are no others."""
    missing_left: bool | None = None
    """Whether missing values go left; None if no values were missing in training, or if no missing values arrive."""
    unit: Unit | None = None
    """"weekday", "month" or "hour", if the levels are those of the calendar of a date."""
    exact: bool = False
    """Whether thresholds are those that predict, as in readable trees; dates then have all their digits."""

    @property
    def title(self) -> str:
        """What the split asks for, such as "age" or "weekday of sold"."""
        return titled(self.name, self.unit)

    def without_missing(self) -> "ColumnSplit":
        """The same for rows among which no value is missing, unless the split asks for nothing else."""
        sides = {*([True] if self.left else []), *([False] if self.right else []), *({self.other_left} - {None})}
        return replace(self, missing_left=None) if self.thresholds or len(sides) == 2 else self


def split_column(columns: Sequence[OutputColumn], weight: Floats, bias: float) -> ColumnSplit | None:
    """A split with these weights, (d,), for the encoded columns of one column; None if all rows go the same way.

    It is also None if effects of levels matter, where each level may go another way, and if a date and its calendar
    matter both, or several units of it: the sum is told instead.
    """
    used = [i for i, column in enumerate(columns) if weight[i] != 0 and column.low != column.high]
    units = {columns[i].unit for i in used if columns[i].kind != "missing"} or {None}
    if any(columns[i].kind == "effect" for i in used) or len(units) > 1:
        return None
    (unit,) = units
    own = [i for i, column in enumerate(columns) if column.unit == unit or column.kind == "missing"]
    columns, weight = [columns[i] for i in own], np.asarray(weight)[own]
    curve = read_curve(columns, weight[None])
    missing = curve.missing[0] + bias < 0 if curve.has_missing else None
    scores = [values[0] + bias for values in curve.values]
    if not curve.is_number:
        left, right = (
            tuple(str(level) for level, score in zip(curve.points, scores, strict=True) if (score < 0) == side)
            for side in (True, False)
        )
        other = None if curve.other is None else curve.other[0] + bias < 0
        sides = {bool(score < 0) for score in scores} | ({missing, other} - {None})
        if len(sides) < 2:
            return None
        return ColumnSplit(
            curve.name, curve.kind, left=left, right=right, other_left=other, missing_left=missing, unit=unit
        )
    thresholds = []
    for (x, score), (next_x, next_score) in pairwise(zip(map(float, curve.points), scores, strict=True)):
        if (score < 0) != (next_score < 0):
            way = score / (score - next_score)
            thresholds.append((1 - way) * x + way * next_x)
    low_left = scores[0] < 0
    if not thresholds and missing in (None, low_left):
        return None
    return ColumnSplit(curve.name, curve.kind, tuple(thresholds), low_left, missing_left=missing)
