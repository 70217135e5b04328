"""The tree as a torch module: from inputs to routes and node masses, and the whole model with a head."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from prunus.errors import InputValueError
from prunus.nn.checks import check_batch_size, check_depth, check_pruning_strength, evaluating, without_autocast
from prunus.nn.splits import Split
from prunus.ops import TreeArgmin, tree_traverse
from prunus.ops.heap import n_nodes, n_splits
from prunus.ops.library import shape
from prunus.ops.masses import Chunks, has_linear_masses, linear_masses, streamed_masses
from prunus.ops.routes import tree_routes

__all__ = ["TreeLayer", "TreeModel"]

CHUNK = 8192
HARDENING = (0.1, 0.9)
"""The part of training, as shares, during which the scale of the scores grows."""
CELLS, GPU_CELLS = 2**22, 2**27
"""Largest number of routes, samples times nodes, for which masses are solved at once: they take 16 MiB on the CPU, and
512 MiB on a GPU, where many small steps would mostly wait for their start."""


Solve = Callable[[Tensor, Tensor | None, Callable[[Tensor, Tensor | None], TreeArgmin]], TreeArgmin]
"""Routes and masses of a part of a batch, given scores, weights, and a function that solves for the whole batch."""


class TreeLayer(nn.Module):
    """A tree whose splits, routes and pruning are learned together.

    In training mode, routes and node masses solve one quadratic program over the batch, see
    `prunus.ops.tree_traverse`. In eval mode, each sample is routed by itself through a tree with the masses in the
    buffer ``a``. `solve_masses` sets these from data; before that they are all 1, and nothing is pruned.

    Parameters
    ----------
    split : Module
        Maps inputs to scores of shape (n, 2**depth - 1).
    depth : int
        Depth of the tree, from 0 to 16.
    pruning_strength : float, default=1.0
        How strongly nodes that few samples reach are pruned: the `lam` of the quadratic program.
    batch_size : int, optional
        The number of samples that `pruning_strength` is meant for; for other numbers it is scaled in proportion. By
        default `pruning_strength` is used for every batch as it is.
    final_scale : float, default=1.0
        Training multiplies scores by a factor that grows from 1 to this, so that ever fewer samples lie in the margin
        of a split. In the end nearly all follow one path if it is about 100 or more.

    Examples
    --------
    >>> from prunus.nn import LinearSplit
    >>> layer = TreeLayer(LinearSplit(5, depth=3), depth=3, pruning_strength=1.0)
    >>> z, a = layer(torch.randn(10, 5))
    >>> z.shape, a.shape
    (torch.Size([10, 15]), torch.Size([15]))
    """

    a: Tensor
    scale: Tensor
    settled: bool
    """Whether the scale of the scores no longer changes."""
    solve_together: Solve | None = None
    """Solves in training mode, if other processes have rows of the same batch; the trainer sets it."""

    def __init__(
        self,
        split: nn.Module,
        depth: int,
        pruning_strength: float = 1.0,
        *,
        batch_size: int | None = None,
        final_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.split = split
        self.depth = check_depth(depth)
        self.pruning_strength = check_pruning_strength(pruning_strength)
        self.batch_size = check_batch_size(batch_size)
        if not 1 <= final_scale < math.inf:
            raise InputValueError(f"final_scale must be finite and at least 1, got {final_scale}")
        self.final_scale = float(final_scale)
        self.settled = final_scale == 1
        self.register_buffer("a", torch.ones(n_nodes(self.depth)))
        if final_scale > 1:  # a part of what is learned
            self.register_buffer("scale", torch.ones((), dtype=torch.float64))

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> TreeArgmin:
        """Routes z, (n, T), and node masses a, (T,). Under autocast they are computed in single precision."""
        return without_autocast(self._routes, x, sample_weight, dtype=self.a.dtype)

    def _routes(self, x: Tensor, sample_weight: Tensor | None) -> TreeArgmin:
        s = self._scores(x)
        if not self.training:
            return TreeArgmin(tree_routes(s, self.a), self.a)
        if self.solve_together is not None:
            return self.solve_together(s, sample_weight, self._solve)
        return self._solve(s, sample_weight)

    def _solve(self, s: Tensor, sample_weight: Tensor | None) -> TreeArgmin:
        return tree_traverse(s, self._strength(s.shape[0]), sample_weight=sample_weight)

    def on_progress(self, share: float) -> None:
        """Set the scale of the scores by the share of the training that is over; the trainer calls this."""
        self.settled = self.settled_at(share)
        self.set_scale(self.scale_at(share))

    def set_scale(self, scale: float | Tensor) -> None:
        """Set the scale of the scores, which a tensor without dimensions on the device may hold."""
        if self.final_scale > 1:
            self.scale.fill_(scale)

    def scale_at(self, share: float) -> float:
        """The scale of the scores when this share of the training is over."""
        begin, end = HARDENING
        return float(self.final_scale ** min(1.0, max(0.0, (share - begin) / (end - begin))))

    def settled_at(self, share: float) -> bool:
        """Whether the scale no longer changes when this share of the training is over."""
        return self.final_scale == 1 or share >= HARDENING[1]

    @torch.no_grad()
    def solve_masses(
        self,
        x: Tensor,
        sample_weight: Tensor | None = None,
        *,
        batch_size: int | None = None,
        inputs: Callable[[Tensor], Tensor] = lambda x: x,
        chunk: int | None = None,
    ) -> None:
        """Solve for the node masses of these samples, and store them for eval mode.

        Parameters
        ----------
        x : Tensor
            The training data, or a large part of it.
        sample_weight : Tensor of shape (n,), optional
            Weights of the samples, 1 on average.
        batch_size : int, optional
            The number of samples that `pruning_strength` was used with in training; by default that of the layer.
        inputs : callable
            A function or module that is applied to each chunk of x before the split. A module is put in eval mode for
            this time.
        chunk : int, optional
            Number of samples in a chunk, which limits the memory that inputs and split need; by default more on a GPU.
        """
        if not len(x):
            raise InputValueError(f"x must have at least one sample to solve for masses, got x.shape={shape(x)}")
        meant_for = check_batch_size(batch_size) or self.batch_size or len(x)
        with evaluating(self, inputs):
            self.a.copy_(self._masses(x, sample_weight, self.pruning_strength * len(x) / meant_for, inputs, chunk))

    @torch.no_grad()
    def refine_masses(
        self,
        chunks: Chunks,
        samples: int,
        *,
        inputs: Callable[[Tensor], Tensor] = lambda x: x,
        passes: int | None = None,
        add_up: Callable[[Tensor], None] = lambda _sums: None,
    ) -> None:
        """Solve for the node masses of samples beyond memory; those that are stored, of a part of them, are the start.

        Parameters
        ----------
        chunks : callable
            Returns a new iterable over all samples at each call, of pairs: x, and weights of shape (m,) or None.
        samples : int
            Number of all samples. Their weights are 1 on average.
        inputs : callable
            A function or module that is applied to each chunk of x before the split, as in `solve_masses`.
        passes : int, optional
            Largest number of passes over the samples; by default as many as it takes.
        add_up : callable
            Replaces sums over these samples, in place, by those over the samples of all processes that share them.
        """

        def scores() -> Iterator[tuple[Tensor, Tensor | None]]:
            for x, weight in chunks():
                yield self._scores(inputs(x)), weight

        lam = self.pruning_strength * samples / (self.batch_size or samples)
        with evaluating(self, inputs):
            self.a.copy_(streamed_masses(scores, lam, self.a.double(), passes, add_up=add_up))

    def _masses(
        self, x: Tensor, weight: Tensor | None, lam: float, inputs: Callable[[Tensor], Tensor], chunk: int | None
    ) -> Tensor:
        planes = self.split.planes(inputs) if isinstance(self.split, Split) else None
        scale = 1.0 if self.final_scale == 1 else float(self.scale)
        linear: Callable[..., Tensor] | None = None
        if planes is not None and x.dtype == planes[0].dtype and has_linear_masses(x, self.depth):
            linear = partial(_linear_masses, planes[0] * scale, planes[1] * scale)
            if x.device.type == "cpu":
                return linear(x, weight, lam)

        cells = GPU_CELLS if x.device.type == "cuda" else CELLS
        size = chunk or (max(CHUNK, cells // len(self.a)) if x.device.type == "cuda" else CHUNK)

        def chunks(x: Tensor, weight: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
            for k in range(0, len(x), size):
                rows = slice(k, k + size)
                yield self._scores(inputs(x[rows])), None if weight is None else weight[rows]

        step = math.ceil(len(x) * len(self.a) / cells)  # every step-th sample, often all, can be solved for at once
        some, some_weight = x[::step], None if weight is None else weight[::step]
        of_some = lam * len(some) / len(x)
        if linear is not None:
            a = linear(some, some_weight, of_some)
        else:
            s = torch.cat([of_rows for of_rows, _ in chunks(some, some_weight)])
            a = tree_traverse(s, of_some, sample_weight=some_weight).a
        return a if step == 1 else streamed_masses(lambda: chunks(x, weight), lam, a.double())

    def _scores(self, x: Tensor) -> Tensor:
        s: Tensor = self.split(x)
        if s.ndim != 2 or s.shape[1] != n_splits(self.depth):
            raise InputValueError(
                f"a split for depth {self.depth} must return scores of shape (n, {n_splits(self.depth)}), "
                f"got {shape(s)} from {type(self.split).__name__}"
            )
        return s if self.final_scale == 1 else s * self.scale

    def _strength(self, n: int) -> float:
        return self.pruning_strength if self.batch_size is None else self.pruning_strength * n / self.batch_size

    def extra_repr(self) -> str:
        """The options, for printing."""
        return f"depth={self.depth}, pruning_strength={self.pruning_strength}, batch_size={self.batch_size}"


def _linear_masses(weight: Tensor, bias: Tensor, x: Tensor, sample_weight: Tensor | None, lam: float) -> Tensor:
    return linear_masses(x, weight, bias, sample_weight, lam)


class TreeModel(nn.Module):
    """A model that predicts from inputs and from their routes through a tree.

    Parameters
    ----------
    tree : TreeLayer
        Maps inputs to routes z and node masses a.
    head : Module
        Maps inputs x and routes z to predictions: `ConstantHead`, `AdditiveHead`, `LinearHead`, `MLPHead` or any other
        module that is called as ``head(x, z)``.
    inputs : Module, optional
        A module that is applied to x before the tree and the head: `Whiten`, or a network of your own.
    split_inputs : Module, optional
        A module that is applied to x before the tree instead of `inputs`, which the head alone then gets.

    Examples
    --------
    >>> from prunus.nn import LinearHead, LinearSplit
    >>> tree = TreeLayer(LinearSplit(5, depth=3), depth=3, pruning_strength=1.0)
    >>> model = TreeModel(tree, LinearHead(5, depth=3, out_features=2))
    >>> model(torch.randn(10, 5)).shape
    torch.Size([10, 2])
    """

    def __init__(
        self,
        tree: TreeLayer,
        head: nn.Module,
        inputs: nn.Module | None = None,
        split_inputs: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.inputs = nn.Identity() if inputs is None else inputs
        self.split_inputs = split_inputs
        self.tree = tree
        self.head = head

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Predictions, (n, k). In training mode the weights matter for the pruning."""
        for_head = self.inputs(x)
        for_tree = for_head if self.split_inputs is None else self.split_inputs(x)
        out: Tensor = self.head(for_head, self.tree(for_tree, sample_weight).z)
        return out

    @property
    def tree_inputs(self) -> nn.Module:
        """The module that is applied to x before the tree."""
        return self.inputs if self.split_inputs is None else self.split_inputs

    def solve_masses(self, x: Tensor, sample_weight: Tensor | None = None) -> None:
        """Solve for the node masses of these samples and store them for eval mode, see `TreeLayer.solve_masses`."""
        self.tree.solve_masses(x, sample_weight, inputs=self.tree_inputs)

    def refine_masses(self, chunks: Chunks, samples: int, **options: Any) -> None:
        """Solve for the node masses of samples beyond memory, see `TreeLayer.refine_masses`."""
        self.tree.refine_masses(chunks, samples, inputs=self.tree_inputs, **options)
