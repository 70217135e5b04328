"""What users hand over as a table: numpy arrays, lists, pandas and polars frames, without importing the latter two."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from prunus.data.columns import Coded, Column
from prunus.data.values import objects
from prunus.errors import InputTypeError, InputValueError

__all__ = ["ArrayTable", "Table", "read_table"]


class Table(Protocol):
    """Rows and columns, read in pieces."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""

    @property
    def names(self) -> list[str] | None:
        """Names of the columns, if all are strings."""

    def rows(self, start: int, stop: int) -> "Table":
        """These rows; a view."""

    def column(self, feature: int) -> Column:
        """One column, as close to how it is stored as numpy can say."""


@dataclass(frozen=True, slots=True)
class ArrayTable:
    """Two-dimensional numpy array of any dtype."""

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
        """These rows; a view."""
        return ArrayTable(self.array[start:stop])

    def column(self, feature: int) -> Column:
        """A view."""
        return self.array[:, feature]


@dataclass(frozen=True, slots=True)
class PandasTable:
    """DataFrame of pandas."""

    frame: Any
    names: list[str] | None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.frame.shape[0], self.frame.shape[1]

    def rows(self, start: int, stop: int) -> "PandasTable":
        """These rows; a view."""
        return PandasTable(self.frame.iloc[start:stop], self.names)

    def column(self, feature: int) -> Column:
        """Numbers and dates as such, text and categories as codes, anything else as objects."""
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
    """DataFrame of polars."""

    frame: Any
    names: list[str] | None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.frame.shape[0], self.frame.shape[1]

    def rows(self, start: int, stop: int) -> "PolarsTable":
        """These rows; a view."""
        return PolarsTable(self.frame.slice(start, stop - start), self.names)

    def column(self, feature: int) -> Column:
        """Numbers and dates as such, anything else as objects."""
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
    """Recognise a table; errors use scikit-learn's words, which its users and its checks know."""
    if hasattr(x, "nnz") and hasattr(x, "toarray"):
        raise InputTypeError(
            "Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert to a dense numpy "
            "array; sparse data is not supported"
        )
    library, kind = type(x).__module__.partition(".")[0], type(x).__name__
    if kind == "LazyFrame":
        raise InputTypeError("X must hold data, however: it is a LazyFrame. Call '.collect()' first")
    if hasattr(x, "dtype") and (hasattr(x, "iloc") or (library, kind) == ("polars", "Series")):
        raise InputValueError(
            f"Expected a 2-dimensional container but got {type(x)} instead. Pass a DataFrame containing a single row "
            "(i.e. single sample) or a single column (i.e. single feature) instead."
        )
    if hasattr(x, "iloc") and hasattr(x, "columns"):
        table: Table = PandasTable(x, _names(x.columns))
    elif (library, kind) == ("polars", "DataFrame"):
        table = PolarsTable(x, _names(x.columns))
    else:
        table = ArrayTable(_read_array(x))
    _check_size(table)
    return table


def _read_array(x: Any) -> npt.NDArray[Any]:
    """Array of two dimensions; a list that mixes numbers and strings keeps both."""
    if isinstance(x, np.ma.MaskedArray):
        x = np.ma.filled(x.astype(np.float64 if x.dtype.kind in "biuf" else object), np.nan)
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
        raise InputValueError(f"Names of columns must be unique, however: {repeated[0]!r} occurs more than once")
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        raise InputTypeError(
            "Feature names are only supported if all input features have string names, however: some are not. "
            "Use X.columns = X.columns.astype(str)"
        )
    return [str(name) for name in names] if names and all(text) else None


def _check_size(table: Table) -> None:
    for count, what in zip(table.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise InputValueError(
                f"Found array with 0 {what}(s) (shape={table.shape}) while a minimum of 1 is required."
            )
