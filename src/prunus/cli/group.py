"""Commands that torchrun starts in several processes: they learn together, and one of them prints and writes files."""

import io
import os
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from typing import Any

__all__ = ["Group"]

LEARNING = ("fit", "cluster")
"""The commands that all processes run; others are run by the first one alone."""


class Group:
    """The processes of this run of the command; by the variables that torchrun sets, or else this one alone.

    Parameters
    ----------
    command : str or None
        The name of the subcommand.
    """

    def __init__(self, command: str | None) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
        self.is_first = self.size == 1 or os.environ["RANK"] == "0"
        self.learns = self.size > 1 and command in LEARNING
        self._store: Any = None
        self._silenced, self._joined = ExitStack(), ExitStack()

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether another process runs the command alone."""
        return not self.is_first and not self.learns

    def silence(self) -> None:
        """Drop what this process would print, if it is not the first one."""
        if not self.is_first:
            self._silenced.enter_context(redirect_stdout(io.StringIO()))
            self._silenced.enter_context(redirect_stderr(io.StringIO()))

    def begin(self) -> None:
        """Meet the other processes, if there are any."""
        if not self.learns:
            return
        from prunus.training.processes import join_processes, leave_processes  # torch takes seconds to import

        self._store = join_processes()
        self._joined.callback(leave_processes)

    def wait_for_all(self) -> None:
        """Return when all processes have come here."""
        if self._store is not None:
            from prunus.training.processes import processes

            processes().gather(None)

    def may_tell(self, error: str) -> bool:
        """End the silence, and return whether this is the process to tell an error: each is told once."""
        self.end()
        if self._store is not None:
            with suppress(Exception):  # without the others, errors are told anyway
                return bool(self._store.add(f"prunus: {error}", 1) == 1)
        return self.is_first or self._store is not None

    def leave(self) -> None:
        """Leave the other processes: what is left to do, the first one does alone."""
        with suppress(Exception):  # they may have left before
            self._joined.close()

    def end(self) -> None:
        """Leave the other processes, and end the silence."""
        self.leave()
        self._silenced.close()
