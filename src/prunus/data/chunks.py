"""Chunks of rows as they are read from files, their hashes, and which of them are held out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from prunus.data.checks import chunk_weight
from prunus.data.columns import Coded, Column, Labels, is_missing, objects, read
from prunus.data.paths import import_arrow
from prunus.data.tables import Table, arrow_column, read_table
from prunus.errors import InputValueError, PrunusError

__all__ = ["Chunk", "RowsInMemory", "ValidationRows", "held_out", "plain_text", "row_hashes"]

Hashes = npt.NDArray[np.uint64]

_CHUNK = 1 << 13  # rows that are mixed at a time: their numbers stay in the cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_MISSING = np.float64(-1.5e300)  # stands for a missing value
_HALF = np.uint64(32)


def row_hashes(X: Any) -> Hashes:  # noqa: N803
    """Compute a hash of each row from all its values.

    The hash depends on the names of the columns but not on their order, and on values but not on how they are stored:
    1, 1.0 and True are the same number, and numbers that are equal in single precision are the same unless they are
    whole numbers or dates. Missing values of all kinds are the same.

    Parameters
    ----------
    X : array-like, pandas or polars DataFrame, pyarrow Table or RecordBatch of shape (n, n_features)

    Returns
    -------
    uint64 array of shape (n,)

    Examples
    --------
    >>> hashes = row_hashes([[1.0, "red"], [2.5, "blue"], [1, "red"]])
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    """
    table = read_table(X)
    names = table.names if table.names is not None else [f"x{i}" for i in range(table.shape[1])]
    total = np.zeros(table.shape[0], dtype=np.uint64)
    for feature, name in enumerate(names):
        _add_column(table, feature, name, total)
    return _mixed(total)


def held_out(hashes: Hashes, fraction: float, seed: int) -> npt.NDArray[np.bool_]:
    """Choose about a fraction of the rows by their hashes.

    Parameters
    ----------
    hashes : uint64 array of shape (n,)
    fraction : float
        From 0 to 1.
    seed : int
        Another seed chooses other rows.

    Returns
    -------
    bool array of shape (n,)
        Whether a row is chosen; rows with the same hash are on the same side.

    Examples
    --------
    >>> round(float(held_out(np.arange(100_000, dtype=np.uint64), 0.25, seed=0).mean()), 2)
    0.25
    """
    salt = np.uint64(int.from_bytes(blake2b(str(seed).encode(), digest_size=8).digest(), "little"))
    return (_mixed(hashes ^ salt) >> np.uint64(11)).astype(np.float64) < fraction * 2.0**53


def _add_column(table: Table, feature: int, name: str, total: Hashes) -> None:
    """Add a column to the sums of all rows, times an odd number that depends on its name."""
    factor = np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") | 1)
    found = read(table.column(feature), name)
    if isinstance(found, Labels):
        hashes = np.append(_text_hashes(found.levels), _bits(np.array([np.nan]), single=False)) * factor
        total += hashes[found.codes]  # -1, missing, is the last
        return
    for start in range(0, total.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        bits = _bits(found.values[part], single=found.kind == "number")
        np.multiply(bits, factor, out=bits)
        total[part] += bits


def _bits(values: npt.NDArray[Any], *, single: bool) -> Hashes:
    """The bits of numbers in double precision, the upper half mixed into the lower, which may be zeros.

    If numbers are compared in single precision, those that are not whole are rounded.
    """
    numbers = np.add(values, 0.0, dtype=np.float64)  # -0.0 becomes 0.0
    if single and values.dtype == np.float64:
        with np.errstate(over="ignore"):
            np.copyto(numbers, numbers.astype(np.float32), where=np.rint(numbers) != numbers)
    if not np.isfinite(numbers.sum()):
        numbers[np.isnan(numbers)] = _MISSING
    bits: Hashes = numbers.view(np.uint64)
    bits ^= bits >> _HALF
    return bits


def _text_hashes(texts: list[str]) -> Hashes:
    """Hashes of texts: sums of their bytes, each times a random number for its place, and of their lengths."""
    encoded = [text.encode("utf-8", "surrogatepass") + b"\0" for text in texts]
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    content = np.frombuffer(b"".join(encoded), dtype=np.uint8).astype(np.uint64) + np.uint64(1)
    starts = np.cumsum(lengths) - lengths
    places = np.arange(content.size) - np.repeat(starts, lengths)
    factors = _mixed(np.arange(int(lengths.max(initial=0)), dtype=np.uint64) * _GOLDEN + _GOLDEN)
    sums: Hashes = np.add.reduceat(content * factors[places], starts) if texts else np.empty(0, dtype=np.uint64)
    return _mixed(sums)


def _mixed(x: Hashes) -> Hashes:
    """Every bit of a number depends on all bits of what it was (the finalizer of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * _MIX[0]
    x = (x ^ (x >> np.uint64(27))) * _MIX[1]
    return x ^ (x >> np.uint64(31))


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
        return arrow_column(self.batch, self.batch.schema.get_field_index(name))


def _levels(column: Coded) -> npt.NDArray[Any]:
    """The levels of a column of text, and None at the end, where the code -1 finds it."""
    return objects([*column.values, None], len(column.values) + 1)


def plain_text(batch: Any) -> Any:
    """A record batch whose categories are plain text again; text in Parquet files is read as categories.

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


class ValidationRows:
    """Says of each row whether it is held out, by a hash of its values, so that equal rows are on the same side.

    A chunk is hashed when it is asked about for the first time. The answer is kept in one bit a row.

    Parameters
    ----------
    fraction : float
        Share of the rows to hold out, from 0 up to but not including 1.
    seed : int, default=0
        Another seed holds out other rows.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from pyarrow import parquet
    >>> from prunus.data import FileTable
    >>> validation = ValidationRows(0.2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parquet.write_table(pa.table({"size": np.arange(1000.0)}), f"{folder}/sizes.parquet")
    ...     masks = [validation.mask(chunk) for chunk in FileTable(folder).batches()]
    >>> bool(100 < np.concatenate(masks).sum() < 300)
    True
    """

    def __init__(self, fraction: float, seed: int = 0) -> None:
        if not 0 <= fraction < 1:
            raise InputValueError(f"fraction must be at least 0 and less than 1, got {fraction!r}")
        self.fraction = float(fraction)
        self.seed = seed
        self.known: dict[tuple[int, int], npt.NDArray[np.uint8]] = {}

    def mask(self, chunk: Chunk) -> npt.NDArray[np.bool_]:
        """Return a bool array that says which rows of a chunk are held out."""
        place = (chunk.group, chunk.start)
        if not self.fraction:
            return np.zeros(chunk.n_rows, dtype=bool)
        if place not in self.known:
            self.known[place] = np.packbits(held_out(chunk.hashes, self.fraction, self.seed))
        return np.unpackbits(self.known[place], count=chunk.n_rows).view(bool)

    def merge(self, other: "ValidationRows") -> Self:
        """Add what another process has found for other chunks of the same table.

        Parameters
        ----------
        other : ValidationRows
            With the same fraction and seed.

        Returns
        -------
        ValidationRows
            The object itself.
        """
        if (other.fraction, other.seed) != (self.fraction, self.seed):
            raise InputValueError("Validation rows must have the same fraction and seed to be merged")
        self.known.update(other.known)
        return self
