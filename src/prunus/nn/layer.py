"""The tree as a layer: inputs to routes."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from prunus.errors import InputValueError
from prunus.nn.checks import check_batch_size, check_depth, check_pruning_strength
from prunus.nn.modes import evaluating
from prunus.ops import TreeArgmin, tree_traverse
from prunus.ops.checks import shape
from prunus.ops.heap import n_nodes, n_splits
from prunus.ops.masses import streamed_masses
from prunus.ops.routes import tree_routes

__all__ = ["TreeLayer"]

CHUNK = 8192
CELLS = 2**22
"""Samples times nodes up to which masses are solved for at once: 16 MiB for their routes."""


class TreeLayer(nn.Module):
    """A tree whose splits, routes and pruning are learned together.

    While training, routes and node masses solve one program over the batch, see `prunus.ops.tree_traverse`. In eval
    mode each sample is routed on its own through a tree with the masses stored in the buffer ``a``, which
    `solve_masses` sets from data once; before that it is a tree in which nothing is pruned.

    Parameters
    ----------
    split : Module
        From the input to scores of shape (n, 2**depth - 1).
    depth : int
        Depth of the tree.
    pruning_strength : float
        How strongly nodes that few samples reach are pruned: lam of the program.
    batch_size : int, optional
        The number of samples that pruning_strength is meant for; with other numbers of them it is scaled in
        proportion. By default it is meant for whatever batch is given.

    Examples
    --------
    >>> from prunus.nn import LinearSplit
    >>> layer = TreeLayer(LinearSplit(5, depth=3), depth=3, pruning_strength=1.0)
    >>> z, a = layer(torch.randn(10, 5))
    >>> z.shape, a.shape
    (torch.Size([10, 15]), torch.Size([15]))
    """

    a: Tensor

    def __init__(
        self, split: nn.Module, depth: int, pruning_strength: float = 1.0, *, batch_size: int | None = None
    ) -> None:
        super().__init__()
        self.split = split
        self.depth = check_depth(depth)
        self.pruning_strength = check_pruning_strength(pruning_strength)
        self.batch_size = check_batch_size(batch_size)
        self.register_buffer("a", torch.ones(n_nodes(self.depth)))

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> TreeArgmin:
        """Routes z, (n, T), and node masses a, (T,)."""
        s = self._scores(x)
        if self.training:
            return tree_traverse(s, self._strength(s.shape[0]), sample_weight=sample_weight)
        return TreeArgmin(tree_routes(s, self.a), self.a)

    @torch.no_grad()
    def solve_masses(
        self,
        x: Tensor,
        sample_weight: Tensor | None = None,
        *,
        batch_size: int | None = None,
        inputs: Callable[[Tensor], Tensor] = lambda x: x,
        chunk: int = CHUNK,
    ) -> None:
        """Store the node masses of these samples for eval mode.

        Parameters
        ----------
        x : Tensor
            The training data, or a large part of it.
        sample_weight : Tensor of shape (n,), optional
            Weights, 1 on average.
        batch_size : int, optional
            The number of samples that pruning_strength was used with in training; by default the layer's own.
        inputs : callable
            Applied to x before the split, a chunk at a time; a module is in eval mode meanwhile.
        chunk : int
            Samples that pass inputs and split at a time: bounds their memory.
        """
        if not len(x):
            raise InputValueError(f"masses are those of samples: there must be one at least, got x.shape={shape(x)}")
        meant_for = check_batch_size(batch_size) or self.batch_size or len(x)
        with evaluating(self, inputs):
            self.a.copy_(self._masses(x, sample_weight, self.pruning_strength * len(x) / meant_for, inputs, chunk))

    def _masses(
        self, x: Tensor, weight: Tensor | None, lam: float, inputs: Callable[[Tensor], Tensor], chunk: int
    ) -> Tensor:
        def chunks(x: Tensor, weight: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
            for k in range(0, len(x), chunk):
                rows = slice(k, k + chunk)
                yield self._scores(inputs(x[rows])), None if weight is None else weight[rows]

        step = math.ceil(len(x) * len(self.a) / CELLS)  # one in every step samples can be solved for at once: often all
        some, some_weight = x[::step], None if weight is None else weight[::step]
        s = torch.cat([of_rows for of_rows, _ in chunks(some, some_weight)])
        a = tree_traverse(s, lam * len(some) / len(x), sample_weight=some_weight).a
        return a if step == 1 else streamed_masses(lambda: chunks(x, weight), lam, a.double())

    def _scores(self, x: Tensor) -> Tensor:
        s: Tensor = self.split(x)
        if s.ndim != 2 or s.shape[1] != n_splits(self.depth):
            raise InputValueError(
                f"a split for depth {self.depth} must return scores of shape (n, {n_splits(self.depth)}), "
                f"got {type(self.split).__name__} returned {shape(s)}"
            )
        return s

    def _strength(self, n: int) -> float:
        return self.pruning_strength if self.batch_size is None else self.pruning_strength * n / self.batch_size

    def extra_repr(self) -> str:
        """The options, for printing."""
        return f"depth={self.depth}, pruning_strength={self.pruning_strength}, batch_size={self.batch_size}"
