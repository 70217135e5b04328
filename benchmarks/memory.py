"""Memory of this process."""

import os
import resource
import sys
from pathlib import Path

__all__ = ["limit_memory", "peak_mb", "resident_mb"]


def resident_mb() -> float:
    """Memory held now, in MB; where the system does not tell, the most held so far."""
    kilobytes = _status("VmRSS")
    return peak_mb() if kilobytes is None else kilobytes / 1e3


def peak_mb() -> float:
    """The most memory held at once so far, in MB.

    Linux hands ru_maxrss of the parent down to a child, so that a small child of a large parent would seem large; the
    high-water mark of the process's own address space does not have this fault.
    """
    kilobytes = _status("VmHWM")
    if kilobytes is not None:
        return kilobytes / 1e3
    units = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / units


def limit_memory(share: float = 0.7) -> None:
    """Fail in this process, rather than starve the machine, beyond a share of the physical memory."""
    limit = int(share * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _status(field: str) -> int | None:
    """A field, in kB, of what Linux says of this process."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    values = (int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
    return next(values, None)
