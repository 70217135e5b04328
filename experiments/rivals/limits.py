"""A fit in a process of its own, with limits on its time and memory that hold; on Linux."""

import contextlib
import json
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

from experiments.rivals.interface import Rows, Targets, Task
from experiments.rivals.limits_server import ERRORS, ServerError, borrowed
from experiments.rivals.limits_worker import ARRAYS, FITTED, REQUEST, RESULT, STARTED
from prunus.errors import InputValueError

__all__ = ["FAILED", "OK", "OOM", "OOT", "Outcome", "run_limited"]

OK, OOT, OOM, FAILED = "ok", "OOT", "OOM", "failed"
PERIOD_S = 0.02
"""Between two looks at the process. In it, memory can grow above the limit by some hundred MB."""
START_S = 300.0
"""To read the data, on a busy machine; it does not count."""
END_S = 60.0
"""For a process that was killed to be gone."""
MB = 2**20


@dataclass
class Outcome:
    """What became of a fit.

    Attributes
    ----------
    status : {"ok", "OOT", "OOM", "failed"}
        Out of time, out of memory, or an error, which `message` has.
    predictions : dict of arrays
        By the names of the rows that were given; empty unless the status is ok.
    seconds : float
        Of `fit` alone; up to the end of the process, if it was ended.
    n_parameters : int
    valid_loss : float or None
        Log-loss on the rows for validation, if there were any and the method has probabilities.
    optimal : bool or None
        Whether the method proved its tree optimal; None if it does not try to.
    start_mb, peak_mb : float
        Memory that the process held before `fit`, libraries and data, and most memory that it held at all.
    message : str
    """

    status: str
    predictions: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    seconds: float = 0.0
    n_parameters: int = 0
    valid_loss: float | None = None
    optimal: bool | None = None
    start_mb: float = 0.0
    peak_mb: float = 0.0
    message: str = ""


def run_limited(
    rival: str,
    task: Task,
    options: Mapping[str, Any],
    train: tuple[Rows, Targets],
    valid: tuple[Rows, Targets] | None = None,
    *,
    rows: Mapping[str, Rows],
    random_state: int = 0,
    seconds: float,
    megabytes: float,
    threads: int = 1,
) -> Outcome:
    """Fit a rival and predict, and end it if it takes too long or holds too much.

    Parameters
    ----------
    rival : str
        Name in RIVALS, or ``module:class``.
    task : {"classes", "values"}
    options : dict
        Of the rival; what JSON can write.
    train, valid : tuples (x, y)
    rows : dict of arrays
        Rows to predict for.
    random_state : int
    seconds : float
        For `fit`, and again for the predictions.
    megabytes : float
        Memory that the process may hold, its libraries (some hundred) and the data included.
    threads : int
        Of the numeric libraries.

    Returns
    -------
    Outcome
    """
    if seconds <= 0 or megabytes <= 0:
        raise InputValueError(f"seconds and megabytes must be positive, however: {seconds=}, {megabytes=}")
    request = {
        "rival": rival,
        "task": task,
        "options": dict(options),
        "random_state": random_state,
        "megabytes": megabytes,
        "threads": threads,
    }
    with tempfile.TemporaryDirectory(prefix="rival-") as name:
        folder = Path(name)
        (folder / REQUEST).write_text(json.dumps(request))
        arrays = {"x": train[0], "y": train[1]}
        arrays |= {} if valid is None else {"x_valid": valid[0], "y_valid": valid[1]}
        arrays |= {f"rows_{key}": value for key, value in rows.items()}
        for key, value in arrays.items():
            np.save(folder / f"{key}{ARRAYS}", value, allow_pickle=False)
        try:
            watched = _watch(rival, folder, seconds, megabytes)
        except ServerError as error:
            return Outcome(FAILED, message=str(error))
        return _read(folder, watched, list(rows)) if watched.status == OK else watched


def _watch(rival: str, folder: Path, seconds: float, megabytes: float) -> Outcome:
    """Run a fit to its end, or end it."""
    watch = Watch(folder, seconds, megabytes)
    with borrowed(rival) as server:
        process, code = server.start(folder), None
        try:
            while code is None and not watch.exceeded(process):
                code = server.exit_code(PERIOD_S)
        finally:
            if code is None:
                _end(process)
        return watch.outcome(server.exit_code(END_S) if code is None else code)


def _end(process: int) -> None:
    """End a fit and all that it has started."""
    for end in (os.killpg, os.kill):  # before it has its session it is only itself
        with contextlib.suppress(ProcessLookupError):
            end(process, signal.SIGKILL)


class Watch:
    """Time and memory of a process against their limits."""

    def __init__(self, folder: Path, seconds: float, megabytes: float) -> None:
        self.folder, self.seconds, self.megabytes = folder, seconds, megabytes
        self.stage = ""
        self.since = time.monotonic()
        self.peak_mb = 0.0
        self.over = ""

    def exceeded(self, pid: int) -> bool:
        """Look once; the clock starts anew when the fit begins and when it has ended."""
        stage = next((name for name in (FITTED, STARTED) if (self.folder / name).exists()), "")
        if stage != self.stage:
            self.stage, self.since = stage, time.monotonic()
        self.peak_mb = max(self.peak_mb, resident_mb(pid))
        if self.peak_mb > self.megabytes:
            self.over = OOM
        elif time.monotonic() - self.since > (self.seconds if stage else START_S):
            self.over = OOT if stage else FAILED
        return bool(self.over)

    def outcome(self, code: int | None) -> Outcome:
        """Status of a process that has ended."""
        if not self.over and code == 0:
            return Outcome(OK)
        said = (self.folder / ERRORS).read_text(errors="replace").strip().splitlines()
        message = said[-1][:300] if said else f"exit code {code}"
        killed = not self.over and code == -signal.SIGKILL  # not by us, so by the system, as it does for memory
        if killed or "MemoryError" in message or any("bad_alloc" in line for line in said):
            self.over = OOM
        elif "TimeoutError" in message:
            self.over = OOT
        status = self.over or FAILED
        taken = time.monotonic() - self.since if self.stage else 0.0
        return Outcome(status, seconds=taken, peak_mb=self.peak_mb, message=message if status == FAILED else "")


def resident_mb(pid: int) -> float:
    """Memory that a process holds, as Linux tells; 0 if it has ended.

    >>> resident_mb(os.getpid()) > 10
    True
    """
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGESIZE") / MB


def _read(folder: Path, outcome: Outcome, rows: list[str]) -> Outcome:
    """Add what the worker wrote."""
    for key, value in json.loads((folder / RESULT).read_text()).items():
        setattr(outcome, key, value)
    outcome.predictions = {key: np.load(folder / f"predicted_{key}{ARRAYS}", allow_pickle=False) for key in rows}
    return outcome
