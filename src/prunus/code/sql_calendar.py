"""Weekdays, months and hours of dates in SQL, by whole numbers alone: databases have different functions for them."""

from collections.abc import Callable, Iterator, Sequence

from prunus.code.program import Calendar, Column
from prunus.code.sql_words import literal
from prunus.data.calendar import LEVELS

__all__ = ["calendar_steps"]

Step = tuple[str, list[list[str]]]


def calendar_steps(
    calendars: Sequence[Calendar], name_of: Callable[[Column | Calendar], str], new: Callable[[str], str]
) -> Iterator[Step]:
    """Yield the steps that compute calendars: the name of each step, and its columns.

    Parameters
    ----------
    calendars : sequence of Calendar
    name_of : callable
        The name of a column of the table or of a calendar, in quotes.
    new : callable
        Makes a new name, in quotes, that resembles a text.
    """
    columns = list(dict.fromkeys(calendar.column for calendar in calendars))
    days = {column: new(f"day of {column.name}") for column in columns}
    yield "days", [[f"FLOOR(FLOOR({name_of(column)}) / 86400) AS {days[column]}"] for column in columns]
    with_months = [calendar.column for calendar in calendars if calendar.unit == "month"]
    of_year = {column: new(f"day of the year of {column.name}") for column in with_months}
    if with_months:
        yield from _days_of_years(with_months, days, of_year, new)
    found = []
    for calendar in calendars:
        seconds, day = name_of(calendar.column), days[calendar.column]
        if calendar.unit == "hour":
            hour = f"FLOOR((FLOOR({seconds}) - 86400 * {day}) / 3600)"
            text = f"CAST(CAST({hour} AS INTEGER) AS VARCHAR)"
        elif calendar.unit == "weekday":
            text = _named(f"{day} + 3 - 7 * FLOOR(({day} + 3) / 7)", LEVELS["weekday"])
        else:
            from_march = (*LEVELS["month"][2:], *LEVELS["month"][:2])
            text = _named(f"FLOOR((5 * {of_year[calendar.column]} + 2) / 153)", from_march)
        found.append([f"{text} AS {name_of(calendar)}"])
    yield "calendars", found


def _days_of_years(
    columns: list[Column], days: dict[Column, str], of_year: dict[Column, str], new: Callable[[str], str]
) -> Iterator[Step]:
    """Days since the last 1 March, so that leap days are the last days of years."""
    centuries = {column: new(f"century of {column.name}") for column in columns}
    yield (
        "centuries",
        [[f"FLOOR((4 * ({days[c]} + 719468) + 3) / 146097) AS {centuries[c]}"] for c in columns],
    )
    even = {column: new(f"even day of {column.name}") for column in columns}
    yield (
        "even days",  # as if each fourth year had a leap day, also 1900
        [[f"{days[c]} + 719468 + {centuries[c]} - FLOOR({centuries[c]} / 4) AS {even[c]}"] for c in columns],
    )
    yield (
        "days of years",
        [[f"{even[c]} - FLOOR(1461 * FLOOR((4 * {even[c]} + 3) / 1461) / 4) AS {of_year[c]}"] for c in columns],
    )


def _named(number: str, levels: Sequence[str]) -> str:
    cases = " ".join(f"WHEN {i} THEN {literal(level)}" for i, level in enumerate(levels))
    return f"CASE {number} {cases} END"
