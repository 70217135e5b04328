"""scikit-learn's callbacks, where the installed version has them."""

from collections.abc import Callable
from typing import Any

from prunus.training import EpochRecord, Trainer
from prunus.training.epochs import Epochs

__all__ = ["CallbackSupportMixin", "EpochTasks", "ReportingTrainer", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """An empty mixin: this version of scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged."""
        return method


class EpochTasks:
    """A callback that reports each epoch to scikit-learn's callbacks, as a task of the estimator's fit.

    Parameters
    ----------
    estimator : estimator
    max_epochs : int
    attributes : callable
        Returns the learned attributes that the estimator would have if training ended now.
    data : dict
        The arguments X, y and metadata of the fit.
    """

    def __init__(
        self, estimator: Any, max_epochs: int, attributes: Callable[[], dict[str, Any]], data: dict[str, Any]
    ) -> None:
        self.estimator, self.attributes, self.data = estimator, attributes, data
        self.root = estimator._init_callback_context(max_subtasks=max_epochs)
        self.root.call_on_fit_task_begin(estimator=estimator, **data)

    def begin_epoch(self) -> None:
        """Begin the task of an epoch."""
        self.task = self.root.subcontext(task_name="epoch")
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def on_epoch_end(self, record: EpochRecord) -> bool:  # noqa: ARG002
        """End the task of an epoch; return True if a callback asks to stop."""
        return self._end(self.task)

    def end(self) -> None:
        """End the task of the whole fit."""
        self._end(self.root)

    def _end(self, task: Any) -> bool:
        stop = task.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=self.attributes, **self.data
        )
        return bool(stop)


class ReportingTrainer(Trainer):
    """A trainer that also reports the beginning of each epoch to scikit-learn's callbacks."""

    def _epoch(self, *state: Any) -> Epochs[None]:
        for callback in self.callbacks:
            if isinstance(callback, EpochTasks):
                callback.begin_epoch()
        yield from super()._epoch(*state)
