"""Where the rows of a table come from: memory or files, behind one interface.

Code that predicts or fits asks a `Source`, and never what kind of table the user gave. For predictions, `Source.map`
applies a function to all rows, part by part. A fit calls `Source.loaded`, which reads files that fit into memory; a
table that does not (`Source.large`) is read once by `scan`, and again in each epoch by `FileTable.shuffled`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from prunus.data.chunks import Chunk, RowsInMemory, ValidationRows, held_out
from prunus.data.encoder import CLIP, TableEncoder
from prunus.data.file_table import FileTable
from prunus.data.statistics import TableStatistics
from prunus.errors import InputTypeError, InputValueError

__all__ = [
    "SAMPLE_ROWS",
    "VALIDATION_ROWS",
    "VALIDATION_SEED",
    "FileSource",
    "MemorySource",
    "Rows",
    "Scan",
    "Source",
    "held_out_by_hash",
    "open_eval_set",
    "open_source",
    "scan",
]

SAMPLE_ROWS, VALIDATION_ROWS = 200_000, 100_000
"""Rows that are kept in memory to start and read the tree, and to validate, if there is memory for this many."""
_SHARE = 0.1
"""Share of the memory for the sample; half as much is for validation rows."""
VALIDATION_SEED, SAMPLE_SEED = 0, 1
"""Rows are chosen by their hashes and these numbers, whatever the random state: those held out stay held out."""


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

    def map(self, of_rows: Callable[[Any], npt.NDArray[Any]], rows: int) -> npt.NDArray[Any]:  # noqa: ARG002
        """What a function returns for the table, which is the only chunk."""
        return of_rows(self.X)

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


class TargetTotals(Protocol):
    """What a fit must know of the targets of all rows, gathered chunk by chunk."""

    def add(self, chunk: Chunk, weight: npt.NDArray[np.float64] | None, held: npt.NDArray[np.bool_]) -> None:
        """Add a chunk with its weights, and which of its rows are held out."""

    def merge(self, other: Any) -> None:
        """Add what another process has found in other rows."""

    def without_validation(self) -> Self:
        """The same totals if no rows are held out."""


class Workers(Protocol):
    """Processes that share work, such as `prunus.training.processes.Processes`."""

    size: int

    def share_out(self, tasks: Sequence[Any], work: Callable[[Sequence[Any]], list[Any]]) -> list[Any]:
        """The results of all tasks, each of which one process has done."""


Totals = TypeVar("Totals", bound=TargetTotals)


@dataclass(frozen=True)
class Scan(Generic[Totals]):
    """A table in files beyond memory, and what one pass over it has found."""

    table: FileTable
    statistics: TableStatistics
    """What the encoder is learned from."""
    targets: Totals
    """What was found about the targets."""
    validation: ValidationRows
    """Says which rows are held out."""
    sample: Chunk
    """About 200,000 training rows in memory, drawn evenly."""
    valid: Chunk | None
    """The rows that are held out; None if there are none."""

    def without_validation(self) -> "Scan[Totals]":
        """The same table with all rows to train on."""
        return replace(self, validation=ValidationRows(0.0), valid=None, targets=self.targets.without_validation())

    def encoder(self, pieces: int, clip: float = CLIP) -> TableEncoder:
        """An encoder of the table with this many pieces for each number, and scaled numbers within these limits."""
        statistics = copy(self.statistics)
        statistics.blank = TableEncoder(pieces=pieces, clip=clip).fit([[0.0]])
        return statistics.encoder()

    def chosen(self, chunk: Chunk, weight: npt.NDArray[Any] | None) -> npt.NDArray[np.bool_] | None:
        """Which rows of a chunk are training rows of positive weight; None if all are."""
        held = self.validation.mask(chunk) if self.validation.fraction else None
        if held is None:
            kept = None if weight is None else weight > 0
        else:
            kept = ~held if weight is None else ~held & (weight > 0)
        return None if kept is None or kept.all() else kept


def scan(
    table: FileTable, validation_fraction: float, new_totals: Callable[[], Totals], group: Workers
) -> Scan[Totals]:
    """Read a table once.

    Parameters
    ----------
    table : FileTable
    validation_fraction : float
        About this share of the rows is held out, or fewer if memory does not hold them.
    new_totals : callable
        Makes what gathers the targets.
    group : Workers
        Processes that train together: they read a part each, and then know what all have found.

    Returns
    -------
    Scan
    """
    parts = group.share_out(
        range(group.size),
        lambda own: [_scan_part(table, validation_fraction, new_totals(), (k, group.size)) for k in own],
    )
    first, sample, valid = parts[0], RowsInMemory(), RowsInMemory()
    for part in parts[1:]:
        first.statistics.merge(part.statistics)
        first.targets.merge(part.targets)
        first.validation.merge(part.validation)
    for part in parts:
        for rows, found in ((sample, part.sample), (valid, part.valid)):
            if found is not None:
                rows.add(found)
    drawn = sample.chunk()
    if drawn is None:
        raise InputValueError("A table must have rows of positive weight to train on, got none")
    return Scan(table, first.statistics, first.targets, first.validation, drawn, valid.chunk())


def held_out_by_hash(table: FileTable, fraction: float) -> ValidationRows:
    """The rows that are held out: about this share, or fewer if memory does not hold them."""
    most = table.rows_in_memory(VALIDATION_ROWS, _SHARE / 2)
    return ValidationRows(min(fraction, most / len(table)), VALIDATION_SEED)


@dataclass
class _Part:
    """What has been found in a part of a table; see `Scan`."""

    statistics: TableStatistics
    targets: Any
    validation: ValidationRows
    sample: Chunk | None
    valid: Chunk | None


def _scan_part(table: FileTable, validation_fraction: float, targets: TargetTotals, part: tuple[int, int]) -> _Part:
    """Read one of this many parts of a table once."""
    validation = held_out_by_hash(table, validation_fraction)
    of_sample = min(1.0, table.rows_in_memory(SAMPLE_ROWS) / len(table))
    statistics, sample, valid = TableStatistics(), RowsInMemory(), RowsInMemory()
    for chunk in table.batches(part=part):
        chunk.check_target()
        with chunk.errors():
            weight, held = chunk.weight, validation.mask(chunk)
            statistics.add(chunk.X, weight)
            targets.add(chunk, weight, held)
            counts = np.ones(chunk.n_rows, dtype=bool) if weight is None else weight > 0
            valid.add(chunk, held & counts)
            sample.add(chunk, held_out(chunk.hashes, of_sample, SAMPLE_SEED) & counts & ~held)
    return _Part(statistics, targets, validation, sample.chunk(), valid.chunk())
