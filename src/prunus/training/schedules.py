"""Learning rate schedules: factors on the learning rate that depend on the step or on the losses so far."""

import math
from typing import Protocol

from prunus.errors import InputValueError

__all__ = ["SCHEDULES", "ConstantSchedule", "CosineSchedule", "PlateauSchedule", "Schedule", "make_schedule"]


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


SCHEDULES = ("cosine", "plateau", "constant")


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
    if name == "cosine":
        return CosineSchedule(steps)
    if name == "plateau":
        return PlateauSchedule()
    if name == "constant":
        return ConstantSchedule()
    raise InputValueError(f"schedule must be one of {list(SCHEDULES)}, got {name!r}")
