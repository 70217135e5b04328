"""A neural network on inputs and routes."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from prunus.nn.heads.head import Head, LeafTraining
from prunus.nn.networks import dropout_of, hidden_widths, layer_parts, mlp, read_layers
from prunus.ops.heap import n_nodes
from prunus.tree import Leaves

__all__ = ["MLPHead"]


class MLPHead(Head):
    """A multilayer perceptron on inputs and routes side by side.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 16.
    out_features : int
        Number of outputs, k.
    hidden : sequence of int, default=(128, 128)
        Number of units in each hidden layer; each layer is followed by an ELU and dropout.
    dropout : float, default=0.0
        Share of the hidden units that each training step leaves out at random.

    Examples
    --------
    >>> MLPHead(5, depth=3, out_features=2, hidden=(16,))(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    """

    words: ClassVar[str] = "a neural network on columns and routes"
    training_defaults: ClassVar[LeafTraining] = LeafTraining(learning_rate=0.01, weight_decay=0.1, average=0.998)

    def __init__(
        self,
        in_features: int,
        depth: int,
        out_features: int,
        hidden: Sequence[int] = (128, 128),
        dropout: float = 0.0,
    ) -> None:
        super().__init__(in_features, depth, out_features)
        widths = (in_features + n_nodes(depth), *hidden)
        self.hidden = mlp(widths, dropout)
        self.out = nn.Linear(widths[-1], out_features)

    @classmethod
    def build(
        cls,
        features: int,
        depth: int,
        outputs: int,
        *,
        hidden: Sequence[int],
        dropout: float,
        pieces: Sequence[int],  # noqa: ARG003
    ) -> Head:
        """A new head with these hidden layers."""
        return cls(features, depth, outputs, hidden, dropout)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        out: Tensor = self.out(self.hidden(torch.cat((x, z), 1)))
        return out

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        return super().options() | {"hidden": hidden_widths(self.hidden), "dropout": dropout_of(self.hidden)}

    def read(self, inputs: nn.Module) -> Leaves:
        """The leaves as plain arrays."""
        network = read_layers([self.hidden, self.out], inputs, self.in_features)
        return Leaves(np.zeros(self.out_features, dtype=np.float32), network=network)

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """Views of the parameters for the native engine, which does not know dropout; None if there is some."""
        linear, units = list(self.hidden)[::2], list(self.hidden)[1::2]
        if {type(layer) for layer in linear} - {nn.Linear} or {repr(unit) for unit in units} - {repr(nn.ELU())}:
            return None
        parts: dict[str, tuple[str, Tensor]] = {"bias": ("out.bias", self.out.bias)}
        for i, layer in enumerate([*linear, self.out]):
            assert isinstance(layer, nn.Linear)
            name = "out" if layer is self.out else f"hidden.{2 * i}"
            weights, biases = layer_parts(i)
            parts[weights] = (f"{name}.weight", layer.weight.T)
            if layer is not self.out:
                parts[biases] = (f"{name}.bias", layer.bias)
        return parts
