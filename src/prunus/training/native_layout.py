"""Where the native engine has the parameters of a model, and the inputs of its leaves.

The engine has all parameters in one flat array: a part for each of `PARTS`, then those of each layer of a network
(`layer_parts`). Modules give the engine views of their parameters in the shape of these parts.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from prunus.nn import TreeModel, Whiten
from prunus.nn.heads import Head
from prunus.nn.networks import layer_parts
from prunus.training.flat_engine import native_parts

__all__ = ["PARTS", "FlatParameters", "LeafInputs", "leaf_inputs", "live_columns"]

PARTS = ("split_weights", "split_biases", "constants", "slopes", "shared_slopes", "bias")
LANES = 8
"""Inputs are padded with zeros to a multiple of this many."""


def _all_parts(count: int) -> list[str]:
    """The names of this many parts of the flat array: those of `PARTS`, then those of the layers of a network."""
    layers = count - len(PARTS)
    return [*PARTS, *(part for layer in range(layers) for part in layer_parts(layer))][:count]


class LeafInputs(NamedTuple):
    """Which inputs of the leaves the engine has, and where: those that vary.

    If the leaves have curves, these are all inputs: first those that models of nodes use, then the others.
    """

    columns_used: Tensor
    """The inputs that the engine has, (m,)."""
    places: Tensor
    """The place of each of them, (m,)."""
    slope_columns: int
    """How many places, with padding, are for the models of the nodes."""
    columns: int
    """How many places there are."""

    def of(self, x: Tensor) -> Tensor:
        """Inputs, (n, d), in their places, (n, columns)."""
        placed = x.new_zeros(len(x), self.columns)
        placed[:, self.places] = x[:, self.columns_used]
        return placed


def leaf_inputs(model: TreeModel) -> LeafInputs | None:
    """Where the engine has the inputs of the leaves of a model; None if they stay in their order."""
    head = model.head
    if not isinstance(head, Head) or not head.curved:
        live = live_columns(model.inputs)
        return None if live is None else LeafInputs(live, torch.arange(len(live)), len(live), len(live))
    curved, d = torch.tensor(head.curved), head.in_features
    others = _padded(d - len(curved))
    is_plain = torch.ones(d, dtype=torch.bool)
    is_plain[curved] = False
    places = is_plain.cumsum(0) - 1
    places[curved] = torch.arange(others, others + len(curved))
    return LeafInputs(torch.arange(d), places, others, others + len(curved))


def live_columns(inputs: nn.Module | None) -> Tensor | None:
    """The columns of the inputs that are not always zero, (m,); None if all may vary."""
    if not isinstance(inputs, Whiten):
        return None
    live = torch.nonzero(inputs.matrix.any(1) | (inputs.offset != 0)).flatten()
    return None if len(live) == len(inputs.offset) else live


class FlatParameters:
    """Copies parameters from a model to a flat array and back.

    Parameters
    ----------
    model : TreeModel
    sizes : list of int
        The size of each part of the flat array, with padding.
    split_columns : Tensor of shape (m,), optional
        The inputs whose split weights are in the flat array; by default all. The weights of others stay as they are.

    Examples
    --------
    >>> from prunus.nn import ConstantHead, LinearSplit, TreeLayer
    >>> model = TreeModel(TreeLayer(LinearSplit(3, depth=1), depth=1), ConstantHead(3, depth=1, out_features=1))
    >>> flat = FlatParameters(model, [8, 1, 3, 0, 0, 1])
    >>> array = flat.read()
    >>> flat.write(array + 1)
    >>> bool((flat.read()[8] == array[8] + 1).all())
    True
    """

    def __init__(self, model: TreeModel, sizes: list[int], split_columns: Tensor | None = None) -> None:
        self.model = model
        self.sizes = sizes
        self.split_columns = split_columns
        self.leaf_inputs = leaf_inputs(model)

    def read(self) -> Tensor:
        """The parameters of the model as a new flat array."""
        flat = next(self.model.parameters()).new_zeros(sum(self.sizes))
        for part, piece, values in self._parts(self.model, flat):
            columns, places = self._columns(part, values.shape[-1])
            piece[..., places] = values[self._rows(part, values)][..., columns]
        return flat

    def write(self, flat: Tensor, model: TreeModel | None = None) -> None:
        """Give the model, or another one of the same shape, the parameters of a flat array."""
        for part, piece, values in self._parts(model or self.model, flat):
            columns, places = self._columns(part, values.shape[-1])
            rows = self._rows(part, values)
            changed = values[rows]
            changed[..., columns] = piece[..., places]
            values[rows] = changed

    def decays(self, decaying: dict[str, bool]) -> Tensor:
        """Whether each part decays, as bytes, given the same for each parameter."""
        parts, names = native_parts(self.model), _all_parts(len(self.sizes))
        return torch.tensor([part in parts and decaying[parts[part].parameter] for part in names], dtype=torch.uint8)

    def _columns(self, part: str, count: int) -> tuple[Tensor | slice, Tensor | slice]:
        """Which of the columns of a parameter are in the flat array, and their places in each row of it."""
        if part == "split_weights" and self.split_columns is not None:
            return self.split_columns, slice(len(self.split_columns))
        if part == "shared_slopes" and self.leaf_inputs is not None:
            return self.leaf_inputs.columns_used, self.leaf_inputs.places
        if part == "slopes" and self._leaves_some_out:
            assert self.leaf_inputs is not None
            return self.leaf_inputs.columns_used, self.leaf_inputs.places
        return slice(None), slice(count)

    @property
    def _leaves_some_out(self) -> bool:
        """Whether the engine does not have some of the inputs of the leaves."""
        head = self.model.head
        return self.leaf_inputs is not None and isinstance(head, Head) and not head.curved

    def _rows(self, part: str, values: Tensor) -> Tensor | slice:
        """Which of the rows of a parameter are in the flat array: those of a network's first layer are its inputs."""
        if part != layer_parts(0)[0] or not self._leaves_some_out:
            return slice(None)
        assert self.leaf_inputs is not None
        assert isinstance(self.model.head, Head)
        routes = torch.arange(self.model.head.in_features, len(values))
        return torch.cat((self.leaf_inputs.columns_used, routes))

    def _width(self, part: str, count: int) -> int:
        """The length of a row of the flat array, with padding, for a parameter with this many columns."""
        if part in ("split_biases", "constants", "bias"):
            return count
        if part == "split_weights" and self.split_columns is not None:
            count = len(self.split_columns)
        if part == "shared_slopes" and self.leaf_inputs is not None:
            count = self.leaf_inputs.columns
        if part == "slopes" and self.leaf_inputs is not None:
            count = self.leaf_inputs.slope_columns
        return _padded(count)

    def _parts(self, model: TreeModel, flat: Tensor) -> list[tuple[str, Tensor, Tensor]]:
        """For each part its piece of the flat array, with padding, and the view of the model's parameter."""
        found, views = [], native_parts(model)
        for part, piece in zip(_all_parts(len(self.sizes)), torch.split(flat, self.sizes), strict=True):
            if part not in views:
                continue
            values = views[part].values.detach()
            shape = values[self._rows(part, values)].shape
            found.append((part, piece.view(*shape[:-1], self._width(part, shape[-1])), values))
        return found


def _padded(columns: int) -> int:
    return -(-columns // LANES) * LANES
