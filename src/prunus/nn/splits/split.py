"""The interface of split functions."""

from typing import Any, ClassVar

from torch import Tensor, nn

from prunus.tree import Splits

__all__ = ["Split"]


class Split(nn.Module):
    """A kind of split: a torch module from inputs to scores, with methods to describe, place and read it.

    To add a new kind, write a file with such a module and add a line to `prunus.nn.registry`.
    """

    words: ClassVar[str]
    """A description for users that completes the sentence "a node decides by ..."."""
    decorrelates: ClassVar[bool] = True
    """Whether the split learns better from decorrelated inputs."""
    has_planes: ClassVar[bool] = False
    """Whether the boundaries are planes in the space of the inputs, which `set_planes` can place."""

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        raise NotImplementedError

    def read(self, inputs: nn.Module) -> Splits:
        """The splits as plain arrays that apply to encoded rows; the model passes these through `inputs` first."""
        raise NotImplementedError

    def planes(self, inputs: Any) -> tuple[Tensor, Tensor] | None:  # noqa: ARG002
        """Weights, (S, d), and biases, (S,), of scores that are linear functions of what `inputs` is applied to.

        None if the scores are not linear.
        """
        return None

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """The names of the parameters and views of them for the native engine, see `prunus.training.native_layout`.

        None if the engine does not know this kind.
        """
        return None

    def set_planes(self, weight: Tensor, bias: Tensor) -> None:
        """Place the boundaries: set weights, (S, d), and biases, (S,), of scores that are 0 on them."""
        raise NotImplementedError
