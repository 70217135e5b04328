"""The machine that produced a number."""

import datetime
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import torch

import prunus

__all__ = ["Machine", "is_busy", "this_machine"]


@dataclass(frozen=True)
class Machine:
    """What a timing depends on besides the code. Every row of every CSV carries it."""

    cpu: str
    cores: int
    threads: int
    """Threads that torch, and with it prunus, may use."""
    gpu: str
    """Empty where there is none."""
    python: str
    torch: str
    prunus: str
    date: str


def this_machine() -> Machine:
    """Describe the machine, the versions and today."""
    return Machine(
        cpu=_cpu_model(),
        cores=os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        gpu=torch.cuda.get_device_name() if torch.cuda.is_available() else "",
        python=platform.python_version(),
        torch=str(torch.__version__),
        prunus=prunus.__version__,
        date=datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    )


def is_busy() -> bool:
    """Whether half of the cores or more had work in the last minute: timings with threads are then worthless."""
    return os.getloadavg()[0] >= (os.cpu_count() or 1) / 2


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
