"""Damaged Parquet and Feather files are read or refused in one line: no internal error, no crash, nothing altered."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.binary_files import DONE, REFUSED

FEW, MANY, CHUNK = 50, 5_000, 250
ROOT = Path(__file__).parents[2]


def run_cases(first: int, last: int, folder: Path) -> dict[int, str]:
    """The outcome of each case; after one that ends its process, another process goes on with the next."""
    found: dict[int, str] = {}
    while first < last:
        command = [sys.executable, "-m", "tests.fuzz.binary_files", str(first), str(last), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, cwd=ROOT)
        lines = done.stdout.splitlines()
        assert lines, done.stderr
        for line in lines:
            seed, _, outcome = line.partition(" ")
            found[int(seed)] = outcome or f"ended its process with {done.returncode}: {done.stderr[:2000]}"
        first = max(found) + 1
    return found


def check_cases(first: int, last: int, folder: Path) -> None:
    found = run_cases(first, last, folder)
    failed = {seed: outcome for seed, outcome in found.items() if outcome not in (DONE, "shown", REFUSED)}
    assert not failed
    counts = Counter(found.values())
    sys.stdout.write(f"{dict(counts)}\n")  # shown by pytest -rP
    assert counts[DONE] > len(found) // 20  # else the files are too damaged to show anything
    assert counts[REFUSED] > len(found) // 4


def test_some_damaged_files(tmp_path: Path) -> None:
    check_cases(0, FEW, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW, FEW + MANY, CHUNK))
def test_many_damaged_files(first: int, tmp_path: Path) -> None:
    check_cases(first, first + CHUNK, tmp_path)
