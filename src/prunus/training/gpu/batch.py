"""The memory of a step: a batch of samples of several trees, and all that is computed from it."""

import math

import torch
from torch import Tensor

from prunus.nn.gpu_layout import GpuLayout
from prunus.ops.heap import n_splits
from prunus.ops.triton.step import blocks_of

__all__ = ["Batch"]

MAX_PARTS, PART = 32, 128
"""Gradients of the weights are summed over this many parts of a batch at most, each with at least this many samples."""
PARTS_OF_ALL = 256
"""With several trees, all batches together have this many parts at most."""


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
