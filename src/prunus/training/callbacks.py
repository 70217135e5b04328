"""Callbacks, which watch a training run and may stop it.

One of them shows progress on stderr: a bar in a terminal, text that changes in a notebook, or else lines now and then.
"""

import sys
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from prunus.errors import InputTypeError

__all__ = ["Callback", "EpochRecord", "ProgressBar", "as_callbacks", "asks_to_stop"]

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


SECONDS, STEP, LONGEST = 1.0, 0.1, 60.0
"""Lines are at least this many seconds apart. One follows after this share of the epochs, or after the longest time."""
BLINK = 0.1
"""Seconds between two changes of the text in a notebook, at least."""
_WIDTH = 30


class ProgressBar:
    """A callback that shows epochs and losses while it is open.

    In a terminal it is a bar, drawn by rich or else by tqdm, if one of them is installed. In a notebook it is a line of
    text that changes in place. Everywhere else, such as in a file of logs, lines are written to stderr, about ten in a
    run of minutes, and one in a run of less than a second.

    Parameters
    ----------
    epochs : int
        Number of epochs of the whole run.
    shown : bool, default=True
        Whether to show anything.
    title : str, default="training"
        What is done in these epochs.

    Examples
    --------
    >>> with ProgressBar(10, shown=False) as bar:
    ...     bar.on_epoch_end({"epoch": 1, "train_loss": 0.5})
    """

    def __init__(self, epochs: int, *, shown: bool = True, title: str = "training") -> None:
        self.epochs = epochs
        self.shown = shown
        self.title = title
        self._display: _Display | None = None

    def __enter__(self) -> Self:
        if self.shown:
            self._display = _display(self.epochs, self.title)
        return self

    def on_epoch_end(self, record: EpochRecord) -> None:
        """Move the bar to this epoch and show its losses."""
        if self._display is not None:
            losses = "  ".join(f"{name} {record[name]:.4g}" for name in ("train_loss", "valid_loss") if name in record)
            self._display.show(int(record["epoch"]), losses)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._display is not None:
            self._display.close()


class _Display(Protocol):
    """Something that shows how far a run is."""

    def show(self, epoch: int, losses: str) -> None:
        """Show the last epoch that has ended, and its losses."""

    def close(self) -> None:
        """Show the last epoch if it is not shown yet, and end."""


def _display(epochs: int, title: str) -> _Display | None:
    """The display that suits the place where the program runs; None if it has no stderr."""
    if _in_notebook():
        return _Notebook(epochs, title)
    if sys.stderr is None:  # as in programs with a graphical interface on Windows
        return None
    if sys.stderr.isatty() and find_spec("rich"):
        return _Rich(epochs, title)
    if sys.stderr.isatty() and find_spec("tqdm"):
        return _Tqdm(epochs, title)
    return _Lines(epochs, title)


def _in_notebook() -> bool:
    """Whether the program runs in the kernel of a notebook; IPython is then loaded already."""
    found = sys.modules.get("IPython")
    shell = None if found is None else found.get_ipython()
    return getattr(shell, "kernel", None) is not None


class _Rich:
    def __init__(self, epochs: int, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.progress = Progress(
            TextColumn(title, markup=False),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # what others print still reaches a file or a pipe
        )
        self.task = self.progress.add_task("", total=epochs)
        self.progress.start()

    def show(self, epoch: int, losses: str) -> None:
        self.progress.update(self.task, completed=epoch, description=losses)

    def close(self) -> None:
        self.progress.stop()


class _Tqdm:
    def __init__(self, epochs: int, title: str) -> None:
        from tqdm import tqdm

        self.bar: Any = tqdm(total=epochs, desc=title, unit="epoch", file=sys.stderr)

    def show(self, epoch: int, losses: str) -> None:
        self.bar.set_postfix_str(losses)
        self.bar.update(epoch - self.bar.n)

    def close(self) -> None:
        self.bar.close()


class _Notebook:
    """A line of text below the cell, which changes in place."""

    def __init__(self, epochs: int, title: str) -> None:
        from IPython.display import display

        self.epochs, self.title = epochs, title
        self.text = self.shown = self._line(0, "")
        self.last = time.monotonic()
        self.handle: Any = display(self._bundle(), raw=True, display_id=True)

    def show(self, epoch: int, losses: str) -> None:
        self.text = self._line(epoch, losses)
        if time.monotonic() - self.last >= BLINK:
            self._update()

    def close(self) -> None:
        if self.shown != self.text:
            self._update()

    def _update(self) -> None:
        self.shown, self.last = self.text, time.monotonic()
        self.handle.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/plain": self.text}

    def _line(self, epoch: int, losses: str) -> str:
        done = round(_WIDTH * min(epoch / max(self.epochs, 1), 1.0))
        return f"{self.title} |{'█' * done}{'░' * (_WIDTH - done)}| {epoch}/{self.epochs}  {losses}".rstrip()


class _Lines:
    """Lines on stderr, so few that they do not flood a file of logs."""

    def __init__(self, epochs: int, title: str) -> None:
        self.epochs, self.title = epochs, title
        self.epoch, self.losses = 0, ""
        self.last, self.written = time.monotonic(), 0

    def show(self, epoch: int, losses: str) -> None:
        self.epoch, self.losses = epoch, losses
        waited = time.monotonic() - self.last
        if waited >= LONGEST or (waited >= SECONDS and epoch - self.written >= STEP * self.epochs):
            self._write()

    def close(self) -> None:
        if self.epoch != self.written:
            self._write()

    def _write(self) -> None:
        self.last, self.written = time.monotonic(), self.epoch
        sys.stderr.write(f"{self.title}: epoch {self.epoch} of {self.epochs}  {self.losses}\n")
        sys.stderr.flush()
