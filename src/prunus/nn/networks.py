"""Parts of modules: multilayer perceptrons as modules and as plain arrays, and numbers of inputs on any device."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from prunus.nn.whiten import in_encoded
from prunus.tree import Layers

__all__ = ["Indices", "array", "dropout_of", "hidden_widths", "layer_parts", "mlp", "read_layers"]


class Indices:
    """Whole numbers that select inputs, as a tensor on the device where it is needed.

    To copy numbers to a GPU, the host waits for it; so this is done once. A buffer of the module would have to be
    computed anew for modules that are made without memory.

    Parameters
    ----------
    values : sequence of int

    Examples
    --------
    >>> Indices([2, 0]).on(torch.device("cpu"))
    tensor([2, 0])
    """

    def __init__(self, values: Sequence[int]) -> None:
        self.values = list(values)
        self._tensors: dict[torch.device, Tensor] = {}

    def on(self, device: torch.device) -> Tensor:
        """The numbers as a tensor on this device."""
        if torch.compiler.is_compiling():
            return torch.tensor(self.values, dtype=torch.int64, device=device)
        if device not in self._tensors:
            with torch.inference_mode(False):  # the tensor may be used for gradients later
                self._tensors[device] = torch.tensor(self.values, dtype=torch.int64, device=device)
        return self._tensors[device]

    def __getstate__(self) -> dict[str, Any]:
        return {"values": self.values, "_tensors": {}}


def mlp(widths: Sequence[int], dropout: float) -> nn.Sequential:
    """Linear layers between these widths, each followed by an ELU and dropout."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ELU(), *([nn.Dropout(dropout)] if dropout else [])]
    return nn.Sequential(*layers)


def hidden_widths(layers: nn.Sequential) -> list[int]:
    """Number of units in each hidden layer of a network that `mlp` created."""
    return [layer.out_features for layer in layers if isinstance(layer, nn.Linear)]


def dropout_of(layers: nn.Sequential) -> float:
    """Share of the hidden units that each training step leaves out."""
    return next((layer.p for layer in layers if isinstance(layer, nn.Dropout)), 0.0)


def layer_parts(layer: int) -> tuple[str, str]:
    """The names of the parts of a layer's weights and biases, see `prunus.training.native_layout`."""
    return f"weights_{layer}", f"biases_{layer}"


def array(tensor: Tensor) -> npt.NDArray[np.float32]:
    """A copy of a tensor as an array."""
    return tensor.detach().cpu().float().contiguous().numpy().copy()


def read_layers(modules: Iterable[nn.Module], inputs: nn.Module, features: int, unit: str = "elu") -> Layers:
    """The linear layers of these modules as arrays; the first layer applies to encoded rows.

    Parameters
    ----------
    modules : iterable of Module
        Linear layers, or containers of linear layers, in the order in which they are applied.
    inputs : Module
        The module that is applied to encoded rows before the first layer, see `in_encoded`.
    features : int
        Number of columns of an encoded row; the first layer may have other inputs after these.
    unit : str
        The nonlinear unit between the layers: "elu" or "relu".
    """
    linear = [part for module in modules for part in module.modules() if isinstance(part, nn.Linear)]
    first = linear[0].weight.detach()
    weight, bias = in_encoded(inputs, first[:, :features], linear[0].bias.detach())
    weight = torch.cat((weight, first[:, features:]), 1)
    return Layers(
        (array(weight), *(array(layer.weight) for layer in linear[1:])),
        (array(bias), *(array(layer.bias) for layer in linear[1:])),
        unit,
    )
