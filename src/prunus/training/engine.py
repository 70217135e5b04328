"""The interface of the engines that take the steps of a run."""

from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from torch import Tensor, nn

from prunus.training.callbacks import EpochRecord

__all__ = ["Engine"]


class Engine(Protocol):
    """Takes the steps of a run and evaluates the model; `Trainer` counts epochs, keeps the best one and stops.

    Everything that changes from step to step belongs to the engine.
    """

    name: str
    """One of the choices of `TrainerOptions.engine`."""
    steps: int
    """Number of steps so far."""

    @property
    def shape(self) -> Hashable | None:
        """Engines of one shape can be joined to take an epoch together; None if it always takes its epochs alone."""

    @property
    def averaged(self) -> nn.Module:
        """The model whose weights would be kept if training stopped now."""

    @property
    def settled(self) -> bool:
        """Whether the present weights may be kept: no part of the model still changes with the progress."""

    def running(self) -> AbstractContextManager[None]:
        """The context of a run."""

    def train_epoch(self) -> float:
        """Take the steps of one epoch and return the mean loss."""

    def evaluate(self) -> EpochRecord:
        """Evaluate the averaged weights: the validation loss, after what else belongs into the epoch's record."""

    def kept(self) -> dict[str, Tensor]:
        """Copies of the averaged weights and of all else that `finish` needs to come back to them."""

    def finish(self, kept: dict[str, Tensor] | None) -> None:
        """Give the model the kept weights, or the averaged ones of now, and put it in eval mode."""

    def state(self) -> dict[str, Any]:
        """Everything that changes, for a checkpoint."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of a checkpoint; raises RuntimeError, ValueError or KeyError if it does not fit."""
