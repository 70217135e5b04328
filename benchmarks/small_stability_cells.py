"""Cells of the report on stability, each in a process of its own: one small tree, and the columns it asks about."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import accuracy_score, r2_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.harness.cells import Cell, TableCell, known_of
from benchmarks.harness.limits import run_limited
from benchmarks.harness.sets.indexed import IndexEntry, read_index
from benchmarks.harness.versions import versions_of_prunus
from benchmarks.harness.worker import Answer, Job
from benchmarks.small_lists import CLASSES
from benchmarks.small_methods import LEAST_ROWS
from benchmarks.small_tables import MISSING, MOST_ROWS, Protocol, SmallSplit, load_small, split_small

__all__ = ["LEAVES", "METHODS", "VARIATIONS", "StabilityRow", "label", "measure", "run_cell", "unlabel"]

LEAVES = 8
METHODS = ("CART", "prunus 1 column", "prunus 2 columns", "prunus hard 2 columns")
"""The last one is `ArgminTree*` with `routing="hard"`."""
VARIATIONS = ("seeds", "bootstrap")
"""Other seeds with the same rows, or rows drawn with replacement from them with the same seed."""
SPLIT_SEED = 0
PRELOAD = "prunus:ArgminTreeClassifier"
Used = tuple[set[str], set[str]]
"""Columns of the table at the root and in all splits."""


@dataclass(frozen=True)
class StabilityRow(TableCell):
    """A cell's result; the fields after `trials` are empty unless the status is ok."""

    variation: str
    status: str
    """ok, OOT (out of time) or failed, with the error."""
    trials: int = 1
    root: str = ""
    """Columns of the split at the root, in the order of their names, as are those of the tree."""
    columns: str = ""
    score: float | None = None
    """R^2 or accuracy in % on rows that were not learned."""
    fit_seconds: float | None = None
    versions: str = ""

    @property
    def cell(self) -> Cell:
        """What it is the result of."""
        return Cell(self.set, self.seed, label(self.method, self.variation))


def label(method: str, variation: str) -> str:
    """Name of a method whose seeds or rows vary, for cells.

    >>> label("CART", "seeds")
    'CART / seeds'
    """
    return f"{method} / {variation}"


def unlabel(name: str) -> tuple[str, str]:
    """The method and what varies.

    >>> unlabel("CART / seeds")
    ('CART', 'seeds')
    """
    method, _, variation = name.rpartition(" / ")
    return method, variation


def run_cell(cell: Cell, entry: IndexEntry, data: Path, limit_s: float, cache: Path | None = None) -> StabilityRow:
    """Measure a cell in a process of its own, with one thread."""
    arguments = cell._asdict() | {"data": str(data.resolve()), "cache": "" if cache is None else str(cache.resolve())}
    outcome = run_limited("benchmarks.small_stability_cells:run", arguments, seconds=limit_s, preload=PRELOAD)
    known = known_of(cell, entry, *unlabel(cell.method))
    return StabilityRow(*(*known, outcome.verdict), **outcome.values)


def run(job: Job) -> Answer:
    """What `run_cell` runs in the process."""
    folder, cache = Path(job.arguments["data"]), job.arguments["cache"]
    entry = read_index(folder)[job.arguments["set"]]
    table = load_small(folder, entry, MOST_ROWS, Path(cache) if cache else None)
    job.restart_clock()
    data = split_small(table, entry, SPLIT_SEED, Protocol())
    return measure(*unlabel(job.arguments["method"]), data, job.arguments["seed"])


def measure(method: str, variation: str, data: SmallSplit, number: int) -> Answer:
    """Fit one tree, score it, and say which columns it uses."""
    seed, rows = (number, data.train_rows) if variation == "seeds" else (0, _drawn(data.train_rows, number))
    versions = versions_of_prunus() if method != "CART" else ""
    x, owners = _encoded(data.x) if method == "CART" else (data.x, list(data.x.columns))
    model = _model(method, data.task, seed)
    start = time.perf_counter()
    model.fit(x.iloc[rows], data.y[rows])
    seconds = time.perf_counter() - start
    root, columns = _used(method, model, owners)
    metric: Any = accuracy_score if data.task == CLASSES else r2_score
    return {
        "root": " ".join(sorted(root)),
        "columns": " ".join(sorted(columns)),
        "score": 100.0 * float(metric(data.y[data.test_rows], model.predict(x.iloc[data.test_rows]))),
        "fit_seconds": seconds,
        "versions": versions,
    }


def _drawn(rows: npt.NDArray[np.int64], number: int) -> npt.NDArray[np.int64]:
    """As many rows, with replacement."""
    drawn: npt.NDArray[np.int64] = np.random.default_rng(number).choice(rows, len(rows))
    return drawn


def _encoded(x: Any) -> tuple[Any, list[str]]:
    """The table as CART is given it, and the column of the table that each of its columns belongs to."""
    parts = {name: pd.get_dummies(x[[name]]) if str(x[name].dtype) == "category" else x[[name]] for name in x.columns}
    owners = [str(name) for name, part in parts.items() for _ in part.columns]
    return pd.concat(parts.values(), axis=1).astype("float64").fillna(MISSING), owners


def _model(method: str, task: str, seed: int) -> Any:
    if method == "CART":
        cart = DecisionTreeClassifier if task == CLASSES else DecisionTreeRegressor
        return cart(max_leaf_nodes=LEAVES, min_samples_leaf=LEAST_ROWS, random_state=seed)
    import prunus  # here: CART does without torch

    ours: Any = prunus
    family = "ArgminTree" if "hard" in method else "ReadableTree"
    kind = getattr(ours, f"{family}{'Classifier' if task == CLASSES else 'Regressor'}")
    columns = 1 if "1 column" in method else 2
    options = {"routing": "hard", "device": "cpu"} if "hard" in method else {"n_jobs": 1}
    return kind(max_leaf_nodes=LEAVES, max_split_features=columns, random_state=seed, **options)


def _used(method: str, model: Any, owners: list[str]) -> Used:
    """Columns of the table at the root and in all splits."""
    if method == "CART":
        found = model.tree_.feature
        return {owners[j] for j in found[:1] if j >= 0}, {owners[j] for j in found if j >= 0}
    if "hard" in method:
        splits = _splits_of_argmin(model)
    else:
        splits = {t: {term.feature for term in split.terms} for t, split in model.record_.splits.items()}
    root = {owners[j] for j in splits.get(0, ())}
    return root, {owners[j] for columns in splits.values() for j in columns}


def _splits_of_argmin(model: Any) -> dict[int, set[int]]:
    """Columns of each inner node that is kept."""
    record = model.tree_
    owner = [column.feature for column in model.encoder_.columns_]
    inner = [int(t) for t in np.flatnonzero(record.kept & ~record.is_leaf)]
    return {t: {owner[j] for j in np.flatnonzero(record.weight[t])} for t in inner}
