"""Splits by a network whose hidden units combine a few features each."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from prunus.errors import InputValueError
from prunus.nn.splits.mlp import MLPSplit

__all__ = ["SparseMLPSplit"]


class SparseMLPSplit(MLPSplit):
    """Splits from a network whose hidden units combine a few features each, such as three equal marks in a row.

    Each training step moves the weights of the features towards 0, and many of them end near 0. Inputs should be scaled
    but not decorrelated: decorrelated inputs mix all features.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 16.
    hidden : int, default=256
        Number of hidden units, each a rectified sum of features; all nodes share them.
    sparsity : float, default=0.05
        Each training step moves the weights of the features towards 0 by this share of the learning rate.

    Examples
    --------
    >>> SparseMLPSplit(5, depth=3)(torch.zeros(2, 5)).shape
    torch.Size([2, 7])
    """

    words: ClassVar[str] = "a network that combines a few columns at a time"
    decorrelates: ClassVar[bool] = False
    unit: ClassVar[str] = "relu"

    def __init__(self, in_features: int, depth: int, hidden: int = 256, sparsity: float = 0.05) -> None:
        if not sparsity >= 0:
            raise InputValueError(f"sparsity must be at least 0, got {sparsity}")
        super().__init__(in_features, depth, (hidden,))
        self.features = nn.Sequential(nn.Linear(in_features, hidden), nn.ReLU())
        self.sparsity = sparsity

    def extra_repr(self) -> str:
        """The option that the layers do not show, for printing."""
        return f"sparsity={self.sparsity}"

    @property
    def sums(self) -> nn.Linear:
        """The hidden layer, with the weights of the features."""
        layer = self.features[0]
        assert isinstance(layer, nn.Linear)
        return layer

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        return {
            "in_features": self.in_features,
            "depth": self.depth,
            "hidden": self.sums.out_features,
            "sparsity": self.sparsity,
        }

    @torch.no_grad()
    def after_step(self, learning_rate: float | Tensor) -> None:
        """Move the weights of the features towards 0. The trainer calls this method after each step.

        >>> split = SparseMLPSplit(1, depth=1, hidden=1, sparsity=0.5)
        >>> _ = nn.init.constant_(split.sums.weight, 0.3)
        >>> split.after_step(0.2)
        >>> split.sums.weight.item()
        0.2...
        """
        weight = self.sums.weight
        distance: Any = learning_rate * self.sparsity
        if not isinstance(distance, Tensor):
            distance = min(distance, torch.finfo(weight.dtype).max)
        weight.sub_(weight.clamp(-distance, distance))
