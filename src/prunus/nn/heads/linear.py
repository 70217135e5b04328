"""A linear model for each node."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.nn.heads.head import Head, LeafTraining
from prunus.nn.networks import array
from prunus.nn.whiten import in_encoded
from prunus.ops.heap import n_nodes
from prunus.tree import Leaves

__all__ = ["LinearHead"]


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
        of_nodes = functional.linear(x, self.weight, self.offset)  # (n, k * T)
        of_nodes = torch.unflatten(of_nodes, 1, (self.out_features, -1))
        return (of_nodes * z.unsqueeze(1)).sum(2) + self.bias

    def read(self, inputs: nn.Module) -> Leaves:
        """The leaves as plain arrays."""
        weight, offset = in_encoded(inputs, self.weight.detach(), self.offset.detach())
        nodes = n_nodes(self.depth)
        slope = weight.view(self.out_features, nodes, -1).transpose(0, 1)  # (T, k, d)
        constant = offset.view(self.out_features, nodes).T
        return Leaves(array(self.bias), constant=array(constant), slope=array(slope))
