"""Heads, one for each kind of leaf: modules from inputs x, (n, d), and routes z, (n, T), to outputs, (n, k)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from prunus.errors import InputValueError
from prunus.nn.checks import check_depth
from prunus.nn.networks import Indices, array, dropout_of, hidden_widths, layer_parts, mlp, read_layers
from prunus.nn.whiten import in_encoded
from prunus.ops.heap import n_nodes
from prunus.tree import Leaves

__all__ = ["AdditiveHead", "ConstantHead", "Head", "LeafTraining", "LinearHead", "MLPHead"]

FEW_PRODUCTS = 1 << 22
"""Up to this many products of rows, nodes and outputs, it does not matter how predictions are computed."""
MAX_PRODUCTS = 1 << 25
"""Largest number of products that are in memory at once: of rows, nodes and outputs, or of rows, nodes and inputs."""


@dataclass(frozen=True)
class LeafTraining:
    """The default options of training for a kind of leaf.

    The numbers come from `make bench-accuracy` and the trials described in its notes.
    """

    learning_rate: float
    weight_decay: float
    average: float = 0.99
    """Decay of the moving average of the weights."""
    few_weight_decay: float | None = None
    """Weight decay for classification with few samples; None means the same as for many samples."""
    few_no_decay: tuple[str, ...] = ()
    """Names of the parameters that do not decay in that case."""


class Head(nn.Module):
    """A kind of leaf: a torch module from inputs and routes to outputs, with methods to start it and to read it.

    To add a new kind, write such a class and add a line to `prunus.nn.registry`. Predictions, pictures and
    ONNX files are made from the record that `read` returns.
    """

    training_defaults: ClassVar[LeafTraining]
    """The default options of training."""
    shares_pieces: ClassVar[bool] = False
    """Whether pieces of numbers are for curves that all nodes share; then splits do not use them."""
    built_with: ClassVar[dict[str, str]] = {}
    """What a head of this kind is built with beside its sizes: options of `build_head`, by the names of arguments."""
    curved: tuple[int, ...] = ()
    """The inputs that only such curves use, and no model of a node."""

    def __init__(self, in_features: int, depth: int, out_features: int) -> None:
        super().__init__()
        self.in_features = in_features
        self.depth = check_depth(depth)
        self.out_features = out_features

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        return {"in_features": self.in_features, "depth": self.depth, "out_features": self.out_features}

    def read(self, inputs: nn.Module) -> Leaves:
        """The leaves as plain arrays that apply to encoded rows; the model passes these through `inputs` first."""
        raise NotImplementedError

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """The names of the parameters and views of them for the native engine, see `prunus.nn.native`.

        None if the engine does not know this kind.
        """
        return None

    def start(self, means: Tensor) -> None:
        """Start from the mean targets, (T, k), of the samples that pass each node; most heads ignore them."""


class ConstantHead(Head):
    """A value for each node: the prediction is the sum of these values, weighted by the routes.

    Parameters
    ----------
    in_features : int
        Number of inputs, d. The head ignores the inputs; it takes this argument because other heads do.
    depth : int
        Depth of the tree, from 0 to 16.
    out_features : int
        Number of outputs, k.

    Examples
    --------
    >>> ConstantHead(5, depth=3, out_features=2)(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    """

    training_defaults: ClassVar[LeafTraining] = LeafTraining(
        learning_rate=0.03, weight_decay=0.1, few_weight_decay=0.3, few_no_decay=("head.weight",)
    )

    def __init__(self, in_features: int, depth: int, out_features: int) -> None:
        super().__init__(in_features, depth, out_features)
        self.weight = nn.Parameter(torch.zeros(out_features, n_nodes(depth)))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, _x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        return functional.linear(z, self.weight, self.bias)

    def read(self, inputs: nn.Module) -> Leaves:  # noqa: ARG002
        """The leaves as plain arrays."""
        return Leaves(array(self.bias), constant=array(self.weight.T))

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """Views of the parameters for the native engine."""
        return {"constants": ("weight", self.weight.T), "bias": ("bias", self.bias)}

    @torch.no_grad()
    def start(self, means: Tensor) -> None:
        """Set the values so that their sum along the path to each node is the given mean, (T, k)."""
        values = means.clone()
        values[1:] -= means[(torch.arange(1, len(means)) - 1) // 2]
        self.weight.copy_(values.T)


class AdditiveHead(Head):
    """A value for each node, as in `ConstantHead`, plus one linear model of the inputs for all nodes.

    This is a linear function of inputs and routes side by side, which the paper uses for clustering.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 16.
    out_features : int
        Number of outputs, k.

    Examples
    --------
    >>> AdditiveHead(5, depth=3, out_features=2)(torch.zeros(10, 5), torch.ones(10, 15)).shape
    torch.Size([10, 2])
    """

    training_defaults: ClassVar[LeafTraining] = LeafTraining(learning_rate=0.02, weight_decay=0.3)
    shares_pieces: ClassVar[bool] = True

    def __init__(self, in_features: int, depth: int, out_features: int) -> None:
        super().__init__(in_features, depth, out_features)
        self.weight = nn.Parameter(torch.zeros(out_features, n_nodes(depth)))
        self.slope = nn.Parameter(torch.zeros(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """Predictions, (n, k)."""
        return functional.linear(z, self.weight, self.bias) + functional.linear(x, self.slope)

    def read(self, inputs: nn.Module) -> Leaves:
        """The leaves as plain arrays."""
        shared, bias = in_encoded(inputs, self.slope.detach(), self.bias.detach())
        return Leaves(array(bias), constant=array(self.weight.T), shared=array(shared))

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """Views of the parameters for the native engine."""
        return {
            "constants": ("weight", self.weight.T),
            "shared_slopes": ("slope", self.slope),
            "bias": ("bias", self.bias),
        }


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

    training_defaults: ClassVar[LeafTraining] = LeafTraining(learning_rate=0.02, weight_decay=0.3)
    shares_pieces: ClassVar[bool] = True
    built_with: ClassVar[dict[str, str]] = {"curved": "pieces"}

    def __init__(self, in_features: int, depth: int, out_features: int, curved: Sequence[int] = ()) -> None:
        super().__init__(in_features, depth, out_features)
        self.curved = _checked(curved, in_features)
        self.plain = Indices(sorted(set(range(in_features)) - set(self.curved)))  # for the models of the nodes
        rows = out_features * n_nodes(depth)
        self.weight = nn.Parameter(torch.zeros(rows, in_features - len(self.curved)))
        self.offset = nn.Parameter(torch.zeros(rows))
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.shared = nn.Parameter(torch.zeros(out_features, in_features)) if self.curved else None

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

    training_defaults: ClassVar[LeafTraining] = LeafTraining(learning_rate=0.01, weight_decay=0.1, average=0.998)
    built_with: ClassVar[dict[str, str]] = {"hidden": "hidden", "dropout": "dropout"}

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
