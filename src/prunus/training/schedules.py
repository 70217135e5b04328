"""Learning rate schedules: factors on the learning rate, by step or by the progress of the loss."""

import math
from typing import Protocol

from prunus.errors import InputValueError

__all__ = ["SCHEDULES", "ConstantSchedule", "CosineSchedule", "PlateauSchedule", "Schedule", "make_schedule"]


class Schedule(Protocol):
    """A factor on the learning rate. What changes lies in `state`, which a checkpoint stores."""

    state: dict[str, float]

    def factor(self, step: int) -> float:
        """Factor for a step, counted from 0 over all epochs."""

    def end_epoch(self, loss: float) -> None:
        """Take note of the epoch's loss: on validation data if there are any."""


class ConstantSchedule:
    """Always 1."""

    def __init__(self) -> None:
        self.state: dict[str, float] = {}

    def factor(self, step: int) -> float:  # noqa: ARG002
        """Always 1."""
        return 1.0

    def end_epoch(self, loss: float) -> None:
        """Nothing to note."""


class CosineSchedule(ConstantSchedule):
    """Rises from 0 over the first steps, then falls to 0 along half a cosine.

    >>> schedule = CosineSchedule(steps=100, warmup=0.1)
    >>> [round(schedule.factor(step), 2) for step in (0, 9, 54, 99)]
    [0.1, 1.0, 0.52, 0.0]
    """

    def __init__(self, steps: int, warmup: float = 0.03) -> None:
        super().__init__()
        self.steps = max(1, steps)
        self.rise = max(1.0, warmup * self.steps)

    def factor(self, step: int) -> float:
        """Factor for a step."""
        if step < self.rise:
            return min(1.0, (step + 1) / self.rise)
        progress = min(1.0, (step - self.rise) / max(1.0, self.steps - self.rise))
        return 0.5 * (1 + math.cos(math.pi * progress))


class PlateauSchedule(ConstantSchedule):
    """Falls by a factor when the loss has not improved for some epochs.

    >>> schedule = PlateauSchedule(decay=0.1, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     schedule.end_epoch(loss)
    >>> schedule.factor(0)
    0.1
    """

    def __init__(self, decay: float = 0.1, patience: int = 2) -> None:
        self.decay, self.patience = decay, patience
        self.state = {"factor": 1.0, "best": math.inf, "waited": 0}

    def factor(self, step: int) -> float:  # noqa: ARG002
        """Factor since the last plateau."""
        return self.state["factor"]

    def end_epoch(self, loss: float) -> None:
        """Lower the factor if the loss has stood still for longer than the patience."""
        state = self.state
        if not math.isfinite(state["best"]) or loss < state["best"] - 1e-4 * abs(state["best"]):
            state["best"], state["waited"] = loss, 0
            return
        state["waited"] += 1
        if state["waited"] > self.patience:
            state["factor"], state["waited"] = state["factor"] * self.decay, 0


SCHEDULES = ("cosine", "plateau", "constant")


def make_schedule(name: str, steps: int) -> Schedule:
    """A schedule by name, for so many steps in all."""
    if name == "cosine":
        return CosineSchedule(steps)
    if name == "plateau":
        return PlateauSchedule()
    if name == "constant":
        return ConstantSchedule()
    raise InputValueError(f"schedule must be one of {list(SCHEDULES)}, however: {name!r}")
