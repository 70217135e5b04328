"""Cells of clustering, each measured in a process of its own: one method on one split of one set; and their means."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness.cells import SEEDS, Cell, CellStore, run_cells
from benchmarks.harness.clustering import METHODS, does, fit_tree, n_trials, versions
from benchmarks.harness.limits import OK, run_limited
from benchmarks.harness.reports import group_rows, mean_and_deviation
from benchmarks.harness.sets.loading import SplitSet, load_clusters
from benchmarks.harness.worker import Answer, Job
from prunus.metrics import dendrogram_purity

__all__ = ["LIMIT_S", "SETS", "TRIALS", "ClusterRow", "ClusterStanding", "cell_grid", "run_missing", "standings"]

TRIALS, LIMIT_S = 12, 3600.0
"""Configurations that the paper's scheme tries, and seconds that a cell may take, unless others are asked for."""


class ClusterSet(NamedTuple):
    """A set whose rows are clustered."""

    source: str
    """Its name for `load_clusters`."""
    rows: int


SETS = {
    "glass": ClusterSet("Glass", 214),
    "satimage": ClusterSet("satimage", 6_430),
    "letter": ClusterSet("letter", 20_000),
    "covtype": ClusterSet("Covtype", 581_012),
}
"""Small ones first."""


@dataclass(frozen=True)
class ClusterRow:
    """A cell's result; the fields after `trials` are empty unless the status is ok."""

    set: str
    seed: int
    method: str
    status: str
    """ok, OOT (out of time) or failed, with the error."""
    trials: int
    n: int | None = None
    features: int | None = None
    classes: int | None = None
    test: float | None = None
    """Dendrogram purity of the test part."""
    all_rows: float | None = None
    """Of all rows; the tree was fitted to the training part here as well."""
    fit_seconds: float | None = None
    """Time of the fit that was chosen."""
    total_seconds: float | None = None
    """Time of all fits and of placing all rows."""
    leaves: int | None = None
    """Nodes where rows end."""
    valid_error: float | None = None
    configuration: str = ""
    """As JSON."""
    versions: str = ""

    @property
    def cell(self) -> Cell:
        """What it is the result of."""
        return Cell(self.set, self.seed, self.method)


@dataclass(frozen=True)
class ClusterStanding:
    """One method on one set: means and deviations of the purities over the seeds."""

    set: str
    method: str
    seeds: int
    status: str
    """ok, or why a seed has no score: then there are no means."""
    test: float | None = None
    test_std: float | None = None
    all_rows: float | None = None
    all_rows_std: float | None = None
    fit_seconds: float | None = None
    leaves: float | None = None


def cell_grid(sets: Sequence[str], seeds: Sequence[int], methods: Sequence[str]) -> list[Cell]:
    """All cells of methods that are defined on their sets."""
    return [Cell(name, seed, method) for name in sets for seed in seeds for method in methods if does(method, name)]


def run_missing(
    store: CellStore[ClusterRow],
    data: Path,
    *,
    sets: Sequence[str] = tuple(SETS),
    seeds: Sequence[int] = SEEDS,
    methods: Sequence[str] = METHODS,
    trials: int = TRIALS,
    limit_s: float = LIMIT_S,
    jobs: int = 2,
    fresh: bool = False,
) -> bool:
    """Run the cells that are not finished, small sets first; whether one has failed. `fresh` runs all of them."""
    wanted = cell_grid(sorted(sets, key=lambda name: SETS[name].rows), seeds, methods)
    if fresh:
        store.forget(wanted)
    missing = [cell for cell in wanted if not store.is_finished(cell, n_trials(cell.method, trials))]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} cells are there already", file=sys.stderr)
    sizes = {name: info.rows for name, info in SETS.items()}
    return run_cells(
        missing, lambda cell: run_cell(cell, data, trials, limit_s), store, _describe, jobs=jobs, sizes=sizes
    )


def run_cell(cell: Cell, data: Path, trials: int, limit_s: float) -> ClusterRow:
    """Measure a cell in a process of its own, with one thread."""
    arguments = cell._asdict() | {"data": str(data.resolve()), "trials": trials}
    outcome = run_limited("benchmarks.harness.cluster_cells:run", arguments, seconds=limit_s)
    return ClusterRow(*cell, outcome.verdict, n_trials(cell.method, trials), **outcome.values)


def run(job: Job) -> Answer:
    """What `run_cell` runs in the process."""
    name, seed, trials = (job.arguments[key] for key in ("set", "seed", "trials"))
    data = load_clusters(SETS[name].source, Path(job.arguments["data"]), seed)
    return measure(job.arguments["method"], name, data, seed, trials)


def measure(method: str, set_name: str, data: SplitSet, seed: int, trials: int) -> Answer:
    """Fit on the training part, place all rows, score: the fields of a row."""
    state = versions(method)  # before the fit: the source may change while it runs
    start = time.perf_counter()
    tree = fit_tree(method, set_name, data, seed, trials)
    nodes = np.asarray(tree.apply(data.x))
    test = data.rows.test
    return {
        "n": len(data.y),
        "features": data.x.shape[1],
        "classes": data.n_classes,
        "test": dendrogram_purity(nodes[test], data.y[test]),
        "all_rows": dendrogram_purity(nodes, data.y),
        "fit_seconds": tree.fit_seconds,
        "total_seconds": time.perf_counter() - start,
        "leaves": len(np.unique(nodes)),
        "valid_error": tree.valid_error,
        "configuration": "" if tree.configuration is None else json.dumps(tree.configuration),
        "versions": state,
    }


def standings(rows: Sequence[ClusterRow]) -> list[ClusterStanding]:
    """Of each set and method, in the order of the sets' rows."""
    return [_standing(group) for group in group_rows(rows, METHODS)]


def _standing(rows: Sequence[ClusterRow]) -> ClusterStanding:
    key = (rows[0].set, rows[0].method, len(rows))
    troubles = [row.status for row in rows if row.status != OK]
    if troubles:
        return ClusterStanding(*key, troubles[0])

    def over_seeds(name: str) -> tuple[float, float | None]:
        return mean_and_deviation([float(getattr(row, name)) for row in rows])

    purities = (*over_seeds("test"), *over_seeds("all_rows"))
    return ClusterStanding(*key, OK, *purities, over_seeds("fit_seconds")[0], over_seeds("leaves")[0])


def _describe(row: ClusterRow) -> str:
    return row.status if row.test is None else f"test {row.test:.3f}, {row.total_seconds:.1f} s"
