"""An encoder that is learned from a table in chunks, by one or several processes, in bounded memory."""

from copy import copy
from dataclasses import asdict
from typing import Any, Self

from prunus.data.arrays import chunk_weight
from prunus.data.column_statistics import ColumnStatistics
from prunus.data.encoder import TableEncoder
from prunus.data.outputs import OutputColumn
from prunus.data.tables import read_table
from prunus.errors import InputValueError

__all__ = ["TableStatistics"]

_EXACT_ROWS = 100_000
_EXACT_VALUES = 10_000_000
"""Tables of this many rows, or values if they are wide, are kept, so that they are encoded as if they came at once."""
_FEWEST_LEVELS = 100_000


class TableStatistics:
    """What an encoder learns of a table that arrives in chunks.

    Tables of up to 100,000 rows (fewer if there are more than 100 columns) give the same encoder as `TableEncoder.fit`.
    Beyond that, quantiles come from a sketch (see `prunus.data.sketch`): the share of rows below a center, a quartile
    or an edge of a piece is wrong by less than 0.5 %. Of a category, the 100,000 most frequent levels are counted.
    Statistics can be pickled, and those of several processes can be merged.

    Parameters
    ----------
    encoder : TableEncoder, optional
        Its options are those of the encoder to be learned; it is not changed.

    Examples
    --------
    >>> table = [[1.5, "red"], [2.5, "blue"], [None, "red"]]
    >>> statistics = TableStatistics().add(table[:2]).merge(TableStatistics().add(table[2:]))
    >>> statistics.encoder().columns_ == TableEncoder().fit(table).columns_
    True
    """

    def __init__(self, encoder: TableEncoder | None = None) -> None:
        self.blank = copy(encoder if encoder is not None else TableEncoder()).fit([[0.0]])  # fit checks the options
        self.names: list[str] | None = None
        self.columns: list[ColumnStatistics] = []
        self.rows = 0  # those of positive weight

    def add(self, X: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn from further rows.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame, pyarrow Table or RecordBatch of shape (n, n_features)
            Some rows of the table.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; rows of weight 0 are ignored.

        Returns
        -------
        TableStatistics
            The statistics themselves.
        """
        table = read_table(X)
        if not self.columns:
            self._start(table.names, table.shape[1])
        self._check_columns(table.names, table.shape[1])
        weight = chunk_weight(sample_weight, table.shape[0])
        kept = None if weight is None or (weight > 0).all() else weight > 0
        if weight is not None and kept is not None:
            weight = weight[kept]
        self.rows += table.shape[0] if weight is None else weight.size
        for feature, column in enumerate(self.columns):
            column.add(table.column(feature), kept, weight)
        return self

    def merge(self, other: "TableStatistics") -> Self:
        """Add all that other statistics have learned, for example those of another process.

        Parameters
        ----------
        other : TableStatistics
            Statistics of other rows of the same table, with the same options; they are not changed.

        Returns
        -------
        TableStatistics
            The statistics themselves.
        """
        if other.columns and not self.columns:
            self._start(other.names, len(other.columns))
        if other.columns:
            self._check_columns(other.names, len(other.columns))
        for column, of_other in zip(self.columns, other.columns, strict=bool(other.columns)):
            column.merge(of_other)
        self.rows += other.rows
        return self

    def encoder(self) -> TableEncoder:
        """Return an encoder that has learned from all rows so far."""
        if not self.rows:
            raise InputValueError("A table must have rows of positive weight, got none")
        options = self.blank.get_state()
        outputs: list[OutputColumn] = []
        flags: list[OutputColumn] = []
        for feature, column in enumerate(self.columns):
            of_feature, of_missing = column.describe(
                feature, options["max_categories"], options["clip"], options["pieces"]
            )
            outputs += of_feature
            flags += of_missing
        learned = {
            "n_features_in": len(self.columns),
            "feature_names_in": self.names,
            "columns": [asdict(output) for output in outputs + flags],
        }
        return TableEncoder.from_state(options | learned)

    def _start(self, names: list[str] | None, count: int) -> None:
        self.names = names
        exact_rows = min(_EXACT_ROWS, _EXACT_VALUES // count)
        levels = max(_FEWEST_LEVELS, 2 * int(self.blank.max_categories))
        labels = names if names is not None else [f"x{i}" for i in range(count)]
        self.columns = [ColumnStatistics(name, exact_rows, levels) for name in labels]

    def _check_columns(self, names: list[str] | None, count: int) -> None:
        if count != len(self.columns) or names != self.names:
            raise InputValueError(
                f"All chunks must have the same columns, got {names or count} after {self.names or len(self.columns)}"
            )
