"""A function in a process of its own, with limits on its time and memory that are enforced; on Linux."""

import contextlib
import json
import math
import os
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness.machine import resident_mb
from benchmarks.harness.servers import ERRORS, ServerError, Work, borrowed
from benchmarks.harness.worker import ARRAYS, CLOCK, REQUEST, RESULT, Answer

__all__ = ["FAILED", "OK", "OOM", "OOT", "Outcome", "run_limited"]

OK, OOT, OOM, FAILED = "ok", "OOT", "OOM", "failed"
PERIOD_S = 0.02
"""Between two looks at the process. In it, memory can grow above the limit by some hundred MB."""
START_S = 300.0
"""To read the request, on a busy machine; it does not count."""
END_S = 60.0
"""For a process that was killed to be gone."""


@dataclass
class Outcome:
    """What became of a function.

    Attributes
    ----------
    status : {"ok", "OOT", "OOM", "failed"}
        Out of time, out of memory, or an error, which `message` has.
    values : dict
        What the function returned; empty unless the status is ok.
    seconds : float
        Up to the end of the process if it was ended, since its clock was last restarted; else 0.
    peak_mb : float
        Most memory that the process has used at once.
    message : str
    """

    status: str
    values: Answer = field(default_factory=dict)
    seconds: float = 0.0
    peak_mb: float = 0.0
    message: str = ""

    @property
    def verdict(self) -> str:
        """The status, with the error if there was one: what tables of results store."""
        return f"{self.status}: {self.message[:200]}" if self.message else self.status


def run_limited(
    function: str,
    arguments: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]] | None = None,
    *,
    seconds: float,
    megabytes: float = math.inf,
    threads: int = 1,
    preload: str = "",
    fresh: bool = False,
) -> Outcome:
    """Run a function, and end it if it takes too long or holds too much memory.

    Parameters
    ----------
    function : str
        Its place, ``module:name``. It takes a `benchmarks.harness.worker.Job` and returns a dict.
    arguments, arrays : dict
        What the job has: values that JSON can write, and arrays.
    seconds : float
        Time limit, which begins anew whenever the job restarts its clock.
    megabytes : float
        Memory that the process may hold, its libraries (some hundred) and the data included.
    threads : int
        Of the numeric libraries.
    preload : str, optional
        Place of something that is imported once for all runs of this function with it.
    fresh : bool
        Start a process that has run nothing before, instead of a copy of one that has imported the function: slower,
        but what such a copy shares with the other process does not blur measurements of its memory.

    Returns
    -------
    Outcome
    """
    if seconds <= 0 or megabytes <= 0:
        _refuse(f"seconds and megabytes must be positive, got {seconds=}, {megabytes=}")
    request = {"function": function, "arguments": dict(arguments), "megabytes": megabytes, "threads": threads}
    with tempfile.TemporaryDirectory(prefix="limited-") as name:
        folder = Path(name)
        (folder / REQUEST).write_text(json.dumps(request))
        for key, value in (arrays or {}).items():
            np.save(folder / f"{key}{ARRAYS}", value, allow_pickle=False)
        try:
            outcome = _watch(Work(function, preload, threads, forks=not fresh), folder, seconds, megabytes)
        except ServerError as error:
            return Outcome(FAILED, message=str(error))
        return _read(folder, outcome) if outcome.status == OK else outcome


def _watch(work: Work, folder: Path, seconds: float, megabytes: float) -> Outcome:
    """Run a process to its end, or end it."""
    watch = Watch(folder, seconds, megabytes)
    with borrowed(work) as server:
        process, code = server.start(folder), None
        try:
            while code is None and not watch.exceeded(process):
                code = server.exit_code(PERIOD_S)
        finally:
            if code is None:
                _end(process)
        return watch.outcome(server.exit_code(END_S) if code is None else code)


def _end(process: int) -> None:
    """End a process and all that it has started."""
    for end in (os.killpg, os.kill):  # before it has a session of its own there is only itself
        with contextlib.suppress(ProcessLookupError):
            end(process, signal.SIGKILL)


class Watch:
    """Time and memory of a process against their limits."""

    def __init__(self, folder: Path, seconds: float, megabytes: float) -> None:
        self.folder, self.seconds, self.megabytes = folder, seconds, megabytes
        self.restarts = 0
        self.since = time.monotonic()
        self.peak_mb = 0.0
        self.over = ""

    def exceeded(self, process: int) -> bool:
        """Look once, and say whether a limit is exceeded."""
        restarts = len(list(self.folder.glob(f"{CLOCK}*")))
        if restarts != self.restarts:
            self.restarts, self.since = restarts, time.monotonic()
        self.peak_mb = max(self.peak_mb, resident_mb(process))
        if self.peak_mb > self.megabytes:
            self.over = OOM
        elif time.monotonic() - self.since > (self.seconds if restarts else START_S):
            self.over = OOT if restarts else FAILED
        return bool(self.over)

    def outcome(self, code: int | None) -> Outcome:
        """Status of a process that has ended."""
        if not self.over and code == 0:
            return Outcome(OK)
        printed = (self.folder / ERRORS).read_text(errors="replace").strip().splitlines()
        message = printed[-1][:300] if printed else f"exit code {code}"
        killed = not self.over and code == -signal.SIGKILL  # not by us, so by the system, as it does for memory
        if killed or "MemoryError" in message or any("bad_alloc" in line for line in printed):
            self.over = OOM
        elif "TimeoutError" in message:
            self.over = OOT
        status = self.over or FAILED
        taken = time.monotonic() - self.since if self.restarts else 0.0
        return Outcome(status, seconds=taken, peak_mb=self.peak_mb, message=message if status == FAILED else "")


def _read(folder: Path, outcome: Outcome) -> Outcome:
    """Add what the worker wrote."""
    result = json.loads((folder / RESULT).read_text())
    arrays = {name: np.load(folder / f"{name}{ARRAYS}", allow_pickle=False) for name in result["arrays"]}
    outcome.values, outcome.peak_mb = result["values"] | arrays, result["peak_mb"]
    return outcome


def _refuse(message: str) -> None:
    from prunus.errors import InputValueError  # here: it comes with torch, which some processes do without

    raise InputValueError(message)
