"""What changes from step to step: the learning rate, the share of the steps that are over, the average of weights."""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch

from prunus.training.optimizers import BETAS
from prunus.training.options import TrainerOptions

__all__ = [
    "COLUMNS",
    "EMA_WEIGHT",
    "MEAN_CORRECTION",
    "NUMBERS",
    "RATE",
    "SCALE",
    "SQUARE_CORRECTION",
    "ConstantSchedule",
    "CosineSchedule",
    "Pace",
    "PlateauSchedule",
    "Schedule",
    "StepPlan",
    "make_schedule",
]


class Schedule(Protocol):
    """A factor on the learning rate. Everything that changes during a run is in `state`, for checkpoints."""

    state: dict[str, float]

    def factor(self, step: int) -> float:
        """Return the factor for a step; steps are counted from 0 over all epochs."""

    def end_epoch(self, loss: float) -> None:
        """Take note of the loss of an epoch: the validation loss, or the training loss without validation data."""


class ConstantSchedule:
    """A factor that is always 1."""

    def __init__(self) -> None:
        self.state: dict[str, float] = {}

    def factor(self, step: int) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0

    def end_epoch(self, loss: float) -> None:
        """Do nothing: the factor does not depend on losses."""


class CosineSchedule(ConstantSchedule):
    """A factor that rises linearly to 1 over the first steps, then falls to 0 along half a cosine.

    Parameters
    ----------
    steps : int
        Number of steps of the whole run.
    warmup : float
        Share of the steps over which the factor rises.

    Examples
    --------
    >>> schedule = CosineSchedule(steps=100, warmup=0.1)
    >>> [round(schedule.factor(step), 2) for step in (0, 9, 54, 99)]
    [0.1, 1.0, 0.52, 0.0]
    """

    def __init__(self, steps: int, warmup: float = 0.03) -> None:
        super().__init__()
        self.steps = max(1, steps)
        self.warmup_steps = max(1.0, warmup * self.steps)

    def factor(self, step: int) -> float:
        """Return the factor for a step."""
        if step < self.warmup_steps:
            return min(1.0, (step + 1) / self.warmup_steps)
        progress = min(1.0, (step - self.warmup_steps) / max(1.0, self.steps - self.warmup_steps))
        return 0.5 * (1 + math.cos(math.pi * progress))


class PlateauSchedule(ConstantSchedule):
    """A factor that is multiplied by `decay` when the loss has not improved for more than `patience` epochs.

    Parameters
    ----------
    decay : float
    patience : int

    Examples
    --------
    >>> schedule = PlateauSchedule(decay=0.1, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     schedule.end_epoch(loss)
    >>> schedule.factor(0)
    0.1
    """

    def __init__(self, decay: float = 0.1, patience: int = 2) -> None:
        self.decay, self.patience = decay, patience
        self.state = {"factor": 1.0, "best": math.inf, "bad_epochs": 0}

    def factor(self, step: int) -> float:  # noqa: ARG002
        """Return the current factor."""
        return self.state["factor"]

    def end_epoch(self, loss: float) -> None:
        """Lower the factor if too many epochs have passed since the last better loss."""
        state = self.state
        if not math.isfinite(state["best"]) or loss < state["best"] - 1e-4 * abs(state["best"]):
            state["best"], state["bad_epochs"] = loss, 0
            return
        state["bad_epochs"] += 1
        if state["bad_epochs"] > self.patience:
            state["factor"], state["bad_epochs"] = state["factor"] * self.decay, 0


def make_schedule(name: str, steps: int) -> Schedule:
    """Make a schedule.

    Parameters
    ----------
    name : {"cosine", "plateau", "constant"}
    steps : int
        Number of steps of the whole run.

    Returns
    -------
    Schedule
    """
    made: dict[str, Callable[[], Schedule]] = {
        "cosine": lambda: CosineSchedule(steps),
        "plateau": PlateauSchedule,
        "constant": ConstantSchedule,
    }
    return made[name]()


class Pace:
    """The numbers of each step of a run; steps are counted from 0 over all epochs.

    Parameters
    ----------
    options : TrainerOptions
    samples : int
        Number of training samples.

    Examples
    --------
    >>> pace = Pace(TrainerOptions(max_epochs=2, batch_size=10, schedule="constant"), samples=25)
    >>> pace.all_steps
    6
    >>> pace.share(0), pace.share(5)
    (0.0, 1.0)
    """

    def __init__(self, options: TrainerOptions, samples: int) -> None:
        self.options = options
        self.steps_an_epoch = -(-samples // options.batch_size)
        self.all_steps = options.max_epochs * self.steps_an_epoch
        self.schedule = make_schedule(options.schedule, self.all_steps)

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        return self.options.learning_rate * self.schedule.factor(step)

    def share(self, step: int) -> float:
        """The share of the training that is over before a step."""
        return min(1.0, step / max(1, self.all_steps - 1))

    def ema_weight(self, step: int) -> float:
        """The share of the newest weights in their moving average after a step; 1 if there is no average.

        It is larger at first, so that the average soon forgets the starting weights.
        """
        steps = step + 1
        return 1 - min(self.options.average, (1 + steps) / (10 + steps)) if self.options.average else 1.0


RATE, MEAN_CORRECTION, SQUARE_CORRECTION, EMA_WEIGHT, SCALE, COLUMNS = range(6)
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
    >>> from prunus.training import TrainerOptions
    >>> plan = StepPlan(Pace(TrainerOptions(max_epochs=2, batch_size=10, schedule="constant"), samples=25), "cpu")
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
        numbers[:, EMA_WEIGHT] = [self.pace.ema_weight(step) for step in steps]
        for column, beta in zip((MEAN_CORRECTION, SQUARE_CORRECTION), BETAS, strict=True):
            numbers[:, column] = 1 - beta ** (np.array(steps) + 1.0)
        for column, number_at in ((SCALE, self.scale_at), (COLUMNS, self.columns_at)):
            if number_at is not None:
                numbers[:, column] = [number_at(self.pace.share(step)) for step in steps]
        self.numbers.copy_(torch.from_numpy(numbers))
        self.step.zero_()
