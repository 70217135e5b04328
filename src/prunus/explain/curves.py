"""Functions of single columns of the table, such as the curves of additive leaves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.data.calendar import LEVELS, Unit, level_at, titled

__all__ = [
    "UNNAMED",
    "Curve",
    "LeafCurves",
    "grouped",
    "leaf_curves",
    "log_odds",
    "parted",
    "read_curve",
    "scaled",
    "typical_value",
]

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating]

TYPICAL = 2.5
"""A column without pieces is shown from this many standard units below its center to as many above it."""
_LARGEST = float(np.finfo(np.float64).max)
UNNAMED = "\0"
"""Stands for a level that has no name: of two levels only the less frequent one has a column."""


@dataclass(frozen=True)
class Curve:
    """What one column of the table adds to k outputs: a function of its value.

    Between two points the curve of a number is linear, and beyond the first and the last one it is constant.
    """

    feature: int
    """Position of the column in the table."""
    name: str
    kind: str
    """"number", "boolean", "datetime", "duration" or "category"."""
    points: tuple[float, ...] | tuple[str, ...]
    """Numbers in increasing order, in the units of the table (seconds for times), or names of levels."""
    values: tuple[tuple[float, ...], ...]
    """The k values at each point."""
    missing: tuple[float, ...]
    """The k values of a missing value."""
    other: tuple[float, ...] | None = None
    """The k values of all levels that have no name here; None unless the column is a category."""
    has_missing: bool = False
    """Whether values were missing in training."""
    shown: tuple[float, float] | None = None
    """The range of numbers that is worth showing; None for categories and booleans."""
    unit: Unit | None = None
    """"weekday", "month" or "hour", if the levels are those of the calendar of a date."""

    @property
    def title(self) -> str:
        """What the curve is a function of, such as "age" or "weekday of sold"."""
        return titled(self.name, self.unit)

    @property
    def is_number(self) -> bool:
        """Whether points are numbers, not levels."""
        return self.shown is not None

    def at(self, value: Any) -> Doubles:
        """The k values for a value of the column: a number (seconds for times), the name of a level, or None."""
        if value is None:
            return np.array(self.missing)
        if not self.is_number:
            known = dict(zip(self.points, self.values, strict=True))
            return np.array(known.get(value, self.other if self.other is not None else self.missing))
        points, table = np.array(self.points, dtype=np.float64), np.array(self.values)
        return np.array([np.interp(value, points, table[:, k]) for k in range(table.shape[1])])

    def visible(self) -> tuple[tuple[float, ...] | tuple[str, ...], Doubles]:
        """The points within the range that is shown, its ends included, and the values there, (points, k)."""
        if self.shown is None:
            return self.points, np.array(self.values)
        low, high = self.shown
        inside = [low, *(float(x) for x in self.points if low < float(x) < high), high]
        return tuple(inside), np.array([self.at(x) for x in inside])

    @property
    def strength(self) -> float:
        """How far the largest and the smallest value that is shown are apart, for the output where it is most."""
        values = self.visible()[1]
        if self.has_missing:
            values = np.vstack((values, self.missing))
        return float((values.max(0) - values.min(0)).max())


@dataclass(frozen=True)
class LeafCurves:
    """The curves of additive leaves, with the value 0 at typical values of their columns.

    Those are the center of a number, false, and the most frequent level of a category, which may be missing.
    """

    curves: tuple[Curve, ...]
    """The columns that matter, strongest first."""
    offset: Doubles
    """What the encoded model gives for a row of typical values, (k,), in standard units of the outputs."""


def read_curve(columns: Sequence[OutputColumn], weight: Floats) -> Curve:
    """The sum of the encoded columns of one column of the table, (d,), with these weights, (k, d).

    The columns of a unit of the calendar are another curve than those of the date itself, see `parted`.
    """
    weight = np.asarray(weight, dtype=np.float64)
    own = [column for column in columns if column.kind != "missing"] or list(columns)
    unit = own[0].unit
    is_category = any(column.kind in ("category", "infrequent", "calendar") for column in own)
    kind = "category" if is_category else str(own[0].kind)
    indicators = {column.kind: i for i, column in enumerate(columns) if column.kind in ("missing", "infrequent")}

    def marked(i: int | None) -> tuple[float, ...]:
        """The values of a row for which the encoded column i is 1 before scaling, and all others are 0."""
        found = np.zeros(len(weight)) if i is None else weight[:, i] * columns[i].encode(1.0)
        return tuple(found.tolist())

    curve = Curve(
        feature=columns[0].feature,
        name=columns[0].name,
        kind=kind,
        points=(),
        values=(),
        missing=tuple((weight @ [column.encode_missing() for column in columns]).tolist()),
        has_missing="missing" in indicators,
        unit=unit,
    )
    if unit is not None:
        other = None if len(own) == len(LEVELS[unit]) else marked(None)
        return _of_levels(replace(curve, other=other), columns, weight)
    if kind == "category":
        return _of_levels(replace(curve, other=marked(indicators.get("infrequent"))), columns, weight)
    numbers = [i for i, column in enumerate(columns) if column.kind != "missing"]
    points = [0.0, 1.0] if kind == "boolean" else _breaks([columns[i] for i in numbers])
    encoded = np.array([[columns[i].encode(x) for i in numbers] for x in points]).reshape(len(points), len(numbers))
    values = tuple(map(tuple, (encoded @ weight[:, numbers].T).tolist()))
    if kind == "boolean":
        return replace(curve, points=("false", "true"), values=values)
    return replace(curve, points=tuple(points), values=values, shown=_shown([columns[i] for i in numbers]))


def _of_levels(curve: Curve, columns: Sequence[OutputColumn], weight: Floats) -> Curve:
    """The curve of a category: levels that have columns of their own come first, then those that only have effects."""
    named = [str(column.category) for column in columns if column.kind in ("category", "calendar")]
    effects = [(i, column) for i, column in enumerate(columns) if column.kind == "effect"]
    levels = list(dict.fromkeys([*named, *(level for _, column in effects for level in column.effects or {})]))
    values = np.tile(curve.other or np.zeros(len(weight)), (len(levels), 1))
    values[: len(named)] = 0.0
    at = {level: j for j, level in enumerate(levels)}
    for i, column in enumerate(columns):
        if column.kind in ("category", "calendar"):
            values[at[str(column.category)]] += weight[:, i] * column.encode(1.0)
        elif column.kind == "effect":
            values += np.outer([column.encode_level(level) for level in levels], weight[:, i])
    return replace(curve, points=tuple(levels), values=tuple(map(tuple, values.tolist())))


def leaf_curves(columns: Sequence[OutputColumn], shared: Floats) -> LeafCurves:
    """The curves of a linear model of the encoded columns, (k, d), in standard units of the outputs."""
    found, offset = [], np.zeros(len(shared))
    groups = grouped(columns)
    for (feature, unit), own in parted(columns).items():
        curve = read_curve([columns[i] for i in own], shared[:, own])
        value = typical_value([columns[i] for i in groups[feature]])
        if unit is not None and isinstance(value, float):
            value = level_at(value, unit)
        typical = curve.at("false" if curve.kind == "boolean" else value)
        offset += typical
        if np.any(curve.values) or np.any(curve.missing) or np.any(curve.other):
            found.append(_changed(curve, lambda values, typical=typical: values - typical))  # type: ignore[misc]
    return LeafCurves(tuple(sorted(found, key=lambda curve: -curve.strength)), offset)


def scaled(curve: Curve, factor: Doubles) -> Curve:
    """The curve with its k values multiplied by these factors, (k,)."""
    return _changed(curve, lambda values: values * factor)


def log_odds(curve: Curve) -> Curve:
    """The one curve that tells all of the scores of two classes: that of the second minus that of the first.

    If the tree has one output for two classes, it is that curve already.
    """
    return _changed(curve, lambda values: values[1:] - values[:1] if len(values) == 2 else values)


def grouped(columns: Sequence[OutputColumn]) -> dict[int, list[int]]:
    """The positions of the encoded columns of each column of the table."""
    groups: dict[int, list[int]] = {}
    for i, column in enumerate(columns):
        groups.setdefault(column.feature, []).append(i)
    return groups


def parted(columns: Sequence[OutputColumn]) -> dict[tuple[int, Unit | None], list[int]]:
    """The same, but those of each unit of the calendar of a date are apart from the date itself."""
    parts: dict[tuple[int, Unit | None], list[int]] = {}
    for i, column in enumerate(columns):
        parts.setdefault((column.feature, column.unit), []).append(i)
    return parts


def _breaks(columns: list[OutputColumn]) -> list[float]:
    """Where the encoded columns of a number change their slope."""
    ends = {_end(column, limit) for column in columns for limit in (column.low, column.high)}
    return sorted(ends)


def _end(column: OutputColumn, limit: float) -> float:
    return min(max(column.center + column.scale * limit, -_LARGEST), _LARGEST)


def _shown(columns: list[OutputColumn]) -> tuple[float, float]:
    """The range of the pieces, which is that of the training rows, without what lies far out."""
    pieces = [column for column in columns if column.piece]
    plain = next((column for column in columns if not column.piece), columns[0])
    reach = max(abs(plain.low), abs(plain.high))
    low, high = _end(plain, -reach), _end(plain, reach)
    if pieces:
        low, high = max(low, _end(pieces[0], 0.0)), min(high, _end(pieces[-1], 1.0))
    else:
        low, high = max(low, _end(plain, -TYPICAL)), min(high, _end(plain, TYPICAL))
    return (low, high) if low <= high else (high, low)


def typical_value(columns: Sequence[OutputColumn]) -> float | str | None:
    """A typical value of a column of the table, by its encoded columns.

    It is the center of a number, 0 for a boolean, and of a category the most frequent level; None if that is missing.
    """
    levels = [column for column in columns if column.kind in ("category", "missing")]
    if any(column.kind in ("category", "infrequent") for column in columns):
        if len(columns) == 1 or not levels:
            return UNNAMED
        by_share = [level for column in columns for level in column.effects or {}]  # the most frequent one is first
        rank = {level: -place for place, level in reversed(list(enumerate(by_share)))}
        # The scale grows with the share of a level, but those of rare levels are equal.
        often = max(levels, key=lambda column: (column.scale, rank.get(str(column.category), -len(rank))))
        return often.category
    plain = next((column for column in columns if not column.piece and column.kind != "missing"), None)
    return 0.0 if plain is None or plain.kind == "boolean" else plain.center


def _changed(curve: Curve, change: Callable[[Doubles], Doubles]) -> Curve:
    """The curve with each of its lists of k values changed."""

    def changed(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(change(np.array(values)).tolist())

    return replace(
        curve,
        values=tuple(map(changed, curve.values)),
        missing=changed(curve.missing),
        other=None if curve.other is None else changed(curve.other),
    )
