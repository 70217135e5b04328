"""One pass over a table in files beyond memory: what a fit must know of all rows, and some rows in memory."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from prunus.data.encoder import CLIP, TableEncoder
from prunus.data.file_chunks import Chunk, RowsInMemory
from prunus.data.file_table import FileTable
from prunus.data.row_hash import held_out
from prunus.data.streamed import TableStatistics
from prunus.data.validation_rows import ValidationRows
from prunus.errors import InputValueError

__all__ = ["SAMPLE_ROWS", "VALIDATION_ROWS", "VALIDATION_SEED", "Scan", "held_out_by_hash", "scan"]

SAMPLE_ROWS, VALIDATION_ROWS = 200_000, 100_000
"""Rows that are kept in memory to start and read the tree, and to validate, if there is memory for this many."""
_SHARE = 0.1
"""Share of the memory for the sample; half as much is for validation rows."""
VALIDATION_SEED, SAMPLE_SEED = 0, 1
"""Rows are chosen by their hashes and these numbers, whatever the random state: those held out stay held out."""


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
