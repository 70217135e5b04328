"""How a run goes on from step to step: the learning rate, the share of the steps that are over, the average."""

from prunus.training.options import TrainingOptions
from prunus.training.schedules import Number, clipped, make_schedule

__all__ = ["Pace"]


class Pace:
    """The numbers of each step of a run; steps are counted from 0 over all epochs, and may be in an array.

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

    def rate(self, step: Number) -> Number:
        """The learning rate of a step."""
        return self.options.learning_rate * self.schedule.factor(step)

    def share(self, step: Number) -> Number:
        """The share of the training that is over before a step."""
        return clipped(step / max(1, self.all_steps - 1))

    def forget(self, step: Number) -> Number:
        """The share of the newest weights in their moving average after a step; 1 if there is no average.

        It is larger at first, so that the average soon forgets the starting weights.
        """
        if not self.options.average:
            return 0 * step + 1.0
        return 1 - clipped((2 + step) / (11 + step), self.options.average)
