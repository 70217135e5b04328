"""Where the fused engine has the parameters of a tree, and the columns of its inputs.

A batch has the inputs and routes of the leaves side by side: columns of inputs, zeros, a column of ones, routes. Every
linear function, of splits, leaves and layers of networks, is a matrix whose columns are some of these, so that its
constants are the weights of the column of ones. All matrices of a tree lie in one flat array.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from prunus.nn.heads.head import Head
from prunus.nn.model import TreeModel
from prunus.nn.native import NativePart, hidden_units, native_parts
from prunus.nn.networks import layer_parts
from prunus.ops.heap import n_nodes, n_splits

__all__ = ["GpuLayout", "Matrix"]

ALIGNED = 4
"""Columns of inputs are padded to a multiple of this many."""


FEW_OUTPUTS = 8
"""Up to so many outputs of constant leaves are computed where routes are, output by output."""


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
    split_inputs : int or None
        Number of inputs of the splits, if these are not those of the leaves; a column of ones follows them.
    splits : Matrix
    models : Matrix or None
        Linear models of the nodes, (outputs * nodes, columns), on the columns from `first_model` up to that of ones.
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
    (True, 4, 8)
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
        self.ones = -(-features // ALIGNED) * ALIGNED
        self.first_route = self.ones + 1
        self.width = self.ones + 1 + self.nodes
        self.split_inputs = None if model.split_inputs is None else parts["split_weights"].values.shape[1]
        self.size = 0
        self._place_matrices(parts)

    def _place_matrices(self, parts: dict[str, NativePart]) -> None:
        columns = self.ones + 1 if self.split_inputs is None else self.split_inputs + 1
        self.splits = self._new(n_splits(self.depth), columns)
        self.models: Matrix | None = None
        self.first_model, self.last_leaf = self.curved, self.width
        self.first_leaf = 0 if self.is_network or "shared_slopes" in parts else self.ones
        if "slopes" in parts:
            self.models = self._new(self.outputs * self.nodes, self.ones + 1 - self.curved)
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
        self.size += rows * columns
        return matrix

    @staticmethod
    def padded(columns: int) -> int:
        """The width of a batch with so many columns."""
        return -(-columns // ALIGNED) * ALIGNED

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
        places = self.places.to(flat.device)
        splits = self.splits.of(flat)
        plain = values["split_weights"].shape[1]
        yield splits, places if self.split_inputs is None else slice(plain), values["split_weights"]
        yield splits, slice(self.splits.columns - 1, None), values["split_biases"].unsqueeze(1)
        last = self.layers[-1].of(flat)
        if self.models is not None:
            models = self.models.of(flat).view(self.outputs, self.nodes, -1)
            used = torch.sort(places[places >= self.curved]).values - self.curved
            yield models, used, values["slopes"].permute(1, 0, 2)
            yield models, slice(self.models.columns - 1, None), values["constants"].T.unsqueeze(2)
        elif "constants" in values:
            yield last, slice(self.first_route - self.first_leaf, None), values["constants"].T
        if "shared_slopes" in values:
            yield last, places, values["shared_slopes"]
        if self.is_network:
            yield from self._network_pairs(flat, values, places)
        ones = self.ones - self.first_leaf if not self.hidden else self.hidden[-1]
        yield last, slice(ones, ones + 1), values["bias"].unsqueeze(1)

    def _network_pairs(
        self, flat: Tensor, values: dict[str, Tensor], places: Tensor
    ) -> Iterator[tuple[Tensor, Tensor | slice, Tensor]]:
        for i, found in enumerate(self.layers):
            matrix, (weights, biases) = found.of(flat), layer_parts(i)
            if i == 0:
                inputs = len(places)
                yield matrix, places, values[weights].T[:, :inputs]
                yield matrix, slice(self.first_route, None), values[weights].T[:, inputs:]
            else:
                yield matrix, slice(self.hidden[i - 1]), values[weights].T
            if biases in values:
                ones = self.ones if i == 0 else self.hidden[i - 1]
                yield matrix, slice(ones, ones + 1), values[biases].unsqueeze(1)
