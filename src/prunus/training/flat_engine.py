"""What the engines share that have all parameters of a tree in one flat array.

A split and a head say by `native_parts` what parameters they have; each engine's layout says where these lie.
"""

import copy
from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from prunus.nn import TreeLayer, TreeModel, Whiten
from prunus.nn.heads import Head
from prunus.nn.networks import layer_parts
from prunus.nn.splits import Split
from prunus.training.losses import Loss, native_name
from prunus.training.masses import refresh_masses
from prunus.training.options import TrainerOptions
from prunus.training.samples import Samples
from prunus.training.schedules import Pace
from prunus.training.torch_engine import RefreshMasses

__all__ = ["FlatEngine", "FlatWriter", "NativePart", "hidden_units", "native_parts", "why_not_flat", "why_not_run"]


class NativePart(NamedTuple):
    """A part of the flat array."""

    parameter: str
    """The name of the parameter of the model."""
    values: Tensor
    """A view of it, whose last dimension is that of the inputs in the case of split weights and slopes, and that of the
    units in the case of the layers of a network."""


def native_parts(model: TreeModel) -> dict[str, NativePart]:
    """The parts of a model that `why_not_flat` has nothing against."""
    found: dict[str, NativePart] = {}
    for prefix, module in (("tree.split", model.tree.split), ("head", model.head)):
        assert isinstance(module, (Split, Head))
        parts = module.native_parts()
        assert parts is not None
        found |= {part: NativePart(f"{prefix}.{name}", values) for part, (name, values) in parts.items()}
    return found


def hidden_units(parts: dict[str, NativePart]) -> list[int] | None:
    """The number of units in each hidden layer of a network; None if the leaves have no network."""
    if layer_parts(0)[0] not in parts:
        return None
    return [parts[biases].values.shape[-1] for _, biases in map(layer_parts, range(len(parts))) if biases in parts]


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


def why_not_run(loss: Loss, options: TrainerOptions, refresh: RefreshMasses | None, train: Samples) -> str | None:
    """What of a run, besides its model, these engines do not know; None if they know all."""
    if native_name(loss) is None:
        return f"it does not know the loss {loss}"
    if native_name(loss) == "label" and train.y.is_floating_point():
        return "the targets are probabilities of classes"
    if options.optimizer != "adamw":
        return f"it does not know the optimizer {options.optimizer!r}"
    if refresh not in (None, refresh_masses):
        return "refresh_masses is a function of its own"
    return None


class FlatWriter(Protocol):
    """Knows where the parameters of a model are in the flat array."""

    def write(self, flat: Tensor, model: TreeModel) -> None:
        """Give a model the parameters of a flat array."""


class FlatEngine:
    """The part of an engine that keeps, writes and restores the flat array; see `prunus.training.engine.Engine`.

    Its subclasses take the steps, and change what is in `CHANGED`.
    """

    model: TreeModel
    pace: Pace
    flat: Any
    """A `FlatWriter`."""
    train: Samples
    refreshes: bool
    """Whether masses are solved between epochs."""
    generator: torch.Generator
    theta: Tensor
    average: Tensor | None
    m: Tensor
    v: Tensor
    mass: Tensor
    used: Tensor | None
    steps: int
    finished: bool = False

    CHANGED = ("theta", "average", "m", "v", "mass", "used")

    @property
    def shape(self) -> Hashable | None:
        """None, unless a subclass can take the epochs of several runs together."""
        return None

    @property
    def averaged(self) -> nn.Module:
        """The model with the averaged weights of now: a copy of it, unless weights are not averaged."""
        if self.finished:
            return self.model
        model = self.model if self.average is None else copy.deepcopy(self.model)
        self._write(model, self._now())
        return model

    @property
    def settled(self) -> bool:
        """Whether neither the scale of the scores nor the columns of the splits still change."""
        split: Any = self.model.tree.split
        share = self._last_share()
        return self.model.tree.settled_at(share) and bool(split.settled_at(share))

    def running(self) -> AbstractContextManager[None]:
        """Nothing: the engine has threads of its own, or needs none."""
        return nullcontext()

    def kept(self) -> dict[str, Tensor]:
        """Copies of the averaged weights, the masses, the scale and the columns in use."""
        return {name: values.clone() for name, values in self._now().items()}

    def _now(self) -> dict[str, Tensor]:
        now = {"theta": self.theta if self.average is None else self.average, "mass": self.mass}
        now["scale"] = torch.tensor(self._scale(), dtype=torch.float64)
        return now if self.used is None else now | {"used": self.used}

    def finish(self, kept: dict[str, Tensor] | None) -> None:
        """Give the model the kept weights, or the averaged ones of now, and put it in eval mode."""
        split: Any = self.model.tree.split
        self._write(self.model, self._now() | {"theta": self.theta})
        for part in (self.model.tree, split):  # chooses columns by the present weights, as torch does
            part.on_progress(1.0)
        if kept is not None:
            self._write(self.model, kept)
        else:
            self.flat.write(self._now()["theta"], self.model)
            if self.refreshes:
                refresh_masses(self.model, self.train)
        self.model.eval()
        self.finished = True
        self._release()

    def _release(self) -> None:
        """Give back memory and threads that only steps need."""
        raise NotImplementedError

    def _write(self, model: nn.Module, weights: dict[str, Tensor]) -> None:
        assert isinstance(model, TreeModel)
        self.flat.write(weights["theta"], model)
        model.tree.a.copy_(weights["mass"])
        if model.tree.final_scale > 1:
            model.tree.scale.copy_(weights["scale"])
        if self.used is not None:
            split: Any = model.tree.split
            split.used.copy_(weights["used"])

    def state(self) -> dict[str, Any]:
        """The parameters, their moments, and the state of the order."""
        return {name: getattr(self, name) for name in self.CHANGED} | {
            "steps": self.steps,
            "order": self.generator.get_state(),
            "inputs": [module.state_dict() for module in self._inputs()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        for name in self.CHANGED:
            own = getattr(self, name)
            if (own is None) != (state[name] is None):
                raise ValueError(f"{name} is not in both")
            if own is not None:
                own.copy_(state[name])
        self.steps = state["steps"]
        self.generator.set_state(state["order"])
        for module, buffers in zip(self._inputs(), state["inputs"], strict=True):
            module.load_state_dict(buffers)
        self._read_samples()

    def _read_samples(self) -> None:
        """Compute the inputs of all samples, which do not change during training."""
        raise NotImplementedError

    def _inputs(self) -> list[nn.Module]:
        return [module for module in (self.model.inputs, self.model.split_inputs) if module is not None]

    def _last_share(self) -> float:
        return self.pace.share(max(0, self.steps - 1))

    def _scale(self) -> float:
        return self.model.tree.scale_at(self._last_share())
