"""A trained model between epochs and at the end: its node masses, and whether its numbers are sound."""

import math

import torch

from prunus.errors import TrainingError
from prunus.nn import TreeModel
from prunus.targets import Target
from prunus.targets.target import Doubles
from prunus.training import Samples

__all__ = ["check_learned", "diverged", "prediction_limits"]

CHECKED_SAMPLES, CHECKED_ROUTES = 2_048, 1 << 22
"""At the end of training the outputs of about this many samples are looked at, with at most this many routes in all."""


@torch.no_grad()
def check_learned(model: TreeModel, train: Samples) -> None:
    """Raise an error if the last steps of training have made weights or outputs that are not finite.

    The losses do not show that: each is computed before its step.
    """
    rows = min(CHECKED_SAMPLES, max(1, CHECKED_ROUTES // len(model.tree.a)))
    some = train[:: math.ceil(len(train) / rows)]
    numbers = (*model.parameters(), model(some.x))
    if not all(bool(number.isfinite().all()) for number in numbers):
        raise diverged()


def diverged() -> TrainingError:
    """The error for a tree whose numbers are not finite."""
    return TrainingError(
        "training has diverged: the tree predicts NaN or infinity; lower learning_rate or weight_decay"
    )


def prediction_limits(target: Target, wanted: Doubles) -> tuple[Doubles, Doubles] | None:
    """The smallest and the largest output, (k,) each, of a tree with models in its leaves; None for classes.

    It is the range of what is wanted, (n, k), and a tenth of it more on both sides: far from all training rows a model
    means nothing, and one such row could cost more than all others.
    """
    found = None if target.task == "clusters" else target.output_limits(wanted)
    if found is None:
        return None
    low, high = found
    return low - 0.1 * (high - low), high + 0.1 * (high - low)
