"""Neural oblivious decision ensembles (Popov, Morozov and Babenko, 2019), small and of our own."""

from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness.methods.entmax import entmax15, entmoid15
from benchmarks.harness.methods.interface import Task
from benchmarks.harness.methods.torch_training import TorchMethod, check_range
from prunus.training import Samples

__all__ = ["NODE", "ObliviousEnsemble", "ObliviousTrees"]

START_ROWS = 2048
"""Rows that thresholds and widths start from, at most."""
CHUNK = 512
"""Rows whose leaves are in memory at once outside of training."""


class NODE(TorchMethod):
    """Layers of oblivious trees whose features and sides are chosen sparsely but with a gradient.

    An oblivious tree has one split for each level. Its feature is a mixture of all features by `entmax15`, its two
    sides have shares by `entmoid15` of the distance from a threshold; the tree's output is the mean of the leaves'
    responses, weighted by the products of these shares. Each layer sees the table and the outputs of the layers before
    it; the prediction is the mean output of all trees. Thresholds start at quantiles of their features, drawn at
    random, and widths such that no training row is on one side wholly.

    Parameters are those of the module. Popov et al. search 1024 or 2048 trees of depth 6 or 8 in 2 to 8 layers, on
    several GPUs; the default is smaller, for a few processor cores.

    Parameters
    ----------
    task : {"classes", "values"}
    trees : int
        In all layers together.
    layers, depth : int
    random_state, max_epochs, batch_size, learning_rate
        See `TorchMethod`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    >>> node = NODE("values", trees=8, depth=3, learning_rate=0.05).fit(x, np.float64(x[:, 0]))
    >>> node.predict(np.array([[-1, 0], [1, 0]], np.float32)).round(), node.n_parameters
    (array([-1.,  1.]), 160)
    """

    def __init__(
        self,
        task: Task,
        *,
        trees: int = 256,
        layers: int = 1,
        depth: int = 6,
        **training: Any,
    ) -> None:
        super().__init__(task, **training)
        check_range("depth", depth, 1, 12)
        check_range("layers", layers, 1, trees)
        self.trees = trees
        self.layers = layers
        self.depth = depth

    def _make(self, train: Samples) -> nn.Module:
        widths = [self.trees // self.layers + (i < self.trees % self.layers) for i in range(self.layers)]
        module = ObliviousEnsemble(train.x.shape[1], widths, self.depth, self.n_outputs)
        module.initialize(train.x[torch.randperm(len(train))[:START_ROWS]])
        return module


class ObliviousEnsemble(nn.Module):
    """Layers of oblivious trees, each of which sees what all before it have seen and said.

    Examples
    --------
    >>> ObliviousEnsemble(3, trees=[8, 8], depth=2, outputs=1)(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """

    def __init__(self, features: int, trees: list[int], depth: int, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        said = outputs + (len(trees) > 1)  # one more number, for the layers above alone
        self.layers = nn.ModuleList()
        for n in trees:
            self.layers.append(ObliviousTrees(features, n, depth, said))
            features += n * said

    @torch.no_grad()
    def initialize(self, x: Tensor) -> None:
        """Set the thresholds and widths of all layers by rows, (n, d)."""
        for layer in self.layers:
            assert isinstance(layer, ObliviousTrees)
            layer.initialize(x)
            x = torch.cat((x, layer(x).flatten(1)), 1)

    def forward(self, x: Tensor, _sample_weight: Tensor | None = None) -> Tensor:
        """Logits, (n, k), or values, (n, 1)."""
        if self.training:
            return self._mean(x)
        return torch.cat([self._mean(rows) for rows in torch.split(x, CHUNK)])

    def _mean(self, x: Tensor) -> Tensor:
        said = []
        for layer in self.layers:
            said.append(layer(x))
            x = torch.cat((x, said[-1].flatten(1)), 1)
        return torch.cat(said, 1)[:, :, : self.outputs].mean(1)


class ObliviousTrees(nn.Module):
    """A layer of T oblivious trees.

    Examples
    --------
    >>> ObliviousTrees(3, trees=8, depth=2, outputs=1)(torch.zeros(5, 3)).shape
    torch.Size([5, 8, 1])
    """

    def __init__(self, features: int, trees: int, depth: int, outputs: int) -> None:
        super().__init__()
        self.choice = nn.Parameter(torch.rand(features, trees, depth))
        self.threshold = nn.Parameter(torch.zeros(trees, depth))
        self.log_width = nn.Parameter(torch.zeros(trees, depth))
        self.response = nn.Parameter(torch.randn(trees, 2**depth, outputs))

    @torch.no_grad()
    def initialize(self, x: Tensor) -> None:
        """Set thresholds and widths by rows, (n, d)."""
        chosen = self.chosen(x).sort(dim=0).values  # (n, T, D)
        drawn = torch.randint(len(x), (1, *self.threshold.shape))
        self.threshold.copy_(chosen.gather(0, drawn)[0])
        self.log_width.copy_((chosen - self.threshold).abs().amax(0).clamp(min=1e-3).log())

    def chosen(self, x: Tensor) -> Tensor:
        """The feature of each split, (n, T, D)."""
        return torch.einsum("nf,ftd->ntd", x, entmax15(self.choice))

    def shares(self, x: Tensor) -> Tensor:
        """Of each leaf in each row, (n, T, 2**D)."""
        right = entmoid15((self.chosen(x) - self.threshold) / self.log_width.exp())
        shares = torch.ones_like(right[:, :, :1])
        for side in right.unbind(2):
            shares = torch.stack((shares * (1 - side.unsqueeze(2)), shares * side.unsqueeze(2)), 3).flatten(2)
        return shares

    def forward(self, x: Tensor) -> Tensor:
        """What each tree says, (n, T, k)."""
        return torch.einsum("ntl,tlk->ntk", self.shares(x), self.response)
