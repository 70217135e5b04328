"""Records that say what the columns of the matrix stand for, and how they are made."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

from prunus.data.calendar import LEVELS, CalendarCounts, Unit, level_at, meaningful_units, titled
from prunus.data.columns import Labels, NumberKind
from prunus.data.spread import Spread, piece_edges

__all__ = ["OutputColumn", "OutputKind", "category_outputs", "number_columns"]

Floats = npt.NDArray[np.float64]
OutputKind = Literal[NumberKind, "category", "infrequent", "missing", "effect", "calendar"]

# The indicator of a rare level is at most 1 / 0.2 = 5 units away from 0.
_SMALLEST_INDICATOR_SCALE = 0.2


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the encoded matrix: where it comes from, and how it is scaled.

    The column is ``clip((x - center) / scale, low, high)``, with 0 for a missing number unless ``missing`` says what it
    counts as. ``x`` is a number, seconds (datetimes since 1970 in UTC, durations), the effect of a level, or 0 or 1
    (all other kinds).

    Parameters
    ----------
    feature : int
        Position of the source column in the table.
    name : str
        Name of the source column; ``x0``, ``x1`` ... if it has none.
    kind : {"number", "boolean", "datetime", "duration", "category", "infrequent", "missing", "effect", "calendar"}
        What ``x`` is: a value, or whether the source is a certain category, an infrequent category, or missing; or the
        effect of the level, which is a mean of the target over rows of that level, drawn to the mean over all rows; or
        whether a date has a certain weekday, month or hour of day.
    category : str or None
        The category, if ``kind`` is "category". If it is "effect": what the effect is, such as "mean of the target"
        or "share of yes". If it is "calendar": the level, such as "Monday", "May" or "13".
    center, scale, low, high : float
        The scaling and the limits in the formula above; ``low == high == 0`` if the column was constant in fit.
    piece : bool
        Whether the column belongs to a piece of the range of a number: 0 below the piece, 1 above, linear within.
    effects : dict from str to float, or None
        The effect of each level, if ``kind`` is "effect", with the most frequent level first; that of all other levels
        is ``center``.
    missing : float or None
        What a missing value counts as: the effect of missing values, or for a piece the center of the number. If it is
        None, a missing value is encoded as 0, but as 1 before scaling if ``kind`` is "missing".
    unit : {"weekday", "month", "hour"} or None
        What of a date is the level, if ``kind`` is "calendar".
    """

    feature: int
    name: str
    kind: OutputKind
    category: str | None
    center: float
    scale: float
    low: float
    high: float
    piece: bool = False
    effects: dict[str, float] | None = field(default=None, hash=False)
    missing: float | None = None
    unit: Unit | None = None

    @property
    def label(self) -> str:
        """A short description for people.

        Examples
        --------
        >>> OutputColumn(0, "color", "category", "red", 0.0, 1.0, 0.0, 1.0).label
        'color = red'
        """
        if self.piece:
            return f"{self.name} from {self.center:.6g} to {self.center + self.scale:.6g}"
        if self.kind == "effect":
            return f"{self.category} for {self.name}"
        if self.kind == "calendar":
            what = f"{self.name} is a" if self.unit == "weekday" else f"{titled(self.name, self.unit)} is"
            return f"{what} {self.category}"
        suffix = {"category": f" = {self.category}", "infrequent": " is infrequent", "missing": " is missing"}
        return self.name + suffix.get(self.kind, "")

    def encode(self, x: float) -> float:
        """Return the value of the column for a number x that is not missing."""
        return min(max((x - self.center) / self.scale, self.low), self.high)

    def encode_value(self, x: float) -> float:
        """Return the value of the column for a number of the table (seconds for times) that is not missing.

        Examples
        --------
        >>> OutputColumn(0, "sold", "calendar", "Thursday", 0.0, 0.5, 0.0, 2.0, unit="weekday").encode_value(0.0)
        2.0
        """
        if self.kind == "missing":
            return self.encode(0.0)
        return self.encode(x if self.unit is None else float(level_at(x, self.unit) == self.category))

    def encode_level(self, level: str | None) -> float:
        """Return the value of a column of a category for a level that has a column or an effect; None is missing.

        Examples
        --------
        >>> OutputColumn(0, "color", "category", "red", 0.0, 0.5, 0.0, 2.0).encode_level("red")
        2.0
        """
        if level is None:
            return self.encode_missing()
        if self.effects is not None:
            return self.encode(self.effects.get(level, self.center))
        return self.encode(1.0) if self.kind == "category" and level == self.category else 0.0

    def encode_missing(self) -> float:
        """Return the value of the column for a missing value of the source column."""
        if self.kind == "missing":
            return self.encode(1.0)
        return 0.0 if self.missing is None else self.encode(self.missing)


def number_output(feature: int, name: str, kind: NumberKind, spread: Spread, clip: float) -> OutputColumn:
    """The column of a number; a boolean gets an indicator, which is 0 for False whatever the share of True is."""
    if spread.constant:
        return OutputColumn(feature, name, kind, None, spread.center, 1.0, 0.0, 0.0)
    if kind == "boolean":
        return _indicator(feature, name, kind, None, spread.mean)
    return OutputColumn(feature, name, kind, None, spread.center, spread.scale, -clip, clip)


