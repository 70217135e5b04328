"""Trees of one shape that take their steps together on a GPU."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from prunus.ops.masses import capped
from prunus.ops.triton import step as kernels
from prunus.ops.triton.step import Numbers
from prunus.training.callbacks import EpochRecord
from prunus.training.gpu.graphs import StepGraphs
from prunus.training.gpu.layout import GpuLayout
from prunus.training.gpu.passes import Passes, UsedColumns
from prunus.training.gpu.tables import Batch, Learner, Tables
from prunus.training.optimizers import BETAS
from prunus.training.processes import processes
from prunus.training.samples import random_orders
from prunus.training.schedules import (
    COLUMNS,
    EMA_WEIGHT,
    MEAN_CORRECTION,
    RATE,
    SCALE,
    SQUARE_CORRECTION,
    StepPlan,
)
from prunus.training.torch_engine import decaying

__all__ = ["Trees"]

EVALUATED, EVALUATED_OF_ONE = 524_288, 65_536
"""Number of samples, of all trees together and of one, that are evaluated at once."""


class Trees:
    """Trees of one shape that take each step together, as one CUDA graph.

    Parameters
    ----------
    learners : sequence of Learner
        With models, options and numbers of samples of one shape.

    Attributes
    ----------
    theta, average, m, v : Tensor of shape (trees, size)
        The parameters of each tree, their moving averages, and Adam's averages of gradients and of their squares.
    mass : Tensor of shape (trees, nodes)
    columns : UsedColumns or None
        The columns in use, if splits have few.
    steps : int
        Number of steps so far.
    """

    def __init__(self, learners: Sequence[Learner]) -> None:
        self.learners = list(learners)
        first = self.learners[0]
        self.options, self.pace, self.batch_size = first.options, first.pace, first.options.batch_size
        self.samples = [len(learner.train) for learner in learners]
        self.tree, self.layout = first.model.tree, GpuLayout(first.model)
        self.device = next(first.model.parameters()).device
        split: Any = self.tree.split
        self.plan = StepPlan(
            self.pace,
            self.device,
            None if self.tree.final_scale == 1 else self.tree.scale_at,
            None if split.max_columns is None else split.columns_at,
        )
        self.graphs = StepGraphs(self.take_step, self.plan.step)
        self.batches: dict[tuple[Any, ...], Batch] = {}
        self.done = torch.zeros((), dtype=torch.int64, device=self.device)
        self.total = torch.zeros(len(learners), dtype=torch.float64, device=self.device)
        self.counts = torch.tensor(self.samples, dtype=torch.float64, device=self.device)
        self.steps, self.users = 0, len(learners)
        self._start()

    def _start(self) -> None:
        """The state at the start: parameters, moments, masses, and the columns of splits that have few."""
        models = [learner.model for learner in self.learners]
        self.theta = torch.stack([self.layout.read(model) for model in models])
        self.average = self.theta.clone() if self.options.average else None
        self.m, self.v, self.grad = (torch.zeros_like(self.theta) for _ in range(3))
        self.squares = self.theta.new_zeros(len(models), kernels.norm_blocks(self.layout.size))
        self.decays = self.layout.decays(models[0], decaying(models[0], self.options.no_decay))
        self.mass = torch.stack([model.tree.a.detach() for model in models])
        splits: list[Any] = [model.tree.split for model in models]
        self.columns: UsedColumns | None = None
        if splits[0].max_columns is not None:
            self.columns = UsedColumns(torch.stack([split.used.detach() for split in splits]), splits[0].owner)

    @property
    def used(self) -> Tensor | None:
        """The columns in use, (trees, splits, inputs), if splits have few."""
        return None if self.columns is None else self.columns.used

    @cached_property
    def tables(self) -> Tables:
        """The samples, which are read before the first step."""
        return Tables(self.learners, self.layout)

    @cached_property
    def passes(self) -> Passes:
        """What is computed from a batch."""
        return Passes(
            self.layout,
            self.tables,
            self.learners[0].loss,
            scale=None if self.tree.final_scale == 1 else SCALE,
            columns=self.columns,
            precision=self.options.precision,
        )

    def forget_samples(self) -> None:
        """Give back graphs and tables; they are made anew if they are needed again."""
        self.graphs.clear()
        self.batches.clear()
        for name in ("tables", "passes"):
            vars(self).pop(name, None)

    def leave(self) -> None:
        """Note that one of the trees takes no more steps here; after the last one, memory is given back."""
        self.users -= 1
        if not self.users:
            self.forget_samples()

    @torch.no_grad()
    def train_epoch(self, generators: Sequence[torch.Generator]) -> list[EpochRecord]:
        """Take the steps of one epoch; returns the mean loss of each tree, and what `evaluate` finds after it.

        The host reads all of it at once, so that it waits for the device only once in an epoch.

        Parameters
        ----------
        generators : sequence of torch.Generator
            They draw the order of the samples of each tree; on the device.
        """
        self.plan.begin_epoch(self.steps)
        self.total.zero_()
        self.done.zero_()
        if self.learners[0].train.is_stream:
            self._take_stream(generators[0])
        else:
            if max(self.samples) > self.batch_size:
                self.tables.order.copy_(random_orders(self.samples, generators, self.device))
            self.take(max(self.samples))
        self.steps += self.pace.steps_an_epoch
        return _read({"train_loss": self.total / self.counts} | self._evaluate())

    def take(self, samples: int) -> None:
        """Take the steps for this many samples of the tables."""
        whole, last = divmod(samples, self.batch_size)
        self.graphs.run(whole, self.batch_size)
        if last:
            self.graphs.run(1, last)

    def _take_stream(self, generator: torch.Generator) -> None:
        """Take the steps for the parts of a stream, each of which is copied to the table."""
        seen, epoch = 0, self.steps // self.pace.steps_an_epoch
        for part in self.learners[0].train.parts(epoch, self.batch_size, generator, processes()):
            if self.tables.load(self.tables.table(self.learners[0], part.samples)):
                self.graphs.clear()  # they read the old table
            self.done.fill_(seen)
            self.take(len(part.samples))
            seen += len(part.samples)

    def batch(self, size: int, *, trains: bool, counts: list[int] | None = None) -> Batch:
        """The memory for a batch of this size, in which trees may have fewer samples."""
        key = (size, trains, None if counts is None else tuple(counts))
        if key not in self.batches:
            shape = self.layout, len(self.learners), size, self.tables.columns, self.device
            self.batches[key] = Batch(*shape, trains=trains, counts=counts)
        return self.batches[key]

    @torch.no_grad()
    def take_step(self, ahead: int, size: int) -> None:
        """Take the step after the next `ahead` ones, on batches of this many samples."""
        numbers, passes, lam = Numbers(self.plan.numbers, self.plan.step, ahead), self.passes, self._strength(size)
        batch, tables = self.batch(size, trains=True, counts=self._counts(size)), self.tables
        kernels.gather(
            tables.train, tables.order, self.done, numbers, self.batch_size, batch.inputs, batch.rest, self.layout.ones
        )
        if self.columns is not None:
            count = numbers.table.index_select(0, (numbers.step + ahead).view(1))[0, COLUMNS]
            self.columns.choose(self.layout.splits.of(self.theta), count)
        passes.scores(self.theta, batch)
        passes.masses(batch, numbers, lam)
        passes.outputs(self.theta, batch, numbers)
        passes.compare(batch, replaces=True)
        passes.backward(self.theta, batch, numbers, lam)
        kernels.add_parts(batch.grad_parts, self.grad, self.squares, batch.losses, batch.losses.shape[1], self.total)
        kernels.adam(
            self.theta, self.m, self.v, self.average, self.grad, self.squares, self.decays, numbers,
            (RATE, MEAN_CORRECTION, SQUARE_CORRECTION, EMA_WEIGHT),
            betas=BETAS, weight_decay=self.options.weight_decay, clip=self.options.gradient_clip,
        )  # fmt: skip

    def _counts(self, size: int) -> list[int] | None:
        """The number of samples of each tree in a batch of this size, if some have fewer: in the last of an epoch."""
        if len(set(self.samples)) == 1 or size == self.batch_size:
            return None
        return [samples % self.batch_size for samples in self.samples]

    def _strength(self, size: int) -> float:
        meant_for = self.tree.batch_size
        return self.tree.pruning_strength * (1.0 if meant_for is None else size / meant_for)

    @torch.no_grad()
    def evaluate(self) -> list[EpochRecord]:
        """For each tree the share of nodes that stay active, if masses are solved, and the validation loss."""
        return _read(self._evaluate())

    def _evaluate(self) -> dict[str, Tensor]:
        """The numbers of `evaluate`, each of shape (trees,), on the device; none without validation samples."""
        if self.tables.valid is None:
            return {}
        weights = self.theta if self.average is None else self.average
        found: dict[str, Tensor] = {}
        if self.learners[0].refreshes:
            self._refresh(weights)
            found["active_nodes"] = (self.mass > 0).double().mean(1)
        return found | {"valid_loss": self._losses(weights, self.tables.valid)}

    def _numbers_now(self) -> Numbers:
        """Numbers with the scale of the scores after the last step."""
        table = torch.zeros(1, SCALE + 1, device=self.device)
        table[0, SCALE] = self.tree.scale_at(self.pace.share(max(0, self.steps - 1)))
        return Numbers(table, torch.zeros((), dtype=torch.int64, device=self.device), 0)

    def _read(self, rows: Tensor, numbers: Numbers, counts: list[int] | None = None) -> Batch:
        """A batch of rows of a table, (trees, n, columns), of which trees may have fewer."""
        n = rows.shape[1]
        batch = self.batch(n, trains=False, counts=counts)
        kernels.gather(rows, None, self.done, numbers, n, batch.inputs, batch.rest, self.layout.ones)
        return batch

    def _refresh(self, weights: Tensor) -> None:
        """Solve the masses on some of the samples."""
        numbers = self._numbers_now()
        batch = self._read(self.tables.some, numbers, self.tables.some_counts)
        self.passes.scores(weights, batch)
        self.passes.masses(batch, numbers, self._strength(batch.size))
        self.mass.copy_(capped(batch.roots))

    def _losses(self, weights: Tensor, table: Tensor) -> Tensor:
        """The mean losses of trees with these weights on a table, (trees,)."""
        numbers, passes = self._numbers_now(), self.passes
        size = max(1024, min(EVALUATED_OF_ONE, EVALUATED // len(weights)))
        total = torch.zeros(len(weights), dtype=torch.float64, device=self.device)
        for begin in range(0, table.shape[1], size):
            batch = self._read(table[:, begin : begin + size], numbers)
            batch.roots.copy_(self.mass)
            passes.scores(weights, batch)
            passes.outputs(weights, batch, numbers)
            passes.compare(batch, replaces=False)
            total += batch.losses.sum(1, dtype=torch.float64)
        return total / table.shape[1]


def _read(numbers: dict[str, Tensor]) -> list[EpochRecord]:
    """Numbers of several trees, each of shape (trees,), as a record for each tree."""
    return [dict(zip(numbers, values, strict=True)) for values in torch.stack(list(numbers.values()), 1).tolist()]
