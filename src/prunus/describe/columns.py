"""Columns of the table: their typical values, the values of rows, and these in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.data.calendar import Unit, calendar_labels
from prunus.data.columns import Labels, NumberKind, read_labels, read_numbers
from prunus.data.tables import read_table
from prunus.describe.functions import UNNAMED, grouped, typical_value
from prunus.describe.numbers import short_number
from prunus.describe.record import ColumnSplit, LearnedTree, SearchedTree, TreeDescription
from prunus.describe.words import point_text
from prunus.search.columns import KnownColumn

__all__ = ["TableColumn", "TableValues", "counted_levels", "table_columns", "typical_row", "value_text"]

DIGITS = 4
"""Number of digits of a value in words; digits before the decimal point are always written."""


@dataclass(frozen=True)
class TableColumn:
    """A column of the table, and where its values are in a row as the tree reads it."""

    positions: npt.NDArray[np.int64]
    """Positions of its encoded columns, (m,); its own position in a readable tree, which encodes nothing."""
    feature: int
    """Its position in the table."""
    name: str
    kind: str
    levels: list[str]
    """The levels of a category that the tree tells apart."""
    typical: float | str | None
    """The center of a number, 0 for a boolean, the most frequent level of a category; None if it is missing."""
    encoded: npt.NDArray[np.floating]
    """The typical value as the tree reads it, (m,)."""


def table_columns(tree: TreeDescription) -> list[TableColumn]:
    """The columns of the table, in their order.

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> from prunus.describe.read import describe
    >>> X = np.array([["red"], ["blue"], ["red"], ["green"]], dtype=object)
    >>> tree = ArgminTreeRegressor(depth=1, max_epochs=1, random_state=0).fit(X, [1.0, 2.0, 3.0, 4.0])
    >>> (column,) = table_columns(describe(tree))
    >>> column.name, column.kind, column.typical
    ('x0', 'category', 'red')
    """
    if isinstance(tree, SearchedTree):
        return [_known_column(feature, column) for feature, column in enumerate(tree.known)]
    assert isinstance(tree, LearnedTree)
    groups = grouped(tree.inputs)
    return [_encoded_column(tree.inputs, groups[feature]) for feature in sorted(groups)]


def _encoded_column(inputs: Sequence[OutputColumn], positions: Sequence[int]) -> TableColumn:
    own = [inputs[i] for i in positions]
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


def _known_column(feature: int, column: KnownColumn) -> TableColumn:
    code = column.typical
    if column.kind == "category":
        code = None if code is None else float(column.levels.index(str(code)))
    encoded = np.array([np.nan if code is None else code], dtype=np.float64)
    levels = list(column.levels)
    return TableColumn(np.array([feature]), feature, column.name, column.kind, levels, column.typical, encoded)


def typical_row(columns: Sequence[TableColumn]) -> npt.NDArray[np.floating]:
    """The row of typical values as the tree reads it, (d,)."""
    row = np.zeros(sum(len(column.positions) for column in columns), dtype=columns[0].encoded.dtype)
    for column in columns:
        row[column.positions] = column.encoded
    return row


def value_text(column: TableColumn, value: float | str | None) -> str:
    """A value of a column in words, such as "1.235", "2021-03-04", "red" or "missing"."""
    if value is None:
        return "missing"
    if value is UNNAMED:
        return "another level"
    if column.kind == "boolean":
        return "true" if value else "false"
    return point_text(ColumnSplit(column.name, column.kind), value, lambda x: short_number(x, DIGITS))


class TableValues:
    """The values of the rows of a table as numbers or levels, each column read once."""

    def __init__(self, X: Any, columns: Sequence[TableColumn]) -> None:  # noqa: N803
        self.table = read_table(X)
        self.columns = {column.feature: column for column in columns}
        self.known: dict[int, Any] = {}

    def numbers(self, feature: int) -> npt.NDArray[np.float64]:
        """The numbers of a column, seconds for times, with NaN for missing values."""
        if feature not in self.known:
            own = self.columns[feature]
            found = read_numbers(self.table.column(feature), cast(NumberKind, own.kind), own.name)
            self.known[feature] = np.asarray(found, dtype=np.float64)
        return cast(npt.NDArray[np.float64], self.known[feature])

    def levels(self, feature: int, unit: Unit | None = None) -> Labels:
        """The levels of a column that is a category or a boolean, or of this unit of a date; the code -1 is missing."""
        if unit is not None:
            return calendar_labels(self.numbers(feature), unit)
        own = self.columns[feature]
        if own.kind == "boolean":
            numbers = self.numbers(feature)
            return Labels(np.where(np.isnan(numbers), -1, numbers > 0).astype(np.int64), ["false", "true"])
        if feature not in self.known:
            self.known[feature] = read_labels(self.table.column(feature), own.name)
        return cast(Labels, self.known[feature])

    def values(self, feature: int) -> npt.NDArray[np.object_]:
        """The values of a column, (n,): numbers, seconds of times, names of levels, and None for missing values."""
        if self.columns[feature].kind == "category":
            labels = self.levels(feature)
            names: npt.NDArray[np.object_] = np.array([*labels.levels, None], dtype=object)
            return cast(npt.NDArray[np.object_], names[labels.codes])
        numbers = self.numbers(feature)
        values = numbers.astype(object)
        values[np.isnan(numbers)] = None
        return values


def counted_levels(labels: Labels) -> dict[str | None, int]:
    """How many rows have each level; the key of missing values is None."""
    counts = np.bincount(labels.codes.astype(np.int64) + 1, minlength=len(labels.levels) + 1).tolist()
    return dict(zip([None, *labels.levels], counts, strict=True))
