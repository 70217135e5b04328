"""Where the rows of a fit come from: a table in memory, or files beyond memory that are read again in each epoch.

Both forms of a source answer the same questions, so that no fit asks which it has.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from prunus.data import FileTable, TableEncoder
from prunus.data.file_chunks import Chunk
from prunus.data.shuffling import buffer_rows, chunk_rows_of
from prunus.errors import InputTypeError, InputValueError
from prunus.fitting.devices import choose_device
from prunus.fitting.options import FitOptions
from prunus.fitting.recipe import find_recipe
from prunus.fitting.rows import (
    Rows,
    check_width,
    encode_training,
    fit_encoder,
    hold_out,
    read_eval_set,
    read_rows,
)
from prunus.fitting.run import Fitted, Material, Run
from prunus.fitting.scanned import (
    IN_MEMORY,
    VALIDATION_ROWS,
    VALIDATION_SEED,
    ScannedTable,
    checked_target,
    fits_into_memory,
    rows_in_memory,
    sample_rows,
)
from prunus.fitting.target_statistics import Weighing, chunk_targets
from prunus.targets import Target
from prunus.training import Samples
from prunus.training.processes import processes
from prunus.training.samples import SampleStream

__all__ = [
    "FileReader",
    "FileSource",
    "MakeTarget",
    "MemorySource",
    "ReadTable",
    "Source",
    "open_source",
    "read_files",
]

MakeTarget = Callable[[TableEncoder, Any], Any]
"""Makes the target of a fit from the encoder and y."""

BUFFERED = 256
"""Bytes of the memory for each value of a chunk of shuffled rows: so small chunks leave most of it to the buffer."""
LEAST_DIVIDED = 5
"""No rows are held out of fewer than this."""


class ReadTable(NamedTuple):
    """A table and its target in the form that trees learn from."""

    encoder: TableEncoder
    target: Any
    rows: Rows
    """The rows; of a table beyond memory those that no tree learns from."""
    valid: Rows | None
    """The rows of the user's eval_set."""
    groups: npt.NDArray[np.int64]
    """For each row of the table the number of the one that it became when equal ones were merged, -1 without weight."""
    draw: Callable[[int], Rows] | None = None
    """Reads the rows of the tree of a number from files; None if all rows are in memory."""


@dataclass(frozen=True)
class MemorySource:
    """A table in memory."""

    X: Any
    y: Any
    weight: Any
    eval_set: Any = None

    @property
    def sample(self) -> "MemorySource":
        """Rows in memory from which options may be chosen: all."""
        return self

    def read(
        self,
        options: FitOptions,
        make_target: MakeTarget,
        *,
        before: Fitted | None = None,
        merged: bool = True,
        is_new: bool = False,
    ) -> ReadTable:
        """The encoder, the target and the rows; to continue an earlier fit, with its encoder and target.

        In small tables equal rows are `merged`. `is_new` says that the rows are other ones than those of that fit.
        """
        X, y, weight = self.X, self.y, self.weight  # noqa: N806
        if before is None:
            encoder = TableEncoder(pieces=options.pieces, clip=options.clip).fit(X, sample_weight=weight)
            if y is None:
                encoder.drop_calendar()
            target = make_target(encoder, y)
            x = fit_encoder(encoder, X, y, weight, target)
            rows, groups = read_rows(x, y, weight, target, merged=merged)
            target = target.scale(rows.y, rows.weight)
        else:
            encoder, target = before.encoder, make_target(before.encoder, y).take_over(before.target)
            x = before.encode(X) if is_new else encode_training(before.encode, encoder, X, y, weight, target)
            rows, groups = read_rows(x, y, weight, target, merged=merged)
        return ReadTable(encoder, target, rows, _given_valid(self.eval_set, encoder, target, options.name), groups)

    def run(
        self,
        options: FitOptions,
        make_target: MakeTarget,
        seed: int,
        *,
        before: Fitted | None = None,
        is_new: bool = False,
    ) -> Run:
        """A run that trains one tree on all rows, but for those that are held out for validation."""
        encoder, target, rows, valid, groups, _ = self.read(options, make_target, before=before, is_new=is_new)
        recipe = find_recipe(options, len(rows), target)
        device = choose_device(options.device, len(rows), network=options.has_network)
        held_out = None
        if valid is None and recipe.early_stopping_rounds is not None and len(rows) >= LEAST_DIVIDED:
            train, chosen = hold_out(rows, options.validation_fraction, stratify=rows.y.ndim == 1, seed=seed)
            rows, valid, held_out = rows[train], rows[chosen], np.flatnonzero(np.isin(groups, chosen))
        material = Material(rows, valid)
        return Run(
            options,
            encoder,
            target,
            recipe,
            seed,
            device,
            lambda: material,
            owns_valid=self.eval_set is None,
            held_out=held_out,
            before=before,
        )

    def read_for_forest(
        self,
        options: FitOptions,
        make_target: MakeTarget,
        seed: int,  # noqa: ARG002
        *,
        before: Fitted | None,
        at_once: int,  # noqa: ARG002
    ) -> ReadTable:
        """The table for a forest, whose trees share its rows."""
        return self.read(options, make_target, before=before)


