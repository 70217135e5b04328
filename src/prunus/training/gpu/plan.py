"""The numbers of each step of an epoch, on the device, so that a captured step needs nothing from the host."""

from collections.abc import Callable

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
    scale_at, columns_at : callable
        The scale of the scores, and the number of columns in each split, when a share of the training is over.

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
        scale_at: Callable[[float], float] = lambda _share: 1.0,
        columns_at: Callable[[float], int] = lambda _share: 0,
    ) -> None:
        self.pace, self.scale_at, self.columns_at = pace, scale_at, columns_at
        self.numbers = torch.zeros(pace.steps_an_epoch, NUMBERS, device=device)
        self.step = torch.zeros((), dtype=torch.int64, device=device)

    def begin_epoch(self, first_step: int) -> None:
        """Set the numbers of the epoch that begins with this step, counted from 0 over all epochs."""
        rows = []
        for step in range(first_step, first_step + len(self.numbers)):
            share = self.pace.share(step)
            corrections = (1 - beta ** (step + 1) for beta in BETAS)
            numbers = self.pace.rate(step), *corrections, self.pace.forget(step)
            rows.append((*numbers, self.scale_at(share), self.columns_at(share)))
        self.numbers.copy_(torch.tensor(rows, dtype=torch.float64))
        self.step.zero_()
