"""What runs in a process of its own: it reads a request from a folder, does it, and writes what came of it."""

import importlib
import json
import math
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.harness.machine import peak_mb

__all__ = ["ARRAYS", "CLOCK", "REQUEST", "RESULT", "Answer", "Job", "find", "work"]

REQUEST, RESULT, ARRAYS = "request.json", "result.json", ".npy"
CLOCK = "clock-"
"""Begins the names of empty files: whenever there is one more of them, the time limit counts from zero again."""
SLACK = 4
"""Times the memory limit that may be reserved: libraries reserve more than they use. The memory in use is
watched from outside; this only stops a single request so large that it would be granted and used before anyone looks.
"""

Answer = dict[str, Any]
"""What a function returns by name: arrays, and values that JSON can write."""


@dataclass(frozen=True)
class Job:
    """What a function is given that runs in a process of its own."""

    arguments: dict[str, Any]
    """Values that JSON can write."""
    arrays: dict[str, npt.NDArray[Any]]
    folder: Path

    def restart_clock(self) -> None:
        """Give what follows the whole time limit again."""
        (self.folder / f"{CLOCK}{len(list(self.folder.glob(f'{CLOCK}*')))}").touch()


def work(folder: Path) -> None:
    """Do what the request in the folder asks."""
    request = json.loads((folder / REQUEST).read_text())
    function: Callable[[Job], Answer] = find(request["function"])
    arrays = {path.stem: np.load(path, allow_pickle=False) for path in folder.glob(f"*{ARRAYS}")}
    job = Job(request["arguments"], arrays, folder)
    _limit_reserved(request["megabytes"])
    _limit_threads(request["threads"])
    job.restart_clock()
    answer = function(job)
    for name, value in answer.items():
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}{ARRAYS}", value, allow_pickle=False)
    values = {name: value for name, value in answer.items() if not isinstance(value, np.ndarray)}
    names = [name for name in answer if name not in values]
    (folder / RESULT).write_text(json.dumps({"values": values, "arrays": names, "peak_mb": peak_mb()}))


def find(place: str) -> Any:
    """A function or class by its place, ``module:name``.

    >>> find("benchmarks.harness.worker:find") is find
    True
    """
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _limit_reserved(megabytes: float) -> None:
    torch = sys.modules.get("torch")
    if math.isinf(megabytes) or (torch is not None and torch.cuda.is_available()):
        return  # the driver of a GPU reserves as much as there is
    reserved_pages = int(Path("/proc/self/statm").read_text().split()[0])
    allowed = reserved_pages * resource.getpagesize() + int(SLACK * megabytes * 1e6)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, resource.RLIM_INFINITY))


def _limit_threads(threads: int) -> None:
    """Of all numeric libraries that are loaded; those that are loaded later follow the environment of the server."""
    threadpool_limits(threads)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
