"""Columns of a table, read as numbers or as labels whatever they hold, and the values in them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Complex, Real
from typing import Any, Literal
from uuid import UUID

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError, InputValueError

__all__ = [
    "Coded",
    "Column",
    "Labels",
    "NumberKind",
    "Numbers",
    "is_missing",
    "label",
    "objects",
    "read",
    "read_labels",
    "read_numbers",
]

Family = Literal["number", "boolean", "datetime", "duration", "text", "missing"]

_EPOCH = datetime(1970, 1, 1)
_SECONDS = {"W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1}
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
_MAY_BE_NAN = (float, np.floating, Decimal, np.datetime64, np.timedelta64)
NumberKind = Literal["number", "boolean", "datetime", "duration"]
# What a column may hold in transform, by what it held in fit.
_ACCEPTS: dict[NumberKind, tuple[str, ...]] = {
    "number": ("number", "boolean"),
    "boolean": ("boolean", "number"),
    "datetime": ("datetime",),
    "duration": ("duration",),
}


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


@dataclass(frozen=True, slots=True)
class Coded:
    """A column that its table stores as codes.

    Parameters
    ----------
    codes : int array of shape (n,)
        Positions in `values`; -1 is missing.
    values : list
        The different values.
    """

    codes: npt.NDArray[np.integer]
    values: list[Any]


Column = npt.NDArray[Any] | Coded
"""A column as a table returns it: a one-dimensional array of any dtype, or codes."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers.

    Parameters
    ----------
    kind : {"number", "boolean", "datetime", "duration"}
    values : array of shape (n,)
        NaN is missing. Booleans are 0 and 1; datetimes and durations are in seconds.
    """

    kind: NumberKind
    values: npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of categories.

    Parameters
    ----------
    codes : int array of shape (n,)
        Positions in `levels`; -1 is missing.
    levels : list of str
        The different categories as text.
    """

    codes: npt.NDArray[np.integer]
    levels: list[str]


def read(column: Column, name: str) -> Numbers | Labels:
    """Decide whether a column holds numbers or categories, and read it.

    Parameters
    ----------
    column : array of shape (n,) or Coded
    name : str
        Name of the column, for messages.

    Returns
    -------
    Numbers or Labels

    Examples
    --------
    >>> read(np.array([1, None, 2.5], dtype=object), "size")
    Numbers(kind='number', values=array([1. , nan, 2.5]))
    >>> read(np.array([1, None, "many"], dtype=object), "size").levels
    ['1', 'many']
    """
    if isinstance(column, Coded):
        return read_labels(column, name)
    kind = column.dtype.kind
    if kind == "b":
        return Numbers("boolean", column)
    if kind in "iuf":
        return Numbers("number", column)
    if kind in "Mm":
        return Numbers("datetime" if kind == "M" else "duration", in_seconds(column))
    return _read_objects(_as_objects(column, name), name)


def read_labels(column: Column, name: str) -> Labels:
    """Read the labels of a column that was a category in fit; values of any type are compared by their text."""
    if isinstance(column, Coded):
        return _labels_of_codes(column)
    values = _as_objects(column, name)
    families(values, name)
    return _label_objects(values, is_missing(values))


def read_numbers(column: Column, kind: NumberKind, name: str) -> npt.NDArray[Any]:
    """Read the numbers, of shape (n,), of a column that held this kind in fit."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf" and "number" in _ACCEPTS[kind]:
        return column
    if isinstance(column, Coded) and not (column.codes >= 0).any():
        return np.full(column.codes.size, np.nan)
    found = read(column, name)
    if isinstance(found, Numbers) and (found.kind in _ACCEPTS[kind] or np.isnan(found.values).all()):
        return found.values
    raise InputValueError(
        f"Column {name!r} must hold {kind}s, as in fit, got {_first_other(column, _ACCEPTS[kind], name)!r}"
    )


def _first_other(column: Column, accepted: tuple[str, ...], name: str) -> Any:
    """Return the first value that is neither missing nor accepted."""
    if isinstance(column, Coded):
        return next(column.values[code] for code in column.codes if code >= 0)
    values = _as_objects(column, name)
    present = values[~is_missing(values)]
    return next((value for value in present if family(type(value)) not in accepted), present[0])


def _as_objects(column: npt.NDArray[Any], name: str) -> npt.NDArray[np.object_]:
    if column.dtype.kind == "c":
        raise InputValueError(f"Complex data not supported, got dtype {column.dtype} in column {name!r}")
    if column.dtype.kind == "V":
        raise InputTypeError(
            f"A column must hold strings, numbers, booleans or dates, got {column.dtype} in column {name!r}"
        )
    if column.dtype.kind in "Mm":
        return objects(column, column.size)  # astype would turn nanoseconds into plain integers
    return column.astype(object)


def _read_objects(values: npt.NDArray[np.object_], name: str) -> Numbers | Labels:
    families(values, name)
    missing = is_missing(values)
    present = values[~missing]
    found = families(present, name)
    if found == {"datetime"} or found == {"duration"}:
        kind: NumberKind = "datetime" if "datetime" in found else "duration"
        return Numbers(kind, _with_nan(np.array([seconds(value) for value in present]), missing))
    if found <= {"number", "boolean"}:
        return Numbers("boolean" if found == {"boolean"} else "number", _with_nan(_floats(present, name), missing))
    return _label_objects(values, missing)


def _floats(values: npt.NDArray[np.object_], name: str) -> npt.NDArray[np.float64]:
    try:
        return values.astype(np.float64)
    except OverflowError:
        raise InputValueError(f"Input X contains a value too large for float64, in column {name!r}") from None


def _with_nan(present: npt.NDArray[np.float64], missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """The numbers that are present, with NaN in the places of those that are missing."""
    values = np.full(missing.size, np.nan)
    values[~missing] = present
    return values


def _label_objects(values: npt.NDArray[np.object_], missing: npt.NDArray[np.bool_]) -> Labels:
    present = values[~missing].tolist()
    texts = present if set(map(type, present)) == {str} else map(label, present)
    index: dict[str, int] = {}
    codes = np.full(values.size, -1, dtype=np.intp)
    codes[~missing] = [index.setdefault(text, len(index)) for text in texts]
    return Labels(codes, list(index))


def _labels_of_codes(column: Coded) -> Labels:
    """Labels of coded values; values with the same text become one level."""
    index: dict[str, int] = {}
    lookup = [index.setdefault(label(value), len(index)) for value in column.values]
    return Labels(np.array([*lookup, -1], dtype=np.intp)[column.codes], list(index))
