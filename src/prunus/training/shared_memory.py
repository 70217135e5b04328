"""Memory that the processes of one machine share, through which sums take microseconds."""

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from prunus.ops.native import native_sum

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["SharedMemory"]

LINE = 64
"""Bytes of the counter of a process."""
SLOT = 1 << 18
"""Bytes of a process for each of two sums; longer arrays are summed in several turns."""


class SharedMemory:
    """Sums over processes, if all of them run on one machine and have the compiled extension.

    The memory is a file that is mapped by all processes and has no name any more once they have it. Each process holds
    a lock on one of its bytes, which the system releases when the process ends.

    Parameters
    ----------
    file : int
        The number of the open file.
    rank, size : int
        The number of this process and of all processes.
    """

    def __init__(self, file: int, rank: int, size: int) -> None:
        self.file, self.rank, self.size = file, rank, size
        weakref.finalize(self, os.close, file)
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, rank)
        self.memory = mmap.mmap(file, os.fstat(file).st_size)
        self.native: Any = native_sum()(np.frombuffer(self.memory, dtype=np.uint8), rank, size)

    def sum_(self, array: Any, waiting: Callable[[float], None]) -> None:
        """Sum a flat array in place; ``waiting(seconds)`` is called while others are late, and may raise an error."""
        self.native.sum(array, waiting)

    def has_all(self) -> bool:
        """Whether all processes are still there; a process that has ended has no lock."""
        for rank in range(self.size):
            if rank != self.rank:
                with suppress(BlockingIOError, PermissionError):
                    fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, rank)
                    fcntl.lockf(self.file, fcntl.LOCK_UN, 1, rank)  # so that others notice it, too
                    return False
        return True

    @staticmethod
    def create(size: int) -> tuple[int, str] | None:
        """A new file for this many processes: its number and its path; None if this system cannot share memory."""
        if fcntl is None or native_sum() is None:
            return None
        folder = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 : in memory, where there is such a folder
        try:
            file, path = tempfile.mkstemp(prefix="prunus-", dir=folder)
        except OSError:
            return None
        content = bytes(size * (LINE + 2 * SLOT))
        with suppress(OSError):  # the memory may be full
            if os.write(file, content) == len(content):
                return file, path
        os.close(file)
        Path(path).unlink()
        return None

    @staticmethod
    def open(path: str | None) -> int | None:
        """The number of the opened file of another process; None if it is on another machine."""
        if path is None or fcntl is None or native_sum() is None:
            return None
        try:
            return os.open(path, os.O_RDWR)
        except OSError:
            return None
