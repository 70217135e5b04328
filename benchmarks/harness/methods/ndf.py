"""A deep neural decision forest (Kontschieder, Fiterau, Criminisi and Rota Bulo, 2015) of one tree, of our own."""

from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness.methods.interface import Task
from benchmarks.harness.methods.torch_training import TorchMethod, check_range, count_parameters, log_probabilities
from prunus.training import EpochRecord, Samples

__all__ = ["NDF", "SoftTree", "class_leaves", "value_leaves"]

ITERATIONS = 20
"""Of the leaves' update, as published."""
LEAF_ROWS = 2**18
"""Rows that the leaves are updated from, at most: their routes are in memory at once."""


class NDF(TorchMethod):
    """A tree with soft splits on features of a hidden layer, and leaves in closed form: the paper's NDF-1.

    A row goes left at a split with probability sigmoid(score), so that it reaches each leaf with some probability;
    its class is distributed as the leaves' distributions, mixed by these. After each epoch of gradient descent for the
    splits, the leaves are found anew with the splits fixed, by an iteration that never increases the loss
    (`class_leaves`). All hidden features are used by all splits: the feature rate of the paper is 1.

    Published for classes. For values the leaves hold means, found by an iteration of the same kind (`value_leaves`).
    Parameters are the weights of hidden layer and splits, and the leaves; the paper's 78,016 for 11 features at depth 6
    is this with a hidden layer of 1024 and one more split that nothing uses.

    Parameters
    ----------
    task : {"classes", "values"}
    depth : int
    hidden : int
        Width of the hidden layer.
    random_state, max_epochs, batch_size, learning_rate
        See `TorchMethod`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    >>> tree = NDF("classes", depth=2, hidden=32, learning_rate=0.02).fit(x, np.int64(x[:, 0] > 0))
    >>> tree.predict(np.array([[1, 0], [-1, 0]], np.float32)), tree.n_parameters
    (array([1, 0]), 203)
    """

    module_: "SoftTree"

    def __init__(
        self,
        task: Task,
        *,
        depth: int = 4,
        hidden: int = 1024,
        **training: Any,
    ) -> None:
        super().__init__(task, **training)
        check_range("depth", depth, 1, 16)
        self.depth = depth
        self.hidden = hidden

    def _make(self, train: Samples) -> nn.Module:
        module = SoftTree(train.x.shape[1], self.hidden, self.depth, self.n_outputs, classes=self.task == "classes")
        self._refresh(module, train)  # equal leaves would give the splits no gradient
        return module

    @torch.no_grad()
    def _refresh(self, module: nn.Module, train: Samples) -> EpochRecord:
        assert isinstance(module, SoftTree)
        some = train[torch.randperm(len(train))[:LEAF_ROWS]] if len(train) > LEAF_ROWS else train
        routes = torch.cat([module.routes(chunk.x) for chunk in some.chunks(8192)])
        find = class_leaves if self.task == "classes" else value_leaves
        module.leaves.copy_(find(routes, some.y, torch.full_like(module.leaves, 1 / self.n_outputs)))
        return {}

    def _count(self) -> int:
        return count_parameters(self.module_) + self.module_.leaves.numel()


class SoftTree(nn.Module):
    """A complete tree with soft splits; its leaves, distributions of classes or values, have no gradient.

    Examples
    --------
    >>> SoftTree(3, hidden=8, depth=2, outputs=4, classes=True).routes(torch.zeros(5, 3)).shape
    torch.Size([5, 4])
    """

    leaves: Tensor

    def __init__(self, features: int, hidden: int, depth: int, outputs: int, *, classes: bool) -> None:
        super().__init__()
        self.depth = depth
        self.classes = classes
        self.score = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 2**depth - 1))
        self.register_buffer("leaves", torch.full((2**depth, outputs), 1 / outputs))

    def routes(self, x: Tensor) -> Tensor:
        """Probability of each leaf, (n, 2**depth)."""
        left = self.score(x).sigmoid()
        routes = x.new_ones(len(x), 1)
        for level in range(self.depth):
            turn = left[:, 2**level - 1 : 2 ** (level + 1) - 1]
            routes = torch.stack((routes * turn, routes * (1 - turn)), 2).flatten(1)
        return routes

    def forward(self, x: Tensor, _sample_weight: Tensor | None = None) -> Tensor:
        """Logits, (n, k), or values, (n, 1)."""
        mixed = self.routes(x) @ self.leaves
        return log_probabilities(mixed) if self.classes else mixed


def class_leaves(routes: Tensor, y: Tensor, leaves: Tensor, iterations: int = ITERATIONS) -> Tensor:
    """Distributions of the leaves that make the log-loss of their mixture small, for fixed routes.

    Each iteration gives a leaf the rows of each class, in proportion to its part in their probability::

        leaves[l, c]  <-  sum over rows of class c of routes[i, l] leaves[l, c] / probability[i, c],   normalized

    which is a step of expectation maximization: the loss never increases.

    Parameters
    ----------
    routes : Tensor of shape (n, L)
    y : Tensor of shape (n,)
        Class numbers.
    leaves : Tensor of shape (L, k)
        Where to start; what is 0 stays 0.
    iterations : int

    Returns
    -------
    Tensor of shape (L, k)

    Examples
    --------
    >>> class_leaves(torch.eye(2), torch.tensor([1, 0]), torch.full((2, 2), 0.5))
    tensor([[0., 1.],
            [1., 0.]])
    """
    of_class = nn.functional.one_hot(y, leaves.shape[1]).to(routes.dtype)
    for _ in range(iterations):
        probability = (routes @ leaves).gather(1, y.unsqueeze(1)).clamp(min=1e-30)
        parts = leaves * (routes.T @ (of_class / probability))
        mass = parts.sum(1, keepdim=True)
        leaves = torch.where(mass > 0, parts / mass.clamp(min=1e-30), leaves)
    return leaves


def value_leaves(routes: Tensor, y: Tensor, leaves: Tensor, iterations: int = ITERATIONS) -> Tensor:
    """Values of the leaves that make the squared error of their mixture small, for fixed routes.

    Each iteration moves a leaf by the mean residual of the rows that reach it, weighted by their routes; the first,
    from equal leaves, gives each the mean of its rows. By convexity the error never increases.

    Parameters
    ----------
    routes : Tensor of shape (n, L)
    y : Tensor of shape (n, 1)
    leaves : Tensor of shape (L, 1)
        Where to start.
    iterations : int

    Returns
    -------
    Tensor of shape (L, 1)

    Examples
    --------
    >>> value_leaves(torch.eye(2), torch.tensor([[3.0], [5.0]]), torch.zeros(2, 1))
    tensor([[3.],
            [5.]])
    """
    mass = routes.sum(0).clamp(min=1e-30).unsqueeze(1)
    for _ in range(iterations):
        leaves = leaves + routes.T @ (y - routes @ leaves) / mass
    return leaves
