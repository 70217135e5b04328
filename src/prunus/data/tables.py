"""Tables of users: numpy arrays, lists, frames of pandas and polars, tables of pyarrow; none of them is imported."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data.checks import reading
from prunus.data.columns import Coded, Column, objects
from prunus.errors import InputTypeError, InputValueError

__all__ = ["Table", "arrow_column", "arrow_family", "read_table"]

# Whole numbers of this many digits, and powers of ten up to this one, are exact in double precision.
_EXACT_DIGITS, _EXACT_POWER = 15, 22


@dataclass(frozen=True, slots=True)
class Table:
    """A table of any kind, which is read column by column."""

    data: Any
    names: list[str] | None
    """Names of the columns, or None unless all of them are strings."""
    shape: tuple[int, int]
    """Numbers of rows and of columns."""
    read: Callable[[Any, int], Column]

    @classmethod
    def of_array(cls, array: npt.NDArray[Any]) -> "Table":
        """The table that is a two-dimensional array of any dtype."""
        return cls(array, None, (array.shape[0], array.shape[1]), _array_column)

    @property
    def is_numeric(self) -> bool:
        """Whether the table is an array that as a whole can be cast to floating point."""
        return self.read is _array_column and self.data.dtype.kind in "biuf"

    def column(self, feature: int) -> Column:
        """The values of a column, with the dtype in which they are stored if numpy has it.

        Examples
        --------
        >>> import pyarrow as pa
        >>> read_table(pa.table({"color": ["red", None, "red"]})).column(0)
        Coded(codes=array([ 0, -1,  0], dtype=int32), values=['red'])
        """
        return self.read(self.data, feature)


def read_table(x: Any) -> Table:
    """Recognize what kind of table a user has given. Messages are scikit-learn's, because its checks look for them.

    Parameters
    ----------
    x : array-like, pandas or polars DataFrame, pyarrow Table or RecordBatch of shape (n, n_features)

    Returns
    -------
    Table
    """
    if hasattr(x, "nnz") and hasattr(x, "toarray"):
        raise InputTypeError(
            "Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert to a dense numpy "
            "array; sparse data is not supported"
        )
    if type(x).__name__ == "FileTable":
        raise InputTypeError("X must be a table in memory here, got a FileTable. Use 'fit', or chunks of its 'batches'")
    library, kind = type(x).__module__.partition(".")[0], type(x).__name__
    if kind == "LazyFrame":
        raise InputTypeError("X must hold data, got a LazyFrame. Call '.collect()' first")
    if hasattr(x, "dtype") and (hasattr(x, "iloc") or (library, kind) == ("polars", "Series")):
        raise InputValueError(
            f"Expected a 2-dimensional container but got {type(x)} instead. Pass a DataFrame containing a single row "
            "(i.e. single sample) or a single column (i.e. single feature) instead."
        )
    if hasattr(x, "iloc") and hasattr(x, "columns"):
        table = Table(x, _names(x.columns), x.shape, _pandas_column)
    elif (library, kind) == ("polars", "DataFrame"):
        table = Table(x, _names(x.columns), x.shape, _polars_column)
    elif library == "pyarrow" and kind in ("Table", "RecordBatch"):
        table = Table(x, _names(x.schema.names), (x.num_rows, x.num_columns), arrow_column)
    else:
        table = Table.of_array(_read_array(x))
    _check_size(table)
    return table


def _read_array(x: Any) -> npt.NDArray[Any]:
    """Make a two-dimensional array. In a list that mixes numbers and strings, numbers remain numbers."""
    if isinstance(x, np.ma.MaskedArray):
        x = np.ma.filled(x.astype(np.float64 if x.dtype.kind in "biuf" else object), np.nan)
    with reading("X", "an array or a table whose rows have the same length"):
        array = np.asarray(x)
        if array.dtype.kind in "US" and isinstance(x, Sequence):
            array = np.asarray(x, dtype=object)
    if array.dtype.kind == "c":
        raise InputValueError(f"Complex data not supported\n{array}\n")
    if array.ndim > 2:
        raise InputValueError(f"Found array with dim {array.ndim}, while dim <= 2 is required.")
    if array.ndim < 2:
        what = "scalar" if array.ndim == 0 else "1D"
        raise InputValueError(
            f"Expected 2D array, got {what} array instead:\narray={array}.\nReshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a single "
            "sample."
        )
    return array


def _names(columns: Any) -> list[str] | None:
    names = list(columns)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputValueError(f"Names of columns must be unique, got {repeated[0]!r} more than once")
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        raise InputTypeError(
            "Feature names are only supported if all input features have string names, got some that are not strings. "
            "Use X.columns = X.columns.astype(str)"
        )
    return [str(name) for name in names] if names and all(text) else None


def _check_size(table: Table) -> None:
    for count, what in zip(table.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise InputValueError(
                f"Found array with 0 {what}(s) (shape={table.shape}) while a minimum of 1 is required."
            )


@lru_cache(maxsize=256)
def arrow_family(kind: Any) -> str:
    """Return what a type of pyarrow holds: numbers, booleans, text (or categories), dates, durations, nothing.

    Parameters
    ----------
    kind : pyarrow.DataType

    Returns
    -------
    str
        A family as in `prunus.data.columns`, or the name of a type that no column of a table can have.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [arrow_family(kind) for kind in (pa.int8(), pa.string(), pa.date32(), pa.null(), pa.list_(pa.int8()))]
    ['number', 'text', 'datetime', 'missing', 'list<item: int8>']
    """
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    for family, tests in (
        ("boolean", (types.is_boolean,)),
        ("text", (types.is_string, types.is_large_string, types.is_string_view, types.is_dictionary)),
        ("text", (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)),
        ("datetime", (types.is_date, types.is_timestamp)),
        ("duration", (types.is_duration, types.is_time)),
        ("missing", (types.is_null,)),
    ):
        if any(test(kind) for test in tests):
            return family
    return str(kind)


def _array_column(array: npt.NDArray[Any], feature: int) -> Column:
    return array[:, feature]


def _pandas_column(frame: Any, feature: int) -> Column:
    """Numbers and dates in an array of their dtype, text and categories as codes, others as objects."""
    series = frame.iloc[:, feature]
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype):
        values: npt.NDArray[Any] = series.to_numpy()
    elif dtype.name == "category":
        return Coded(series.cat.codes.to_numpy(), list(series.cat.categories))
    elif dtype.name in ("str", "string") or kind == "U":
        codes, levels = series.factorize()
        return Coded(codes, list(levels))
    elif kind in "iuf":
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    elif kind in "Mm" and not dtype.name.startswith("date32"):
        values = series.to_numpy(dtype=f"{kind}8[us]")
    else:
        values = series.to_numpy(dtype=object)
    return values


def _polars_column(frame: Any, feature: int) -> Column:
    """Numbers and dates in an array of their dtype, others as objects."""
    series = frame.to_series(feature)
    kind = str(series.dtype).partition("(")[0]
    values: npt.NDArray[Any]
    if series.dtype.is_numeric():
        values = series.cast(float).to_numpy()
    elif kind in ("Date", "Datetime", "Duration") or (kind == "Boolean" and series.null_count() == 0):
        values = series.to_numpy()
    else:
        values = objects(series.to_list(), series.len())
    return values


def arrow_column(table: Any, feature: int) -> Column:
    """Numbers without gaps as a view, other numbers and dates in an array, text and categories as codes."""
    from pyarrow import types

    column = table.column(feature)
    if hasattr(column, "num_chunks"):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    kind = column.type
    family = arrow_family(kind)
    if family == "text":
        if types.is_dictionary(kind) and len(column.dictionary) > len(column):
            column = column.dictionary_decode()  # most of its levels are not in these rows
        coded = column if types.is_dictionary(column.type) else column.dictionary_encode()
        return Coded(coded.indices.fill_null(-1).to_numpy(), coded.dictionary.to_pylist())
    if family == "missing":
        return np.full(len(column), np.nan)
    if types.is_decimal(kind):
        return _decimals(column)
    if types.is_time(kind):
        column = _durations(column)
    if family in ("number", "datetime", "duration") or (family == "boolean" and column.null_count == 0):
        values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return values
    return objects(column.to_pylist(), len(column))


def _durations(column: Any) -> Any:
    """Times of day as the time since midnight."""
    import pyarrow as pa

    whole = pa.int32() if pa.types.is_time32(column.type) else pa.int64()
    return column.cast(whole).cast(pa.int64()).cast(pa.duration(column.type.unit))


def _decimals(column: Any) -> npt.NDArray[Any]:
    """Decimals as the nearest numbers in double precision; those with few digits are quotients of exact numbers."""
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_decimal128(kind) and kind.precision <= _EXACT_DIGITS and 0 <= kind.scale <= _EXACT_POWER):
        return objects(column.to_pylist(), len(column))
    low_halves = np.frombuffer(column.buffers()[1], dtype="<i8")[::2]
    values: npt.NDArray[np.float64] = low_halves[column.offset : column.offset + len(column)] / 10.0**kind.scale
    if column.null_count:
        values[column.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return values
