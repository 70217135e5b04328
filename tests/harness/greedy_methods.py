"""Rivals that want more than they are given, for the tests of limits."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.methods.interface import MethodBase, Rows, Targets, Task


class Constant(MethodBase):
    """The mean; what it does before is up to its options."""

    def __init__(self, task: Task, *, random_state: int = 0, sleep: float = 0.0, megabytes: int = 0) -> None:
        super().__init__(task, random_state=random_state)
        self.sleep = sleep
        self.megabytes = megabytes

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:  # noqa: ARG002
        self.mean_ = float(y.mean())
        held = []
        for _ in range(self.megabytes // 20):
            held.append(np.ones(20 * 2**17))  # bit by bit, as a tree grows
        time.sleep(self.sleep)

    def _predict(self, x: Rows) -> npt.NDArray[Any]:
        return np.full(len(x), self.mean_)

    def _count(self) -> int:
        return 1


class Vast(Constant):
    """Asks for all memory at once."""

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:  # noqa: ARG002
        np.ones(2**40)


class Broken(Constant):
    """Fails."""

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:  # noqa: ARG002
        raise RuntimeError("no tree today")
