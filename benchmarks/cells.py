"""Cells of the accuracy benchmark: run a few at a time, each in a process of its own, and stored as they finish."""

import csv
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from benchmarks.spaces import n_trials
from benchmarks.tables import TableInfo

__all__ = ["Budget", "Cell", "Row", "append_row", "finished", "read_rows", "run_cells", "write_rows"]

OK = "ok"


class Cell(NamedTuple):
    """One method on one split of one set."""

    set: str
    seed: int
    method: str


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a cell may use."""

    data: Path
    trials: int
    limit_s: float
    max_epochs: int | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """A cell's result; the fields after `trials` are those of Tuned, empty unless the status is ok."""

    set: str
    task: str
    n: int
    features: int
    seed: int
    method: str
    status: str
    """ok, OOT (out of time) or failed, with the error."""
    trials: int
    valid: float | None = None
    test: float | None = None
    fit_seconds: float | None = None
    tuning_seconds: float | None = None
    leaves: int | None = None
    parameters: int | None = None
    configuration: str = ""
    versions: str = ""

    @property
    def cell(self) -> Cell:
        """What it is the result of."""
        return Cell(self.set, self.seed, self.method)


def run_cells(cells: Sequence[Cell], tables: Mapping[str, TableInfo], budget: Budget, jobs: int) -> Iterator[Row]:
    """The rows, as they finish; cells start in the order given."""
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = [pool.submit(_run, cell, tables[cell.set], budget) for cell in cells]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _run(cell: Cell, table: TableInfo, budget: Budget) -> Row:
    def row(status: str, **values: object) -> Row:
        known = (cell.set, table.task, table.rows, table.features, cell.seed, cell.method)
        return Row(*known, status, n_trials(cell.method, budget.trials), **values)  # type: ignore[arg-type]

    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            _command(cell, budget),
            cwd=Path(__file__).parent.parent,
            env=environment,
            timeout=budget.limit_s,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return row("OOT")
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return row(f"failed: {last[0][:200]}")
    return row(OK, **json.loads(done.stdout.splitlines()[-1]))


def _command(cell: Cell, budget: Budget) -> list[str]:
    options = [f"--data={budget.data.resolve()}", f"--trials={budget.trials}"]
    if budget.max_epochs is not None:
        options.append(f"--max-epochs={budget.max_epochs}")
    return [sys.executable, "-m", "benchmarks.tuning", cell.set, str(cell.seed), cell.method, *options]


def finished(rows: Mapping[Cell, Row], cell: Cell, trials: int) -> bool:
    """Whether a cell need not run again: it was tuned with this budget. Cells that failed or ran out of time do."""
    row = rows.get(cell)
    return row is not None and row.status == OK and row.trials == n_trials(cell.method, trials)


def read_rows(path: Path) -> dict[Cell, Row]:
    """The rows of a file, of each cell the last; none if there is no file."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = [_parse(line) for line in csv.DictReader(file)]
    return {row.cell: row for row in rows}


def append_row(path: Path, row: Row) -> None:
    """Add a row to a file, which need not exist."""
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        values = dataclasses.asdict(row).items()
        writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in values})


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a file anew."""
    path.unlink(missing_ok=True)
    for row in rows:
        append_row(path, row)


_FIELDS = {field.name: field.type for field in dataclasses.fields(Row)}


def _parse(line: Mapping[str, str]) -> Row:
    readers = {int: int, str: str, int | None: int, float | None: float}
    values = {name: readers[kind](line[name]) for name, kind in _FIELDS.items() if line[name] != ""}  # type: ignore[index]
    return Row(**values)
