"""Where the fused engine has the parameters of a tree, and the columns of its inputs.

A batch has the inputs of the leaves, a column of ones and the routes side by side. With columns of zeros between them,
each begins at a multiple of `ALIGNED` columns, as fast products of matrices need it. Every linear function, of splits,
leaves and layers of networks, is a matrix for some of these columns, so that its constants are the weights of the
column of ones. All matrices of a tree lie in one flat array.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from prunus.nn.heads import Head
from prunus.nn.layer import TreeModel
from prunus.nn.networks import layer_parts
from prunus.ops.heap import n_nodes, n_splits
from prunus.training.flat_engine import NativePart, hidden_units, native_parts

__all__ = ["GpuLayout", "Matrix"]

ALIGNED = 4
"""Number of floats in 16 bytes."""


FEW_OUTPUTS = 8
"""Up to this many outputs of constant leaves are computed where routes are, output by output."""


class Matrix(NamedTuple):
    """A matrix in the flat array."""

    begin: int
    rows: int
    columns: int

    def of(self, flat: Tensor) -> Tensor:
        """The matrix, (..., rows, columns), of flat arrays, (..., size)."""
        part = flat[..., self.begin : self.begin + self.rows * self.columns]
        return part.view(*flat.shape[:-1], self.rows, self.columns)


class GpuLayout:
    """Where the parameters and inputs of trees of one shape are.

    Parameters
    ----------
    model : TreeModel
        One that `why_not_flat` has nothing against.

    Attributes
    ----------
    places : Tensor of shape (d,)
        The column of each input of the leaves.
    ones, first_route, width : int
        The column of ones, the first column of routes, and the number of columns.
    own_inputs : int
        Number of columns of the inputs of the splits, with ones at `split_ones`; 0 if they are those of the leaves.
    splits : Matrix
    models : Matrix or None
        Linear models of the nodes, (outputs * nodes, columns), on the columns from `first_model` to the routes.
    layers : list of Matrix
        Layers of a network, or the one layer of other leaves, on the columns from `first_leaf` to `last_leaf`.
    is_constant : bool
        Whether leaves are constants and outputs are few, so that kernels need not store routes.
    size : int
        Number of entries of the flat array.

    Examples
    --------
    >>> from prunus.nn import ConstantHead, LinearSplit, TreeLayer
    >>> model = TreeModel(TreeLayer(LinearSplit(3, depth=1), depth=1), ConstantHead(3, depth=1, out_features=1))
    >>> layout = GpuLayout(model)
    >>> flat = layout.read(model)
    >>> layout.write(flat + 1, model)
    >>> bool((model.head.bias == 1).all()), layout.ones, layout.width
    (True, 4, 12)
    """

    def __init__(self, model: TreeModel) -> None:
        parts, head = native_parts(model), model.head
        assert isinstance(head, Head)
        self.depth, self.outputs = model.tree.depth, len(parts["bias"].values)
        self.nodes, features = n_nodes(self.depth), head.in_features
        self.hidden = hidden_units(parts) or []
        self.is_network = hidden_units(parts) is not None
        curved = torch.zeros(features, dtype=torch.bool)
        curved[list(head.curved)] = True
        self.curved = len(head.curved)
        self.places = torch.argsort(torch.argsort(~curved, stable=True))
        self.ones = self.padded(features)
        self.first_route = self.ones + ALIGNED
        self.width = self.padded(self.first_route + self.nodes)
        of_splits = parts["split_weights"].values.shape[1]
        self.split_ones = self.padded(of_splits)
        self.own_inputs = 0 if model.split_inputs is None else self.split_ones + ALIGNED
        self.size = 0
        self._place_matrices(parts)

    def _place_matrices(self, parts: dict[str, NativePart]) -> None:
        self.splits = self._new(n_splits(self.depth), self.own_inputs or self.first_route)
        self.models: Matrix | None = None
        self.first_model, self.last_leaf = self.curved, self.width
        self.first_leaf = 0 if self.is_network or "shared_slopes" in parts else self.ones
        if "slopes" in parts:
            self.models = self._new(self.outputs * self.nodes, self.first_route - self.curved)
            self.last_leaf = self.first_route
        self.layers, columns = [], self.last_leaf - self.first_leaf
        for units in [*self.hidden, self.outputs]:
            self.layers.append(self._new(units, columns))
            columns = self.padded(units + 1)
        self.size = -(-self.size // 16) * 16
        is_plain = not self.is_network and self.models is None and "shared_slopes" not in parts
        self.is_constant = is_plain and self.outputs <= FEW_OUTPUTS

    def _new(self, rows: int, columns: int) -> Matrix:
        matrix = Matrix(self.size, rows, columns)
        self.size = self.padded(self.size + rows * columns)
        return matrix

    @staticmethod
    def padded(columns: int) -> int:
        """The next multiple of `ALIGNED`."""
        return -(-columns // ALIGNED) * ALIGNED

    @property
    def routes(self) -> slice:
        """The columns of the first layer of the leaves that are for routes."""
        begin = self.first_route - self.first_leaf
        return slice(begin, begin + self.nodes)

    def read(self, model: TreeModel) -> Tensor:
        """The parameters of a model as a new flat array."""
        values = {part: found.values.detach() for part, found in native_parts(model).items()}
        return self._read(values, next(model.parameters()).device)

    def write(self, flat: Tensor, model: TreeModel) -> None:
        """Give a model the parameters of a flat array."""
        values = {part: found.values.detach() for part, found in native_parts(model).items()}
        for matrix, columns, part in self._pairs(flat, values):
            part.copy_(matrix[..., columns])

    def decays(self, model: TreeModel, decaying: dict[str, bool]) -> Tensor:
        """For each entry of the flat array whether it decays, as 1 or 0, given the same for each parameter."""
        flags = {
            part: torch.full_like(found.values, float(decaying[found.parameter]))
            for part, found in native_parts(model).items()
        }
        return self._read(flags, next(model.parameters()).device)

    def _read(self, values: dict[str, Tensor], device: torch.device) -> Tensor:
        flat = torch.zeros(self.size, device=device)
        for matrix, columns, part in self._pairs(flat, values):
            matrix[..., columns] = part
        return flat

    def _pairs(self, flat: Tensor, values: dict[str, Tensor]) -> Iterator[tuple[Tensor, Tensor | slice, Tensor]]:
        """Matrices, columns of them, and the parts of a model that have the shape of these columns."""
        places, splits = self.places.to(flat.device), self.splits.of(flat)
        of_splits = slice(values["split_weights"].shape[1]) if self.own_inputs else places
        yield splits, of_splits, values["split_weights"]
        yield splits, _one(self.split_ones), values["split_biases"].unsqueeze(1)
        last = self.layers[-1].of(flat)
        if self.models is not None:
            models = self.models.of(flat).view(self.outputs, self.nodes, -1)
            yield models, slice(len(places) - self.curved), values["slopes"].permute(1, 0, 2)
            yield models, _one(self.ones - self.curved), values["constants"].T.unsqueeze(2)
        elif "constants" in values:
            yield last, self.routes, values["constants"].T
        if "shared_slopes" in values:
            yield last, places, values["shared_slopes"]
        if self.is_network:
            yield from self._network_pairs(flat, values, places)
        ones = self.ones - self.first_leaf if not self.hidden else self.hidden[-1]
        yield last, _one(ones), values["bias"].unsqueeze(1)

    def _network_pairs(
        self, flat: Tensor, values: dict[str, Tensor], places: Tensor
    ) -> Iterator[tuple[Tensor, Tensor | slice, Tensor]]:
        for i, found in enumerate(self.layers):
            matrix, (weights, biases) = found.of(flat), layer_parts(i)
            if i == 0:
                inputs = len(places)
                yield matrix, places, values[weights].T[:, :inputs]
                yield matrix, self.routes, values[weights].T[:, inputs:]
            else:
                yield matrix, slice(self.hidden[i - 1]), values[weights].T
            if biases in values:
                ones = self.ones if i == 0 else self.hidden[i - 1]
                yield matrix, _one(ones), values[biases].unsqueeze(1)


def _one(column: int) -> slice:
    return slice(column, column + 1)
