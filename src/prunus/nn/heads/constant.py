"""A value for each node."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.nn.heads.head import Head, LeafTraining
from prunus.nn.networks import array
from prunus.ops.heap import n_nodes
from prunus.tree import Leaves

__all__ = ["ConstantHead"]


class ConstantHead(Head):
    """A value for each node: the prediction is the sum of these values, weighted by the routes.

    Parameters
    ----------
    in_features : int
        Number of inputs, d. The head ignores the inputs; it takes this argument because other heads do.
    depth : int
        Depth of the tree, from 0 to 12.
    out_features : int
        Number of outputs, k.

    Examples
    --------
    >>> ConstantHead(5, depth=3, out_features=2)(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    """

    words: ClassVar[str] = "a value for each node"
    training_defaults: ClassVar[LeafTraining] = LeafTraining(
        learning_rate=0.03, weight_decay=0.1, few_weight_decay=0.3, few_no_decay=("head.weight",)
    )

    def __init__(self, in_features: int, depth: int, out_features: int) -> None:
        super().__init__(in_features, depth, out_features)
        self.weight = nn.Parameter(torch.zeros(out_features, n_nodes(depth)))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, _x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        return functional.linear(z, self.weight, self.bias)

    def read(self, inputs: nn.Module) -> Leaves:  # noqa: ARG002
        """The leaves as plain arrays."""
        return Leaves(array(self.bias), constant=array(self.weight.T))

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """Views of the parameters for the native engine."""
        return {"constants": ("weight", self.weight.T), "bias": ("bias", self.bias)}

    @torch.no_grad()
    def start(self, means: Tensor) -> None:
        """Set the values so that their sum along the path to each node is the given mean, (T, k)."""
        values = means.clone()
        values[1:] -= means[(torch.arange(1, len(means)) - 1) // 2]
        self.weight.copy_(values.T)
