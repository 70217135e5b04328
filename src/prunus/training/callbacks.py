"""What may watch and stop a training run."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

from prunus.errors import InputTypeError

__all__ = ["Callback", "EpochRecord", "as_callbacks"]

EpochRecord = dict[str, float]
"""What is known at the end of an epoch: epoch, train_loss, learning_rate, seconds, and valid_loss if validated."""


@runtime_checkable
class Callback(Protocol):
    """Watches a run; a plain function of the epoch's record will do as well.

    Examples
    --------
    >>> class Stop:
    ...     def on_epoch_end(self, record):
    ...         return record["train_loss"] < 0.1
    >>> isinstance(Stop(), Callback)
    True
    """

    def on_epoch_end(self, record: EpochRecord) -> bool | None:
        """After each epoch; True stops the run."""


class _Function:
    """A callback made of a function."""

    def __init__(self, function: Callable[[EpochRecord], bool | None]) -> None:
        self.on_epoch_end = function


def as_callbacks(callbacks: Iterable[Any] | None) -> list[Callback]:
    """Callbacks of a user, each an object with `on_epoch_end` or a function of the epoch's record."""
    found: list[Callback] = []
    if callbacks is not None and not isinstance(callbacks, Iterable):
        raise InputTypeError(f"callbacks must be a list, even of one, however: {callbacks!r}")
    for callback in callbacks or ():
        if isinstance(callback, Callback) and not isinstance(callback, type):
            found.append(callback)
        elif callable(callback) and not isinstance(callback, type):
            found.append(_Function(callback))
        else:
            raise InputTypeError(
                f"a callback must have a method on_epoch_end(record) or be a function of the record, "
                f"however: {callback!r}"
            )
    return found
