"""Parts of SQL statements: names, literals, conditions, lists of columns, and the calendar in whole numbers."""

from collections.abc import Callable, Iterator, Sequence

from prunus.data.calendar import LEVELS
from prunus.errors import InputValueError
from prunus.render.program import Calendar, Column, InRanges, IsLevel, Label

__all__ = [
    "READERS",
    "UNITS",
    "calendar_steps",
    "double",
    "in_ranges",
    "is_level",
    "largest",
    "listed",
    "literal",
    "named",
    "quoted",
]

Step = tuple[str, list[list[str]]]

READERS = {
    "number": "CAST({} AS DOUBLE PRECISION)",
    "boolean": "CAST(CAST({} AS INTEGER) AS DOUBLE PRECISION)",
    "datetime": "CAST({} AS DOUBLE PRECISION)",
    "duration": "CAST({} AS DOUBLE PRECISION)",
    "category": "CAST({} AS VARCHAR)",
}
"""How a column of each kind is read."""
UNITS = {"datetime": "seconds since 1970 in UTC", "duration": "seconds"}
"""What the numbers of a column are."""


def quoted(name: str) -> str:
    """A name of a table or column in quotes.

    Examples
    --------
    >>> print(quoted('5" pipes'))
    "5"" pipes"
    """
    return '"' + _storable(name).replace('"', '""') + '"'


def literal(value: Label) -> str:
    """A text, a number or a boolean.

    Examples
    --------
    >>> [literal(value) for value in ("it's", 3, 0.5, True)]
    ["'it''s'", '3', '0.5e0', 'TRUE']
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + _storable(value).replace("'", "''") + "'"
    return double(value) if isinstance(value, float) else str(value)


def _storable(text: str) -> str:
    """The text, or an error if databases cannot hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputValueError(f"names, levels and classes must be Unicode for export_sql, got {text!r}") from None
    if "\0" in text:
        raise InputValueError(f"names, levels and classes must have no null character for export_sql, got {text!r}")
    return text


def double(x: float) -> str:
    """A number in double precision, which an exponent makes it; without one it is a decimal."""
    text = repr(float(x))
    return text if "e" in text else f"{text}e0"


def in_ranges(name: str, condition: InRanges) -> str:
    """The ranges of a number; nothing if the condition is only whether it is missing."""
    found = []
    for low, high in condition.ranges:
        if low is None and high is None:
            return ""
        parts = [f"{name} > {low!r}"] * (low is not None) + [f"{name} < {high!r}"] * (high is not None)
        found.append(
            " AND ".join(parts) if len(parts) == 1 or len(condition.ranges) == 1 else f"({' AND '.join(parts)})"
        )
    return " OR ".join(found)


def is_level(name: str, condition: IsLevel) -> str:
    """The levels of a category; nothing if the condition is only whether it is missing."""
    if not condition.levels:
        return ""
    levels = [literal(level) for level in condition.levels]
    if len(levels) == 1:
        return f"{name} {'<>' if condition.negated else '='} {levels[0]}"
    return f"{name} {'NOT IN' if condition.negated else 'IN'} ({', '.join(levels)})"


def largest(values: Sequence[str], results: Sequence[str]) -> str:
    """The result that belongs to the largest of these values, the first of them if several are equal."""
    cases = [
        f"WHEN {' AND '.join(f'{value} >= {other}' for other in values[i + 1 :])} THEN {results[i]}"
        for i, value in enumerate(values[:-1])
    ]
    return f"CASE {' '.join(cases)} ELSE {results[-1]} END" if cases else results[-1]


def named(lines: list[str], name: str) -> list[str]:
    """An expression with a name."""
    return [*lines[:-1], f"{lines[-1]} AS {name}"]


def listed(columns: list[list[str]], indent: str, notes: Sequence[str] = ()) -> list[str]:
    """Columns of a SELECT, with commas between them and notes behind them."""
    lines = []
    for i, column in enumerate(columns):
        comma = "," if i + 1 < len(columns) else ""
        note = f"  -- {notes[i]}" if i < len(notes) and notes[i] else ""
        lines += [f"{indent}{line}" for line in column[:-1]] + [f"{indent}{column[-1]}{comma}{note}"]
    return lines


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
