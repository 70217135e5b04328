"""What differs between two recordings, file by file."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["differences", "entry_differences"]

LONGEST = 160
"""Characters of a line that are shown."""


def differences(old: Path, new: Path) -> Iterator[str]:
    """A line for each file that differs between two folders of entries, and for each entry that one of them lacks."""
    found = [{path.name for path in folder.iterdir() if path.is_dir()} for folder in (old, new)]
    for name in sorted(found[0] | found[1]):
        if name not in found[0] & found[1]:
            yield f"{name}: only in {old if name in found[0] else new}"
        else:
            yield from entry_differences(old / name, new / name)


def entry_differences(old: Path, new: Path) -> Iterator[str]:
    """A line for each file that differs between the folders of one entry."""
    files = [{path.name for path in folder.iterdir()} for folder in (old, new)]
    for name in sorted(files[0] | files[1]):
        if name not in files[0] & files[1]:
            yield f"{old.name}/{name}: only in {old if name in files[0] else new}"
        elif (old / name).read_bytes() != (new / name).read_bytes():
            compare = _arrays if name.endswith(".npy") else _texts
            yield f"{old.name}/{name}: {compare(old / name, new / name)}"


def _arrays(old: Path, new: Path) -> str:
    """How far two arrays are from each other."""
    a, b = (np.load(path, allow_pickle=False) for path in (old, new))
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return f"{a.dtype} {a.shape}, then {b.dtype} {b.shape}"
    return f"{_distance(a, b)}{'' if a.dtype == b.dtype else f', {a.dtype}, then {b.dtype}'}"


def _distance(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> str:
    """How many values differ, and by how much at most.

    >>> _distance(np.array([1.0, np.nan, 3.0]), np.array([1.0, np.nan, 3.25]))
    '1 of 3 values differ, by at most 0.25'
    """
    is_float = a.dtype.kind == "f"
    differ = (a != b) & ~(np.isnan(a) & np.isnan(b)) if is_float else a != b
    told = f"{np.count_nonzero(differ)} of {a.size} values differ"
    if a.dtype.kind not in "fiu" or not differ.any():
        return told
    with np.errstate(invalid="ignore"):  # of infinities
        return f"{told}, by at most {np.abs(a[differ].astype(np.float64) - b[differ].astype(np.float64)).max():.3g}"


def _texts(old: Path, new: Path) -> str:
    """The first line that differs."""
    lines = [path.read_text(encoding="utf-8").splitlines() for path in (old, new)]
    for number, (a, b) in enumerate(zip_longest(*lines), start=1):
        if a != b:
            return f"line {number} is {_shown(a)}, then {_shown(b)}"
    return "ends of lines differ"


def _shown(line: str | None) -> str:
    if line is None:
        return "missing"
    return repr(line if len(line) <= LONGEST else line[:LONGEST] + "...")
