"""A progress bar, drawn by rich or else by tqdm, if one of them is installed."""

import sys
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from prunus.training.callbacks import EpochRecord

__all__ = ["ProgressBar"]


class ProgressBar:
    """A callback that shows epochs and losses on stderr while it is open.

    Parameters
    ----------
    epochs : int
        Number of epochs of the whole run.
    shown : bool, optional
        Whether to show the bar; by default only if stderr is a terminal.

    Examples
    --------
    >>> with ProgressBar(10) as bar:
    ...     bar.on_epoch_end({"epoch": 1, "train_loss": 0.5})
    """

    def __init__(self, epochs: int, *, shown: bool | None = None) -> None:
        self.epochs = epochs
        self.shown = sys.stderr is not None and sys.stderr.isatty() if shown is None else shown
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self.shown and find_spec("rich"):
            self._open_rich()
        elif self.shown and find_spec("tqdm"):
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self.epochs, desc="training", unit="epoch", file=sys.stderr)
        return self

    def _open_rich(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("training"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(
            *columns,
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # what others print still reaches a file or a pipe
        )
        self._task = self._bar.add_task("", total=self.epochs)
        self._bar.start()

    def on_epoch_end(self, record: EpochRecord) -> None:
        """Move the bar to this epoch and show its losses."""
        losses = "  ".join(f"{name} {record[name]:.4g}" for name in ("train_loss", "valid_loss") if name in record)
        if self._task is not None:
            self._bar.update(self._task, completed=record["epoch"], description=losses)
        elif self._bar is not None:
            self._bar.set_postfix_str(losses)
            self._bar.update(record["epoch"] - self._bar.n)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop() if self._task is not None else self._bar.close()
