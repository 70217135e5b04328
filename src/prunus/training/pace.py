"""How a run goes on from step to step: the learning rate, the share of the steps that are over, the average."""

from prunus.training.options import TrainingOptions
from prunus.training.schedules import make_schedule

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

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        return self.options.learning_rate * self.schedule.factor(step)

    def share(self, step: int) -> float:
        """The share of the training that is over before a step."""
        return min(1.0, step / max(1, self.all_steps - 1))

    def forget(self, step: int) -> float:
        """The share of the newest weights in their moving average after a step; 1 if there is no average.

        It is larger at first, so that the average soon forgets the starting weights.
        """
        steps = step + 1
        return 1 - min(self.options.average, (1 + steps) / (10 + steps)) if self.options.average else 1.0
