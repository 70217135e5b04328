"""Cells, a few at a time, each in a process of its own with one thread."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["OK", "as_finished", "run_module"]

Item = TypeVar("Item")
Result = TypeVar("Result")

OK = "ok"


def as_finished(work: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[Result]:
    """What the work makes of the items, as it finishes; items start in the order given, `jobs` at a time."""
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = [pool.submit(work, item) for item in items]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def run_module(module: str, arguments: Sequence[str], limit_s: float) -> tuple[str, dict[str, Any]]:
    """Run a module that prints a JSON object as its last line.

    Returns
    -------
    status : str
        ok, OOT (out of time) or failed, with the error.
    values : dict
        The object; empty unless the status is ok.
    """
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=Path(__file__).parent.parent,
            env=environment,
            timeout=limit_s,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "OOT", {}
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return f"failed: {last[0][:200]}", {}
    return OK, json.loads(done.stdout.splitlines()[-1])
