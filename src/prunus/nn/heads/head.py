"""What the rest of prunus may ask of a head."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from prunus.nn.checks import check_depth
from prunus.tree import Leaves

__all__ = ["Head", "LeafTraining"]


@dataclass(frozen=True)
class LeafTraining:
    """How a kind of leaf is trained where a user leaves that to prunus.

    The numbers come from `make bench-accuracy` and the trials described in its notes.
    """

    learning_rate: float
    weight_decay: float
    average: float = 0.99
    """Decay of the moving average of the weights."""
    few_weight_decay: float | None = None
    """Weight decay for classes if there are few samples; None: the same as for many."""
    few_no_decay: tuple[str, ...] = ()
    """Parameters that then do not decay."""


class Head(nn.Module):
    """A kind of leaf: a torch module from inputs and routes to outputs that can also be started and read into a record.

    A new kind is a file with such a module, and a line in `prunus.nn.registry`. What it reads into the record is what
    predictions, pictures and ONNX files are made from.
    """

    words: ClassVar[str]
    """How the prediction is made, for people: completes "a prediction is made from ..."."""
    training_defaults: ClassVar[LeafTraining]

    def __init__(self, in_features: int, depth: int, out_features: int) -> None:
        super().__init__()
        self.in_features = in_features
        self.depth = check_depth(depth)
        self.out_features = out_features

    @classmethod
    def build(
        cls,
        features: int,
        depth: int,
        outputs: int,
        *,
        hidden: Sequence[int],  # noqa: ARG003
        dropout: float,  # noqa: ARG003
    ) -> nn.Module:
        """A new head of this kind; `hidden` and `dropout` are for kinds that have hidden layers."""
        return cls(features, depth, outputs)

    def options(self) -> dict[str, Any]:
        """The arguments that make a module of the same shape."""
        return {"in_features": self.in_features, "depth": self.depth, "out_features": self.out_features}

    def read(self, inputs: nn.Module) -> Leaves:
        """The leaves as plain arrays, for encoded rows; `inputs` is what the model applies to these before."""
        raise NotImplementedError

    def start(self, means: Tensor) -> None:
        """Begin with the mean targets, (T, k), of the samples that pass each node, where a head has values for them."""
