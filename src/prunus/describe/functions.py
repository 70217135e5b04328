"""Functions of encoded columns in the units of the table: curves and splits of one column, sums of several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.data.calendar import LEVELS, Unit, level_at
from prunus.describe.record import ColumnSplit, Curve, Formula, SplitWeight
from prunus.targets import Scale
from prunus.tree import Tree
from prunus.tree.prediction import outputs_at

__all__ = [
    "UNNAMED",
    "LeafCurves",
    "TableSum",
    "crossings",
    "grouped",
    "leaf_curves",
    "leaf_formulas",
    "log_odds",
    "parted",
    "read_curve",
    "scaled",
    "split_column",
    "table_sum",
    "typical_value",
]


Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating]

MOST_FORMULAS = 10
"""Largest number of classes with formulas in a leaf."""
TYPICAL = 2.5
"""A column without pieces is shown from this many standard units below its center to as many above it."""
_LARGEST = float(np.finfo(np.float64).max)
UNNAMED = "\0"
"""Stands for a level that has no name: of two levels only the less frequent one has a column."""


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
    thresholds = crossings(curve, scores)
    low_left = scores[0] < 0
    if not thresholds and missing in (None, low_left):
        return None
    return ColumnSplit(curve.name, curve.kind, thresholds, low_left, missing_left=missing)


def crossings(curve: Curve, scores: Sequence[float]) -> tuple[float, ...]:
    """Where a number goes to the other side, given the scores at the points of its curve: between two of them."""
    found = []
    for (x, score), (next_x, next_score) in pairwise(zip(map(float, curve.points), scores, strict=True)):
        if (score < 0) != (next_score < 0):
            way = score / (score - next_score)
            found.append((1 - way) * x + way * next_x)
    return tuple(found)


class TableSum(NamedTuple):
    """A weighted sum of features, in the units of the table."""

    weights: tuple[SplitWeight, ...]
    """Strongest first."""
    constant: float


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
