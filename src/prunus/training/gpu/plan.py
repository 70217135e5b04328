"""The numbers of each step of an epoch, on the device, so that a captured step needs nothing from the host."""

from collections.abc import Callable

import numpy as np
import torch

from prunus.training.optimizers import BETAS
from prunus.training.pace import Pace

__all__ = ["COLUMNS", "FORGET", "MEAN_CORRECTION", "NUMBERS", "RATE", "SCALE", "SQUARE_CORRECTION", "StepPlan"]

RATE, MEAN_CORRECTION, SQUARE_CORRECTION, FORGET, SCALE, COLUMNS = range(6)
NUMBERS = 6
"""How many numbers a step has: the learning rate; by how much Adam's two averages are too small, ``1 - beta**step``;
the share of the newest weights in their average; the scale of the scores; the number of columns in each split."""


class StepPlan:
    """The numbers of each step of an epoch, and which step is next.

    Parameters
    ----------
    pace : Pace
    device : torch.device or str
    scale_at, columns_at : callable, optional
        The scale of the scores, and the number of columns in each split, when a share of the training is over; None if
        they do not change.

    Attributes
    ----------
    numbers : Tensor of shape (steps an epoch, NUMBERS)
        On the device, in single precision.
    step : int64 Tensor of shape ()
        The step of the epoch that is next, on the device; whoever takes steps adds to it.

    Examples
    --------
    >>> from prunus.training import TrainingOptions
    >>> plan = StepPlan(Pace(TrainingOptions(max_epochs=2, batch_size=10, schedule="constant"), samples=25), "cpu")
    >>> plan.begin_epoch(first_step=3)
    >>> plan.numbers[:, RATE]
    tensor([0.0200, 0.0200, 0.0200])
    """

    def __init__(
        self,
        pace: Pace,
        device: torch.device | str,
        scale_at: Callable[[float], float] | None = None,
        columns_at: Callable[[float], int] | None = None,
    ) -> None:
        self.pace, self.scale_at, self.columns_at = pace, scale_at, columns_at
        self.numbers = torch.zeros(pace.steps_an_epoch, NUMBERS, device=device)
        self.step = torch.zeros((), dtype=torch.int64, device=device)

    def begin_epoch(self, first_step: int) -> None:
        """Set the numbers of the epoch that begins with this step, counted from 0 over all epochs."""
        steps = range(first_step, first_step + len(self.numbers))
        numbers = np.ones((len(steps), NUMBERS))
        numbers[:, RATE] = [self.pace.rate(step) for step in steps]
        numbers[:, FORGET] = [self.pace.forget(step) for step in steps]
        for column, beta in zip((MEAN_CORRECTION, SQUARE_CORRECTION), BETAS, strict=True):
            numbers[:, column] = 1 - beta ** (np.array(steps) + 1.0)
        for column, number_at in ((SCALE, self.scale_at), (COLUMNS, self.columns_at)):
            if number_at is not None:
                numbers[:, column] = [number_at(self.pace.share(step)) for step in steps]
        self.numbers.copy_(torch.from_numpy(numbers))
        self.step.zero_()
