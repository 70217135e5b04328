"""The machine that produced a number, and the memory of processes in MB of 1000 kB, as Linux counts kB."""

import datetime
import os
import platform
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Machine", "is_busy", "peak_mb", "physical_mb", "resident_mb", "this_machine"]


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
    import torch  # here: processes whose memory is watched need not load it

    import prunus

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


def resident_mb(process: int | None = None) -> float:
    """Memory that a process uses now, by default this one; 0 if it has ended.

    Where the system does not tell, it is the most that this process has used so far.

    >>> resident_mb(os.getpid()) > 10
    True
    """
    kilobytes = _status("VmRSS", "self" if process is None else str(process))
    if kilobytes is None:
        return peak_mb() if process is None else 0.0
    return kilobytes / 1e3


def peak_mb() -> float:
    """The most memory that this process has used at once so far.

    Linux hands ru_maxrss of the parent down to a child, so that a small child of a large parent would seem large; the
    high-water mark of the process's own address space does not have this fault.
    """
    kilobytes = _status("VmHWM", "self")
    if kilobytes is not None:
        return kilobytes / 1e3
    units = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / units


def physical_mb() -> float:
    """Memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1.024e6


def _status(field: str, process: str) -> int | None:
    """A field, in kB, of what Linux says of a process."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    values = (int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
    return next(values, None)


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
