"""Callbacks, which watch a training run and may stop it."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

from prunus.errors import InputTypeError

__all__ = ["Callback", "EpochRecord", "as_callbacks", "asks_to_stop"]

EpochRecord = dict[str, Any]
"""What is known of an epoch: the numbers epoch, train_loss, learning_rate and seconds, with validation data valid_loss,
and the name of the engine that took the steps."""


@runtime_checkable
class Callback(Protocol):
    """An object that is called after each epoch. A function that takes the epoch's record can be used instead.

    Examples
    --------
    >>> class Stop:
    ...     def on_epoch_end(self, record):
    ...         return record["train_loss"] < 0.1
    >>> isinstance(Stop(), Callback)
    True
    """

    def on_epoch_end(self, record: EpochRecord) -> bool | None:
        """Look at the epoch that has ended.

        Parameters
        ----------
        record : EpochRecord
            The numbers of the epoch.

        Returns
        -------
        bool or None
            True stops the run.
        """


class _FunctionCallback:
    """A callback that calls a function."""

    def __init__(self, function: Callable[[EpochRecord], bool | None]) -> None:
        self.on_epoch_end = function


def as_callbacks(callbacks: Iterable[Any] | None) -> list[Callback]:
    """Check callbacks and wrap those that are functions.

    Parameters
    ----------
    callbacks : iterable or None
        Each is an object with a method ``on_epoch_end(record)`` or a function of the record.

    Returns
    -------
    list of Callback
    """
    found: list[Callback] = []
    if callbacks is not None and not isinstance(callbacks, Iterable):
        raise InputTypeError(f"callbacks must be a list, also if there is only one, got {callbacks!r}")
    for callback in callbacks or ():
        if isinstance(callback, Callback) and not isinstance(callback, type):
            found.append(callback)
        elif callable(callback) and not isinstance(callback, type):
            found.append(_FunctionCallback(callback))
        else:
            raise InputTypeError(
                f"a callback must have a method on_epoch_end(record) or be a function of the record, got {callback!r}"
            )
    return found


def asks_to_stop(answer: Any) -> bool:
    """Whether what a callback has returned asks to stop the run."""
    try:
        return bool(answer)
    except (ValueError, TypeError, RuntimeError) as error:  # an array
        raise InputTypeError(f"a callback must return True, False or None, got {answer!r}") from error
