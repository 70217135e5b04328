"""Tables in files that do not fit into memory."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.data.chunks import Chunk, RowsInMemory, held_out
from prunus.data.formats import Part, open_part
from prunus.data.paths import file_errors, find_files
from prunus.data.shuffling import MEMORY_LIMIT, Arrays, chunk_rows_of, read_ahead, shuffle_rows
from prunus.data.tables import arrow_family
from prunus.errors import InputTypeError, InputValueError

__all__ = ["BYTES_OF_A_VALUE", "FileTable"]

BYTES_OF_A_VALUE = 32
"""Bytes that a fit in memory takes for each value of a table: as it is read, encoded, divided, and as an input."""
_FAMILIES = ("number", "boolean", "text", "datetime", "duration", "missing")


class Group(NamedTuple):
    """Rows that lie together: a row group of Parquet, a record batch of Arrow, or a block of a CSV file."""

    part: int
    """Position of the file."""
    place: int
    """Position in the file."""
    rows: int


class FileTable:
    """A table in one or several files, which may be larger than memory. Its rows are read in chunks.

    When it is made, only names and types of columns are read. All files must have the same columns, in any order, and a
    column must hold the same in all of them: numbers, booleans, text, dates or durations.

    Parameters
    ----------
    paths : str, path or list of these
        Parquet, Arrow (or Feather) and CSV files; CSV files may be compressed. Also folders, patterns such as
        ``"parts/*.parquet"``, and addresses such as ``"s3://bucket/folder"`` that pyarrow or fsspec opens.
    target : str, optional
        Name of the column to be predicted.
    weight : str, optional
        Name of the column with the weights of the rows.
    columns : list of str, optional
        Names of the columns to learn from; by default all but target and weight.
    memory_limit : float, default=1e9
        Bytes that a fit to the table may take for its data, besides the program itself. A table that takes less is read
        into memory, and the fit is the same as with a DataFrame; a larger one is read again in each epoch.

    Attributes
    ----------
    columns : list of str
        Names of the columns without target and weight.
    target, weight : str or None
    memory_limit : float
    paths : list of str
        All files.
    chunk_rows : int
        Largest number of rows of a chunk: 65,536, or fewer if there are more than 64 columns.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from pyarrow import parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sizes = pa.table({"size": [1.5, 2.5, 4.0], "color": ["red", None, "red"], "price": [1, 2, 3]})
    ...     parquet.write_table(sizes, f"{folder}/sizes.parquet")
    ...     table = FileTable(folder, target="price")
    ...     print(table)
    ...     print([chunk.y.tolist() for chunk in table.batches()])
    FileTable of 1 file with 3 rows, columns 'size', 'color', target 'price'
    [[1, 2, 3]]
    """

    def __init__(
        self,
        paths: Any,
        *,
        target: str | None = None,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        memory_limit: float = MEMORY_LIMIT,
    ) -> None:
        limit: Any = memory_limit
        if isinstance(limit, bool) or not isinstance(limit, Real) or not float(limit) > 0:
            raise InputValueError(f"memory_limit must be a positive number of bytes, got {limit!r}")
        self.memory_limit = float(memory_limit)
        files = find_files(paths)
        self.paths = [file.path for file in files]
        self.target, self.weight = target, weight
        self._parts: list[Part] = [open_part(file) for file in files]
        self.columns = _choose(self._parts[0], target, weight, columns)
        self._used = [*self.columns, *(name for name in (target, weight) if name is not None)]
        self.chunk_rows = chunk_rows_of(len(self._used))
        _check_names(self._parts, self._used, all_columns=columns is None)
        self._check_types()
        if all(part.counts_itself for part in self._parts):
            len(self)

    def __len__(self) -> int:
        return sum(group.rows for group in self.groups)

    def __repr__(self) -> str:
        known = "groups" in self.__dict__  # counting the rows of other files may take long
        shown = ", ".join(map(repr, self.columns)) if len(self.columns) <= 5 else f"{len(self.columns)} columns"
        parts = [
            f"FileTable of {len(self.paths)} file{'s' * (len(self.paths) > 1)}",
            f" with {len(self):,} rows, " if known else " with ",
            shown if len(self.columns) > 5 else f"column{'s' * (len(self.columns) > 1)} {shown}",
            *(f", {what} {name!r}" for what, name in (("target", self.target), ("weight", self.weight)) if name),
        ]
        return "".join(parts)

    @cached_property
    def groups(self) -> list[Group]:
        """The groups of rows of all files. Those of CSV files are found by reading the files once."""
        found = []
        for i, part in enumerate(self._parts):
            with file_errors(part.file.path):
                counts = part.count(self._used)
            found += [Group(i, j, rows) for j, rows in enumerate(counts) if rows]
        self._check_types()
        if not found:
            raise InputValueError(f"A table must have at least one row, got none in {self.paths[0]!r} and all others")
        return found

    def batches(self, *, part: tuple[int, int] = (0, 1), ahead: int = 2, first: int = 0) -> Iterator[Chunk]:
        """Read all rows, in the order of the files.

        Parameters
        ----------
        part : (int, int), default=(0, 1)
            Read only the k-th of this many parts of the table: ``(k, of)``. The parts are groups of rows; together they
            are the table, and no row is in two of them.
        ahead : int, default=2
            Number of chunks that a thread reads ahead; 0 for no thread.
        first : int, default=0
            Number of the group of rows to begin with; those before it are left out.

        Yields
        ------
        Chunk
            At most `chunk_rows` rows with ``X``, a RecordBatch of pyarrow, ``y``, ``weight`` and ``hashes``.
        """
        chunks = self._chunks(number for number in self._share(np.arange(len(self.groups)), part) if number >= first)
        yield from read_ahead(chunks, ahead) if ahead else chunks

    @property
    def bytes_in_memory(self) -> int:
        """Bytes that a fit to all rows takes if they are read into memory."""
        return len(self) * len(self.columns) * BYTES_OF_A_VALUE

    @property
    def fits_into_memory(self) -> bool:
        """Whether a fit reads the whole table into memory."""
        return self.bytes_in_memory <= self.memory_limit

    def rows_in_memory(self, most: int, share: float = 0.1) -> int:
        """Return how many rows may be kept in memory during a fit that reads the table in each epoch.

        Parameters
        ----------
        most : int
            The result is at most this.
        share : float, default=0.1
            Share of the memory for these rows. A value takes up to 8 bytes as it is read, and is encoded besides.
        """
        return max(1_000, min(most, int(share * self.memory_limit / (12 * len(self.columns)))))

    def draw(self, most: int, seed: int) -> Chunk:
        """Read about this many rows into memory, or all; they are drawn by their hashes.

        Parameters
        ----------
        most : int
            Number of rows.
        seed : int
            Other seeds draw other rows.

        Returns
        -------
        Chunk
        """
        share = most / len(self)
        found = self.collect(None if share >= 1 else lambda chunk: held_out(chunk.hashes, share, seed))
        if found is None:
            raise InputValueError("A table must have more rows to draw some of them, got too few")
        return found

    def collect(self, choose: Callable[[Chunk], npt.NDArray[np.bool_]] | None = None) -> Chunk | None:
        """Read rows into memory.

        Parameters
        ----------
        choose : callable, optional
            Says which rows of a chunk are meant; by default all are.

        Returns
        -------
        Chunk or None
            The rows in the order of the files; None if there are none.
        """
        kept = RowsInMemory()
        for chunk in self.batches():
            kept.add(chunk, None if choose is None else choose(chunk))
        return kept.chunk()

    def shuffled(
        self,
        encode: Callable[[Chunk], Sequence[npt.NDArray[Any]]],
        *,
        seed: int,
        epoch: int,
        buffer_rows: int,
        chunk_rows: int | None = None,
        part: tuple[int, int] = (0, 1),
        ahead: int = 2,
    ) -> Iterator[Arrays]:
        """Read all rows once, encoded and in a random order that depends on seed and epoch.

        The groups of rows are read in a random order, and their rows pass through a buffer, from which they are taken
        at random. A thread reads, encodes and shuffles.

        Parameters
        ----------
        encode : callable
            Makes arrays with one entry for each row from a `Chunk`, or for some of the rows. They have the same dtypes
            and widths for all chunks.
        seed, epoch : int
            Not negative.
        buffer_rows : int
            Rows of the buffer; `prunus.data.shuffling.buffer_rows` computes it from a limit of memory.
        chunk_rows : int, optional
            Rows of each result but the last; by default as many as a chunk has.
        part : (int, int), default=(0, 1)
            Read only the k-th of this many parts, ``(k, of)``, which are other ones in each epoch.
        ahead : int, default=2
            Number of results that the thread makes ahead; 0 for no thread.

        Yields
        ------
        tuple of arrays
            What `encode` made, with the rows in random order.
        """
        rng = np.random.default_rng([seed, epoch])
        order = self._share(rng.permutation(len(self.groups)), part)
        rng = np.random.default_rng([seed, epoch, *part])
        encoded = (_encoded(encode, chunk) for chunk in self._chunks(order))
        buffer_rows = min(buffer_rows, self._rows_of(order))
        chunks = shuffle_rows(encoded, buffer_rows, chunk_rows or self.chunk_rows, rng)
        yield from read_ahead(chunks, ahead) if ahead else chunks

    def _chunks(self, order: Iterable[int]) -> Iterator[Chunk]:
        for number in order:
            group = self.groups[number]
            part = self._parts[group.part]
            start = 0
            with file_errors(part.file.path):
                for batch in part.read(group.place, self._used, self.chunk_rows):
                    if batch.num_rows:
                        columns = batch if batch.schema.names == self._used else batch.select(self._used)
                        yield Chunk(columns, self.target, self.weight, part.file.path, int(number), start)
                    start += batch.num_rows

    def _share(self, order: npt.NDArray[np.integer], part: tuple[int, int]) -> npt.NDArray[np.integer]:
        k, of = part
        if not 0 <= k < of:
            raise InputValueError(f"part must be (k, of) with 0 <= k < of, got {part!r}")
        if of > len(order):
            raise InputValueError(
                f"A table that is read in {of} parts must have as many groups of rows, got {len(order)}. Write it to "
                "more files, or with smaller row groups"
            )
        return order[k::of]

    def _rows_of(self, order: Iterable[int]) -> int:
        return sum(self.groups[number].rows for number in order)

    def _check_types(self) -> None:
        """Check that each column holds the same in all files whose types are known."""
        first: dict[str, tuple[str, str]] = {}
        for part in self._parts:
            for name, kind in (part.types(self._used) or {}).items():
                family, path = arrow_family(kind), part.file.path
                if family not in _FAMILIES:
                    raise InputTypeError(
                        f"A column must hold strings, numbers, booleans or dates, got {family} in column {name!r} "
                        f"of {path!r}"
                    )
                if family == "missing":
                    continue
                if name == self.weight and family != "number":
                    raise InputTypeError(f"weight must be a column of numbers, got {family} in {path!r}")
                known, where = first.setdefault(name, (family, path))
                if known != family:
                    raise InputTypeError(
                        f"Column {name!r} must hold the same in all files, got {family} in {path!r} after {known} "
                        f"in {where!r}"
                    )


def _encoded(encode: Callable[[Chunk], Sequence[npt.NDArray[Any]]], chunk: Chunk) -> Sequence[npt.NDArray[Any]]:
    with chunk.errors():
        return encode(chunk)


def _choose(part: Part, target: str | None, weight: str | None, columns: Sequence[str] | None) -> list[str]:
    """The columns to learn from; errors name a column that does not exist."""
    for what, name in (("target", target), ("weight", weight)):
        if name is not None and not isinstance(name, str):
            raise InputTypeError(f"{what} must be the name of a column, got {type(name).__name__}")
        if name is not None and name not in part.names:
            raise InputValueError(f"{what} must be a column of {part.file.path!r}, got {name!r}")
    if target is not None and target == weight:
        raise InputValueError(f"target and weight must be different columns, got {target!r} for both")
    names = part.names
    chosen = [name for name in names if name not in (target, weight)] if columns is None else list(columns)
    known = set(names)
    for name, count in Counter(chosen).items():
        if name not in known or name in (target, weight) or count > 1:
            raise InputValueError(
                f"columns must be different columns of {part.file.path!r} besides target and weight, got {name!r}"
            )
    if not chosen:
        raise InputValueError(f"A table must have a column besides target and weight, got none in {part.file.path!r}")
    return chosen


def _check_names(parts: Sequence[Part], used: Sequence[str], *, all_columns: bool) -> None:
    expected = set(used)
    for part in parts:
        names = set(part.names)
        missing = [name for name in used if name not in names]
        if missing:
            raise InputValueError(
                f"All files must have the same columns, got none named {missing[0]!r} in {part.file.path!r}"
            )
        others = [name for name in part.names if name not in expected] if all_columns else []
        if others:
            raise InputValueError(
                f"All files must have the same columns, got {others[0]!r} in {part.file.path!r} but not in "
                f"{parts[0].file.path!r}"
            )
