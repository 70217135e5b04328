"""A linear model for each node."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from prunus.errors import InputValueError
from prunus.nn.heads.head import Head, LeafTraining
from prunus.nn.indices import Indices
from prunus.nn.networks import array
from prunus.nn.whiten import in_encoded
from prunus.ops.heap import n_nodes
from prunus.tree import Leaves

__all__ = ["LinearHead"]

FEW_PRODUCTS = 1 << 22
"""Up to this many products of rows, nodes and outputs, it does not matter how predictions are computed."""
MAX_PRODUCTS = 1 << 25
"""Largest number of products that are in memory at once: of rows, nodes and outputs, or of rows, nodes and inputs."""


class LinearHead(Head):
    """A linear model for each node: the prediction is the sum of their outputs, weighted by the routes.

    With curved inputs, one linear model of all inputs is added for all nodes, and those of the nodes are for the other
    inputs alone.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 16.
    out_features : int
        Number of outputs, k.
    curved : sequence of int, optional
        The inputs that only the model for all nodes uses, such as pieces of a number, which bend its function.

    Examples
    --------
    >>> LinearHead(5, depth=3, out_features=2)(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    >>> LinearHead(5, depth=3, out_features=2, curved=[3, 4]).weight.shape[1]
    3
    """

    words: ClassVar[str] = "a linear model for each node"
    training_defaults: ClassVar[LeafTraining] = LeafTraining(learning_rate=0.02, weight_decay=0.3)
    shares_pieces: ClassVar[bool] = True

    def __init__(self, in_features: int, depth: int, out_features: int, curved: Sequence[int] = ()) -> None:
        super().__init__(in_features, depth, out_features)
        self.curved = _checked(curved, in_features)
        self.plain = Indices(sorted(set(range(in_features)) - set(self.curved)))  # for the models of the nodes
        rows = out_features * n_nodes(depth)
        self.weight = nn.Parameter(torch.zeros(rows, in_features - len(self.curved)))
        self.offset = nn.Parameter(torch.zeros(rows))
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.shared = nn.Parameter(torch.zeros(out_features, in_features)) if self.curved else None

    @classmethod
    def build(
        cls,
        features: int,
        depth: int,
        outputs: int,
        *,
        hidden: Sequence[int],  # noqa: ARG003
        dropout: float,  # noqa: ARG003
        pieces: Sequence[int],
    ) -> Head:
        """A new head whose curves alone use the pieces."""
        return cls(features, depth, outputs, pieces)

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        return super().options() | ({"curved": list(self.curved)} if self.curved else {})

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        if self.shared is None:
            return self._of_nodes(x, z)
        return self._of_nodes(x.index_select(1, self.plain.on(x.device)), z) + functional.linear(x, self.shared)

    def _of_nodes(self, x: Tensor, z: Tensor) -> Tensor:
        """Predictions of the models of the nodes, given the inputs that these use."""
        if torch.compiler.is_compiling():
            return self._by_outputs(x, z)
        nodes, outputs, inputs = z.shape[1], self.out_features, x.shape[1]
        by_inputs = 0 < inputs < outputs and len(x) * nodes * outputs > FEW_PRODUCTS
        of_rows = self._by_inputs if by_inputs else self._by_outputs
        size = max(1, MAX_PRODUCTS // (nodes * (inputs if by_inputs else outputs)))
        if len(x) <= size:
            return of_rows(x, z)
        # A gradient computes the products of each chunk anew.
        chunks = zip(torch.split(x, size), torch.split(z, size), strict=True)
        return torch.cat([checkpoint(of_rows, *rows, use_reentrant=False, preserve_rng_state=False) for rows in chunks])

    def _by_outputs(self, x: Tensor, z: Tensor) -> Tensor:
        of_nodes = functional.linear(x, self.weight, self.offset)  # (n, k * T)
        of_nodes = torch.unflatten(of_nodes, 1, (self.out_features, -1))
        return (of_nodes * z.unsqueeze(1)).sum(2) + self.bias

    def _by_inputs(self, x: Tensor, z: Tensor) -> Tensor:
        """The same predictions from the products of inputs and routes, which are fewer if outputs are many."""
        products = (z.unsqueeze(2) * x.unsqueeze(1)).flatten(1)  # (n, T * d)
        slopes = functional.linear(products, self.weight.view(self.out_features, -1))
        return slopes + functional.linear(z, self.offset.view(self.out_features, -1), self.bias)

    def read(self, inputs: nn.Module) -> Leaves:
        """The leaves as plain arrays."""
        nodes = n_nodes(self.depth)
        weight = self.weight.new_zeros(len(self.weight), self.in_features)
        weight[:, self.plain.values] = self.weight.detach()
        weight, offset = in_encoded(inputs, weight, self.offset.detach())
        slope = weight.view(self.out_features, nodes, -1).transpose(0, 1)  # (T, k, d)
        constant = offset.view(self.out_features, nodes).T
        if self.shared is None:
            return Leaves(array(self.bias), constant=array(constant), slope=array(slope))
        shared, bias = in_encoded(inputs, self.shared.detach(), self.bias.detach())
        return Leaves(array(bias), constant=array(constant), slope=array(slope), shared=array(shared))

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """Views of the parameters for the native engine."""
        outputs, nodes = self.out_features, n_nodes(self.depth)
        parts: dict[str, tuple[str, Tensor]] = {
            "constants": ("offset", self.offset.view(outputs, nodes).T),
            "slopes": ("weight", self.weight.view(outputs, nodes, self.weight.shape[1]).transpose(0, 1)),
            "bias": ("bias", self.bias),
        }
        return parts if self.shared is None else parts | {"shared_slopes": ("shared", self.shared)}


def _checked(curved: Sequence[int], inputs: int) -> tuple[int, ...]:
    """The numbers of inputs in order; an error unless they are different and from 0 on."""
    sound = all(isinstance(i, int) and not isinstance(i, bool) and 0 <= i < inputs for i in curved)
    if not sound or len(set(curved)) < len(curved):
        raise InputValueError(f"curved must be different numbers from 0 to {inputs - 1}, got {str(curved)[:80]}")
    return tuple(sorted(curved))
