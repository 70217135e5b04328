"""Processes of a group, for tests: functions that are called in each of them."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed
import torch.multiprocessing

__all__ = ["called_in_group"]


def called_in_group(function: Callable[..., Any], size: int, folder: Path, *arguments: Any) -> list[Any]:
    """What a function of a module returns in each of so many processes, with one thread each."""
    context = torch.multiprocessing.spawn(
        _call, args=(size, free_port(), function, folder, arguments), nprocs=size, join=True
    )
    assert context is None
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(size)]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])


def _call(rank: int, size: int, port: int, function: Callable[..., Any], folder: Path, arguments: Any) -> None:
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    try:
        torch.save(function(*arguments), folder / f"{rank}.pt")
    finally:
        torch.distributed.destroy_process_group()
