"""Progress of a long run of cells, on stderr."""

import sys
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.cells import Cell, Row

__all__ = ["Progress"]

START_S = 4.0
"""To start a process, import libraries and read the table."""


class Progress:
    """Counts finished cells and guesses when the rest will be.

    A cell is taken to need as many seconds a row of its set as its method needed so far, and a method that has not run
    as many as the others; and some to start.
    """

    def __init__(self, cells: Sequence[Cell], sizes: dict[str, int], jobs: int) -> None:
        self._waiting = dict.fromkeys(cells)
        self._total = len(cells)
        self._sizes = sizes
        self._jobs = jobs
        self._seconds: dict[str, float] = defaultdict(float)
        self._rows: dict[str, int] = defaultdict(int)

    def report(self, row: Row) -> None:
        """Show that a cell has finished."""
        self._waiting.pop(row.cell)
        if row.tuning_seconds is not None:
            self._seconds[row.method] += row.tuning_seconds
            self._rows[row.method] += self._sizes[row.set]
        done = self._total - len(self._waiting)
        result = row.status if row.test is None else f"test {row.test:.2f}, {row.tuning_seconds:.1f} s"
        print(
            f"[{done:>{len(str(self._total))}}/{self._total}] {row.set} {row.seed} {row.method}: {result}; "
            f"{_shown(self.seconds_left())} left",
            file=sys.stderr,
            flush=True,
        )

    def seconds_left(self) -> float:
        """The guess."""
        if not self._rows:
            return float("nan")
        usual = sum(self._seconds.values()) / sum(self._rows.values())
        rates = {method: self._seconds[method] / self._rows[method] for method in self._rows}
        each = (START_S + rates.get(cell.method, usual) * self._sizes[cell.set] for cell in self._waiting)
        return sum(each) / self._jobs


def _shown(seconds: float) -> str:
    if seconds != seconds:
        return "?"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
