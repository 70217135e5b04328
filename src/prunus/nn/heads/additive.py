"""A value for each node, plus one linear model for all nodes."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.nn.heads.head import Head, LeafTraining
from prunus.nn.networks import array
from prunus.nn.whiten import in_encoded
from prunus.ops.heap import n_nodes
from prunus.tree import Leaves

__all__ = ["AdditiveHead"]


class AdditiveHead(Head):
    """A value for each node, as in `ConstantHead`, plus one linear model of the inputs for all nodes.

    This is a linear function of inputs and routes side by side, which the paper uses for clustering.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 16.
    out_features : int
        Number of outputs, k.

    Examples
    --------
    >>> AdditiveHead(5, depth=3, out_features=2)(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    """

    words: ClassVar[str] = "a value for each node plus one linear model for all nodes"
    training_defaults: ClassVar[LeafTraining] = LeafTraining(learning_rate=0.02, weight_decay=0.3)
    shares_pieces: ClassVar[bool] = True

    def __init__(self, in_features: int, depth: int, out_features: int) -> None:
        super().__init__(in_features, depth, out_features)
        self.weight = nn.Parameter(torch.zeros(out_features, n_nodes(depth)))
        self.slope = nn.Parameter(torch.zeros(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        return functional.linear(z, self.weight, self.bias) + functional.linear(x, self.slope)

    def read(self, inputs: nn.Module) -> Leaves:
        """The leaves as plain arrays."""
        shared, bias = in_encoded(inputs, self.slope.detach(), self.bias.detach())
        return Leaves(array(bias), constant=array(self.weight.T), shared=array(shared))

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """Views of the parameters for the native engine."""
        return {
            "constants": ("weight", self.weight.T),
            "shared_slopes": ("slope", self.slope),
            "bias": ("bias", self.bias),
        }
