"""The calendar of dates: weekday, month and hour of day, and which of them can mean something in a column."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from prunus.data.columns import Labels
from prunus.data.spread import quantiles

__all__ = ["LEVELS", "CalendarCounts", "Unit", "calendar_labels", "level_at", "level_codes", "meaningful_units"]

Floats = npt.NDArray[np.float64]
Unit = Literal["weekday", "month", "hour"]

LEVELS: dict[Unit, tuple[str, ...]] = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "hour": tuple(map(str, range(24))),
}
"""The levels of each unit, in their order."""
_DAY = 86400.0
_SHORTEST: dict[Unit, float] = {"weekday": 21 * _DAY, "month": 548 * _DAY, "hour": 3 * _DAY}
"""How long dates must span for a unit. In less time a level comes back too seldom to be told from a stretch of the time
line: weekdays and hours come three times, and in one and a half years half of the months come twice."""
_MIDDLE = (0.01, 0.99)
"""Quantiles between which the span is measured, so that a few dates such as 9999-12-31 do not make it long."""
_TO_MARCH = 719468
"""Days from 1 March of the year 0 to 1970."""


def level_codes(seconds: npt.NDArray[Any], unit: Unit) -> npt.NDArray[np.intp]:
    """Return the position of each date's level among the levels of a unit; -1 is missing.

    Parameters
    ----------
    seconds : float array of shape (n,)
        Seconds since 1970; NaN is missing.
    unit : {"weekday", "month", "hour"}

    Returns
    -------
    int array of shape (n,)

    Examples
    --------
    >>> seconds = np.array(["1970-01-01T13", "2024-02-29", "NaT"], dtype="M8[s]").astype(float)
    >>> seconds[2] = np.nan
    >>> level_codes(seconds, "weekday"), level_codes(seconds, "month"), level_codes(seconds, "hour")
    (array([ 3,  3, -1]), array([ 0,  1, -1]), array([13,  0, -1]))
    """
    # Whole numbers in double precision: their quotients have the right floor.
    whole = np.floor(np.asarray(seconds, dtype=np.float64))
    day = np.floor(whole / _DAY)
    if unit == "hour":
        codes = np.floor((whole - _DAY * day) / 3600)
    elif unit == "weekday":
        codes = np.mod(day + 3, 7)  # 1970 began with a Thursday
    else:
        codes = _months(day)
    codes[np.isnan(codes)] = -1
    return codes.astype(np.intp)


def calendar_labels(seconds: npt.NDArray[Any], unit: Unit) -> Labels:
    """Return the levels of a unit that dates have; NaN is missing."""
    return Labels(level_codes(seconds, unit), list(LEVELS[unit]))


def _months(day: Floats) -> Floats:
    """The month of days since 1970, 0 for January, for years that begin in March: leap days are then the last days."""
    day = day + _TO_MARCH
    century = np.floor((4 * day + 3) / 146097)
    day = day + century - np.floor(century / 4)  # as if each fourth year had a leap day, also 1900
    year = np.floor((4 * day + 3) / 1461)
    of_year = day - np.floor(1461 * year / 4)
    return np.mod(np.floor((5 * of_year + 2) / 153) + 2, 12)  # five months from March on have 153 days


def level_at(seconds: float, unit: Unit) -> str:
    """Return the level of a date that is not missing.

    Examples
    --------
    >>> level_at(0.0, "weekday"), level_at(0.0, "month"), level_at(-1.0, "hour")
    ('Thursday', 'January', '23')
    """
    return LEVELS[unit][int(level_codes(np.array([seconds]), unit)[0])]


class CalendarCounts:
    """The weight of the dates that have each level of each unit; dates may arrive in chunks.

    Examples
    --------
    >>> counts = CalendarCounts()
    >>> counts.add(np.array([0.0, 86400.0, np.nan]), None)
    >>> counts.weights["weekday"]
    array([0., 0., 0., 1., 1., 0., 0.])
    """

    def __init__(self) -> None:
        self.weights = {unit: np.zeros(len(levels)) for unit, levels in LEVELS.items()}

    def add(self, seconds: npt.NDArray[Any], weight: Floats | None) -> None:
        """Add dates of shape (n,) with their weights; None are ones, and NaN is missing."""
        for unit, weights in self.weights.items():
            codes = level_codes(seconds, unit) + 1
            weights += np.bincount(codes, weights=weight, minlength=len(weights) + 1)[1:]

    def merge(self, other: "CalendarCounts") -> None:
        """Add the dates of other counts."""
        for unit, weights in self.weights.items():
            weights += other.weights[unit]


def meaningful_units(counts: CalendarCounts, seconds: Floats, weight: Floats | None) -> list[Unit]:
    """Return the units that can tell dates apart otherwise than the time line does.

    At least two levels of such a unit occur, and the dates, apart from the first and the last hundredth of them, span
    long enough for levels to come back: three weeks for weekdays, one and a half years for months, and three days for
    hours.

    Parameters
    ----------
    counts : CalendarCounts
        Counts of all dates.
    seconds : float array of shape (n,)
        All dates, or a sample that has their distribution; NaN is missing.
    weight : float array of shape (n,) or None
        Positive weights of these.

    Returns
    -------
    list of str

    Examples
    --------
    >>> days = 86400.0 * np.arange(60)
    >>> counts = CalendarCounts()
    >>> counts.add(days, None)
    >>> meaningful_units(counts, days, None)
    ['weekday']
    """
    present = ~np.isnan(seconds)
    if not present.any():
        return []
    low, high = quantiles(seconds[present], None if weight is None else weight[present], np.array(_MIDDLE))
    return [
        unit
        for unit, weights in counts.weights.items()
        if np.count_nonzero(weights) > 1 and high - low >= (_MIDDLE[1] - _MIDDLE[0]) * _SHORTEST[unit]
    ]
