"""Cells of the accuracy benchmark: run a few at a time, each in a process of its own, and stored as they finish."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import OK, as_finished, run_module
from benchmarks.spaces import n_trials
from benchmarks.store import read_records
from benchmarks.tables import TableInfo

__all__ = ["Budget", "Cell", "Row", "finished", "read_rows", "run_cells"]


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
    return as_finished(lambda cell: _run(cell, tables[cell.set], budget), cells, jobs)


def _run(cell: Cell, table: TableInfo, budget: Budget) -> Row:
    def row(status: str, **values: object) -> Row:
        known = (cell.set, table.task, table.rows, table.features, cell.seed, cell.method)
        return Row(*known, status, n_trials(cell.method, budget.trials), **values)  # type: ignore[arg-type]

    status, values = run_module("benchmarks.tuning", _arguments(cell, budget), budget.limit_s)
    return row(status, **values)


def _arguments(cell: Cell, budget: Budget) -> list[str]:
    options = [f"--data={budget.data.resolve()}", f"--trials={budget.trials}"]
    if budget.max_epochs is not None:
        options.append(f"--max-epochs={budget.max_epochs}")
    return [cell.set, str(cell.seed), cell.method, *options]


def finished(rows: Mapping[Cell, Row], cell: Cell, trials: int) -> bool:
    """Whether a cell need not run again: it was tuned with this budget. Cells that failed or ran out of time do."""
    row = rows.get(cell)
    return row is not None and row.status == OK and row.trials == n_trials(cell.method, trials)


def read_rows(path: Path) -> dict[Cell, Row]:
    """The rows of a file, of each cell the last; none if there is no file."""
    return {row.cell: row for row in read_records(path, Row)}
