"""Cells of the benchmark of small trees, each in a process of its own: one method with one number of leaves."""

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from benchmarks.harness.cells import Cell, TableCell, known_of
from benchmarks.harness.limits import FAILED, run_limited
from benchmarks.harness.sets.indexed import IndexEntry, read_index
from benchmarks.harness.sets.loading import Part
from benchmarks.harness.versions import versions_of_prunus
from benchmarks.harness.worker import Answer, Job
from benchmarks.harness.worker import find as find_place
from benchmarks.small_lists import CLASSES, CONTENDERS, OURS
from benchmarks.small_methods import Learned, Problem
from benchmarks.small_tables import Protocol, SmallSplit, load_small, split_small

__all__ = ["Plan", "SmallRow", "label", "measure", "run_cell", "unlabel"]

PRELOAD = "prunus:ArgminTreeClassifier"
"""Imported once for all cells if one of them is ours: torch takes seconds."""
GRACE_S = 30.0
"""More than the limit, for reading, predictions and methods that stop themselves a little late."""


@dataclass(frozen=True)
class Plan:
    """What all cells of a run share."""

    data: Path
    protocol: Protocol
    limit_s: float
    with_ours: bool = False
    cache: Path | None = None


@dataclass(frozen=True)
class SmallRow(TableCell):
    """A cell's result; the fields after `trials` are empty unless the status is ok."""

    leaves: int
    """Asked for."""
    status: str
    """ok, OOT (out of time) or failed, with the error."""
    trials: int = 1
    score: float | None = None
    """R^2 or accuracy in %, of the part that scores."""
    train_score: float | None = None
    """The same of the rows that were learned."""
    fit_seconds: float | None = None
    grown: int | None = None
    """Leaves, or rules, that the model has."""
    versions: str = ""

    @property
    def cell(self) -> Cell:
        """What it is the result of."""
        return Cell(self.set, self.seed, label(self.method, self.leaves))


def label(method: str, leaves: int) -> str:
    """Name of a method with a number of leaves, for cells.

    >>> label("CART", 8)
    'CART @ 8'
    """
    return f"{method} @ {leaves}"


def unlabel(name: str) -> tuple[str, int]:
    """The method and the number of leaves of a name.

    >>> unlabel("CART @ 8")
    ('CART', 8)
    """
    method, _, leaves = name.rpartition(" @ ")
    return method, int(leaves)


def run_cell(cell: Cell, entry: IndexEntry, plan: Plan) -> SmallRow:
    """Measure a cell in a process of its own, with one thread."""
    arguments: dict[str, Any] = cell._asdict() | asdict(plan.protocol) | {"limit_s": plan.limit_s}
    arguments |= {"data": str(plan.data.resolve()), "cache": "" if plan.cache is None else str(plan.cache.resolve())}
    preload = PRELOAD if plan.with_ours else ""
    outcome = run_limited("benchmarks.small_cells:run", arguments, seconds=plan.limit_s + GRACE_S, preload=preload)
    known = known_of(cell, entry, *unlabel(cell.method))
    return SmallRow(*(*known, outcome.verdict), **outcome.values)


def run(job: Job) -> Answer:
    """What `run_cell` runs in the process."""
    given = job.arguments
    folder, cache = Path(given["data"]), Path(given["cache"]) if given["cache"] else None
    entry = read_index(folder)[given["set"]]
    protocol = Protocol(given["rows"], given["train_rows"], given["inner"])
    table = load_small(folder, entry, protocol.rows, cache)
    job.restart_clock()
    return measure(*unlabel(given["method"]), split_small(table, entry, given["seed"], protocol), **_budget(given))


def _budget(given: dict[str, Any]) -> dict[str, Any]:
    return {"seed": given["seed"], "limit_s": given["limit_s"]}


def measure(method: str, leaves: int, data: SmallSplit, *, seed: int, limit_s: float) -> Answer:
    """Fit a tree and score it."""
    contender = CONTENDERS[method]
    fit = find_place(contender.fit)
    train, test = (part(as_table=contender.takes_tables) for part in (data.train, data.test))
    versions = versions_of_prunus() if method in OURS else ""
    start = time.perf_counter()
    learned = fit(Problem(data.task, train.x, train.y, leaves, seed, limit_s, contender.options))
    seconds = time.perf_counter() - start
    return {
        "score": _score(learned, test, data.task),
        "train_score": _score(learned, train, data.task),
        "fit_seconds": seconds,
        "grown": learned.leaves,
        "versions": versions,
    }


def _score(learned: Learned, part: Part, task: str) -> float:
    predicted = np.asarray(learned.predict(part.x))
    score = 100.0 * float((accuracy_score if task == CLASSES else r2_score)(part.y, predicted))
    if not math.isfinite(score):
        raise ValueError(f"the score must be finite, got {score}: {FAILED}")
    return score
