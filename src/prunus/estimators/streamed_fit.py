"""The fit of a tree to a table in files beyond memory: its rows are read again in each epoch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from prunus.data import FileTable, TableEncoder
from prunus.data.chunks import Chunk
from prunus.data.encoder import CLIP
from prunus.data.shuffling import buffer_rows, chunk_rows_of
from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.devices import choose_device
from prunus.estimators.preparation import Rows, to_samples
from prunus.estimators.scanned import (
    IN_MEMORY,
    VALIDATION_ROWS,
    VALIDATION_SEED,
    ScannedTable,
    checked_target,
    fits_into_memory,
    rows_in_memory,
    sample_rows,
)
from prunus.estimators.target_statistics import Weighing, chunk_targets
from prunus.training import Samples
from prunus.training.epochs import take_epochs
from prunus.training.processes import processes
from prunus.training.streams import SampleStream

__all__ = ["Given", "MakeTarget", "StreamedTree", "draw_rows", "encode_chunk", "open_files", "read_scanned"]

MakeTarget = Callable[[TableEncoder, Any], Any]

BUFFERED = 256
"""Bytes of the memory for each value of a chunk of shuffled rows: so small chunks leave most of it to the buffer."""


class Given(NamedTuple):
    """The arguments of a fit: arrays and frames, or a table in files beyond memory."""

    X: Any
    y: Any
    sample_weight: Any
    eval_set: Any


def open_files(estimator: Any, given: Given, *, needs_target: bool = True) -> Given:
    """The arguments of a fit with tables in files read into memory, or read once if they are too large for that."""
    X, y, weight, eval_set = given  # noqa: N806
    if isinstance(eval_set, (tuple, list)) and len(eval_set) == 1 and isinstance(eval_set[0], FileTable):
        (eval_set,) = eval_set
    if isinstance(eval_set, FileTable):
        _check_target(eval_set, "eval_set")
        most = len(eval_set) if fits_into_memory(eval_set) else rows_in_memory(eval_set, VALIDATION_ROWS)
        rows = checked_target(sample_rows(eval_set, most, VALIDATION_SEED))
        eval_set = (rows.X, rows.y) if rows.weight is None else (rows.X, rows.y, rows.weight)
    if not isinstance(X, FileTable):
        return Given(X, y, weight, eval_set)
    for name, value in (("y", y if needs_target else None), ("sample_weight", weight)):
        if value is not None:
            column = "target" if name == "y" else "weight"
            raise InputTypeError(
                f"{name} must be None if X is a FileTable, which has it as a column, got {type(value).__name__}. Name "
                f"the column with FileTable(..., {column}=...)"
            )
    if needs_target:
        _check_target(X, "X")
    if not fits_into_memory(X):
        return Given(ScannedTable.scan(X, float(estimator.validation_fraction)), None, None, eval_set)
    all_rows = checked_target(sample_rows(X, len(X), 0))
    return Given(all_rows.X, all_rows.y if needs_target else None, all_rows.weight, eval_set)


def _check_target(table: FileTable, name: str) -> None:
    if table.target is None:
        raise InputValueError(f"{name} must be a FileTable with a target, got none. Use FileTable(..., target=...)")


@dataclass(frozen=True)
class _Reader:
    """Makes samples from the rows of a scanned table."""

    scanned: ScannedTable
    encoder: TableEncoder
    target: Any
    weighing: Weighing
    seed: int
    part: tuple[int, int] = (0, 1)
    """Which of how many parts of the rows is read."""

    def stream(self, sample: Samples) -> SampleStream:
        """All training rows."""
        return SampleStream(sample, self.weighing.rows, self.shuffled, self.in_order, self.part)

    def shuffled(self, epoch: int, batch_size: int) -> Iterator[Samples]:
        table, width = self.scanned.table, len(self.encoder.columns_)
        most = int(table.memory_limit / (BUFFERED * width))
        rows = max(1, min(chunk_rows_of(width), most) // batch_size) * batch_size
        buffer = buffer_rows(table.memory_limit, width, chunk_rows=rows)
        chunks = table.shuffled(
            self.arrays, seed=self.seed, epoch=epoch, buffer_rows=buffer, chunk_rows=rows, part=self.part
        )
        return (_samples(arrays) for arrays in chunks)

    def in_order(self) -> Iterator[Samples]:
        for chunk in self.scanned.table.batches(part=self.part):
            with chunk.errors():
                arrays = self.arrays(chunk)
            if len(arrays[0]):
                yield _samples(arrays)

    def arrays(self, chunk: Chunk) -> tuple[npt.NDArray[Any], ...]:
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


def read_scanned(
    scanned: ScannedTable, pieces: int, make_target: MakeTarget, before: Any = None, clip: float = CLIP
) -> tuple[TableEncoder, Any, Weighing]:
    """The encoder, the target and the weights of a scanned table; to continue a fit, with its encoder and target."""
    encoder = scanned.encoder(pieces, clip) if before is None else before.encoder_
    target = make_target(encoder, scanned.targets.representatives())
    if before is not None:
        target = target.take_over(before.target_)
    elif target.task == "numbers":
        target = target.scale(scanned.targets.two_numbers(), None)
    weighing = scanned.targets.weighing(target)
    if before is None and target.task == "clusters":
        sample = encode_chunk(scanned.sample, encoder, target, weighing)
        target = target.scale(sample.y, sample.weight)
    return encoder, target, weighing


def draw_rows(
    table: FileTable, encoder: TableEncoder, target: Any, weighing: Weighing, seed: int, at_once: int, number: int
) -> Rows:
    """Rows for the tree of this number, drawn by their hashes; `at_once` trees are trained at once."""
    most = int(table.memory_limit / (IN_MEMORY * len(table.columns) * at_once))
    rows = sample_rows(table, min(most, len(table)), 1_000_003 * seed + number)
    return _positive(encode_chunk(rows, encoder, target, weighing))


class StreamedTree:
    """A mixin for estimators that are fitted to tables in files."""

    pieces: Any
    device: Any
    _seed: Callable[[], int]
    _recipe: Callable[..., Any]
    _has_network: bool
    _read_eval_set: Callable[..., Rows]
    _learn: Callable[..., Any]

    @property
    def _clip(self) -> float:
        """Scaled numbers of the table are limited to the range from the negative of this to this."""
        return CLIP

    def _fit_stream(
        self, scanned: ScannedTable, eval_set: Any, make_target: MakeTarget, before: Any, max_epochs: int | None
    ) -> None:
        """The first steps of a fit to a scanned table; see `ArgminTree._fit_tree`."""
        # 1. The encoder and the target are those of all rows.
        encoder, target, weighing = read_scanned(scanned, self.pieces, make_target, before, self._clip)
        # 2. Rows are held out by their hashes, unless the caller gives an eval_set.
        seed = self._seed()
        recipe = self._recipe(weighing.rows, target, max_epochs)
        if eval_set is not None or recipe.early_stopping_rounds is None:
            scanned = scanned.without_validation()
            weighing = scanned.targets.weighing(target)
        device = choose_device(self.device, weighing.rows, network=self._has_network)
        sample = to_samples(_positive(encode_chunk(scanned.sample, encoder, target, weighing)), target, device)
        assert sample is not None
        valid_rows = None
        if eval_set is not None:
            valid_rows = self._read_eval_set(eval_set, target, encoder)
        elif scanned.valid is not None:
            valid_rows = _positive(encode_chunk(scanned.valid, encoder, target, weighing))
        group = processes()
        stream = _Reader(scanned, encoder, target, weighing, seed, (group.rank, group.size)).stream(sample)
        epochs = self._learn(
            stream,
            to_samples(valid_rows, target, device),
            target,
            encoder,
            recipe,
            seed,
            owns_valid=eval_set is None,
            before=before,
            data={"X": scanned.table, "y": None, "metadata": None},
        )
        take_epochs(epochs)


def _positive(rows: Rows) -> Rows:
    return rows if rows.weight is None else rows[rows.weight > 0]
