"""Columns of the table: typical values, the values of rows in words, and how rows are distributed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.data.calendar import calendar_labels
from prunus.data.columns import Column, NumberKind, read_labels, read_numbers
from prunus.data.tables import read_table
from prunus.describe.functions import UNNAMED, grouped, typical_value
from prunus.describe.numbers import short_number
from prunus.describe.record import ColumnSplit, Curve
from prunus.describe.words import point_text

__all__ = [
    "BINS",
    "ColumnCounts",
    "TableColumn",
    "count_rows",
    "table_columns",
    "table_values",
    "typical_row",
    "value_text",
]

DIGITS = 4
"""Number of digits of a value in words; digits before the decimal point are always written."""


@dataclass(frozen=True)
class TableColumn:
    """A column of the table, and where its values are in an encoded row.

    Examples
    --------
    >>> from prunus.data import TableEncoder
    >>> encoder = TableEncoder().fit(np.array([["red"], ["blue"], ["red"], ["green"]], dtype=object))
    >>> (column,) = table_columns(encoder.columns_)
    >>> column.name, column.kind, column.typical
    ('x0', 'category', 'red')
    """

    positions: npt.NDArray[np.int64]
    """Positions of its encoded columns, (m,)."""
    feature: int
    """Its position in the table."""
    name: str
    kind: str
    levels: list[str]
    """The levels of a category that the tree tells apart."""
    typical: float | str | None
    """The center of a number, 0 for a boolean, the most frequent level of a category; None if it is missing."""
    encoded: npt.NDArray[np.floating]
    """The typical value, encoded, (m,)."""


def table_columns(columns: Sequence[OutputColumn]) -> list[TableColumn]:
    """The columns of the table, in their order."""
    groups = grouped(columns)
    return [_table_column(columns, groups[feature]) for feature in sorted(groups)]


def _table_column(columns: Sequence[OutputColumn], positions: Sequence[int]) -> TableColumn:
    own = [columns[i] for i in positions]
    plain = next((column for column in own if column.kind != "missing" and not column.piece), own[0])
    levels = [str(column.category) for column in own if column.kind == "category"]
    typical = typical_value(own)
    if isinstance(typical, float):
        encoded = [column.encode_value(typical) for column in own]
    else:
        encoded = [column.encode_level(typical) for column in own]
    return TableColumn(
        positions=np.array(positions),
        feature=plain.feature,
        name=plain.name,
        kind="category" if levels or plain.kind in ("category", "infrequent") else str(plain.kind),
        levels=levels,
        typical=typical,
        encoded=np.array(encoded, dtype=np.float32),
    )


def typical_row(columns: Sequence[TableColumn]) -> npt.NDArray[np.floating]:
    """The encoded row of typical values, (d,), in the precision of encoded rows."""
    row = np.zeros(sum(len(column.positions) for column in columns), dtype=columns[0].encoded.dtype)
    for column in columns:
        row[column.positions] = column.encoded
    return row


def table_values(columns: Sequence[TableColumn], X: Any) -> list[npt.NDArray[np.object_]]:  # noqa: N803
    """The values of each column, (n,): numbers, seconds of times, names of levels, and None for missing values."""
    table = read_table(X)
    return [_values(column, table.column(column.feature)) for column in columns]


def value_text(column: TableColumn, value: float | str | None) -> str:
    """A value of a column in words.

    Examples
    --------
    >>> from prunus.data import TableEncoder
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


BINS = 30


@dataclass(frozen=True)
class ColumnCounts:
    """Numbers of rows with certain values of a column."""

    counts: npt.NDArray[np.float64]
    """Rows in each of `BINS` equal parts of the range that the curve shows; or of each level of a category, and then of
    all other levels if the curve has a value for them."""
    missing: int


def count_rows(estimator: Any, X: Any, curves: tuple[Curve, ...]) -> list[tuple[Curve, ColumnCounts]]:  # noqa: N803
    """The curves, shown where there are rows, and the numbers of rows; an error if X is not as in training."""
    estimator.encoder_.transform(X)
    table = read_table(X)
    return [_counted(curve, table.column(curve.feature)) for curve in curves]


def _counted(curve: Curve, column: Any) -> tuple[Curve, ColumnCounts]:
    if curve.kind == "category":
        if curve.unit is None:
            labels = read_labels(column, curve.name)
        else:
            labels = calendar_labels(read_numbers(column, "datetime", curve.name), curve.unit)
        known = labels.codes[labels.codes >= 0]
        found = dict(zip(labels.levels, np.bincount(known, minlength=len(labels.levels)).tolist(), strict=True))
        named = [found.get(str(level), 0) for level in curve.points]
        others = len(known) - sum(named)
        return curve, ColumnCounts(np.array([*named, others], dtype=np.float64), len(labels.codes) - len(known))
    numbers = np.asarray(read_numbers(column, cast(NumberKind, curve.kind), curve.name), dtype=np.float64)
    present = numbers[~np.isnan(numbers)]
    missing = len(numbers) - len(present)
    if curve.shown is None:  # false and true
        return curve, ColumnCounts(np.array([(present == 0).sum(), (present != 0).sum()], dtype=np.float64), missing)
    low, high = curve.shown
    inside = present[(low <= present) & (present <= high)]
    if len(inside) and inside.min() < inside.max():
        curve = replace(curve, shown=(float(inside.min()), float(inside.max())))
    counts = np.histogram(inside, BINS, curve.shown)[0] if low < high else np.zeros(BINS)
    return curve, ColumnCounts(counts.astype(np.float64), missing)
