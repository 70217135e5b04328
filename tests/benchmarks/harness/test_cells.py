"""Cells: stored, resumed, run a few at a time, and counted."""

import contextlib
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.harness.cells import Cell, CellStore, run_cells
from benchmarks.harness.limits import run_limited

ROOT = Path(__file__).parents[3]
CELLS = [Cell("small", 1, "fast"), Cell("small", 2, "fast"), Cell("large", 1, "slow")]


@dataclass(frozen=True)
class Row:
    set: str
    seed: int
    method: str
    status: str
    trials: int
    score: float | None = None

    @property
    def cell(self) -> Cell:
        return Cell(self.set, self.seed, self.method)


def store_of(path: Path | None) -> CellStore[Row]:
    return CellStore(Row, path)


def test_rows_survive_the_file_and_the_last_of_a_cell_counts(tmp_path: Path) -> None:
    path = tmp_path / "new" / "cells.csv"
    late, done = Row("a", 1, "CART", "OOT", 4), Row("a", 1, "XGBoost", "ok", 4, 0.25)
    store = store_of(path)
    for row in (Row("a", 1, "XGBoost", 'failed: a, "b"', 4), late, done):
        store.add(row)
    assert store_of(path).rows == store.rows == {done.cell: done, late.cell: late}


def test_a_cell_is_finished_if_it_has_a_result_with_as_many_trials() -> None:
    store = store_of(None)
    for row in (Row("a", 1, "late", "OOT", 4), Row("a", 1, "tuned", "ok", 4, 0.5)):
        store.add(row)
    assert store.is_finished(Cell("a", 1, "tuned"), 4)
    assert not store.is_finished(Cell("a", 1, "tuned"), 8)
    assert not store.is_finished(Cell("a", 1, "late"), 4)
    assert not store.is_finished(Cell("a", 2, "tuned"), 4)


def test_cells_are_stored_as_they_finish_and_failures_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(tmp_path / "cells.csv")

    def measure(cell: Cell) -> Row:
        time.sleep(0.05 * (cell == CELLS[0]))
        return Row(*cell, "ok", 1, 0.5)

    assert not run_cells(CELLS, measure, store, lambda row: f"score {row.score}", jobs=3, sizes={"large": 1000})
    finished = list(store_of(store.path).rows)
    assert sorted(finished) == sorted(CELLS)
    assert finished[-1] == CELLS[0]  # it took longest
    shown = capsys.readouterr().err.splitlines()
    assert shown[-1] == "[3/3] small 1 fast: score 0.5; 0 s left"
    failing = run_cells(CELLS[:1], lambda cell: Row(*cell, "failed: no rows", 1), store, lambda row: row.status, jobs=1)
    assert failing
    assert "[1/1] small 1 fast: failed: no rows" in capsys.readouterr().err


def measure_for_long(cell: Cell) -> Row:
    outcome = run_limited("tests.benchmarks.harness.greedy_methods:echo", {"sleeps": [100]}, seconds=200.0)
    return Row(*cell, outcome.status, 1)


def test_an_interrupt_ends_what_runs_and_stores_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    program = (
        "import pathlib, tests.benchmarks.harness.test_cells as t;"
        f"store = t.store_of(pathlib.Path({str(path)!r}));"
        "t.run_cells(t.CELLS, t.measure_for_long, store, str, jobs=2)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE)
    while len(runs := [run for server in _children(process.pid) for run in _children(server)]) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in printed
    assert not path.exists()
    deadline = time.monotonic() + 30
    while any(map(_is_running, runs)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_running(process: int) -> bool:
    """Whether it is there and not a zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def _children(process: int) -> list[int]:
    """Processes that a process has started, as Linux tells."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # those that have ended since
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
    return found
