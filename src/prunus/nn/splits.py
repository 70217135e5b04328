"""Split functions: modules from inputs x, (n, d), to one score for each split of a tree, (n, 2**depth - 1)."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.errors import InputValueError
from prunus.nn.checks import check_depth
from prunus.ops.heap import n_splits

__all__ = ["ELUSplit", "LinearSplit", "MLPSplit", "SparseSplit"]


class LinearSplit(nn.Linear):
    """Oblique splits: each score is a linear function of the inputs.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree.

    Examples
    --------
    >>> LinearSplit(5, depth=3)(torch.zeros(2, 5)).shape
    torch.Size([2, 7])
    """

    def __init__(self, in_features: int, depth: int) -> None:
        self.depth = check_depth(depth)
        super().__init__(in_features, n_splits(self.depth))

    def reset_parameters(self) -> None:
        """Draw weights and thresholds; a tree of depth 0 has none, of which torch would warn."""
        if self.out_features:
            super().reset_parameters()

    @property
    def scores(self) -> nn.Linear:
        """The affine map that the scores come from; `spread_splits` sets it."""
        return self

    def features(self, x: Tensor) -> Tensor:
        """What `scores` is applied to."""
        return x


class ELUSplit(LinearSplit):
    """Oblique splits whose scores pass an exponential linear unit: no sample is far on the left of one.

    Examples
    --------
    >>> bool((ELUSplit(5, depth=3)(torch.randn(2, 5)) > -1).all())
    True
    """

    def forward(self, x: Tensor) -> Tensor:
        """Scores, (n, 2**depth - 1), of inputs, (n, d)."""
        return functional.elu(super().forward(x))


class MLPSplit(nn.Module):
    """Splits that share a multilayer perceptron.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree.
    hidden : sequence of int
        Units of the hidden layers, each followed by an ELU and dropout.
    dropout : float
        Share of hidden units that training leaves out at random.

    Examples
    --------
    >>> MLPSplit(5, depth=3, hidden=(16,))(torch.zeros(2, 5)).shape
    torch.Size([2, 7])
    """

    def __init__(self, in_features: int, depth: int, hidden: Sequence[int] = (64,), dropout: float = 0.0) -> None:
        super().__init__()
        self.depth = check_depth(depth)
        self.features = mlp((in_features, *hidden), dropout)
        self.scores = LinearSplit(hidden[-1] if hidden else in_features, self.depth)

    def forward(self, x: Tensor) -> Tensor:
        """Scores, (n, 2**depth - 1), of inputs, (n, d)."""
        out: Tensor = self.scores(self.features(x))
        return out


class SparseSplit(MLPSplit):
    """Splits of rectified sums, each of a few features: combinations of features, such as three in a row.

    The weights of the features are pulled to 0 at each step of training, and many end near it. Inputs should be scaled,
    but not decorrelated: mixtures of all features cannot be sums of a few.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree.
    hidden : int
        Sums that the nodes share.
    sparsity : float
        Share of the learning rate by which a step pulls the weights to 0.

    Examples
    --------
    >>> SparseSplit(5, depth=3)(torch.zeros(2, 5)).shape
    torch.Size([2, 7])
    """

    def __init__(self, in_features: int, depth: int, hidden: int = 256, sparsity: float = 0.05) -> None:
        if not sparsity >= 0:
            raise InputValueError(f"sparsity must be at least 0, however: {sparsity=}")
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

    @torch.no_grad()
    def after_step(self, learning_rate: float) -> None:
        """Pull the weights of the features to 0; training calls it after each step.

        >>> split = SparseSplit(1, depth=1, hidden=1, sparsity=0.5)
        >>> _ = nn.init.constant_(split.sums.weight, 0.3)
        >>> split.after_step(0.2)
        >>> split.sums.weight.item()
        0.2...
        """
        weight = self.sums.weight
        weight.copy_(functional.softshrink(weight, self.sparsity * learning_rate))


def mlp(widths: Sequence[int], dropout: float) -> nn.Sequential:
    """Linear layers between these widths, each followed by an ELU and dropout."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ELU(), *([nn.Dropout(dropout)] if dropout else [])]
    return nn.Sequential(*layers)
