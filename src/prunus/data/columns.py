"""A column of a table of any kind, read as numbers or as labels."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from prunus.data.values import families, family, in_seconds, is_missing, label, objects, seconds
from prunus.errors import InputTypeError, InputValueError

__all__ = ["Coded", "Column", "Labels", "NumberKind", "Numbers", "read", "read_labels", "read_numbers"]

NumberKind = Literal["number", "boolean", "datetime", "duration"]

# What a column may hold in transform, by what it held in fit.
_ACCEPTS: dict[NumberKind, tuple[str, ...]] = {
    "number": ("number", "boolean"),
    "boolean": ("boolean", "number"),
    "datetime": ("datetime",),
    "duration": ("duration",),
}


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
