"""Trees of one shape that take their steps together on a GPU."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from prunus.nn import TreeModel
from prunus.nn.gpu_layout import GpuLayout, Matrix
from prunus.ops.triton import step as kernels
from prunus.ops.triton.step import Numbers
from prunus.training.callbacks import EpochRecord
from prunus.training.gpu.batch import Batch
from prunus.training.gpu.graphs import StepGraphs
from prunus.training.gpu.plan import (
    BETAS,
    COLUMNS,
    FORGET,
    MEAN_CORRECTION,
    RATE,
    SCALE,
    SQUARE_CORRECTION,
    StepPlan,
)
from prunus.training.losses import NamedLoss, mean_loss
from prunus.training.masses import sampling_step
from prunus.training.native_losses import compared, native_name
from prunus.training.options import TrainingOptions
from prunus.training.pace import Pace
from prunus.training.samples import Samples, random_orders
from prunus.training.streams import SampleStream, in_memory
from prunus.training.torch_engine import decaying

__all__ = ["Learner", "Trees"]

EVALUATED = 524_288
"""Number of samples, of all trees together, that are evaluated at once."""
CHUNK = 262_144
"""Number of samples whose inputs are computed at once."""


class Learner(NamedTuple):
    """A tree that is to be trained, and what from."""

    model: TreeModel
    loss: NamedLoss
    options: TrainingOptions
    pace: Pace
    train: Samples | SampleStream
    valid: Samples | None
    refreshes: bool
    """Whether masses are solved between epochs."""

    @property
    def is_weighted(self) -> bool:
        """Whether some of the samples have weights; others then weigh 1."""
        return any(
            samples is not None and samples.weight is not None for samples in (in_memory(self.train), self.valid)
        )


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
    used : Tensor of shape (trees, splits, inputs) or None
        The columns in use, 1 or 0, if splits have few.
    """

    def __init__(self, learners: Sequence[Learner]) -> None:
        self.learners = list(learners)
        first = self.learners[0]
        self.options, self.loss, self.pace = first.options, first.loss, first.pace
        self.tree, self.layout = first.model.tree, GpuLayout(first.model)
        self.device = next(first.model.parameters()).device
        split: Any = self.tree.split
        self.split = split
        self.scale = None if self.tree.final_scale == 1 else SCALE
        self.plan = StepPlan(self.pace, self.device, self.tree.scale_at, split.columns_at)
        self.graphs = StepGraphs(self.take_step, self.plan.step)
        self.batches: dict[tuple[int, int, bool], Batch] = {}
        self.done = torch.zeros((), dtype=torch.int64, device=self.device)
        self.total = torch.zeros(len(learners), dtype=torch.float64, device=self.device)
        self.steps, self.users = 0, len(learners)
        self.has_samples = False
        self._start()

    def _start(self) -> None:
        """The state at the start: parameters, moments, and the columns of splits that have few."""
        models = [learner.model for learner in self.learners]
        self.theta = torch.stack([self.layout.read(model) for model in models])
        self.average = self.theta.clone() if self.options.average else None
        self.m, self.v, self.grad = (torch.zeros_like(self.theta) for _ in range(3))
        self.squares = self.theta.new_zeros(len(models), kernels.norm_blocks(self.layout.size))
        self.decays = self.layout.decays(models[0], decaying(models[0], self.options.no_decay))
        self.mass = torch.stack([model.tree.a.detach() for model in models])
        self.used: Tensor | None = None
        if self.split.max_columns is not None:
            splits: list[Any] = [model.tree.split for model in models]
            self.used = torch.stack([split.used.detach() for split in splits])
            owner = torch.tensor(self.split.owner, device=self.device)
            self.owner = owner
            self.of_columns = nn.functional.one_hot(owner).to(self.theta.dtype)
            self.used_weights = torch.zeros_like(self.layout.splits.of(self.theta))

    @torch.no_grad()
    def _read_samples(self) -> None:
        """Compute the inputs of all samples, which do not change during training, before the first step."""
        learners = self.learners
        self.has_samples = True
        self.is_stream = isinstance(learners[0].train, SampleStream)
        self.weighted = learners[0].is_weighted
        self.samples = len(learners[0].train)
        self.batch_size = min(self.options.batch_size, self.samples)
        table = torch.stack([self._table(learner, in_memory(learner.train)) for learner in learners])
        self.few = table[:, :: sampling_step(table.shape[1])].contiguous()
        self.table = table
        self.order = torch.arange(table.shape[1], device=self.device).repeat(len(learners), 1)
        self.valid = [None if x.valid is None else self._table(x, x.valid).unsqueeze(0) for x in learners]
        lengths = {0 if valid is None else valid.shape[1] for valid in self.valid}
        if len(lengths) == 1 and None not in self.valid:
            together = torch.cat([valid for valid in self.valid if valid is not None])
            self.valid = [together[k : k + 1] for k in range(len(learners))]
            self.all_valid: Tensor | None = together
        else:
            self.all_valid = None

    def _table(self, learner: Learner, samples: Samples) -> Tensor:
        """Side by side: inputs of the leaves in their places, those of the splits, targets, offsets and weights."""
        model, layout, n = learner.model, self.layout, len(samples)
        head = samples[:1]
        mean_loss(self.loss, head.x.new_zeros(len(head), layout.outputs), head.y, head.weight)  # raises clear errors
        found = compared(self.loss, samples.y)
        self.targets, self.has_offset = found.target.shape[1], found.offset is not None
        self.first_target = layout.own_inputs
        rest = [found.target, *([] if found.offset is None else [found.offset])]
        if self.weighted:
            rest.append(samples.x.new_ones(n, 1) if samples.weight is None else samples.weight.unsqueeze(1))
        columns = layout.own_inputs + sum(part.shape[1] for part in rest)
        table = torch.zeros(n, layout.ones + columns, device=self.device)
        own = table[:, layout.ones :]
        places = layout.places.to(self.device)
        for begin in range(0, n, CHUNK):
            rows = slice(begin, begin + CHUNK)
            table[rows, places] = model.inputs(samples.x[rows])
            if model.split_inputs is not None:
                own[rows, : samples.x.shape[1]] = model.split_inputs(samples.x[rows])
                own[rows, layout.split_ones] = 1.0
        column = layout.own_inputs
        for part in rest:
            own[:, column : column + part.shape[1]] = part
            column += part.shape[1]
        return table

    @torch.no_grad()
    def train_epoch(self, generators: Sequence[torch.Generator]) -> list[float]:
        """Take the steps of one epoch and return the mean loss of each tree.

        Parameters
        ----------
        generators : sequence of torch.Generator
            They draw the order of the samples of each tree; on the device.
        """
        if not self.has_samples:
            self._read_samples()
        self.plan.begin_epoch(self.steps)
        self.total.zero_()
        self.done.zero_()
        if self.is_stream:
            self._take_stream()
        else:
            if self.samples > self.batch_size:
                self.order.copy_(random_orders(self.samples, generators, self.device))
            self._take(self.samples)
        self.steps += self.pace.steps_an_epoch
        losses: list[float] = (self.total / self.samples).tolist()
        return losses

    def _take(self, samples: int) -> None:
        """Take the steps for so many samples of the table."""
        whole, last = divmod(samples, self.batch_size)
        self.graphs.run(whole, self.batch_size)
        if last:
            self.graphs.run(1, last)

    def _take_stream(self) -> None:
        """Take the steps for the chunks of a stream, each of which is copied to the table."""
        (learner,) = self.learners
        stream = learner.train
        assert isinstance(stream, SampleStream)
        seen = 0
        for chunk in stream.epoch(self.steps // self.pace.steps_an_epoch, self.batch_size):
            self._load(self._table(learner, chunk.to(self.device)))
            self.done.fill_(seen)
            self._take(len(chunk))
            seen += len(chunk)

    def _load(self, rows: Tensor) -> None:
        """Copy rows to the table; if it is too small, it is made anew, and so are the graphs that read it."""
        if len(rows) > self.table.shape[1]:
            self.table = rows.new_zeros(1, *rows.shape)
            self.order = torch.arange(len(rows), device=self.device).unsqueeze(0)
            self.graphs = StepGraphs(self.take_step, self.plan.step)
        self.table[0, : len(rows)] = rows

    def leave(self) -> None:
        """Note that one of the trees takes no more steps here; after the last one, graphs and tables are given back."""
        self.users -= 1
        if self.users:
            return
        self.graphs.clear()
        self.batches.clear()
        self.has_samples = False
        for name in ("table", "few", "order", "valid", "all_valid"):
            vars(self).pop(name, None)

    def batch(self, size: int, trees: int, *, trains: bool) -> Batch:
        """The memory for a batch of this size."""
        key = (size, trees, trains)
        if key not in self.batches:
            rest = self.table.shape[2] - self.layout.ones
            self.batches[key] = Batch(self.layout, trees, size, rest, self.device, trains=trains)
        return self.batches[key]

    @torch.no_grad()
    def take_step(self, ahead: int, size: int) -> None:
        """Take the step after the next `ahead` ones, on batches of so many samples."""
        numbers = Numbers(self.plan.numbers, self.plan.step, ahead)
        batch = self.batch(size, len(self.learners), trains=True)
        order = self.order
        kernels.gather(
            self.table, order, self.done, numbers, self.batch_size, batch.inputs, batch.rest, self.layout.ones
        )
        if self.used is not None:
            self._choose_columns(numbers)
        self._masses(self.theta, self.used, batch, numbers, self._strength(size))
        self._outputs(self.theta, batch, numbers)
        self._compare(batch, replaces=True)
        self._backward(batch, numbers, self._strength(size))
        kernels.add_parts(batch.grad_parts, self.grad, self.squares, batch.losses, batch.losses.shape[1], self.total)
        kernels.adam(
            self.theta, self.m, self.v, self.average, self.grad, self.squares, self.decays, numbers,
            (RATE, MEAN_CORRECTION, SQUARE_CORRECTION, FORGET),
            betas=BETAS, weight_decay=self.options.weight_decay, clip=self.options.gradient_clip,
        )  # fmt: skip

    def _strength(self, size: int) -> float:
        meant_for = self.tree.batch_size
        return self.tree.pruning_strength * (1.0 if meant_for is None else size / meant_for)

    def _weights_of(self, batch: Batch) -> Tensor | None:
        return batch.rest if self.weighted else None

    def _choose_columns(self, numbers: Numbers) -> None:
        """Keep fewer columns in each split, as `LinearSplit.on_progress` does."""
        assert self.used is not None
        count = numbers.table.index_select(0, (numbers.step + numbers.ahead).view(1))[0, COLUMNS]
        weights = self.layout.splits.of(self.theta)[..., : self.used.shape[2]] * self.used
        size = weights.square() @ self.of_columns
        rank = size.argsort(dim=2, descending=True, stable=True).argsort(dim=2)
        self.used.mul_((rank < count).to(self.used.dtype).index_select(2, self.owner))

    def _split_weights(self, theta: Tensor, used: Tensor | None) -> Tensor:
        weights = self.layout.splits.of(theta)
        if used is None:
            return weights
        effective = self.used_weights[: len(theta)]
        effective.copy_(weights)
        effective[..., : used.shape[2]].mul_(used)
        return effective

    def _masses(self, theta: Tensor, used: Tensor | None, batch: Batch, numbers: Numbers, lam: float | None) -> None:
        """Scores, and masses if a strength is given."""
        _product(self._split_weights(theta, used), batch.for_splits.transpose(1, 2), batch.scores)
        if lam is not None:
            kernels.rewards(batch.scores, numbers, self.scale, batch.rewards)
            kernels.roots(batch.rewards, self._weights_of(batch), lam, batch.roots)

    def _outputs(self, theta: Tensor, batch: Batch, numbers: Numbers) -> None:
        """Routes, and outputs of the leaves."""
        layout, last = self.layout, len(self.layout.layers) - 1
        if layout.is_constant:
            constants, first = layout.layers[0].of(theta), layout.routes.start
            kernels.constant_outputs(batch.scores, batch.roots, numbers, self.scale, constants, first, batch.out)
            return
        kernels.write_routes(batch.scores, batch.roots, numbers, self.scale, batch.inputs, layout.first_route)
        with self._precision():
            for i, layer in enumerate(layout.layers):
                out = batch.out if i == last else batch.hidden[i][:, :, : layer.rows]
                _product(batch.layer_inputs(i), layer.of(theta).transpose(1, 2), out)
                if i < last:
                    kernels.elu_(batch.hidden[i], layer.rows)
        if layout.models is not None:
            assert batch.models is not None
            _product(batch.for_models, layout.models.of(theta).transpose(1, 2), batch.models)
            kernels.node_outputs(batch.models, batch.inputs, layout.first_route, batch.out)

    def _compare(self, batch: Batch, *, replaces: bool) -> None:
        name = native_name(self.loss)
        assert name is not None
        kernels.compare(
            name, self.loss.parameter, batch.out, batch.rest, self.first_target, self.targets,
            has_offset=self.has_offset, weighted=self.weighted, sums=batch.losses, replaces=replaces,
        )  # fmt: skip

    def _backward(self, batch: Batch, numbers: Numbers, lam: float) -> None:
        """Gradients of all parameters, from those of the outputs, which have replaced these."""
        layout, weights = self.layout, self._weights_of(batch)
        grad, constants, first = batch.route_grads, None, layout.routes.start
        if layout.is_constant:
            grad, constants = batch.out, layout.layers[0].of(self.theta)
            grads = layout.layers[0].of(batch.grad_parts[:, 0])
            kernels.constant_grads(
                batch.rewards, weights, lam, batch.roots, grad, constants, first, batch.mass_grads, grads
            )
        else:
            self._back_to_routes(batch)
            kernels.mass_grads(batch.rewards, weights, lam, batch.roots, grad, batch.mass_grads)
        kernels.score_grads(
            batch.scores, weights, batch.roots, batch.mass_grads, numbers, self.scale, grad, batch.score_grads,
            constants, first,
        )  # fmt: skip
        self._sum_products(batch, layout.splits, batch.score_grads, batch.for_splits)
        if self.used is not None:
            layout.splits.of(batch.grad_parts)[..., : self.used.shape[2]].mul_(self.used.unsqueeze(1))

    def _back_to_routes(self, batch: Batch) -> None:
        """Gradients of the leaves, and of the routes."""
        layout, theta = self.layout, self.theta
        with self._precision():
            grad = batch.out
            for i in reversed(range(len(layout.layers))):
                self._sum_products(batch, layout.layers[i], grad, batch.layer_inputs(i))
                if i:
                    below = batch.hidden_grads[i - 1]
                    _product(grad, layout.layers[i].of(theta)[:, :, : layout.hidden[i - 1]], below)
                    kernels.elu_grads_(below, batch.hidden[i - 1])
                    grad = below
            if layout.models is None:
                to_routes = layout.layers[0].of(theta)[:, :, layout.routes]
                _product(to_routes.transpose(1, 2), grad.transpose(1, 2), batch.route_grads)
        if layout.models is not None:
            assert batch.models is not None
            kernels.node_grads(batch.models, batch.inputs, layout.first_route, batch.out, batch.route_grads)
            self._sum_products(batch, layout.models, batch.models, batch.for_models)

    def _sum_products(self, batch: Batch, matrix: Matrix, grads: Tensor, inputs: Tensor) -> None:
        """Gradients of a matrix in parts: sums over samples of the products of gradients and inputs."""
        out = matrix.of(batch.grad_parts.flatten(0, 1))
        _product(batch.in_parts(grads).transpose(1, 2), batch.in_parts(inputs), out)

    @contextmanager
    def _precision(self) -> Iterator[None]:
        """The precision of the products of networks."""
        if self.options.precision != "tf32" or not self.layout.is_network:
            yield
            return
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)

    @torch.no_grad()
    def evaluate(self) -> list[EpochRecord]:
        """For each tree the share of nodes that stay active, if masses are solved, and the validation loss."""
        if not self.has_samples:
            self._read_samples()
        weights = self.theta if self.average is None else self.average
        records: list[EpochRecord] = [{} for _ in self.learners]
        if self.learners[0].refreshes:
            self._refresh(weights)
            shares = (self.mass > 0).double().mean(1).tolist()
            records = [{"active_nodes": share} for share in shares]
        if self.all_valid is not None:
            losses = self._losses(weights, self.all_valid, slice(None))
        else:
            losses = [
                math.nan if valid is None else self._losses(weights, valid, slice(k, k + 1))[0]
                for k, valid in enumerate(self.valid)
            ]
        return [record | {"valid_loss": loss} for record, loss in zip(records, losses, strict=True)]

    def _numbers_now(self) -> Numbers:
        """Numbers with the scale of the scores after the last step."""
        scale = self.tree.scale_at(self.pace.share(max(0, self.steps - 1)))
        table = torch.zeros(1, SCALE + 1, device=self.device)
        table[0, SCALE] = scale
        return Numbers(table, torch.zeros((), dtype=torch.int64, device=self.device), 0)

    def _refresh(self, weights: Tensor) -> None:
        """Solve the masses on some of the samples."""
        n, numbers = self.few.shape[1], self._numbers_now()
        batch = self.batch(n, len(self.learners), trains=False)
        kernels.gather(self.few, None, self.done, numbers, n, batch.inputs, batch.rest, self.layout.ones)
        self._masses(weights, self.used, batch, numbers, self._strength(n))
        self.mass.copy_(kernels.cap(batch.roots))

    def _losses(self, weights: Tensor, table: Tensor, which: slice) -> list[float]:
        """The mean losses of some of the trees with these weights on the rows of a table, (trees, rows, columns)."""
        weights, used = weights[which], None if self.used is None else self.used[which]
        size, numbers = max(1024, min(65_536, EVALUATED // len(weights))), self._numbers_now()
        total = torch.zeros(len(weights), dtype=torch.float64, device=self.device)
        for begin in range(0, table.shape[1], size):
            rows = table[:, begin : begin + size]
            batch = self.batch(rows.shape[1], len(weights), trains=False)
            kernels.gather(rows, None, self.done, numbers, size, batch.inputs, batch.rest, self.layout.ones)
            batch.roots.copy_(self.mass[which])
            self._masses(weights, used, batch, numbers, None)
            self._outputs(weights, batch, numbers)
            self._compare(batch, replaces=False)
            total += batch.losses.sum(1, dtype=torch.float64)
        losses: list[float] = (total / table.shape[1]).tolist()
        return losses


def _product(a: Tensor, b: Tensor, out: Tensor) -> None:
    """The products of matrices, written to `out`; a single one takes the faster way."""
    if len(a) == 1:
        torch.mm(a[0], b[0], out=out[0])
    else:
        torch.bmm(a, b, out=out)
