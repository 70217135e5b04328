"""Tables of users: numpy arrays, lists, frames of pandas and polars, tables of pyarrow; none of them is imported."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from prunus.data.arrays import reading
from prunus.data.arrow import ArrowTable
from prunus.data.columns import Coded, Column
from prunus.data.values import objects
from prunus.errors import InputTypeError, InputValueError

__all__ = ["ArrayTable", "Table", "read_table"]


class Table(Protocol):
    """A table whose rows are read in chunks."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""

    @property
    def names(self) -> list[str] | None:
        """Names of the columns, or None unless all of them are strings."""

    def rows(self, start: int, stop: int) -> "Table":
        """A view of the rows from start to stop."""

    def column(self, feature: int) -> Column:
        """The values of a column, with the dtype in which they are stored if numpy has it."""


@dataclass(frozen=True, slots=True)
class ArrayTable:
    """A table that is a two-dimensional numpy array of any dtype."""

    array: npt.NDArray[Any]
    names: None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.array.shape[0], self.array.shape[1]

    @property
    def numeric(self) -> bool:
        """Whether the array as a whole can be cast to floating point."""
        return self.array.dtype.kind in "biuf"

    def rows(self, start: int, stop: int) -> "ArrayTable":
        """A view of the rows from start to stop."""
        return ArrayTable(self.array[start:stop])

    def column(self, feature: int) -> Column:
        """A view of a column."""
        return self.array[:, feature]


@dataclass(frozen=True, slots=True)
class PandasTable:
    """A table that is a DataFrame of pandas."""

    frame: Any
    names: list[str] | None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.frame.shape[0], self.frame.shape[1]

    def rows(self, start: int, stop: int) -> "PandasTable":
        """A view of the rows from start to stop."""
        return PandasTable(self.frame.iloc[start:stop], self.names)

    def column(self, feature: int) -> Column:
        """A column: numbers and dates in an array of their dtype, text and categories as codes, others as objects."""
        series = self.frame.iloc[:, feature]
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


@dataclass(frozen=True, slots=True)
class PolarsTable:
    """A table that is a DataFrame of polars."""

    frame: Any
    names: list[str] | None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.frame.shape[0], self.frame.shape[1]

    def rows(self, start: int, stop: int) -> "PolarsTable":
        """A view of the rows from start to stop."""
        return PolarsTable(self.frame.slice(start, stop - start), self.names)

    def column(self, feature: int) -> Column:
        """A column: numbers and dates in an array of their dtype, others as objects."""
        series = self.frame.to_series(feature)
        kind = str(series.dtype).partition("(")[0]
        values: npt.NDArray[Any]
        if series.dtype.is_numeric():
            values = series.cast(float).to_numpy()
        elif kind in ("Date", "Datetime", "Duration") or (kind == "Boolean" and series.null_count() == 0):
            values = series.to_numpy()
        else:
            values = objects(series.to_list(), series.len())
        return values


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
        table: Table = PandasTable(x, _names(x.columns))
    elif (library, kind) == ("polars", "DataFrame"):
        table = PolarsTable(x, _names(x.columns))
    elif library == "pyarrow" and kind in ("Table", "RecordBatch"):
        table = ArrowTable(x, _names(x.schema.names))
    else:
        table = ArrayTable(_read_array(x))
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
