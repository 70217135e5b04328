"""What runs in processes of the tests of limits: methods that want more than they are given, and an echo."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness.methods.interface import MethodBase, Targets, Task
from benchmarks.harness.worker import Answer, Job


class Constant(MethodBase):
    """The mean; what it does before is up to its options."""

    def __init__(self, task: Task, *, random_state: int = 0, sleep: float = 0.0, megabytes: int = 0) -> None:
        super().__init__(task, random_state=random_state)
        self.sleep = sleep
        self.megabytes = megabytes

    def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:  # noqa: ARG002
        self.mean_ = float(y.mean())
        kept = []
        for _ in range(self.megabytes // 20):
            kept.append(np.ones(20 * 2**17))  # bit by bit, as a tree grows
        time.sleep(self.sleep)

    def _predict(self, x: Any) -> npt.NDArray[Any]:
        return np.full(len(x), self.mean_)

    def _count(self) -> int:
        return 1


class Vast(Constant):
    """Asks for all memory at once."""

    def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:  # noqa: ARG002
        np.ones(2**40)


class Broken(Constant):
    """Fails."""

    def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:  # noqa: ARG002
        raise RuntimeError("no tree today")


def echo(job: Job) -> Answer:
    """Runs in the process: its arguments and arrays again, after what they ask for."""
    for seconds in job.arguments.get("sleeps", ()):
        job.restart_clock()
        time.sleep(seconds)
    return job.arguments | job.arrays
