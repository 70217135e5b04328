"""The first step of a fit: a table and its target become a run.

A table in memory and one in files that are read again in each epoch have the same methods, so that no fit asks which it
has.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from prunus.data import FileTable, TableEncoder
from prunus.data.chunks import Chunk
from prunus.data.file_table import BYTES_OF_A_VALUE
from prunus.data.shuffling import buffer_rows, chunk_rows_of
from prunus.data.source import VALIDATION_ROWS, VALIDATION_SEED, Scan, open_eval_set, open_source, scan
from prunus.errors import InputValueError
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
from prunus.fitting.target_statistics import TargetStatistics, Weighing, chunk_targets
from prunus.targets import Target
from prunus.training import Samples
from prunus.training.processes import processes
from prunus.training.samples import SampleStream

__all__ = ["Data", "FileData", "FileReader", "MakeTarget", "MemoryData", "ReadTable", "load_data", "open_data"]

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
class MemoryData:
    """A table in memory."""

    X: Any
    y: Any
    weight: Any
    eval_set: Any = None

    @property
    def sample(self) -> "MemoryData":
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
            assert before.encode is not None
            encoder, target = before.encoder, make_target(before.encoder, y).take_over(before.target)
            x = before.encode(X) if is_new else encode_training(before.encode, encoder, X, y, weight, target)
            rows, groups = read_rows(x, y, weight, target, merged=merged)
        return ReadTable(encoder, target, rows, _given_valid(self.eval_set, encoder, target, options.name), groups)

    def prepare(
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
class FileData:
    """A table in files beyond memory, after one pass over it."""

    scanned: Scan[TargetStatistics]
    eval_set: Any = None

    @property
    def sample(self) -> MemoryData:
        """Rows in memory from which options may be chosen: about 200,000, drawn evenly."""
        some = self.scanned.sample
        return MemoryData(some.X, some.y, some.weight, self.eval_set)

    def prepare(
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
        elif not target.is_clusters:
            target = target.scale(scanned.targets.two_numbers(), None)
        weighing = scanned.targets.weighing(target)
        if before is None and target.is_clusters:
            sample = encode_chunk(scanned.sample, encoder, target, weighing)
            target = target.scale(sample.y, sample.weight)
        return encoder, target, weighing


Data = MemoryData | FileData


def open_data(
    X: Any,  # noqa: N803
    y: Any,
    sample_weight: Any,
    eval_set: Any = None,
    *,
    validation_fraction: float = 0.0,
    needs_target: bool = True,
) -> Data:
    """The rows of a fit. Tables in files are read into memory, or scanned once if they are too large for that."""
    source = open_source(X, y, sample_weight, needs_target=needs_target)
    eval_set = open_eval_set(eval_set, most=VALIDATION_ROWS, seed=VALIDATION_SEED)
    if source.large is not None:
        found = scan(source.large, float(validation_fraction), TargetStatistics, processes())
        return FileData(found, eval_set)
    rows = source.loaded()
    return MemoryData(rows.X, rows.y if needs_target else None, rows.weight, eval_set)


def load_data(X: Any, y: Any, sample_weight: Any, name: str) -> MemoryData:  # noqa: N803
    """The rows of a fit of an estimator with this name that needs them all in memory."""
    source = open_source(X, y, sample_weight, needs_target=True)
    if source.large is not None:
        table = source.large
        needed = len(table) * len(table.columns) * BYTES_OF_A_VALUE
        raise InputValueError(
            f"X must fit into memory: {name} searches all rows at once, and {len(table):,} rows of "
            f"{len(table.columns)} columns take {needed:.2g} bytes, got memory_limit={table.memory_limit:.2g}. Use "
            "FileTable(..., memory_limit=...) if there is more, name fewer columns, or fit to some of the rows"
        )
    rows = source.loaded()
    return MemoryData(rows.X, rows.y, rows.weight)


def _given_valid(eval_set: Any, encoder: TableEncoder, target: Target, name: str) -> Rows | None:
    """The validation rows that the caller gave to the estimator of this name."""

    def encode(table: Any) -> npt.NDArray[np.float32]:
        check_width(encoder, table, name)
        return encoder.transform(table)

    return None if eval_set is None else read_eval_set(eval_set, target, encode)


@dataclass(frozen=True)
class FileReader:
    """Makes samples from the rows of a scanned table."""

    scanned: Scan[TargetStatistics]
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
    most = int(table.memory_limit / (BYTES_OF_A_VALUE * len(table.columns) * at_once))
    rows = table.draw(min(most, len(table)), 1_000_003 * seed + number)
    return positive(encode_chunk(rows, encoder, target, weighing))
