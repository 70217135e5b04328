"""Dates in columns of text. Those of ISO 8601 are read by pyarrow, others here."""

import re
from collections.abc import Collection
from typing import Any

from prunus.cli.extras import require

__all__ = ["read_dates"]

_DATE = re.compile(r"(\d{1,4})([./-])\d{1,2}\2(\d{1,4})([ T]\d{1,2}:\d\d(:\d\d)?)?")
_ORDERS = {"day-first": "%d{0}%m{0}%Y", "month-first": "%m{0}%d{0}%Y", "year-first": "%Y{0}%m{0}%d"}


def read_dates(frame: Any, notes: list[str], order: str | None, text_columns: Collection[str]) -> None:
    """Turn columns of text that hold dates into dates.

    Parameters
    ----------
    frame : pandas.DataFrame
        Changed in place.
    notes : list of str
        Gets a note for each column of dates, also for those that remain text because their order is unclear.
    order : {"day-first", "month-first"} or None
        Order of day and month where the values do not tell.
    text_columns : collection of str
        Columns that remain text.
    """
    pandas = require("pandas", "tables")
    for column in frame.columns:
        values = frame[column]
        if pandas.api.types.is_datetime64_any_dtype(values):
            notes.append(f"column {column!r} holds dates")
        elif column not in text_columns and pandas.api.types.is_string_dtype(values):
            found = _possible_dates(pandas, values, order)
            if len(found) == 1:
                frame[column] = found.popitem()[1]
                notes.append(f"column {column!r} holds dates")
            elif found:
                notes.append(
                    f"column {column!r} holds dates, but is read as text: the order of days and months is unclear; "
                    "use --dates day-first or month-first"
                )


def _possible_dates(pandas: Any, values: Any, order: str | None) -> dict[str, Any]:
    """Return the dates for each order of day, month and year in which all values are valid dates."""
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
