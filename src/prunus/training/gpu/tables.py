"""The memory of the fused engine: tables of all samples of several trees, and a batch with all that follows from it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from prunus.nn import TreeModel
from prunus.ops.heap import n_splits
from prunus.ops.triton.step import blocks_of
from prunus.training.gpu.layout import GpuLayout
from prunus.training.losses import NamedLoss, compared, mean_loss
from prunus.training.masses import sampling_step
from prunus.training.options import TrainerOptions
from prunus.training.samples import Samples, TrainingSamples
from prunus.training.schedules import Pace

__all__ = ["Batch", "Learner", "Tables"]

CHUNK = 262_144
"""Number of samples whose inputs are computed at once."""
MAX_PARTS, PART = 32, 128
"""Gradients of the weights are summed over this many parts of a batch at most, each with at least this many samples."""
PARTS_OF_ALL = 256
"""With several trees, all batches together have this many parts at most."""


class Learner(NamedTuple):
    """A tree that is to be trained, and what from."""

    model: TreeModel
    loss: NamedLoss
    options: TrainerOptions
    pace: Pace
    train: TrainingSamples
    valid: Samples | None
    refreshes: bool
    """Whether masses are solved between epochs."""

    @property
    def is_weighted(self) -> bool:
        """Whether some of the samples have weights; others then weigh 1."""
        return any(some is not None and some.weight is not None for some in (self.train.in_memory, self.valid))


class Tables:
    """The samples of trees of one shape, as tables of shape (trees, samples, columns).

    Inputs do not change during training, so they are computed once. The columns are the inputs of the leaves in their
    places, then the inputs of the splits, if these are others, targets, offsets of the outputs, and weights.

    If trees have different numbers of samples, tables are filled up with rows of weight 0.

    Parameters
    ----------
    learners : sequence of Learner
    layout : GpuLayout

    Attributes
    ----------
    train : Tensor
        The training samples, or of a stream those that are at hand.
    counts : list of int
        The number of training samples of each tree.
    order : int64 Tensor of shape (trees, samples)
        The order in which steps take them.
    some : Tensor
        Every so many of them, on which masses are solved between epochs.
    some_counts : list of int
        How many these are, for each tree.
    valid : Tensor or None
    targets : int
        Number of columns of targets.
    has_offset, weighted : bool
    """

    @torch.no_grad()
    def __init__(self, learners: Sequence[Learner], layout: GpuLayout) -> None:
        self.layout, self.weighted = layout, learners[0].is_weighted
        self.targets, self.has_offset = 0, False
        tables = [self.table(learner, learner.train.in_memory) for learner in learners]
        some = [table[:: sampling_step(len(table))] for table in tables]
        self.counts, self.some_counts = [len(table) for table in tables], [len(table) for table in some]
        self.train, self.some = _stacked(tables), _stacked(some)
        self.order = torch.arange(self.train.shape[1], device=self.train.device).repeat(len(learners), 1)
        valid = [self.table(learner, learner.valid) for learner in learners if learner.valid is not None]
        self.valid = _stacked(valid) if valid else None

    @property
    def columns(self) -> int:
        """Number of columns after the inputs of the leaves."""
        return self.train.shape[2] - self.layout.ones

    def load(self, rows: Tensor) -> bool:
        """Copy rows of a stream to the table of the one tree; return whether it was too small and made anew."""
        is_larger = len(rows) > self.train.shape[1]
        if is_larger:
            self.train = rows.new_zeros(1, *rows.shape)
            self.order = torch.arange(len(rows), device=rows.device).unsqueeze(0)
        self.train[0, : len(rows)] = rows
        return is_larger

    def table(self, learner: Learner, samples: Samples) -> Tensor:
        """The table of samples of one tree, (samples, columns)."""
        model, layout, n = learner.model, self.layout, len(samples)
        first = samples[:1]
        out = first.x.new_zeros(len(first), layout.outputs)
        mean_loss(learner.loss, out, first.y, first.weight)  # raises clear errors
        found = compared(learner.loss, samples.y)
        self.targets, self.has_offset = found.target.shape[1], found.offset is not None
        rest = [found.target, *([] if found.offset is None else [found.offset])]
        if self.weighted:
            rest.append(samples.x.new_ones(n, 1) if samples.weight is None else samples.weight.unsqueeze(1))
        table = samples.x.new_zeros(n, layout.ones + layout.own_inputs + sum(part.shape[1] for part in rest))
        own = table[:, layout.ones :]
        places = layout.places.to(table.device)
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


def _stacked(tables: list[Tensor]) -> Tensor:
    """Tables of several trees as one, filled up with rows of zeros."""
    stacked = tables[0].new_zeros(len(tables), max(map(len, tables)), tables[0].shape[1])
    for place, table in zip(stacked, tables, strict=True):
        place[: len(table)] = table
    return stacked


class Batch:
    """The memory for a batch of this size, which steps use again and again.

    Parameters
    ----------
    layout : GpuLayout
    trees : int
    size : int
        Number of samples of each tree.
    rest : int
        Number of columns besides the inputs of the leaves.
    device : torch.device
    trains : bool
        Whether there are gradients.
    counts : list of int, optional
        The number of samples of each tree, if not all have as many.
    """

    def __init__(
        self,
        layout: GpuLayout,
        trees: int,
        size: int,
        rest: int,
        device: torch.device,
        *,
        trains: bool,
        counts: list[int] | None = None,
    ) -> None:
        def new(*shape: int) -> Tensor:
            return torch.zeros(trees, *shape, device=device)

        self.layout, self.size = layout, size
        differ = counts is not None and set(counts) != {size}
        self.counts = torch.tensor(counts, dtype=torch.float32, device=device) if differ else None
        splits, nodes, stride = n_splits(layout.depth), layout.nodes, -(-size // 16) * 16
        self.inputs = new(size, layout.width)
        self.inputs[:, :, layout.ones] = 1.0
        self.rest = new(size, rest)
        self.scores = new(splits, stride)[:, :, :size]
        self.rewards = new(nodes, stride)[:, :, :size]
        self.roots = new(nodes)
        self.models = None if layout.models is None else new(size, layout.models.rows)
        self.hidden = [new(size, layout.padded(units + 1)) for units in layout.hidden]
        for values, units in zip(self.hidden, layout.hidden, strict=True):
            values[:, :, units] = 1.0
        self.out = new(size, layout.outputs)
        self.losses = new(blocks_of(size))
        if not trains:
            return
        self.parts = _parts(size, min(MAX_PARTS, max(1, PARTS_OF_ALL // trees)))
        self.hidden_grads = [new(size, units) for units in layout.hidden]
        self.route_grads = new(nodes, stride)[:, :, :size]
        self.mass_grads = new(nodes)
        self.score_grads = new(size, splits)
        self.grad_parts = new(self.parts, layout.size)

    @property
    def for_splits(self) -> Tensor:
        """The inputs of the splits with a column of ones, (trees, size, columns)."""
        own = self.layout.own_inputs
        return self.rest[:, :, :own] if own else self.inputs[:, :, : self.layout.first_route]

    @property
    def for_leaves(self) -> Tensor:
        """The inputs of the first layer of the leaves, (trees, size, columns)."""
        return self.inputs[:, :, self.layout.first_leaf : self.layout.last_leaf]

    @property
    def for_models(self) -> Tensor:
        """The inputs of the models of the nodes with a column of ones, (trees, size, columns)."""
        return self.inputs[:, :, self.layout.first_model : self.layout.first_route]

    def layer_inputs(self, layer: int) -> Tensor:
        """The inputs of a layer of the leaves, (trees, size, columns)."""
        return self.for_leaves if layer == 0 else self.hidden[layer - 1]

    def in_parts(self, values: Tensor) -> Tensor:
        """Values of samples, (trees, size, columns), as (trees * parts, samples of a part, columns)."""
        trees, size, columns = values.shape
        samples = size // self.parts
        return values.as_strided(
            (trees * self.parts, samples, columns), (samples * values.stride(1), *values.stride()[1:])
        )


def _parts(size: int, most: int) -> int:
    """The largest number of equal parts, at most this many, each with enough samples."""
    return next((p for p in range(min(most, max(1, size // PART)), 0, -1) if size % p == 0), math.gcd(1, size))