@dataclass(frozen=True)
class FileSource:
    """A table in files beyond memory, after one pass over it."""

    scanned: ScannedTable
    eval_set: Any = None

    @property
    def sample(self) -> MemorySource:
        """Rows in memory from which options may be chosen: about 200,000, drawn evenly."""
        some = self.scanned.sample
        return MemorySource(some.X, some.y, some.weight, self.eval_set)

    def run(
        self,
        options: FitOptions,
        make_target: MakeTarget,
        seed: int,
        *,
        before: Fitted | None = None,
        is_new: bool = False,  # noqa: ARG002
    ) -> Run:
        """A run that trains one tree on all rows, but for those that are held out by their hashes."""
        scanned, (encoder, target, weighing) = self.scanned, self._read(options, make_target, before)
        recipe = find_recipe(options, weighing.rows, target)
        if self.eval_set is not None or recipe.early_stopping_rounds is None:
            scanned = scanned.without_validation()
            weighing = scanned.targets.weighing(target)
        device = choose_device(options.device, weighing.rows, network=options.has_network)
        valid = _given_valid(self.eval_set, encoder, target, options.name)
        if valid is None and scanned.valid is not None:
            valid = positive(encode_chunk(scanned.valid, encoder, target, weighing))
        sample = positive(encode_chunk(scanned.sample, encoder, target, weighing))
        group = processes()
        reader = FileReader(scanned, encoder, target, weighing, seed, (group.rank, group.size))
        material = Material(sample, valid, reader)
        return Run(
            options,
            encoder,
            target,
            recipe,
            seed,
            device,
            lambda: material,
            owns_valid=self.eval_set is None,
            before=before,
        )

    def read_for_forest(
        self, options: FitOptions, make_target: MakeTarget, seed: int, *, before: Fitted | None, at_once: int
    ) -> ReadTable:
        """The table for a forest: each tree has rows of its own, drawn by their hashes.

        `at_once` trees are trained at once.
        """
        encoder, target, weighing = self._read(options, make_target, before)
        table = self.scanned.table
        draw = partial(_draw_rows, table, encoder, target, weighing, seed, at_once)
        valid = _given_valid(self.eval_set, encoder, target, options.name)
        rows = draw(-1)
        return ReadTable(encoder, target, rows, valid, np.arange(len(rows)), draw)

    def _read(
        self, options: FitOptions, make_target: MakeTarget, before: Fitted | None
    ) -> tuple[TableEncoder, Any, Weighing]:
        """The encoder, the target and the weights of all rows; to continue a fit, with its encoder and target."""
        scanned = self.scanned
        encoder = scanned.encoder(options.pieces, options.clip) if before is None else before.encoder
        target = make_target(encoder, scanned.targets.representatives())
        if before is not None:
            target = target.take_over(before.target)
        elif target.task == "numbers":
            target = target.scale(scanned.targets.two_numbers(), None)
        weighing = scanned.targets.weighing(target)
        if before is None and target.task == "clusters":
            sample = encode_chunk(scanned.sample, encoder, target, weighing)
            target = target.scale(sample.y, sample.weight)
        return encoder, target, weighing


Source = MemorySource | FileSource


def open_source(
    X: Any,  # noqa: N803
    y: Any,
    sample_weight: Any,
    eval_set: Any = None,
    *,
    validation_fraction: float = 0.0,
    needs_target: bool = True,
) -> Source:
    """The rows of a fit. Tables in files are read into memory, or scanned once if they are too large for that."""
    if isinstance(eval_set, (tuple, list)) and len(eval_set) == 1 and isinstance(eval_set[0], FileTable):
        (eval_set,) = eval_set
    if isinstance(eval_set, FileTable):
        _check_target(eval_set, "eval_set")
        most = len(eval_set) if fits_into_memory(eval_set) else rows_in_memory(eval_set, VALIDATION_ROWS)
        rows = checked_target(sample_rows(eval_set, most, VALIDATION_SEED))
        eval_set = (rows.X, rows.y) if rows.weight is None else (rows.X, rows.y, rows.weight)
    if not isinstance(X, FileTable):
        return MemorySource(X, y, sample_weight, eval_set)
    for name, value in (("y", y if needs_target else None), ("sample_weight", sample_weight)):
        if value is not None:
            column = "target" if name == "y" else "weight"
            raise InputTypeError(
                f"{name} must be None if X is a FileTable, which has it as a column, got {type(value).__name__}. Name "
                f"the column with FileTable(..., {column}=...)"
            )
    if needs_target:
        _check_target(X, "X")
    if not fits_into_memory(X):
        return FileSource(ScannedTable.scan(X, float(validation_fraction)), eval_set)
    all_rows = checked_target(sample_rows(X, len(X), 0))
    return MemorySource(all_rows.X, all_rows.y if needs_target else None, all_rows.weight, eval_set)


