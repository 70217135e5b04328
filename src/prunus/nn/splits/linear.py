"""Linear splits."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from prunus.nn.checks import check_depth
from prunus.nn.networks import read_layers
from prunus.nn.splits.split import Split
from prunus.ops.heap import n_splits
from prunus.tree import Splits

__all__ = ["LinearSplit"]


class LinearSplit(Split, nn.Linear):
    """Oblique splits: each score is a linear function of the inputs.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 12.

    Examples
    --------
    >>> LinearSplit(5, depth=3)(torch.zeros(2, 5)).shape
    torch.Size([2, 7])
    """

    words: ClassVar[str] = "a linear function of the columns"
    has_planes: ClassVar[bool] = True

    def __init__(self, in_features: int, depth: int) -> None:
        self.depth = check_depth(depth)
        super().__init__(in_features, n_splits(self.depth))

    def reset_parameters(self) -> None:
        """Draw weights and biases at random. A tree of depth 0 has none, and torch would warn of that."""
        if self.out_features:
            super().reset_parameters()

    @property
    def scores(self) -> nn.Linear:
        """The linear layer that computes the scores; `spread_splits` sets its weights."""
        return self

    def features(self, x: Tensor) -> Tensor:
        """The values that `scores` is applied to: the inputs themselves."""
        return x

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        return {"in_features": self.in_features, "depth": self.depth}

    def read(self, inputs: nn.Module) -> Splits:
        """The splits as plain arrays."""
        return Splits(read_layers([self], inputs, self.in_features))

    @torch.no_grad()
    def set_planes(self, weight: Tensor, bias: Tensor) -> None:
        """Set the weights, (S, d), and biases, (S,), of the scores."""
        self.weight.copy_(weight)
        self.bias.copy_(bias)
