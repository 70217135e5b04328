"""Splits by a neural network."""

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor, nn

from prunus.nn.checks import check_depth
from prunus.nn.networks import dropout_of, hidden_widths, mlp, read_layers
from prunus.nn.splits.linear import LinearSplit
from prunus.nn.splits.split import Split
from prunus.tree import Splits

__all__ = ["MLPSplit"]


class MLPSplit(Split):
    """Splits whose scores come from one multilayer perceptron, which all nodes share.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 16.
    hidden : sequence of int, default=(64,)
        Number of units in each hidden layer; each layer is followed by an ELU and dropout.
    dropout : float, default=0.0
        Share of the hidden units that each training step leaves out at random.

    Examples
    --------
    >>> MLPSplit(5, depth=3, hidden=(16,))(torch.zeros(2, 5)).shape
    torch.Size([2, 7])
    """

    words: ClassVar[str] = "a small neural network that the nodes share"
    unit: ClassVar[str] = "elu"

    def __init__(self, in_features: int, depth: int, hidden: Sequence[int] = (64,), dropout: float = 0.0) -> None:
        super().__init__()
        self.in_features = in_features
        self.depth = check_depth(depth)
        self.features = mlp((in_features, *hidden), dropout)
        self.scores = LinearSplit(hidden[-1] if hidden else in_features, self.depth)

    def forward(self, x: Tensor) -> Tensor:
        """Scores, (n, 2**depth - 1), of inputs, (n, d)."""
        out: Tensor = self.scores(self.features(x))
        return out

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        network = {"hidden": hidden_widths(self.features), "dropout": dropout_of(self.features)}
        return {"in_features": self.in_features, "depth": self.depth, **network}

    def read(self, inputs: nn.Module) -> Splits:
        """The splits as plain arrays."""
        return Splits(read_layers([self.features, self.scores], inputs, self.in_features, self.unit))
