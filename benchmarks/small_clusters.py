"""Clusters that short rules explain, beside those of Kauri, and those of k-means, which has no rules.

Run as ``python -m benchmarks.small_clusters``; see README.md in this folder. A run that was interrupted goes on where
it stopped. Exits with 1 if a cell has failed or a bar is missed.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.harness.cells import Cell, CellStore, TableCell, known_of, run_cells
from benchmarks.harness.commands import names, refuse_unknown
from benchmarks.harness.limits import OK, run_limited
from benchmarks.harness.reports import Bar, format_bars, format_report, format_versions, markdown_table
from benchmarks.harness.sets.indexed import IndexEntry, read_index
from benchmarks.harness.versions import version_of, versions_of_prunus
from benchmarks.harness.worker import Answer, Job
from benchmarks.small_cells import label, unlabel
from benchmarks.small_lists import CLASSES, LEAVES, Contender
from benchmarks.small_methods import find, is_installed
from benchmarks.small_tables import MOST_ROWS, Protocol, SmallSplit, load_small, split_small

__all__ = ["ClusterRow", "bars", "explained_variance", "main", "measure", "standard_units"]

HERE = Path(__file__).parent
CACHE = HERE.parent / "build" / "small" / "tables"
PRELOAD = "prunus:ArgminTreeClusterer"
ONE_COLUMN, KAURI, KMEANS = "prunus 1 column", "Kauri", "k-means"
COLUMNS = {ONE_COLUMN: 1, "prunus 2 columns": 2}
METHODS = (*COLUMNS, KAURI, KMEANS)
SEEDS = (0, 1)
TRAIN_ROWS = 4000
LIMIT_S = 600.0
SCORES = {"explained": "explained variance", "agreement": "adjusted Rand index"}
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ClusterRow(TableCell):
    """A cell's result; the fields after `trials` are empty unless the status is ok."""

    leaves: int
    """Or clusters, at most."""
    status: str
    """ok, OOT (out of time) or failed, with the error."""
    trials: int = 1
    explained: float | None = None
    """Variance of the test rows that the means of the training rows of the clusters explain, in %."""
    agreement: float | None = None
    """Adjusted Rand index of clusters and classes of the test rows, in %, if there are classes."""
    found: int | None = None
    """Clusters that training rows are in."""
    fit_seconds: float | None = None
    versions: str = ""

    @property
    def cell(self) -> Cell:
        """What it is the result of."""
        return Cell(self.set, self.seed, label(self.method, self.leaves))


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, show, store, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_clusters", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with index.json and the tables")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--sets", type=names, help="only these, separated by commas")
    parser.add_argument("--methods", type=names, help="only these: " + ", ".join(METHODS))
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time, each with one thread")
    parser.add_argument("--again", action="store_true", help="run finished cells again")
    options = parser.parse_args(arguments)
    tables = read_index(options.data)
    refuse_unknown(parser, "sets", options.sets or [], list(tables))
    refuse_unknown(parser, "methods", options.methods or [], METHODS)
    methods = options.methods or METHODS
    if KAURI in methods and not is_installed(Contender("", "gemclus")):
        parser.error("gemclus is not installed, which has Kauri: run make rivals, or leave it out by --methods")
    by_size = sorted(options.sets or tables, key=lambda name: tables[name].features)
    wanted = [Cell(s, seed, label(m, k)) for s in by_size for seed in SEEDS for m in methods for k in LEAVES]
    store: CellStore[ClusterRow] = CellStore(ClusterRow, options.out / "small_clusters.csv")
    if options.again:
        store.forget(wanted)
    missing = [cell for cell in wanted if not store.is_finished(cell, 1)]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} cells are there already", file=sys.stderr)
    failed = run_cells(
        missing, lambda cell: _run_cell(cell, tables[cell.set], options.data), store, _describe, jobs=options.jobs
    )
    met = _conclude(list(store.rows.values()), options.out)
    return 0 if met and not failed else 1


def _run_cell(cell: Cell, entry: IndexEntry, data: Path) -> ClusterRow:
    """Measure a cell in a process of its own, with one thread."""
    arguments = cell._asdict() | {"data": str(data.resolve())}
    outcome = run_limited("benchmarks.small_clusters:run", arguments, seconds=LIMIT_S, preload=PRELOAD)
    known = known_of(cell, entry, *unlabel(cell.method))
    return ClusterRow(*(*known, outcome.verdict), **outcome.values)


def run(job: Job) -> Answer:
    """What `_run_cell` runs in the process."""
    folder, seed = Path(job.arguments["data"]), job.arguments["seed"]
    entry = read_index(folder)[job.arguments["set"]]
    table = load_small(folder, entry, MOST_ROWS, CACHE)
    job.restart_clock()
    data = split_small(table, entry, seed, Protocol(train_rows=TRAIN_ROWS))
    return measure(*unlabel(job.arguments["method"]), data, seed)


