"""What the native engine trains: which models, and where it has their parameters.

The engine has all parameters in one flat array: a part for each of `PARTS`, then those of each layer of a network
(`layer_parts`). Modules give the engine views of their parameters in the shape of these parts.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from prunus.nn.heads import Head
from prunus.nn.layer import TreeLayer, TreeModel
from prunus.nn.networks import layer_parts
from prunus.nn.splits import Split
from prunus.nn.whiten import Whiten
from prunus.ops.native import PRECISIONS

__all__ = [
    "PARTS",
    "FlatParameters",
    "LeafInputs",
    "NativePart",
    "hidden_units",
    "leaf_inputs",
    "live_columns",
    "native_parts",
    "why_not_flat",
    "why_not_native",
]

PARTS = ("split_weights", "split_biases", "constants", "slopes", "shared_slopes", "bias")
LANES = 8
"""Inputs are padded with zeros to a multiple of this many."""


class NativePart(NamedTuple):
    """A part of the flat array."""

    parameter: str
    """The name of the parameter of the model."""
    values: Tensor
    """A view of it, whose last dimension is that of the inputs in the case of split weights and slopes, and that of the
    units in the case of the layers of a network."""


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


def hidden_units(parts: dict[str, NativePart]) -> list[int] | None:
    """The number of units in each hidden layer of a network; None if the leaves have no network."""
    if layer_parts(0)[0] not in parts:
        return None
    return [parts[biases].values.shape[-1] for _, biases in map(layer_parts, range(len(parts))) if biases in parts]


def native_parts(model: TreeModel) -> dict[str, NativePart]:
    """The parts of a model that `why_not_native` has nothing against."""
    found: dict[str, NativePart] = {}
    for prefix, module in (("tree.split", model.tree.split), ("head", model.head)):
        assert isinstance(module, (Split, Head))
        parts = module.native_parts()
        assert parts is not None
        found |= {part: NativePart(f"{prefix}.{name}", values) for part, (name, values) in parts.items()}
    return found


def why_not_native(model: nn.Module) -> str | None:
    """Why the native engine cannot train a model; None if it can."""
    reason = why_not_flat(model)
    parameter = next(model.parameters(), None)
    if (
        reason is None
        and parameter is not None
        and (parameter.device.type != "cpu" or parameter.dtype not in PRECISIONS)
    ):
        return f"the parameters are {parameter.dtype} on {parameter.device}"
    return reason


def why_not_flat(model: nn.Module) -> str | None:
    """Why engines that have all parameters in one flat array cannot train a model; None if they can."""
    if type(model) is not TreeModel or type(model.tree) is not TreeLayer:
        return "the model is not a TreeModel with a TreeLayer"
    for module in (model.tree.split, model.head):
        if not isinstance(module, (Split, Head)) or module.native_parts() is None:
            drops = any(isinstance(part, nn.Dropout) for part in module.modules())
            return f"it does not know {'dropout' if drops else type(module).__name__}"
    for inputs in (model.inputs, model.split_inputs):
        if inputs is not None and type(inputs) not in (Whiten, nn.Identity):
            return f"it does not know {type(inputs).__name__} as inputs"
    if any(_has_hooks(module) for module in model.modules()):
        return "some modules have hooks"
    parameters = list(model.parameters())
    if any(not p.requires_grad or p.dtype != parameters[0].dtype for p in parameters):
        return "some parameters are not trained, or have another precision"
    return None


def _has_hooks(module: nn.Module) -> bool:
    hooks: Any = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return any(hooks)


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
    >>> from prunus.nn import ConstantHead, LinearSplit
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
