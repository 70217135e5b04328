"""How a run goes on from step to step: the learning rate, the share of the steps that are over, the average."""

import numpy as np
import numpy.typing as npt

from prunus.training.options import TrainingOptions
from prunus.training.schedules import Steps, make_schedule

__all__ = ["Pace"]


class Pace:
    """The numbers of each step of a run; steps are counted from 0 over all epochs.

    Parameters
    ----------
    options : TrainingOptions
    samples : int
        Number of training samples.

    Examples
    --------
    >>> pace = Pace(TrainingOptions(max_epochs=2, batch_size=10, schedule="constant"), samples=25)
    >>> pace.all_steps
    6
    >>> pace.share(0), pace.share(5)
    (0.0, 1.0)
    """

    def __init__(self, options: TrainingOptions, samples: int) -> None:
        self.options = options
        self.steps_an_epoch = -(-samples // options.batch_size)
        self.all_steps = options.max_epochs * self.steps_an_epoch
        self.schedule = make_schedule(options.schedule, self.all_steps)

    def next_epoch(self, first: int) -> Steps:
        """The steps of the epoch that begins with this one."""
        return np.arange(first, first + self.steps_an_epoch)

    def rates(self, steps: Steps) -> npt.NDArray[np.float64]:
        """The learning rate of each step."""
        return self.options.learning_rate * self.schedule.factors(steps)

    def shares(self, steps: Steps) -> npt.NDArray[np.float64]:
        """The share of the training that is over before each step."""
        return np.minimum(1.0, steps / max(1, self.all_steps - 1))

    def forgets(self, steps: Steps) -> npt.NDArray[np.float64]:
        """The share of the newest weights in their moving average after each step; 1 if there is no average.

        It is larger at first, so that the average soon forgets the starting weights.
        """
        if not self.options.average:
            return np.ones(len(steps))
        return 1 - np.minimum(self.options.average, (2 + steps) / (11 + steps))

    def rate(self, step: int) -> float:
        """The learning rate of one step."""
        return float(self.rates(np.array([step]))[0])

    def share(self, step: int) -> float:
        """The share of the training that is over before one step."""
        return float(self.shares(np.array([step]))[0])

    def forget(self, step: int) -> float:
        """The share of the newest weights in their moving average after one step."""
        return float(self.forgets(np.array([step]))[0])
