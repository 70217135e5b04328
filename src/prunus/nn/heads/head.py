"""The interface of heads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from prunus.nn.checks import check_depth
from prunus.tree import Leaves

__all__ = ["Head", "LeafTraining"]


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

    To add a new kind, write a file with such a module and add a line to `prunus.nn.registry`. Predictions, pictures and
    ONNX files are made from the record that `read` returns.
    """

    words: ClassVar[str]
    """A description for users that completes the sentence "a prediction is made from ..."."""
    training_defaults: ClassVar[LeafTraining]
    """The default options of training."""
    shares_pieces: ClassVar[bool] = False
    """Whether pieces of numbers are for curves that all nodes share; then splits do not use them."""
    curved: tuple[int, ...] = ()
    """The inputs that only such curves use, and no model of a node."""

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
        pieces: Sequence[int],  # noqa: ARG003
    ) -> "Head":
        """A new head of this kind.

        Kinds without hidden layers ignore `hidden` and `dropout`, and most kinds ignore which inputs are pieces.
        """
        return cls(features, depth, outputs)

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        return {"in_features": self.in_features, "depth": self.depth, "out_features": self.out_features}

    def read(self, inputs: nn.Module) -> Leaves:
        """The leaves as plain arrays that apply to encoded rows; the model passes these through `inputs` first."""
        raise NotImplementedError

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """The names of the parameters and views of them for the native engine, see `prunus.training.native_layout`.

        None if the engine does not know this kind.
        """
        return None

    def start(self, means: Tensor) -> None:
        """Start from the mean targets, (T, k), of the samples that pass each node; most heads ignore them."""
