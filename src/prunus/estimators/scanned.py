"""A table in files beyond memory after one pass over it: what a fit must know of all rows, and some rows in memory."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.data import FileTable, TableEncoder
from prunus.data.chunks import Chunk, RowsInMemory, ValidationRows, held_out
from prunus.data.columns import is_missing
from prunus.data.encoder import CLIP
from prunus.data.statistics import TableStatistics
from prunus.errors import InputValueError
from prunus.estimators.target_statistics import TargetStatistics
from prunus.training.processes import processes

__all__ = [
    "ScannedTable",
    "checked_target",
    "fits_into_memory",
    "held_out_by_hash",
    "rows_in_memory",
    "sample_rows",
]

IN_MEMORY = 32
"""Bytes that a fit in memory takes for each value of a table: as it is read, encoded, divided, and as an input."""
SAMPLE_ROWS, VALIDATION_ROWS = 200_000, 100_000
"""Rows that are kept in memory to start and read the tree, and to validate, if there is memory for this many."""
_SHARE = 0.1
"""Share of the memory for the sample; half as much is for validation rows."""
VALIDATION_SEED, SAMPLE_SEED = 0, 1
"""Rows are chosen by their hashes and these numbers, whatever the random state: those held out stay held out."""


def fits_into_memory(table: FileTable) -> bool:
    """Whether the whole table is read into memory."""
    return len(table) * len(table.columns) * IN_MEMORY <= table.memory_limit


def rows_in_memory(table: FileTable, most: int, share: float = _SHARE) -> int:
    """How many rows may be kept in memory: `most`, or fewer if a share of the memory does not hold them.

    A value takes up to 8 bytes as it is read, and is encoded besides.
    """
    return max(1_000, min(most, int(share * table.memory_limit / (12 * len(table.columns)))))


def held_out_by_hash(table: FileTable, fraction: float) -> ValidationRows:
    """The rows that are held out: about this share, or fewer if memory does not hold them."""
    most = rows_in_memory(table, VALIDATION_ROWS, _SHARE / 2)
    return ValidationRows(min(fraction, most / len(table)), VALIDATION_SEED)


def sample_rows(table: FileTable, most: int, seed: int) -> Chunk:
    """About this many rows of a table, or all, in memory, drawn by their hashes; other seeds draw other rows."""
    share = most / len(table)
    found = table.collect(None if share >= 1 else lambda chunk: held_out(chunk.hashes, share, seed))
    if found is None:
        raise InputValueError("A table must have more rows to draw some of them, got too few")
    return found


def checked_target(chunk: Chunk) -> Chunk:
    """The chunk itself; an error that names the file if targets are missing."""
    if chunk.target is not None:
        with chunk.errors():
            y = chunk.y
            assert y is not None
            values = chunk.labels[0] if y.dtype == object else y
            missing = is_missing(values) if values.dtype == object else values != values
            if missing.any():
                raise InputValueError(f"Column {chunk.target!r}, the target, must have a value in each row, got none")
    return chunk


class _Part(NamedTuple):
    """What has been found in a part of a table; see `ScannedTable`."""

    statistics: TableStatistics
    targets: TargetStatistics
    validation: ValidationRows
    sample: Chunk | None
    valid: Chunk | None


def _scan(table: FileTable, validation_fraction: float, part: tuple[int, int]) -> _Part:
    """Read one of this many parts of a table once."""
    validation = held_out_by_hash(table, validation_fraction)
    of_sample = min(1.0, rows_in_memory(table, SAMPLE_ROWS) / len(table))
    statistics, targets = TableStatistics(), TargetStatistics()
    sample, valid = RowsInMemory(), RowsInMemory()
    for chunk in table.batches(part=part):
        with chunk.errors():
            weight, held = chunk.weight, validation.mask(chunk)
            statistics.add(chunk.X, weight)
            targets.add(checked_target(chunk), weight, held)
            counts = np.ones(chunk.n_rows, dtype=bool) if weight is None else weight > 0
            valid.add(chunk, held & counts)
            sample.add(chunk, held_out(chunk.hashes, of_sample, SAMPLE_SEED) & counts & ~held)
    return _Part(statistics, targets, validation, sample.chunk(), valid.chunk())


@dataclass(frozen=True)
class ScannedTable:
    """A table in files beyond memory, and what one pass over it has found."""

    table: FileTable
    statistics: TableStatistics
    """What the encoder is learned from."""
    targets: TargetStatistics
    """The classes, or the mean and deviation of the numbers, and how many rows there are to train on."""
    validation: ValidationRows
    """Says which rows are held out."""
    sample: Chunk
    """About 200,000 training rows in memory, drawn evenly."""
    valid: Chunk | None
    """The rows that are held out."""

    @classmethod
    def scan(cls, table: FileTable, validation_fraction: float) -> "ScannedTable":
        """Read a table once. About this share of the rows is held out, or fewer if memory does not hold them.

        Processes that train together read a part each, and then know what all have found.
        """
        group = processes()
        parts = group.share_out(
            range(group.size), lambda own: [_scan(table, validation_fraction, (k, group.size)) for k in own]
        )
        (statistics, targets, validation), sample, valid = parts[0][:3], RowsInMemory(), RowsInMemory()
        for part in parts[1:]:
            statistics.merge(part.statistics)
            targets.merge(part.targets)
            validation.merge(part.validation)
        for part in parts:
            for rows, found in ((sample, part.sample), (valid, part.valid)):
                if found is not None:
                    rows.add(found)
        drawn = sample.chunk()
        if drawn is None:
            raise InputValueError("A table must have rows of positive weight to train on, got none")
        return cls(table, statistics, targets, validation, drawn, valid.chunk())

    def without_validation(self) -> "ScannedTable":
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
