"""Columns of text: whole numbers, dates, and what is useless for learning."""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from prunus.cli.errors import require

__all__ = ["INT64", "ORDERS", "Dropped", "drop_useless", "first_wrong", "read_dates", "whole_or_text"]

INT64 = np.iinfo(np.int64)
_LONGEST = len(str(INT64.min))
ORDERS = ("day-first", "month-first")
"""The words for the order of day and month, those of `prunus.estimators.format`, whose import takes seconds."""
_DATE = re.compile(r"(\d{1,4})([./-])\d{1,2}\2(\d{1,4})([ T]\d{1,2}:\d\d(:\d\d)?)?")
_FORMATS = {"day-first": "%d{0}%m{0}%Y", "month-first": "%m{0}%d{0}%Y", "year-first": "%Y{0}%m{0}%d"}
FEW_ROWS = 20
"""With fewer rows, values may number the rows by chance, or be all different."""
MAX_DISTINCT_SHARE = 0.9
"""A column of text with a larger share of distinct values is not taken for a category."""
_ID_NAME = re.compile(r"(.*[_\- ])?(id|index|uuid|guid|row|rownames?|no|nr|key)|.*[a-z]I[dD]|Unnamed: 0|column 1", re.I)


def whole_or_text(texts: Any) -> Any:
    """Return whole numbers if they print as the texts do, or else the texts.

    Parameters
    ----------
    texts : pandas.Series of str

    Returns
    -------
    pandas.Series of int64 or object

    Examples
    --------
    >>> import pandas
    >>> whole_or_text(pandas.Series(["7", "-12"])).tolist(), whole_or_text(pandas.Series(["7", "007"])).tolist()
    ([7, -12], ['7', '007'])
    """
    texts = texts.astype(object)
    return texts.astype(np.int64) if all(map(_is_whole, texts.unique())) else texts


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    if len(text) > _LONGEST or not (digits.isascii() and digits.isdigit()):
        return False
    return str(int(text)) == text and bool(INT64.min <= int(text) <= INT64.max)


def read_dates(
    frame: Any, notes: list[str], order: str | None, text_columns: Collection[str], known: Mapping[str, str]
) -> dict[str, str]:
    """Turn columns of text that hold dates into dates.

    Parameters
    ----------
    frame : pandas.DataFrame
        Changed in place.
    notes : list of str
        Gets a note for each column of dates, also for those that remain text because their order is unclear.
    order : {"day-first", "month-first"} or None
        Order of day and month in all columns; None finds it.
    text_columns : collection of str
        Columns that remain text.
    known : mapping of str to {"day-first", "month-first"}
        Order of day and month in some columns, unless `order` says another one.

    Returns
    -------
    dict of str to {"day-first", "month-first"}
        Order of day and month in the columns that became dates and have one: not that of 2024/12/31, or where the day
        is always the month.
    """
    pandas = require("pandas", "tables")
    orders = {}
    for column in frame.columns:
        values = frame[column]
        if pandas.api.types.is_datetime64_any_dtype(values):
            notes.append(f"column {column!r} holds dates")
        elif column not in text_columns and pandas.api.types.is_string_dtype(values):
            found = _possible_dates(values, order or known.get(column))
            if len(found) == 1:
                name, frame[column] = found.popitem()
                notes.append(f"column {column!r} holds dates")
                if name in ORDERS:
                    orders[column] = name
            elif found:
                notes.append(
                    f"column {column!r} holds dates, but is read as text: the order of days and months is unclear; "
                    "use --dates day-first or month-first"
                )
            elif order is not None and _possible_dates(values, None):
                notes.append(
                    f"column {column!r} holds dates, but is read as text: they are not {order}, as --dates says"
                )
    return orders


def first_wrong(values: Any, order: str | None) -> int:
    """Return the position of the first value that is not a date in this order, or in any if it is None.

    If all of them are dates, it is the position of the first value that is not missing.
    """
    wrong = values.notna()
    for dates in _read(values, order).values():
        wrong &= dates.isna()
    return int((wrong if wrong.any() else values.notna()).to_numpy().argmax())


def _possible_dates(values: Any, order: str | None) -> dict[str, Any]:
    """Return the dates for each order of day, month and year in which all values are valid dates."""
    given = values.notna()
    found = {name: dates for name, dates in _read(values, order).items() if dates[given].notna().all()}
    if len(found) == 2 and found["day-first"].equals(found["month-first"]):
        return {"either": found["day-first"]}
    return found


def _read(values: Any, order: str | None) -> dict[str, Any]:
    """Return the values as dates for each order that the first of them may have; wrong dates are missing."""
    given = values.dropna()
    match = _DATE.fullmatch(str(given.iloc[0])) if len(given) else None
    if match is None:
        return {}
    time = "" if match[4] is None else f"{match[4][0]}%H:%M{':%S' if match[5] else ''}"
    orders = ["year-first"] if len(match[1]) == 4 else ORDERS if order is None else [order]
    to_datetime = require("pandas", "tables").to_datetime
    formats = {name: _FORMATS[name].format(match[2]) + time for name in orders}
    return {
        name: to_datetime(given, format=text, errors="coerce").reindex(values.index) for name, text in formats.items()
    }


class Dropped(NamedTuple):
    """A column that is left out, and the reason."""

    column: str
    why: str


def drop_useless(frame: Any, keep: Collection[str] = ()) -> list[Dropped]:
    """Find the columns of a frame that are useless for learning.

    Parameters
    ----------
    frame : pandas.DataFrame
    keep : collection of str
        Columns that are not looked at.

    Returns
    -------
    list of Dropped

    Examples
    --------
    >>> import pandas
    >>> drop_useless(pandas.DataFrame({"id": range(5), "unit": ["kg"] * 5, "x": [3, 1, 4, 1, 5]}))
    [Dropped(column='id', why='numbers the rows'), Dropped(column='unit', why="always 'kg'")]
    """
    found = ((column, _why_useless(frame[column])) for column in frame.columns if column not in keep)
    return [Dropped(column, why) for column, why in found if why is not None]


def _why_useless(values: Any) -> str | None:
    types = require("pandas", "tables").api.types
    if values.isna().all():
        return "empty"
    try:
        distinct = values.nunique()
    except TypeError:  # lists and other values that the encoder will refuse
        return None
    if distinct == 1 and values.notna().all():
        return f"always {str(values.iloc[0])!r}"
    if types.is_integer_dtype(values):
        return _why_identifier(values, distinct)
    if types.is_string_dtype(values) or types.is_object_dtype(values):
        n = int(values.notna().sum())
        if n >= FEW_ROWS and distinct > MAX_DISTINCT_SHARE * n:
            return f"text, {distinct} different values in {n} rows"
    return None


def _why_identifier(values: Any, distinct: int) -> str | None:
    if distinct < len(values):
        return None
    named = _ID_NAME.fullmatch(str(values.name)) is not None
    if (len(values) >= FEW_ROWS or named) and bool((values.diff().dropna() == 1).all()):
        return "numbers the rows"
    return "an identifier: its name says so, and all values are different" if named else None
