"""Columns that are useless for learning: constants, row numbers and identifiers."""

import re
from collections.abc import Collection
from typing import Any, NamedTuple

from prunus.cli.extras import require

__all__ = ["Dropped", "drop_useless"]

FEW_ROWS = 20
"""With fewer rows, values may number the rows by chance, or be all different."""
MAX_DISTINCT_SHARE = 0.9
"""A column of text with a larger share of distinct values is not taken for a category."""
_ID_NAME = re.compile(r"(.*[_\- ])?(id|index|uuid|guid|row|rownames?|no|nr|key)|.*[a-z]I[dD]|Unnamed: 0|column 1", re.I)


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
