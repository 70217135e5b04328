"""Dates that are written as text: those of ISO 8601 are read by pyarrow, others here."""

import re
from collections.abc import Collection
from typing import Any

from prunus.cli.extras import require

__all__ = ["read_dates"]

_DATE = re.compile(r"(\d{1,4})([./-])\d{1,2}\2(\d{1,4})([ T]\d{1,2}:\d\d(:\d\d)?)?")
_ORDERS = {"day-first": "%d{0}%m{0}%Y", "month-first": "%m{0}%d{0}%Y", "year-first": "%Y{0}%m{0}%d"}


def read_dates(frame: Any, notes: list[str], order: str | None, text_columns: Collection[str]) -> None:
    """Turn columns of text that hold dates into dates, in place; a note for each, and for those that are unclear."""
    pandas = require("pandas", "tables")
    for column in frame.columns:
        values = frame[column]
        if pandas.api.types.is_datetime64_any_dtype(values):
            notes.append(f"column {column!r} holds dates")
        elif column not in text_columns and pandas.api.types.is_string_dtype(values):
            found = _possible(pandas, values, order)
            if len(found) == 1:
                frame[column] = found.popitem()[1]
                notes.append(f"column {column!r} holds dates")
            elif found:
                notes.append(
                    f"column {column!r} holds dates, but is read as text: the order of days and months is unclear; "
                    "use --dates day-first or month-first"
                )


def _possible(pandas: Any, values: Any, order: str | None) -> dict[str, Any]:
    """The dates in each order of day, month and year in which all values are some."""
    given = values.dropna()
    match = _DATE.fullmatch(str(given.iloc[0])) if len(given) else None
    if match is None:
        return {}
    time = "" if match[4] is None else f"{match[4][0]}%H:%M{':%S' if match[5] else ''}"
    orders = ["year-first"] if len(match[1]) == 4 else [order] if order else ["day-first", "month-first"]
    found = {}
    for name in orders:
        dates = pandas.to_datetime(given, format=_ORDERS[name].format(match[2]) + time, errors="coerce")
        if dates.notna().all():
            found[name] = dates.reindex(values.index)
    if len(found) == 2 and found["day-first"].equals(found["month-first"]):
        found.pop("month-first")
    return found
