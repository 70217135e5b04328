"""Splits by a network whose hidden units combine a few features each."""

from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from prunus.errors import InputValueError
from prunus.nn.splits.mlp import MLPSplit

__all__ = ["SparseSplit"]


class SparseSplit(MLPSplit):
    """Splits of rectified sums, each of a few features: combinations of features, such as three in a row.

    Each step of training moves the weights of the features towards 0, and many end near it. Inputs should be scaled,
    but not decorrelated: mixtures of all features cannot be sums of a few.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree.
    hidden : int
        Number of sums, which the nodes share.
    sparsity : float
        Share of the learning rate by which a step moves the weights towards 0.

    Examples
    --------
    >>> SparseSplit(5, depth=3)(torch.zeros(2, 5)).shape
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
        """What the layers do not show."""
        return f"sparsity={self.sparsity}"

    @property
    def sums(self) -> nn.Linear:
        """The layer with the weights of the features."""
        layer = self.features[0]
        assert isinstance(layer, nn.Linear)
        return layer

    def options(self) -> dict[str, Any]:
        """The arguments that make a module of the same shape."""
        return {
            "in_features": self.in_features,
            "depth": self.depth,
            "hidden": self.sums.out_features,
            "sparsity": self.sparsity,
        }

    @torch.no_grad()
    def after_step(self, learning_rate: float) -> None:
        """Move the weights of the features towards 0; training calls it after each step.

        >>> split = SparseSplit(1, depth=1, hidden=1, sparsity=0.5)
        >>> _ = nn.init.constant_(split.sums.weight, 0.3)
        >>> split.after_step(0.2)
        >>> split.sums.weight.item()
        0.2...
        """
        weight = self.sums.weight
        weight.copy_(functional.softshrink(weight, self.sparsity * learning_rate))
