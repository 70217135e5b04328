"""The process that `limits.py` watches: reads a request from a folder, fits, predicts and writes what came of it."""

import importlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.rivals import RIVALS

__all__ = ["ARRAYS", "FITTED", "REQUEST", "RESULT", "STARTED", "main"]

REQUEST, RESULT, ARRAYS = "request.json", "result.json", ".npy"
STARTED, FITTED = "started", "fitted"
"""Empty files that tell how far it is."""
SLACK = 4
"""Times the memory limit that may be reserved: libraries reserve more than they hold. What is held is watched from
outside; this only stops a single request so large that it would be granted and used before anyone looks."""


def main(folder: Path) -> None:
    """Do what the request in the folder asks."""
    request = json.loads((folder / REQUEST).read_text())
    rival = find(request["rival"])(request["task"], random_state=request["random_state"], **request["options"])
    data = {path.stem: np.load(path, allow_pickle=False) for path in folder.glob(f"*{ARRAYS}")}
    _limit_reserved(request["megabytes"])
    _limit_threads(request["threads"])
    start_mb = _resident_mb()
    (folder / STARTED).touch()
    begin = time.perf_counter()
    rival.fit(data["x"], data["y"], data.get("x_valid"), data.get("y_valid"))
    seconds = time.perf_counter() - begin
    (folder / FITTED).touch()
    for name in [name for name in data if name.startswith("rows_")]:
        np.save(folder / f"predicted_{name.removeprefix('rows_')}{ARRAYS}", rival.predict(data[name]))
    result = {
        "seconds": seconds,
        "valid_loss": rival.log_loss(data["x_valid"], data["y_valid"]) if "x_valid" in data else None,
        "n_parameters": int(rival.n_parameters),
        "optimal": getattr(rival, "optimal_", None),
        "start_mb": start_mb,
        "peak_mb": _resident_mb("VmHWM"),
    }
    (folder / RESULT).write_text(json.dumps(result))


def find(name: str) -> Any:
    """The class of a rival, by its name in RIVALS or as ``module:class``.

    >>> find("experiments.rivals.cart:CART") is find("CART")
    True
    """
    if name in RIVALS:
        return RIVALS[name]
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _resident_mb(line: str = "VmRSS") -> float:
    """Memory that this process holds, or most of it so far (getrusage would count that of the process before)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(found.split()[1]) for found in lines if found.startswith(line)) / 1024


def _limit_reserved(megabytes: float) -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return  # the driver reserves as much as there is
    reserved_pages = int(Path("/proc/self/statm").read_text().split()[0])
    allowed = reserved_pages * resource.getpagesize() + int(SLACK * megabytes * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, resource.RLIM_INFINITY))


def _limit_threads(threads: int) -> None:
    """Of all numeric libraries that are loaded; torch, if the rival needs it, asks for its threads itself."""
    threadpool_limits(threads)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
