"""What the rest of prunus may ask of a split function."""

from typing import Any, ClassVar

from torch import Tensor, nn

from prunus.tree import Splits

__all__ = ["Split"]


class Split(nn.Module):
    """A kind of split: a torch module that can also be described, placed and read into a record.

    A new kind is a file with such a module, and a line in `prunus.nn.registry`.
    """

    words: ClassVar[str]
    """How a node decides, for people: completes "a node decides by ..."."""
    decorrelates: ClassVar[bool] = True
    """Whether it learns better from decorrelated inputs."""
    has_planes: ClassVar[bool] = False
    """Whether its boundaries are planes in the space of the inputs, which `set_planes` can place."""

    def options(self) -> dict[str, Any]:
        """The arguments that make a module of the same shape."""
        raise NotImplementedError

    def read(self, inputs: nn.Module) -> Splits:
        """The splits as plain arrays, for encoded rows; `inputs` is what the model applies to these before."""
        raise NotImplementedError

    def set_planes(self, weight: Tensor, bias: Tensor) -> None:
        """Place the boundaries: weights, (S, d), and biases, (S,), of scores that are 0 there."""
        raise NotImplementedError
