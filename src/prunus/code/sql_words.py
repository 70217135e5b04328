"""Parts of SQL statements: names, literals, conditions and lists of columns."""

from collections.abc import Sequence

from prunus.code.program import InRanges, IsLevel, Label
from prunus.errors import InputValueError

__all__ = ["READERS", "UNITS", "double", "in_ranges", "is_level", "largest", "listed", "literal", "named", "quoted"]

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
