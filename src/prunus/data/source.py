"""Where the rows of a table come from: memory or files, behind one interface.

Whoever predicts or fits asks a `Source`, and never what kind of table a user has given. For predictions, `Source.map`
applies a function to all rows, part by part. A fit calls `Source.loaded`, which reads files that fit into memory; a
table that does not (`Source.large`) is read once by `scan`, and again in each epoch by `FileTable.shuffled`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from prunus.data.file_chunks import Chunk
from prunus.data.file_table import FileTable
from prunus.errors import InputTypeError, InputValueError

__all__ = ["FileSource", "MemorySource", "Rows", "Source", "open_eval_set", "open_source"]


class Rows(Protocol):
    """Some rows in memory: `MemorySource`, or a `Chunk` of files."""

    @property
    def X(self) -> Any:  # noqa: N802
        """The table, without target and weight."""

    @property
    def y(self) -> Any:
        """The target; None if there is none."""

    @property
    def weight(self) -> Any:
        """The weights of the rows; None if all are 1."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def errors(self) -> AbstractContextManager[None]:
        """A context in which errors about these rows name the file that they are from."""


class Source(ABC):
    """The rows of a table with their targets and weights.

    Examples
    --------
    >>> source = open_source(np.arange(6.0).reshape(3, 2))
    >>> source.n_rows, source.large, source.map(lambda rows: rows.sum(1), 16_384).tolist()
    (3, None, [1.0, 5.0, 9.0])
    """

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows; 0 if a table in memory does not say."""

    @property
    @abstractmethod
    def large(self) -> FileTable | None:
        """The table in files, if its rows do not fit into memory; None if they do."""

    @abstractmethod
    def loaded(self) -> "MemorySource":
        """All rows in memory."""

    @abstractmethod
    def chunks(self, rows: int) -> Iterator[Rows]:
        """All rows once, in their order.

        Parameters
        ----------
        rows : int
            Number of rows of a chunk at most. A table in memory is one chunk, however many rows it has.

        Yields
        ------
        Rows
        """

    def map(self, of_rows: Callable[[Any], npt.NDArray[Any]], rows: int) -> npt.NDArray[Any]:
        """What a function returns for all rows, with an entry for each row.

        Parameters
        ----------
        of_rows : callable
            Takes a table in memory, and returns an array with an entry for each of its rows.
        rows : int
            Number of rows that are read at a time, see `chunks`.
        """
        result: npt.NDArray[Any] | None = None
        begin = 0
        for chunk in self.chunks(rows):
            with chunk.errors():
                found = of_rows(chunk.X)
            if len(found) >= self.n_rows:
                return found
            if result is None:
                result = np.empty((self.n_rows, *found.shape[1:]), found.dtype)
            result[begin : begin + len(found)] = found
            begin += len(found)
        assert result is not None  # tables have rows
        return result


@dataclass(frozen=True)
class MemorySource(Source):
    """Rows in memory: what a user gave to `fit`, or what was read from files."""

    X: Any
    y: Any = None
    weight: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows; 0 if the table does not say."""
        try:
            return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)
        except (TypeError, IndexError):
            return 0

    @property
    def large(self) -> None:
        """None: the rows are in memory."""
        return

    def loaded(self) -> "MemorySource":
        """The source itself."""
        return self

    def chunks(self, rows: int) -> Iterator[Rows]:  # noqa: ARG002
        """The source itself, which is the only chunk."""
        yield self

    def errors(self) -> AbstractContextManager[None]:
        """A context that changes nothing: there is no file to name."""
        return nullcontext()


@dataclass(frozen=True)
class FileSource(Source):
    """Rows in files."""

    table: FileTable

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.table)

    @property
    def large(self) -> FileTable | None:
        """The table, if it does not fit into memory."""
        return None if self.table.fits_into_memory else self.table

    def loaded(self) -> MemorySource:
        """All rows, whatever the limit of memory."""
        return _in_memory(self.table.draw(len(self.table), seed=0))

    def chunks(self, rows: int) -> Iterator[Rows]:
        """Parts of the chunks that are read from the files."""
        for chunk in self.table.batches():
            for begin in range(0, chunk.n_rows, rows):
                yield chunk.slice(begin, rows)


def open_source(X: Any, y: Any = None, sample_weight: Any = None, *, needs_target: bool = False) -> Source:  # noqa: N803
    """The source of the rows that a user has given.

    Parameters
    ----------
    X : table of shape (n, n_features), or FileTable
    y, sample_weight : array-like of shape (n,), optional
        They must be None if X is a `FileTable`, which has them as columns.
    needs_target : bool, default=False
        Whether a `FileTable` must have a target.

    Returns
    -------
    Source

    Examples
    --------
    >>> open_source([[1.0], [2.0]], [0, 1]).loaded().y
    [0, 1]
    """
    if not isinstance(X, FileTable):
        return MemorySource(X, y, sample_weight)
    for name, value, column in (("y", y, "target"), ("sample_weight", sample_weight, "weight")):
        if value is not None:
            raise InputTypeError(
                f"{name} must be None if X is a FileTable, which has it as a column, got {type(value).__name__}. Name "
                f"the column with FileTable(..., {column}=...)"
            )
    if needs_target:
        _check_has_target(X, "X")
    return FileSource(X)


def open_eval_set(eval_set: Any, *, most: int, seed: int) -> Any:
    """An ``eval_set`` whose rows are in memory, as arrays and frames; one that has no `FileTable` stays as it is.

    Parameters
    ----------
    eval_set : tuple, list, FileTable or None
        A `FileTable`, also if it is the only entry of a tuple or a list, becomes ``(X, y)`` or ``(X, y, weight)``.
    most : int
        Number of rows that are drawn from files that do not fit into memory.
    seed : int
        Other seeds draw other rows.
    """
    if isinstance(eval_set, (tuple, list)) and len(eval_set) == 1 and isinstance(eval_set[0], FileTable):
        (eval_set,) = eval_set
    if not isinstance(eval_set, FileTable):
        return eval_set
    _check_has_target(eval_set, "eval_set")
    most = len(eval_set) if eval_set.fits_into_memory else eval_set.rows_in_memory(most)
    rows = _in_memory(eval_set.draw(most, seed))
    return (rows.X, rows.y) if rows.weight is None else (rows.X, rows.y, rows.weight)


def _in_memory(rows: Chunk) -> MemorySource:
    rows.check_target()
    return MemorySource(rows.X, rows.y, rows.weight)


def _check_has_target(table: FileTable, name: str) -> None:
    if table.target is None:
        raise InputValueError(f"{name} must be a FileTable with a target, got none. Use FileTable(..., target=...)")
