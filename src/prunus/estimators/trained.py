"""A trained model between epochs and at the end: its node masses, and whether its numbers are sound."""

import math

import torch

from prunus.errors import TrainingError
from prunus.nn import TreeModel
from prunus.training import EpochRecord, Samples

__all__ = ["check_learned", "diverged", "refresh_masses"]

MASS_SAMPLES = 16_384
"""Between epochs node masses are solved on at most this many samples; in the end they are solved on all."""
CHECKED_SAMPLES = 2_048
"""At the end of training the outputs of about so many samples are looked at."""


def refresh_masses(model: torch.nn.Module, train: Samples) -> EpochRecord:
    """Solve the node masses on some of the samples; the share of nodes that stay active goes into the history."""
    assert isinstance(model, TreeModel)
    some = train[:: math.ceil(len(train) / MASS_SAMPLES)]
    model.solve_masses(some.x, some.weight)
    return {"active_nodes": float((model.tree.a > 0).double().mean())}


@torch.no_grad()
def check_learned(model: TreeModel, train: Samples) -> None:
    """Raise an error if the last steps of training have made weights or outputs that are not finite.

    The losses do not show that: each is computed before its step.
    """
    some = train[:: math.ceil(len(train) / CHECKED_SAMPLES)]
    numbers = (*model.parameters(), model(some.x))
    if not all(bool(number.isfinite().all()) for number in numbers):
        raise diverged()


def diverged() -> TrainingError:
    """The error for a tree whose numbers are not finite."""
    return TrainingError(
        "training has diverged: the tree predicts NaN or infinity; lower learning_rate or weight_decay"
    )
