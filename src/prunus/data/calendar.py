"""The calendar of dates: weekday, month and hour of day, and which of them can mean something in a column."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from prunus.data.columns import Labels

__all__ = [
    "LEVELS",
    "CalendarCounts",
    "Unit",
    "calendar_labels",
    "level_at",
    "level_codes",
    "meaningful_units",
    "titled",
]

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
_TIMES: dict[Unit, float] = {"weekday": 3.0, "month": 1.5, "hour": 3.0}
"""How often levels must come back on average: weekdays on three days, months in one and a half years, hours on three
days. What comes back less often is just a stretch of the time line."""
_FEWEST = 12
"""Number of different days, months of years or hours of days at least, however few levels occur."""
_SAMPLE = 100_000
"""Number of dates that are enough to see how often levels come back."""
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
    >>> seconds = np.array(["1970-01-01T13", "2024-02-29", "1969-12-31T23"], dtype="M8[s]").astype(float)
    >>> level_codes(seconds, "weekday"), level_codes(seconds, "month"), level_codes(seconds, "hour")
    (array([3, 3, 2]), array([ 0,  1, 11]), array([13,  0, 23]))
    """
    first = {"weekday": 3, "month": 2, "hour": 0}[unit]  # 1970 began with a Thursday, and years begin in March here
    codes = np.mod(_stretches(seconds, unit) + first, len(LEVELS[unit]))
    codes[np.isnan(codes)] = -1
    return codes.astype(np.intp)


def _stretches(seconds: npt.NDArray[Any], unit: Unit) -> Floats:
    """The number of the day, the month or the hour on the time line; NaN is missing."""
    # Quotients of whole numbers in double precision have the right floor.
    whole = np.floor(np.asarray(seconds, dtype=np.float64))
    if unit == "hour":
        return _floor(whole / 3600)
    day = _floor(whole / 86400)
    if unit == "weekday":
        return day
    day += _TO_MARCH
    century = _floor((4 * day + 3) / 146097)
    day += century - _floor(century / 4)  # as if each fourth year had a leap day, also 1900
    year = _floor((4 * day + 3) / 1461)
    of_year = day - _floor(1461 * year / 4)
    return 12 * year + _floor((5 * of_year + 2) / 153)  # each five months from March on have 153 days


def _floor(x: Floats) -> Floats:
    return np.floor(x, out=x)


def calendar_labels(seconds: npt.NDArray[Any], unit: Unit) -> Labels:
    """Return the levels of a unit that dates have; NaN is missing."""
    return Labels(level_codes(seconds, unit), list(LEVELS[unit]))


def level_at(seconds: float, unit: Unit) -> str:
    """Return the level of a date that is not missing.

    Examples
    --------
    >>> level_at(0.0, "weekday"), level_at(0.0, "month"), level_at(-1.0, "hour")
    ('Thursday', 'January', '23')
    """
    return LEVELS[unit][int(level_codes(np.array([seconds]), unit)[0])]


def titled(name: str, unit: Unit | None) -> str:
    """Return what a unit of a column is in words, or the name of the column if there is no unit.

    Examples
    --------
    >>> titled("sold", "weekday"), titled("sold", None)
    ('weekday of sold', 'sold')
    """
    return name if unit is None else f"{unit} of {name}"


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


def meaningful_units(counts: CalendarCounts, seconds: Floats) -> list[Unit]:
    """Return the units whose levels come back, so that they say more about a date than its place on the time line.

    At least two levels of such a unit occur, and dates fall on at least three times as many different days as weekdays
    occur, in one and a half times as many different months of years as months occur, or in three times as many
    different hours of days as hours occur. That takes three weeks, one and a half years, or three days if all occur.
    If few occur, there are still twelve such days, months or hours.

    Parameters
    ----------
    counts : CalendarCounts
        Counts of all dates.
    seconds : float array of shape (n,)
        All dates, or a sample that has their distribution; NaN is missing.

    Returns
    -------
    list of str

    Examples
    --------
    >>> days = 86400.0 * np.arange(60)
    >>> counts = CalendarCounts()
    >>> counts.add(days, None)
    >>> meaningful_units(counts, days)
    ['weekday']
    """
    seconds = seconds[~np.isnan(seconds)]
    if seconds.size > _SAMPLE:
        seconds = np.random.default_rng(0).choice(seconds, _SAMPLE, replace=False, shuffle=False)
    return [unit for unit, weights in counts.weights.items() if _comes_back(weights, seconds, unit)]


def _comes_back(weights: Floats, seconds: Floats, unit: Unit) -> bool:
    n_levels = np.count_nonzero(weights)
    least = max(_FEWEST, _TIMES[unit] * n_levels)
    return bool(n_levels > 1 and len(np.unique(_stretches(seconds, unit))) >= least)