def piece_outputs(
    feature: int, name: str, kind: NumberKind, edges: npt.NDArray[np.float64], center: float
) -> list[OutputColumn]:
    """The columns of the pieces between neighboring edges; a missing number counts as the center of all numbers."""
    largest = float(np.finfo(np.float64).max)
    return [
        OutputColumn(feature, name, kind, None, low, min(high - low, largest), 0.0, 1.0, piece=True, missing=center)
        for low, high in pairwise(edges.tolist())
    ]


def calendar_outputs(feature: int, name: str, unit: Unit, counts: CalendarCounts, missing: float) -> list[OutputColumn]:
    """The columns of the levels of a unit that occur; ``missing`` is the share of the rows without a date."""
    weights = counts.weights[unit]
    shares = weights / weights.sum() * (1 - missing)
    return [
        replace(_indicator(feature, name, "calendar", level, share), unit=unit)
        for level, share in zip(LEVELS[unit], shares.tolist(), strict=True)
        if share > 0
    ]


def missing_output(feature: int, name: str, share: float) -> OutputColumn:
    """The column that marks missing values; ``share`` is the share of the rows in which they are missing."""
    return _indicator(feature, name, "missing", None, share)


def category_outputs(
    feature: int, name: str, labels: Labels, weight: np.ndarray | None, max_categories: int, others: float = 0.0
) -> list[OutputColumn]:
    """The columns of a category: frequent levels in the order of their names, missing, and infrequent levels.

    The weight of rows with infrequent levels that are not among the labels is `others`.
    """
    counts = np.bincount(labels.codes + 1, weights=weight, minlength=len(labels.levels) + 1)
    total = float(counts.sum()) + others
    missing, shares = float(counts[0]) / total, dict(zip(labels.levels, (counts[1:] / total).tolist(), strict=True))
    present = sorted((level for level in shares if shares[level] > 0), key=lambda level: (-shares[level], level))
    frequent, rest = present[:max_categories], present[max_categories:]
    if len(present) == 2 and not rest and not missing and not others:
        frequent = present[1:]  # one column tells two levels apart; an unseen level counts as the more frequent one
    outputs = [_indicator(feature, name, "category", level, shares[level]) for level in sorted(frequent)]
    if missing:
        outputs.append(missing_output(feature, name, missing))
    if rest or others:
        share = _total(shares, rest) + others / total
        outputs.append(_indicator(feature, name, "infrequent", None, share))
    return outputs


def _total(shares: dict[str, float], levels: Sequence[str]) -> float:
    return sum(shares[level] for level in levels)


def _indicator(feature: int, name: str, kind: OutputKind, category: str | None, share: float) -> OutputColumn:
    """A column that is 0 or 1 before it is scaled to a root mean square of 1; that of a rare 1 is smaller."""
    if share in (0.0, 1.0):
        return OutputColumn(feature, name, kind, category, share, 1.0, 0.0, 0.0)
    scale = max(sqrt(share), _SMALLEST_INDICATOR_SCALE)
    return OutputColumn(feature, name, kind, category, 0.0, scale, 0.0, 1 / scale)


def number_columns(
    feature: int,
    name: str,
    kind: NumberKind,
    spread: Spread,
    values: Floats,
    weight: Floats | None,
    *,
    clip: float,
    pieces: int,
    counts: CalendarCounts | None = None,
) -> tuple[list[OutputColumn], list[OutputColumn]]:
    """Columns of the matrix for numbers, and the one that marks where they are missing, if any are.

    Parameters
    ----------
    feature : int
        Position of the column in the table.
    name : str
        Name of the column.
    kind : {"number", "boolean", "datetime", "duration"}
    spread : Spread
        Center, scale, and the share of missing numbers.
    values : float array of shape (n,)
        All numbers, or a sample that has their distribution; NaN is missing.
    weight : float array of shape (n,) or None
        Positive weights of the values.
    clip : float
        Scaled numbers are limited to the range from ``-clip`` to ``clip``.
    pieces : int
        Largest number of pieces of the range; 0 for none.
    counts : CalendarCounts, optional
        Counts of all dates, if the values are a sample of dates; by default those of the values.

    Returns
    -------
    list of OutputColumn, list of OutputColumn

    Examples
    --------
    >>> from prunus.data.spread import measure
    >>> sizes = np.array([1.0, 2.0, 3.0, 4.0, 5.0, np.nan])
    >>> columns, flags = number_columns(0, "size", "number", measure(sizes), sizes, None, clip=5.0, pieces=2)
    >>> [column.label for column in columns + flags]
    ['size', 'size from 1 to 3', 'size from 3 to 5', 'size is missing']
    """
    outputs = [number_output(feature, name, kind, spread, clip)]
    if pieces and kind != "boolean":
        edges = piece_edges(values, weight, pieces)
        if len(edges) > 2:
            outputs += piece_outputs(feature, name, kind, edges, spread.center)
    if kind == "datetime":
        if counts is None:
            counts = CalendarCounts()
            counts.add(values, weight)
        for unit in meaningful_units(counts, values):
            outputs += calendar_outputs(feature, name, unit, counts, spread.missing)
    return outputs, [missing_output(feature, name, spread.missing)] if spread.missing else []
