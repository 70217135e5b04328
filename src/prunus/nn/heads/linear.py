"""A linear model for each node."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from prunus.nn.heads.head import Head, LeafTraining
from prunus.nn.networks import array
from prunus.nn.whiten import in_encoded
from prunus.ops.heap import n_nodes
from prunus.tree import Leaves

__all__ = ["LinearHead"]

FEW_PRODUCTS = 1 << 22
"""Up to this many products of rows, nodes and outputs, it does not matter how predictions are computed."""
MAX_PRODUCTS = 1 << 25
"""Largest number of products that are in memory at once: of rows, nodes and outputs, or of rows, nodes and inputs."""


class LinearHead(Head):
    """A linear model for each node: the prediction is the sum of their outputs, weighted by the routes.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 12.
    out_features : int
        Number of outputs, k.

    Examples
    --------
    >>> LinearHead(5, depth=3, out_features=2)(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    """

    words: ClassVar[str] = "a linear model for each node"
    training_defaults: ClassVar[LeafTraining] = LeafTraining(learning_rate=0.02, weight_decay=0.3)

    def __init__(self, in_features: int, depth: int, out_features: int) -> None:
        super().__init__(in_features, depth, out_features)
        rows = out_features * n_nodes(depth)
        self.weight = nn.Parameter(torch.zeros(rows, in_features))
        self.offset = nn.Parameter(torch.zeros(rows))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        if torch.compiler.is_compiling():
            return self._by_outputs(x, z)
        nodes, outputs = z.shape[1], self.out_features
        by_inputs = self.in_features < outputs and len(x) * nodes * outputs > FEW_PRODUCTS
        of_rows = self._by_inputs if by_inputs else self._by_outputs
        size = max(1, MAX_PRODUCTS // (nodes * (self.in_features if by_inputs else outputs)))
        if len(x) <= size:
            return of_rows(x, z)
        # A gradient computes the products of each chunk anew.
        chunks = zip(torch.split(x, size), torch.split(z, size), strict=True)
        return torch.cat([checkpoint(of_rows, *rows, use_reentrant=False, preserve_rng_state=False) for rows in chunks])

    def _by_outputs(self, x: Tensor, z: Tensor) -> Tensor:
        of_nodes = functional.linear(x, self.weight, self.offset)  # (n, k * T)
        of_nodes = torch.unflatten(of_nodes, 1, (self.out_features, -1))
        return (of_nodes * z.unsqueeze(1)).sum(2) + self.bias

    def _by_inputs(self, x: Tensor, z: Tensor) -> Tensor:
        """The same predictions from the products of inputs and routes, which are fewer if outputs are many."""
        products = (z.unsqueeze(2) * x.unsqueeze(1)).flatten(1)  # (n, T * d)
        slopes = functional.linear(products, self.weight.view(self.out_features, -1))
        return slopes + functional.linear(z, self.offset.view(self.out_features, -1), self.bias)

    def read(self, inputs: nn.Module) -> Leaves:
        """The leaves as plain arrays."""
        weight, offset = in_encoded(inputs, self.weight.detach(), self.offset.detach())
        nodes = n_nodes(self.depth)
        slope = weight.view(self.out_features, nodes, -1).transpose(0, 1)  # (T, k, d)
        constant = offset.view(self.out_features, nodes).T
        return Leaves(array(self.bias), constant=array(constant), slope=array(slope))

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """Views of the parameters for the native engine."""
        outputs, nodes = self.out_features, n_nodes(self.depth)
        return {
            "constants": ("offset", self.offset.view(outputs, nodes).T),
            "slopes": ("weight", self.weight.view(outputs, nodes, -1).transpose(0, 1)),
            "bias": ("bias", self.bias),
        }
