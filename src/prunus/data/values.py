"""Python values in a column of objects: their families, and the text by which categories are compared."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Complex, Real
from typing import Any, Literal
from uuid import UUID

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError, InputValueError

__all__ = ["Family", "families", "family", "in_seconds", "is_missing", "label", "objects", "seconds"]

Family = Literal["number", "boolean", "datetime", "duration", "text", "missing"]

_EPOCH = datetime(1970, 1, 1)
_SECONDS = {"W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1}
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
_MAY_BE_NAN = (float, np.floating, Decimal, np.datetime64, np.timedelta64)


def objects(values: Iterable[Any], count: int) -> npt.NDArray[np.object_]:
    """Make a one-dimensional array of `count` objects, which may be sequences themselves."""
    return np.fromiter(values, dtype=object, count=count)


def family(kind: type) -> Family | None:
    """Return the family to which the values of a type belong, or None if a table cannot hold them."""
    if kind.__name__ in ("NoneType", "NAType", "NaTType"):  # the last two are of pandas; NaT is a datetime
        return "missing"
    if issubclass(kind, (bool, np.bool_)):
        return "boolean"
    if issubclass(kind, (str, bytes, Enum, UUID)):
        return "text"
    if issubclass(kind, (date, np.datetime64)):
        return "datetime"
    if issubclass(kind, (timedelta, np.timedelta64, time)):
        return "duration"
    if issubclass(kind, (Real, Decimal)):
        return "number"
    if kind.__module__.partition(".")[0] == "pandas":  # Interval, Period
        return "text"
    return None


def families(values: npt.NDArray[np.object_], name: str) -> set[Family]:
    """Return the families of the values in a column of this name; raise an error for values that have none."""
    found: set[Family] = set()
    for kind in set(map(type, values)):
        member = family(kind)
        if member is None:
            raise _unusable(kind, name)
        found.add(member)
    return found


def _unusable(kind: type, name: str) -> Exception:
    if issubclass(kind, Complex):
        return InputValueError(f"Complex data not supported, got some in column {name!r}")
    return InputTypeError(
        f"Each value in an argument must be a string, a real number, a boolean, a date or missing (None, NaN), "
        f"got a {kind.__name__!r} in column {name!r}. Drop the column or make it text"
    )


def is_missing(values: npt.NDArray[np.object_]) -> npt.NDArray[np.bool_]:
    """Return a bool array that says which values are None, NaN, NaT or pandas.NA."""
    kinds = set(map(type, values))
    always = {kind for kind in kinds if family(kind) == "missing"}
    perhaps = {kind for kind in kinds if issubclass(kind, _MAY_BE_NAN)}
    missing = np.zeros(values.size, dtype=bool)
    if always or perhaps:
        missing[:] = [type(value) in always or (type(value) in perhaps and _is_nan(value)) for value in values]
    return missing


def _is_nan(value: Any) -> bool:
    return value.is_nan() if isinstance(value, Decimal) else bool(value != value)


def label(value: Any) -> str:
    """Return the text of a value that is not missing; 1, 1.0 and a 1 of numpy have the same text.

    Examples
    --------
    >>> [label(value) for value in ("red", 1, 1.0, 0.5, np.float32(0.5), True)]
    ['red', '1', '1', '0.5', '0.5', 'True']
    """
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def seconds(value: Any) -> float:
    """Return a date as seconds since 1970, a duration or a time of day in seconds; exact to a microsecond."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        plain = value.astype("M8[us]" if isinstance(value, np.datetime64) else "m8[us]").item()
        if isinstance(plain, int):  # beyond the years of Python's dates
            return float(in_seconds(np.array([value]))[0])
        value = plain
    if isinstance(value, time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        value = moment - (_EPOCH if moment.tzinfo is None else _EPOCH.replace(tzinfo=UTC))
    return float(value.days * 86400 + value.seconds + value.microseconds / 1e6)


def in_seconds(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Datetimes or durations in seconds. Whole seconds and the rest are converted apart: all units then round alike."""
    unit, count = np.datetime_data(values.dtype)
    if unit in ("Y", "M"):
        values, (unit, count) = values.astype(f"{values.dtype.kind}8[D]"), ("D", 1)
    whole, rest = np.divmod(values.astype(np.int64) * count, _PER_SECOND.get(unit, 1))
    result = whole * float(_SECONDS.get(unit, 1)) + rest / _PER_SECOND.get(unit, 1)
    result[np.isnat(values)] = np.nan
    return result
