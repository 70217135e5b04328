"""A trained model between epochs and at the end: its node masses, and whether its numbers are sound."""

import torch

from prunus.errors import TrainingError
from prunus.nn import TreeModel
from prunus.training import Samples
from prunus.training.masses import sampling_step

__all__ = ["check_learned", "diverged"]


@torch.no_grad()
def check_learned(model: TreeModel, train: Samples) -> None:
    """Raise an error if the last steps of training have made weights or outputs that are not finite.

    The losses do not show that: each is computed before its step.
    """
    some = train[:: sampling_step(len(train))]
    numbers = (*model.parameters(), model(some.x))
    if not all(bool(number.isfinite().all()) for number in numbers):
        raise diverged()


def diverged() -> TrainingError:
    """The error for a tree whose numbers are not finite."""
    return TrainingError(
        "training has diverged: the tree predicts NaN or infinity; lower learning_rate or weight_decay"
    )
