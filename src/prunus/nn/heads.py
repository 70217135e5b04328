"""Heads: predictions, (n, k), from inputs x, (n, d), and routes z, (n, T)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.nn.checks import check_depth
from prunus.nn.splits import mlp
from prunus.ops.heap import n_nodes

__all__ = ["AdditiveHead", "ConstantHead", "LinearHead", "MLPHead"]


class ConstantHead(nn.Module):
    """A value for each node: the prediction is their sum, weighted by the routes.

    Examples
    --------
    >>> ConstantHead(5, depth=3, out_features=2)(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    """

    def __init__(self, in_features: int, depth: int, out_features: int) -> None:
        super().__init__()
        self.in_features = in_features
        self.weight = nn.Parameter(torch.zeros(out_features, n_nodes(check_depth(depth))))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, _x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        return functional.linear(z, self.weight, self.bias)


class AdditiveHead(nn.Module):
    """A value for each node, as `ConstantHead` has it, plus one linear model of the inputs for all nodes.

    That is a linear function of inputs and routes side by side: what the paper clusters with.

    Examples
    --------
    >>> AdditiveHead(5, depth=3, out_features=2)(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    """

    def __init__(self, in_features: int, depth: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out_features, n_nodes(check_depth(depth))))
        self.slope = nn.Parameter(torch.zeros(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        return functional.linear(z, self.weight, self.bias) + functional.linear(x, self.slope)


class LinearHead(nn.Module):
    """A linear model for each node: the prediction is the sum of theirs, weighted by the routes.

    Examples
    --------
    >>> LinearHead(5, depth=3, out_features=2)(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    """

    def __init__(self, in_features: int, depth: int, out_features: int) -> None:
        super().__init__()
        nodes = n_nodes(check_depth(depth))
        self.out_features = out_features
        self.weight = nn.Parameter(torch.zeros(out_features * nodes, in_features))
        self.offset = nn.Parameter(torch.zeros(out_features * nodes))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        of_nodes = functional.linear(x, self.weight, self.offset)  # (n, k * T)
        of_nodes = torch.unflatten(of_nodes, 1, (self.out_features, -1))
        return (of_nodes * z.unsqueeze(1)).sum(2) + self.bias


class MLPHead(nn.Module):
    """A multilayer perceptron on inputs and routes side by side.

    Examples
    --------
    >>> MLPHead(5, depth=3, out_features=2, hidden=(16,))(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    """

    def __init__(
        self,
        in_features: int,
        depth: int,
        out_features: int,
        hidden: Sequence[int] = (128, 128),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        widths = (in_features + n_nodes(check_depth(depth)), *hidden)
        self.hidden = mlp(widths, dropout)
        self.out = nn.Linear(widths[-1], out_features)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        out: Tensor = self.out(self.hidden(torch.cat((x, z), 1)))
        return out