def read_files(
    X: Any,  # noqa: N803
    y: Any,
    sample_weight: Any,
    name: str,
) -> MemorySource:
    """The rows of a fit of an estimator with this name that needs them all in memory."""
    if isinstance(X, FileTable) and not fits_into_memory(X):
        needed = len(X) * len(X.columns) * IN_MEMORY
        raise InputValueError(
            f"X must fit into memory: {name} searches all rows at once, and {len(X):,} rows of {len(X.columns)} "
            f"columns take {needed:.2g} bytes, got memory_limit={X.memory_limit:.2g}. Use "
            "FileTable(..., memory_limit=...) if there is more, name fewer columns, or fit to some of the rows"
        )
    return open_source(X, y, sample_weight).sample


def _check_target(table: FileTable, name: str) -> None:
    if table.target is None:
        raise InputValueError(f"{name} must be a FileTable with a target, got none. Use FileTable(..., target=...)")


def _given_valid(eval_set: Any, encoder: TableEncoder, target: Target, name: str) -> Rows | None:
    """The validation rows that the caller gave to the estimator of this name."""

    def encode(table: Any) -> npt.NDArray[np.float32]:
        check_width(encoder, table, name)
        return encoder.transform(table)

    return None if eval_set is None else read_eval_set(eval_set, target, encode)


@dataclass(frozen=True)
class FileReader:
    """Makes samples from the rows of a scanned table."""

    scanned: ScannedTable
    encoder: TableEncoder
    target: Any
    weighing: Weighing
    seed: int
    part: tuple[int, int] = (0, 1)
    """Which of how many parts of the rows is read."""

    def stream(self, sample: Samples) -> SampleStream:
        """All training rows, and a sample of them that is in memory."""
        return SampleStream(sample, self.weighing.rows, self._shuffled, self._in_order, self.part)

    def _shuffled(self, epoch: int, batch_size: int) -> Iterator[Samples]:
        table, width = self.scanned.table, len(self.encoder.columns_)
        most = int(table.memory_limit / (BUFFERED * width))
        rows = max(1, min(chunk_rows_of(width), most) // batch_size) * batch_size
        buffer = buffer_rows(table.memory_limit, width, chunk_rows=rows)
        chunks = table.shuffled(
            self._arrays, seed=self.seed, epoch=epoch, buffer_rows=buffer, chunk_rows=rows, part=self.part
        )
        return (_samples(arrays) for arrays in chunks)

    def _in_order(self) -> Iterator[Samples]:
        for chunk in self.scanned.table.batches(part=self.part):
            with chunk.errors():
                arrays = self._arrays(chunk)
            if len(arrays[0]):
                yield _samples(arrays)

    def _arrays(self, chunk: Chunk) -> tuple[npt.NDArray[Any], ...]:
        """Inputs, targets in the form that the loss takes, and weights if there are any, of the training rows."""
        rows = encode_chunk(chunk, self.encoder, self.target, self.weighing)
        kept = self.scanned.chosen(chunk, rows.weight)
        rows = rows if kept is None else rows[kept]
        y = self.target.for_loss(rows.y).numpy()
        return (rows.x, y) if rows.weight is None else (rows.x, y, rows.weight.astype(np.float32))


def _samples(arrays: tuple[npt.NDArray[Any], ...]) -> Samples:
    return Samples(*map(torch.from_numpy, arrays))


def encode_chunk(chunk: Chunk, encoder: TableEncoder, target: Any, weighing: Weighing) -> Rows:
    """The encoded rows of a chunk, also those of weight 0."""
    x = encoder.transform(chunk.X)
    targets = chunk_targets(target, chunk, x)
    return Rows(x, targets, weighing.weights(targets, chunk.weight))


def positive(rows: Rows) -> Rows:
    """The rows of positive weight."""
    return rows if rows.weight is None else rows[rows.weight > 0]


def _draw_rows(
    table: FileTable, encoder: TableEncoder, target: Any, weighing: Weighing, seed: int, at_once: int, number: int
) -> Rows:
    """Rows for the tree of this number; `at_once` trees are trained at once."""
    most = int(table.memory_limit / (IN_MEMORY * len(table.columns) * at_once))
    rows = sample_rows(table, min(most, len(table)), 1_000_003 * seed + number)
    return positive(encode_chunk(rows, encoder, target, weighing))
