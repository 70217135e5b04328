"""Sums of encoded columns as sums in the units of the table, and splits as conditions."""

from collections.abc import Sequence
from math import fsum, isfinite

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.data.calendar import Unit
from prunus.describe.functions import crossings, grouped, parted, read_curve
from prunus.render.program import (
    Below,
    Calendar,
    Choice,
    Column,
    Condition,
    Formula,
    InRanges,
    IsLevel,
    Limited,
    Shared,
    Term,
)

__all__ = ["Variables", "level_condition", "number_condition", "read_condition"]

FAR = 1e6
"""A number whose center is this many units of scale from 0 is measured from its center, so that no digits are lost."""
SIZES = (1e-100, 1e100)
"""Scales beyond these are not multiplied into weights."""
OF_LEVELS = ("category", "infrequent", "missing", "calendar")
"""The kinds of encoded columns that say whether a column of the table has a certain level."""
Part = tuple[int, Unit | None]
"""A column of the table by its position, or the calendar of a column of dates."""


class Variables:
    """The columns of the table that are used, and the limited numbers made from them, in the order of the encoder.

    Parameters
    ----------
    columns : sequence of OutputColumn
        The columns of the encoded matrix.
    """

    def __init__(self, columns: Sequence[OutputColumn]) -> None:
        self.outputs = columns
        self.parts = parted(columns)
        self._columns = {feature: _column([columns[i] for i in own]) for feature, own in grouped(columns).items()}
        self._used: set[int] = set()
        self._calendars: dict[Part, Calendar] = {}
        self._limited: dict[int, Limited] = {}
        self._effects: dict[int, Shared] = {}

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table that are used."""
        return tuple(self._columns[feature] for feature in sorted(self._used))

    @property
    def calendars(self) -> tuple[Calendar, ...]:
        """The weekdays, months and hours of dates that are used."""
        return tuple(self._calendars.values())

    @property
    def limited(self) -> tuple[Limited, ...]:
        """The limited numbers that are used."""
        return tuple(self._limited[i] for i in sorted(self._limited))

    @property
    def effects(self) -> tuple[Shared, ...]:
        """The effects of levels that are used."""
        return tuple(self._effects[i] for i in sorted(self._effects))

    def column(self, feature: int) -> Column:
        """A column of the table, which counts as used from now on."""
        self._used.add(feature)
        return self._columns[feature]

    def levels(self, part: Part) -> Column | Calendar:
        """A category of the table, or the calendar of a date, which counts as used from now on."""
        feature, unit = part
        column = self.column(feature)
        return column if unit is None else self._calendars.setdefault(part, Calendar(column, unit))

    def used_parts(self, weight: npt.NDArray[np.floating]) -> list[Part]:
        """The parts of the table that matter for a sum with these weights of the encoded columns, (d,)."""
        return [p for p, own in self.parts.items() if any(weight[i] and not _is_constant(self.outputs[i]) for i in own)]

    def formula(self, weight: npt.NDArray[np.floating], constant: float) -> Formula:
        """The sum with these weights of the encoded columns, (d,), strongest terms first, missing numbers last."""
        strengths: list[tuple[float, Term | Choice]] = []
        constants = [constant]
        for part in self.used_parts(weight):
            marks: dict[tuple[str, str | None], float] = {}
            for i in self.parts[part]:
                w, output = float(weight[i]), self.outputs[i]
                if w == 0 or _is_constant(output):
                    continue
                if output.kind in OF_LEVELS:
                    marks[output.kind, output.category] = w * output.encode(1.0)
                    continue
                variable = self._effect(i) if output.kind == "effect" else self._limit(i)
                if _is_near(output):
                    constants.append(-w * (output.center / output.scale))
                    strengths.append((abs(w), Term(w / output.scale, variable)))
                else:
                    strengths.append((abs(w), Term(w, variable)))
            if marks:
                choice = self._choice(part, marks)
                strengths.append((max(map(abs, marks.values())) if choice.levels else 0.0, choice))
        strengths.sort(key=lambda pair: -pair[0])
        return Formula(fsum(constants), tuple(term for _, term in strengths))

    def _choice(self, part: Part, marks: dict[tuple[str, str | None], float]) -> Choice:
        levels = tuple((str(level), w) for (_, level), w in marks.items() if level is not None)
        others = marks.get(("infrequent", None), 0.0)
        if others:  # levels without a weight are no others
            known = (self.outputs[i] for i in self.parts[part])
            levels = tuple(
                (str(o.category), dict(levels).get(str(o.category), 0.0)) for o in known if o.kind == "category"
            )
        return Choice(self.levels(part), levels, others, marks.get(("missing", None), 0.0))

    def _limit(self, i: int) -> Limited:
        if i not in self._limited:
            self._limited[i] = _limited(self.column(self.outputs[i].feature), self.outputs[i])
        return self._limited[i]

    def _effect(self, i: int) -> Shared:
        """The effect in the units of the target, or in those of the encoder where digits would be lost."""
        if i not in self._effects:
            output = self.outputs[i]
            start, unit = (output.center, output.scale) if _is_near(output) else (0.0, 1.0)
            levels = tuple((level, start + unit * output.encode_level(level)) for level in output.effects or {})
            missing = start + unit * output.encode_level(None)
            choice = Choice(self.column(output.feature), levels, start, missing)
            self._effects[i] = Shared(output.label, Formula(0.0, (choice,)))
        return self._effects[i]


def _column(outputs: list[OutputColumn]) -> Column:
    numbers = [output.kind for output in outputs if output.kind not in (*OF_LEVELS, "effect")]
    return Column(outputs[0].name, numbers[0] if numbers else "category")


def _is_constant(output: OutputColumn) -> bool:
    return output.low == output.high


def _is_near(output: OutputColumn) -> bool:
    """Whether a number can be told in the units of the table without losing digits."""
    ends = (output.center + output.scale * end for end in (output.low, output.high))
    near = abs(output.center) <= FAR * output.scale and SIZES[0] < output.scale < SIZES[1]
    return near and all(map(isfinite, ends))


def _limited(column: Column, output: OutputColumn) -> Limited:
    """The number in the units of the table, or in those of the encoder where digits would be lost."""
    if _is_near(output):
        low, high = (output.center + output.scale * end for end in (output.low, output.high))
        label = output.label if output.piece else f"{column.name} limited"
        return Limited(column, label, low, high, output.center + output.scale * output.encode_missing())
    label = f"{output.label} scaled"
    return Limited(column, label, output.low, output.high, output.encode_missing(), output.center, output.scale)


def read_condition(variables: Variables, weight: npt.NDArray[np.floating], bias: float) -> Condition | bool:
    """When rows go left at a split with these weights of the encoded columns, (d,); True or False if all or none do."""
    parts = variables.used_parts(weight)
    if not parts:
        return bias < 0
    own = variables.parts[parts[0]]
    if len(parts) > 1 or any(weight[i] and variables.outputs[i].kind == "effect" for i in own):
        return Below(variables.formula(weight, bias))
    curve = read_curve([variables.outputs[i] for i in own], weight[own][None])
    scores = [values[0] + bias for values in curve.values]
    missing = bool(curve.missing[0] + bias < 0)
    if curve.is_number:
        column = variables.column(curve.feature)
        return number_condition(column, crossings(curve, scores), low_left=bool(scores[0] < 0), missing=missing)
    if curve.kind == "boolean":
        between = (0.5,) if (scores[0] < 0) != (scores[1] < 0) else ()
        return number_condition(variables.column(curve.feature), between, low_left=bool(scores[0] < 0), missing=missing)
    other = bool((0.0 if curve.other is None else curve.other[0]) + bias < 0)
    odd = [str(level) for level, score in zip(curve.points, scores, strict=True) if (score < 0) != other]
    return level_condition(variables.levels(parts[0]), tuple(odd), other=other, missing=missing)


def number_condition(
    column: Column, thresholds: tuple[float, ...], *, low_left: bool, missing: bool
) -> Condition | bool:
    """The ranges of a number that go left; the sides of its ranges alternate."""
    if not thresholds and low_left == missing:
        return low_left
    ends = [None, *thresholds, None]
    ranges = [(ends[i], ends[i + 1]) for i in range(len(ends) - 1) if (i % 2 == 0) == low_left]
    return InRanges(column, tuple(ranges), missing)


def level_condition(column: Column | Calendar, odd: tuple[str, ...], *, other: bool, missing: bool) -> Condition | bool:
    """The levels that go left, or that do not if all others do."""
    return other if not odd and other == missing else IsLevel(column, odd, other, missing)
