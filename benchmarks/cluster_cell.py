"""One cell of the clustering benchmark, run in a process of its own: one method on one split of one set.

Run as ``python -m benchmarks.cluster_cell SET SEED METHOD --data FOLDER``; prints a JSON object.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.cells import Cell
from benchmarks.cluster_methods import METHODS, Task, cluster_versions, fit_tree, n_trials
from benchmarks.cluster_tables import SETS, read_clusters
from benchmarks.processes import OK, run_module
from prunus.metrics import dendrogram_purity

__all__ = ["ClusterRow", "Measured", "cluster_cell", "measure"]


@dataclasses.dataclass(frozen=True)
class Measured:
    """How pure a fitted tree is."""

    n: int
    features: int
    classes: int
    test: float
    """Dendrogram purity of the test part."""
    all_rows: float
    """Of all rows; the tree was fitted to the training part here as well."""
    fit_seconds: float
    """Time of the fit that was chosen."""
    total_seconds: float
    """Time of all fits and the placing of all rows."""
    leaves: int
    """Nodes where rows end."""
    valid_error: float | None
    configuration: str
    """As JSON."""
    versions: str


@dataclasses.dataclass(frozen=True)
class ClusterRow:
    """A cell's result; the fields after `trials` are those of Measured, empty unless the status is ok."""

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
    all_rows: float | None = None
    fit_seconds: float | None = None
    total_seconds: float | None = None
    leaves: int | None = None
    valid_error: float | None = None
    configuration: str = ""
    versions: str = ""

    @property
    def cell(self) -> Cell:
        """What it is the result of."""
        return Cell(self.set, self.seed, self.method)


def cluster_cell(cell: Cell, data: Path, trials: int, limit_s: float) -> ClusterRow:
    """Measure a cell in a process of its own."""
    arguments = [cell.set, str(cell.seed), cell.method, f"--data={data.resolve()}", f"--trials={trials}"]
    status, values = run_module("benchmarks.cluster_cell", arguments, limit_s)
    assert bool(values) == (status == OK)
    return ClusterRow(*cell, status, n_trials(cell.method, trials), **values)


def measure(method: str, task: Task) -> Measured:
    """Fit on the training part, place all rows, score."""
    state = cluster_versions(method)  # before the fit: the source may change while it runs
    start = time.perf_counter()
    tree = fit_tree(method, task)
    data = task.data
    nodes = np.asarray(tree.apply(data.x))
    return Measured(
        n=len(data.y),
        features=data.x.shape[1],
        classes=int(data.y.max()) + 1,
        test=dendrogram_purity(nodes[data.test], data.y[data.test]),
        all_rows=dendrogram_purity(nodes, data.y),
        fit_seconds=tree.fit_seconds,
        total_seconds=time.perf_counter() - start,
        leaves=len(np.unique(nodes)),
        valid_error=tree.valid_error,
        configuration="" if tree.configuration is None else json.dumps(tree.configuration),
        versions=state,
    )


def main() -> None:
    """Measure the cell named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=list(SETS))
    parser.add_argument("seed", type=int)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = read_clusters(options.data, options.set, options.seed)
    measured = measure(options.method, Task(options.set, data, options.seed, options.trials))
    print(json.dumps(dataclasses.asdict(measured)))


if __name__ == "__main__":
    main()
