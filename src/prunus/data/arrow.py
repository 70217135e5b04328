"""Tables and record batches of pyarrow, which is imported only if somebody has one."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data.columns import Coded, Column
from prunus.data.values import objects

__all__ = ["ArrowTable", "arrow_family"]

# Whole numbers of this many digits, and powers of ten up to this one, are exact in double precision.
_EXACT_DIGITS, _EXACT_POWER = 15, 22


@dataclass(frozen=True, slots=True)
class ArrowTable:
    """A table that is a Table or a RecordBatch of pyarrow."""

    data: Any
    names: list[str] | None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.data.num_rows, self.data.num_columns

    def rows(self, start: int, stop: int) -> "ArrowTable":
        """A view of the rows from start to stop."""
        return ArrowTable(self.data.slice(start, stop - start), self.names)

    def column(self, feature: int) -> Column:
        """A column: numbers without gaps as a view, other numbers and dates in an array, text and categories as codes.

        Examples
        --------
        >>> import pyarrow as pa
        >>> ArrowTable(pa.table({"color": ["red", None, "red"]}), ["color"]).column(0)
        Coded(codes=array([ 0, -1,  0], dtype=int32), values=['red'])
        """
        column = self.data.column(feature)
        if hasattr(column, "num_chunks"):
            column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        return _read(column)


@lru_cache(maxsize=256)
def arrow_family(kind: Any) -> str:
    """Return what a type of pyarrow holds: numbers, booleans, text (or categories), dates, durations, nothing.

    Parameters
    ----------
    kind : pyarrow.DataType

    Returns
    -------
    str
        A family as in `prunus.data.values`, or the name of a type that no column of a table can have.

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


def _read(column: Any) -> Column:
    from pyarrow import types

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
