"""Chunks of rows as they are read from the files of a table."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data.arrays import chunk_weight
from prunus.data.arrow import ArrowTable
from prunus.data.columns import Coded, Column
from prunus.data.file_paths import import_arrow
from prunus.data.row_hash import row_hashes
from prunus.data.values import is_missing, objects
from prunus.errors import InputValueError, PrunusError

__all__ = ["Chunk", "RowsInMemory", "plain_text"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some neighboring rows of a file.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The columns in the order of the table, then the target and the weight, if there are any.
    target, weight_column : str or None
        Their names.
    path : str
        The file.
    group : int
        Position of the group of rows among all groups of the table.
    start : int
        Position of the first row in its group.
    """

    batch: Any
    target: str | None
    weight_column: str | None
    path: str
    group: int
    start: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.batch.num_rows)

    @property
    def X(self) -> Any:  # noqa: N802
        """The table without target and weight, a RecordBatch, which shares the memory of the chunk."""
        others = (self.target, self.weight_column)
        return self.batch.select([name for name in self.batch.schema.names if name not in others])

    @property
    def y(self) -> npt.NDArray[Any] | None:
        """The target: numbers, dates or, if it is text, objects of which None is missing."""
        if self.target is None:
            return None
        column = self._column(self.target)
        if not isinstance(column, Coded):
            return column
        values: npt.NDArray[Any] = _levels(column)[column.codes]
        return values

    @property
    def labels(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.integer]]:
        """The different values of the target, and for each row which of them it has; None or NaN is missing."""
        assert self.target is not None
        column = self._column(self.target)
        if isinstance(column, Coded):
            used, codes = np.unique(column.codes, return_inverse=True)
            return _levels(column)[used], codes
        if column.dtype == object:  # booleans of which some are missing
            return column, np.arange(len(column))
        return np.unique(column, return_inverse=True)

    @property
    def weight(self) -> npt.NDArray[np.float64] | None:
        """The weights, which are finite and not negative."""
        if self.weight_column is None:
            return None
        with self.errors():
            return chunk_weight(self._column(self.weight_column), self.n_rows, f"Column {self.weight_column!r}")

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """A hash of each row from the values of all its columns, also of target and weight."""
        return row_hashes(self.batch)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """A context in which messages of errors about the rows also name the file."""
        try:
            yield
        except PrunusError as error:
            raise type(error)(f"{' '.join(str(error).split())} (in {self.path!r})") from error

    def slice(self, start: int, rows: int) -> "Chunk":
        """Some of these rows, at most this many."""
        return replace(self, batch=self.batch.slice(start, rows), start=self.start + start)

    def check_target(self) -> None:
        """Raise an error that names the file if there is a target, and it is missing in some rows."""
        y = self.y
        if y is None:
            return
        values = self.labels[0] if y.dtype == object else y
        missing = is_missing(values) if values.dtype == object else values != values
        if missing.any():
            with self.errors():
                raise InputValueError(f"Column {self.target!r}, the target, must have a value in each row, got none")

    def _column(self, name: str) -> Column:
        return ArrowTable(self.batch, None).column(self.batch.schema.get_field_index(name))


def _levels(column: Coded) -> npt.NDArray[Any]:
    """The levels of a column of text, and None at the end, where the code -1 finds it."""
    return objects([*column.values, None], len(column.values) + 1)


def plain_text(batch: Any) -> Any:
    """A record batch with text where it had categories, as which text of Parquet files is read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> plain_text(pa.record_batch({"color": pa.array(["red", "red"]).dictionary_encode()})).schema.types
    [DataType(string)]
    """
    pa = import_arrow()
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.record_batch(columns, names=batch.schema.names)


class RowsInMemory:
    """Collects rows of chunks of one table."""

    def __init__(self) -> None:
        self.first: Chunk | None = None
        self.batches: list[Any] = []

    def add(self, chunk: Chunk, chosen: npt.NDArray[np.bool_] | None = None) -> None:
        """Keep the chosen rows of a chunk, or all."""
        self.first = self.first or chunk
        if chosen is None:
            self.batches.append(chunk.batch)
        elif chosen.any():
            self.batches.append(chunk.batch.filter(import_arrow().array(chosen)))

    def chunk(self) -> Chunk | None:
        """All rows that were kept as one chunk; None if there are none."""
        if self.first is None or not self.batches:
            return None
        pa = import_arrow()
        alike = all(batch.schema.equals(self.batches[0].schema) for batch in self.batches)
        tables = [pa.Table.from_batches([batch if alike else plain_text(batch)]) for batch in self.batches]
        whole = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries().combine_chunks()
        self.batches = []
        return replace(self.first, batch=whole.to_batches()[0], start=0)
