"""Sums of encoded columns, written as sums in the units of the table."""

from collections.abc import Sequence
from math import fsum, isfinite

import numpy as np
import numpy.typing as npt

from prunus.code.program import Calendar, Choice, Column, Formula, Limited, Shared, Term
from prunus.data import OutputColumn
from prunus.data.calendar import Unit
from prunus.explain.curves import grouped, parted

__all__ = ["Variables"]

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
