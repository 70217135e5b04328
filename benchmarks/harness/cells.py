"""Cells: one method on one split of one set. They run a few at a time, and are stored as they finish."""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from benchmarks.harness.limits import OK
from benchmarks.harness.records import append_record, read_records, write_records
from benchmarks.harness.servers import ended_by_interrupt
from benchmarks.harness.sets.indexed import IndexEntry

__all__ = ["SEEDS", "Cell", "CellStore", "TableCell", "known_of", "run_cells"]

SEEDS = (1225, 1337, 2020, 6021991)
"""Seeds of the splits, unless others are asked for."""


class Cell(NamedTuple):
    """One method on one split of one set."""

    set: str
    seed: int
    method: str


class Row(Protocol):
    """A cell's result, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def cell(self) -> Cell:
        """What was measured."""

    @property
    def status(self) -> str:
        """Ok, OOT (out of time), OOM (out of memory) or failed, with the error."""

    @property
    def trials(self) -> int:
        """Configurations that were allowed."""


@dataclass(frozen=True)
class TableCell:
    """What the results of cells of tables begin with; those that follow a status are empty unless it is ok."""

    set: str
    task: str
    n: int
    """Rows of the whole table."""
    features: int
    seed: int
    method: str

    @property
    def cell(self) -> Cell:
        """What it is the result of."""
        return Cell(self.set, self.seed, self.method)


def known_of(cell: Cell, entry: IndexEntry, *method: Any) -> tuple[Any, ...]:
    """The first values of a result: of the cell and of its table; the method may have several parts."""
    task = "regression" if entry.task == "values" else "classification"
    return cell.set, task, entry.rows, entry.features, cell.seed, *(method or (cell.method,))


R = TypeVar("R", bound=Row)


class CellStore(Generic[R]):
    """Results by cell, of each cell the last one, in memory and in a CSV file to which new ones are added.

    Parameters
    ----------
    kind : type
        Dataclass of a row.
    path : Path or None
        The file, which need not exist; None stores nothing.
    """

    def __init__(self, kind: Any, path: Path | None) -> None:
        self.path = path
        self.rows: dict[Cell, R] = {row.cell: row for row in read_records(path, kind)} if path is not None else {}

    def forget(self, cells: Iterable[Cell]) -> None:
        """Remove the results of some cells, from the file as well."""
        self.rows = {cell: row for cell, row in self.rows.items() if cell not in set(cells)}
        if self.path is not None:
            write_records(self.path, self.rows.values())

    def add(self, row: R) -> None:
        """Keep a result."""
        self.rows[row.cell] = row
        if self.path is not None:
            append_record(self.path, row)

    def is_finished(self, cell: Cell, trials: int) -> bool:
        """Whether a cell need not run again: it has a result with this many trials. One that failed has none."""
        row = self.rows.get(cell)
        return row is not None and row.status == OK and row.trials == trials


def run_cells(
    cells: Sequence[Cell],
    measure: Callable[[Cell], R],
    store: CellStore[R],
    describe: Callable[[R], str],
    *,
    jobs: int,
    sizes: Mapping[str, int] | None = None,
) -> bool:
    """Measure cells in the order given, some at a time, store each when it is finished, and show the progress.

    Parameters
    ----------
    cells : sequence of Cell
    measure : callable
        From a cell to its row; called in threads, so that it should start a process for the work.
    store : CellStore
    describe : callable
        What the progress says of a row.
    jobs : int
        Cells at a time.
    sizes : mapping, optional
        Rows of the sets, by which the time that is left is estimated.

    Returns
    -------
    bool
        Whether a cell has failed.
    """
    progress = Progress(cells, jobs, sizes or {})
    failed = False
    with ended_by_interrupt():
        for row in _as_finished(progress.timed(measure), cells, jobs):
            store.add(row)
            progress.report(row.cell, describe(row))
            failed |= row.status.startswith("failed")
    return failed


def _as_finished(measure: Callable[[Cell], R], cells: Sequence[Cell], jobs: int) -> Iterator[R]:
    pool = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(measure, cell) for cell in cells]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


class Progress:
    """Counts finished cells on stderr, and estimates when the others will be.

    A cell is taken to need as many seconds for each row of its set as its method needed so far, and a method that has
    not run yet as many as the others.
    """

    def __init__(self, cells: Sequence[Cell], jobs: int, sizes: Mapping[str, int]) -> None:
        self._waiting = dict.fromkeys(cells)
        self._total, self._jobs, self._sizes = len(cells), jobs, sizes
        self._seconds: dict[str, float] = defaultdict(float)
        self._rows: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def timed(self, measure: Callable[[Cell], R]) -> Callable[[Cell], R]:
        """The same function, whose times are noted."""

        def timed_measure(cell: Cell) -> R:
            begin = time.monotonic()
            row = measure(cell)
            with self._lock:
                self._seconds[cell.method] += time.monotonic() - begin
                self._rows[cell.method] += self._size(cell)
            return row

        return timed_measure

    def report(self, cell: Cell, result: str) -> None:
        """Show that a cell has finished."""
        self._waiting.pop(cell)
        done = self._total - len(self._waiting)
        count = f"[{done:>{len(str(self._total))}}/{self._total}]"
        name = f"{cell.set} {cell.seed} {cell.method}"
        print(f"{count} {name}: {result}; {_format_time(self.seconds_left())} left", file=sys.stderr, flush=True)

    def seconds_left(self) -> float:
        """The estimate."""
        with self._lock:
            usual = sum(self._seconds.values()) / sum(self._rows.values())
            rates = {method: self._seconds[method] / self._rows[method] for method in self._rows}
        return sum(rates.get(cell.method, usual) * self._size(cell) for cell in self._waiting) / self._jobs

    def _size(self, cell: Cell) -> int:
        return self._sizes.get(cell.set, 1)


def _format_time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
