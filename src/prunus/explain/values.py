"""Values of rows as they stand in the table, and typical values of its columns."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn, TableEncoder
from prunus.data.columns import Column, NumberKind, read_labels, read_numbers
from prunus.data.tables import read_table
from prunus.explain.column_splits import ColumnSplit
from prunus.explain.curves import UNNAMED, grouped, typical_value
from prunus.explain.digits import short_number
from prunus.explain.phrases import point_text

__all__ = ["TableColumn", "table_columns", "table_values", "typical_row", "value_text"]

DIGITS = 4
"""Number of digits of a value in words; digits before the decimal point are always written."""


class TableColumn:
    """A column of the table, by its encoded columns.

    Examples
    --------
    >>> encoder = TableEncoder().fit(np.array([["red"], ["blue"], ["red"], ["green"]], dtype=object))
    >>> (column,) = table_columns(encoder.columns_)
    >>> column.name, column.kind, column.typical
    ('x0', 'category', 'red')
    """

    def __init__(self, columns: Sequence[OutputColumn], positions: Sequence[int]) -> None:
        own = [columns[i] for i in positions]
        plain = next((column for column in own if column.kind != "missing" and not column.piece), own[0])
        levels = [column for column in own if column.kind == "category"]
        self.positions = np.array(positions)
        """Positions of its encoded columns, (m,)."""
        self.feature = plain.feature
        """Its position in the table."""
        self.name = plain.name
        self.kind = "category" if levels or plain.kind in ("category", "infrequent") else str(plain.kind)
        self.levels = [str(column.category) for column in levels]
        """The levels of a category that have a column each."""
        self.typical = typical_value(own)
        """The center of a number, 0 for a boolean, the most frequent level of a category; None if it is missing."""
        self.encoded = np.zeros(len(own), dtype=np.float32)
        """The typical value, encoded, (m,)."""
        if isinstance(self.typical, float):
            self.encoded[:] = [column.encode_value(self.typical) for column in own]
        else:
            self.encoded[:] = [column.encode_level(self.typical) for column in own]


def table_columns(columns: Sequence[OutputColumn]) -> list[TableColumn]:
    """The columns of the table, in their order."""
    groups = grouped(columns)
    return [TableColumn(columns, groups[feature]) for feature in sorted(groups)]


def typical_row(columns: Sequence[TableColumn]) -> npt.NDArray[np.float32]:
    """The encoded row of typical values, (d,)."""
    row = np.zeros(sum(len(column.positions) for column in columns), dtype=np.float32)
    for column in columns:
        row[column.positions] = column.encoded
    return row


def table_values(encoder: TableEncoder, X: Any) -> list[npt.NDArray[np.object_]]:  # noqa: N803
    """The values of each column, (n,): numbers, seconds of times, names of levels, and None for missing values."""
    table = read_table(X)
    return [_values(column, table.column(column.feature)) for column in table_columns(encoder.columns_)]


def value_text(column: TableColumn, value: float | str | None) -> str:
    """A value of a column in words.

    Examples
    --------
    >>> (column,) = table_columns(TableEncoder().fit([[1.0], [2.0]]).columns_)
    >>> value_text(column, 1.23456), value_text(column, None)
    ('1.235', 'missing')
    """
    if value is None:
        return "missing"
    if value is UNNAMED:
        return "another level"
    if column.kind == "boolean":
        return "true" if value else "false"
    return point_text(ColumnSplit(column.name, column.kind), value, lambda x: short_number(x, DIGITS))


def _values(own: TableColumn, column: Column) -> npt.NDArray[np.object_]:
    if own.kind == "category":
        labels = read_labels(column, own.name)
        levels: npt.NDArray[np.object_] = np.array([*labels.levels, None], dtype=object)
        return cast(npt.NDArray[np.object_], levels[labels.codes])
    numbers = np.asarray(read_numbers(column, cast(NumberKind, own.kind), own.name), dtype=np.float64)
    values = numbers.astype(object)
    values[np.isnan(numbers)] = None
    return values
