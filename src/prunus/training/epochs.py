"""Runs that ask for each of their epochs, so that others can take it, also those of several runs at once."""

from collections.abc import Generator
from typing import TypeVar

from prunus.training.engine import Engine

__all__ = ["Epochs", "next_engine", "take_epochs"]

Result = TypeVar("Result")

Epochs = Generator[Engine, float, Result]
"""A run: it yields its engine when an epoch is due, is sent the mean loss of that epoch, and returns a result."""


def take_epochs(epochs: Epochs[Result]) -> Result:
    """Let a run take its epochs one after the other, and return its result.

    Examples
    --------
    >>> class Fast:
    ...     def train_epoch(self):
    ...         return 0.5
    >>> def two_epochs():
    ...     first = yield Fast()
    ...     second = yield Fast()
    ...     return first + second
    >>> take_epochs(two_epochs())
    1.0
    """
    try:
        engine = next(epochs)
        while True:
            engine = next_engine(epochs, engine)
    except StopIteration as end:
        result: Result = end.value
        return result


def next_engine(epochs: Epochs[Result], engine: Engine) -> Engine:
    """Take the epoch that a run waits for; returns the engine of the next one, or raises StopIteration at the end.

    An error of the engine is raised in the run, so that it can end properly.
    """
    try:
        loss = engine.train_epoch()
    except BaseException as error:
        return epochs.throw(error)
    return epochs.send(loss)