def measure(method: str, leaves: int, data: SmallSplit, seed: int) -> Answer:
    """Find clusters of the training rows, and score them on the test rows."""
    model, versions = _model(method, leaves, seed)
    train, test = standard_units(data)
    start = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    clusters, found = (np.asarray(model.predict(x)).astype(np.int64) for x in (train, test))
    has_classes = data.task == CLASSES
    return {
        "explained": 100 * explained_variance(train, clusters, test, found),
        "agreement": 100 * float(adjusted_rand_score(data.y[data.test_rows], found)) if has_classes else None,
        "found": len(np.unique(clusters)),
        "fit_seconds": seconds,
        "versions": versions,
    }


def standard_units(data: SmallSplit) -> tuple[Floats, Floats]:
    """Training and test rows, a column for each level; with means 0 and deviations 1 of the training rows.

    A missing number is the mean of its column. Columns in which training rows do not differ are left out.
    """
    levels = list(data.x.select_dtypes("category").columns)
    x = pd.get_dummies(data.x, columns=levels).to_numpy(dtype=np.float64)
    mean = np.nanmean(x[data.train_rows], axis=0)
    x = np.where(np.isnan(x), mean, x)
    deviation = x[data.train_rows].std(0)
    varies = deviation > 1e-9 * np.maximum(1.0, np.abs(mean))
    scaled = (x[:, varies] - mean[varies]) / deviation[varies]
    return scaled[data.train_rows], scaled[data.test_rows]


def explained_variance(train: Floats, clusters: Labels, test: Floats, found: Labels) -> float:
    """By how much test rows are nearer to the means of the training rows of their clusters than to that of all rows."""
    means = np.tile(train.mean(0), (max(clusters.max(), found.max()) + 1, 1))
    for cluster in np.unique(clusters):
        means[cluster] = train[clusters == cluster].mean(0)
    return float(1 - np.square(test - means[found]).sum() / np.square(test - train.mean(0)).sum())


def _model(method: str, leaves: int, seed: int) -> tuple[Any, str]:
    """A clusterer, and its version."""
    if method == KMEANS:
        return KMeans(leaves, n_init=10, random_state=seed), version_of("sklearn")
    if method == KAURI:
        kauri = find("gemclus.tree").Kauri(max_clusters=leaves, max_leaves=leaves, random_state=seed)
        return kauri, version_of("gemclus")
    ours: Any = import_module("prunus")
    options = {"n_clusters": leaves, "max_split_features": COLUMNS[method], "random_state": seed}
    return ours.ArgminTreeClusterer(**options, n_jobs=1, device="cpu"), versions_of_prunus()


def bars(rows: Sequence[ClusterRow]) -> list[Bar]:
    """Whether trees of one column are ahead of Kauri; judged for the sizes whose cells have all ended well."""
    judged = []
    for leaves in LEAVES:
        for score, title in SCORES.items():
            ours, others = (_mean(rows, method, leaves, score) for method in (ONE_COLUMN, KAURI))
            if ours is not None and others is not None:
                claim = f"{ONE_COLUMN}, {leaves} leaves: mean {title} in %, bar Kauri"
                judged.append(Bar(claim, ours, others, at_least=True, digits=2))
    return judged


def _mean(rows: Sequence[ClusterRow], method: str, leaves: int, score: str) -> float | None:
    """Of a score over the sets, each the mean of all seeds; None if a set that others are measured on has none."""
    has_score = [row for row in rows if row.leaves == leaves and (score != "agreement" or row.task == CLASSES)]
    found = {row.cell: getattr(row, score) for row in has_score if row.method == method and row.status == OK}
    sets = {row.set for row in has_score}
    if not sets or len(found) < len(sets) * len(SEEDS):
        return None
    return statistics.fmean(found.values())


def _conclude(rows: Sequence[ClusterRow], out: Path) -> bool:
    """Show the means, store the report, and judge: whether no bar is missed."""
    sizes = [(leaves, method) for leaves in LEAVES for method in METHODS]
    means = [[str(k), method, *(_shown(_mean(rows, method, k, score)) for score in SCORES)] for k, method in sizes]
    table = markdown_table(["leaves", "method", *SCORES.values()], means)
    judged = bars(rows)
    verdicts = format_bars(judged) if judged else "Not judged: cells are missing."
    written = "Written by `python -m benchmarks.small_clusters`; `benchmarks/README.md` has the protocol."
    sections = {"": written, "Means over sets, in %": table, "Bars": f"```\n{verdicts}\n```"}
    sections["Versions"] = format_versions(rows, METHODS)
    out.mkdir(parents=True, exist_ok=True)
    (out / "small_clusters.md").write_text(format_report("Clusters that short rules explain", sections, ""))
    print(f"{table}\n\n{verdicts}")
    return all(bar.met for bar in judged)


def _shown(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.2f}"


def _describe(row: ClusterRow) -> str:
    return row.status if row.explained is None else f"{row.explained:.2f} %, {row.fit_seconds:.2f} s"


if __name__ == "__main__":
    raise SystemExit(main())
