"""What a step costs one of many processes: processor time for its share of a batch, and what it sums with the others.

The other processes are imagined: each is taken to have the same rows as this one, so that a sum over all processes is a
multiple of the own numbers. Times are therefore without communication. They are processor time, which other programs on
the machine disturb less than they disturb the clock. Table and tree are those of `benchmarks.scale_processes`.

``python -m benchmarks.scale_cost`` prints the figures.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.harness.records import format_table
from prunus.nn import LinearHead, LinearSplit, TreeLayer, TreeModel
from prunus.training import Samples, Trainer, TrainerOptions, find_loss
from prunus.training.processes import Processes

__all__ = ["Row", "measure"]

BATCH, STEPS, EPOCHS = 8192, 12, 6


@dataclass(frozen=True)
class Row:
    """A number of processes, with linear leaves."""

    columns: int
    depth: int
    batch: int
    """Rows of a batch, of all processes together."""
    processes: int
    ms_a_step: float
    """Processor time of one process with one thread."""
    sums_a_step: float
    """How often all processes meet; none if there is one."""
    kb_a_step: float
    """What one process gives to these sums, in 1000 bytes."""


class _Imagined(Processes):
    """Processes of which only the first exists."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.sums, self.bytes = 0, 0

    def sum_(self, array: Any) -> None:
        array *= self.size
        self.sums += 1
        self.bytes += array.nbytes

    def gather(self, value: Any, *, patient: bool = False) -> list[Any]:
        del patient
        return [value] * self.size


def measure(
    sizes: Sequence[int] = (1, 2, 4, 8, 16), shapes: Sequence[tuple[int, int]] = ((30, 4), (30, 6), (100, 6))
) -> list[Row]:
    """A row for each number of columns and depth, and each number of processes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads of torch that wait for work take processor time
    try:
        return [_measure(size, columns, depth, BATCH) for columns, depth in shapes for size in sizes]
    finally:
        torch.set_num_threads(threads)


def _measure(size: int, columns: int, depth: int, batch: int) -> Row:
    x = torch.randn(STEPS * batch, columns, generator=torch.Generator().manual_seed(0))
    y = (x[:, :1] * x[:, 1:2]).sign() + x[:, 2:3]
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(0)
        tree = TreeLayer(LinearSplit(columns, depth), depth, batch_size=batch)
        model = TreeModel(tree, LinearHead(columns, depth, 1))
    ends = [time.process_time()]
    options = TrainerOptions(max_epochs=EPOCHS, batch_size=batch, learning_rate=0.01, threads=1, engine="native")
    together = _Imagined(size)
    with (
        patch("prunus.training.trainer.processes", lambda: together),
        patch("prunus.training.native_engine.processes", lambda: together),
    ):
        trainer = Trainer(
            model, find_loss("squared_error"), options, callbacks=[lambda _: ends.append(time.process_time())]
        )
        trainer.fit(Samples(x, y))
    seconds = min(later - earlier for earlier, later in pairwise(ends[1:]))
    steps = STEPS * EPOCHS
    return Row(columns, depth, batch, size, 1e3 * seconds / STEPS, together.sums / steps, together.bytes / 1e3 / steps)


if __name__ == "__main__":
    print(format_table(measure()))
