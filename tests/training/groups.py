"""Processes of a group, for tests: functions that are called in each of them."""

import multiprocessing
import os
import pickle
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed

__all__ = ["call_in_group", "free_port"]

SECONDS = 120
"""A group that takes longer hangs."""


def call_in_group(function: Callable[..., Any], size: int, folder: Path, *arguments: Any) -> list[Any]:
    """What a function returns in each of this many processes, with one thread each; None of a process that has died."""
    context: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    if sys.platform != "win32":
        context.set_forkserver_preload(["tests.training.process_runs"])  # they are forked with all modules imported
    given = size, free_port(), function, folder, arguments
    started = [context.Process(target=_call, args=(rank, *given)) for rank in range(size)]
    for process in started:
        process.start()
    try:
        for process in started:
            process.join(SECONDS)
            assert process.exitcode is not None, "a process hangs"
    finally:
        for process in started:
            process.kill()
    files = [folder / f"{rank}.pickle" for rank in range(size)]
    return [pickle.loads(file.read_bytes()) if file.exists() else None for file in files]


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])


def _call(rank: int, size: int, port: int, function: Callable[..., Any], folder: Path, arguments: Any) -> None:
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    found = function(*arguments)
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(found))
    torch.distributed.destroy_process_group()
