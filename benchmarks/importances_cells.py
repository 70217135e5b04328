"""Cells of the benchmark of importances, each in a process of its own: one fit to two thirds of a training part."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from benchmarks.harness.cells import SEEDS, Cell, TableCell, known_of
from benchmarks.harness.limits import run_limited
from benchmarks.harness.methods import find_method
from benchmarks.harness.methods.interface import is_table
from benchmarks.harness.sets.indexed import IndexEntry, read_index
from benchmarks.harness.sets.loading import Part, SplitSet, load_table
from benchmarks.harness.versions import versions_of_prunus
from benchmarks.harness.worker import Answer, Job

__all__ = ["METHODS", "ImportancesRow", "measure", "root_columns", "run_cell"]

METHODS: dict[str, dict[str, Any]] = {
    "soft constant": {"leaf": "constant"},
    "soft linear": {"leaf": "linear"},
    "hard linear": {"leaf": "linear", "routing": "hard"},
}
"""Trees by their options; all others are the defaults."""
REPEATS = 5
"""How often permutation importance shuffles a column."""
STRONGEST = 3
"""Number of columns of the root that are noted."""


@dataclass(frozen=True)
class ImportancesRow(TableCell):
    """A cell's result; the fields after `trials` are empty unless the status is ok."""

    status: str
    """ok, OOT (out of time) or failed, with the error."""
    trials: int = 1
    spearman: float | None = None
    """Rank correlation of importances and permutation importances on rows that were not trained on."""
    same_top: int | None = None
    """1 if the same column is the most important one by both, else 0."""
    root: str = ""
    """The columns that move the root's score most, the strongest first."""
    score: float | None = None
    """R^2 or accuracy on these rows, in %."""
    fit_seconds: float | None = None
    versions: str = ""


def run_cell(cell: Cell, entry: IndexEntry, data: Path, limit_s: float) -> ImportancesRow:
    """Measure a cell in a process of its own, with one thread."""
    arguments = cell._asdict() | {"data": str(data.resolve())}
    outcome = run_limited("benchmarks.importances_cells:run", arguments, seconds=limit_s)
    known = known_of(cell, entry)
    return ImportancesRow(*(*known, outcome.verdict), **outcome.values)


def run(job: Job) -> Answer:
    """What `run_cell` runs in the process."""
    name, seed, method = (job.arguments[key] for key in Cell._fields)
    folder = Path(job.arguments["data"])
    return measure(method, load_table(folder, read_index(folder)[name], SEEDS[0]), seed)


def measure(method: str, data: SplitSet, seed: int) -> Answer:
    """Fit a tree to two thirds of the training part, and compare importances on the other third."""
    train, other = _thirds(data)
    state = versions_of_prunus()
    model: Any = find_method("prunus")(data.task, random_state=seed, **METHODS[method])
    start = time.perf_counter()
    model.fit(train.x, train.y)
    seconds = time.perf_counter() - start
    tree = model.tree_
    permuted = permutation_importance(tree, other.x, other.y, n_repeats=REPEATS, random_state=0).importances_mean
    own = tree.feature_importances_
    rank = float(spearmanr(own, permuted).statistic) if np.ptp(own) > 0 and np.ptp(permuted) > 0 else 0.0
    return {
        "spearman": rank,
        "same_top": int(own.argmax() == permuted.argmax()),
        "root": " ".join(f"x{column}" for column in root_columns(tree, train.x)[:STRONGEST].tolist()),
        "score": 100.0 * float(tree.score(other.x, other.y)),
        "fit_seconds": seconds,
        "versions": state,
    }


def root_columns(tree: Any, x: Any) -> npt.NDArray[np.int64]:
    """The columns of the table that the root's score depends on, the strongest first.

    The strength of a column is the standard deviation, over these rows, of its part of the score, of all its encoded
    columns together.
    """
    record, encoded = tree.tree_, tree.encoder_.transform(x)
    if record.n_nodes == 1 or (record.is_hard and record.n_leaves == 1):
        return np.zeros(0, dtype=np.int64)
    owner = np.array([column.feature for column in tree.encoder_.columns_])
    part = np.stack([encoded[:, owner == j] @ record.weight[0, owner == j] for j in range(tree.n_features_in_)], axis=1)
    strength = part.std(0)
    return np.argsort(-strength, kind="stable")[: np.count_nonzero(strength)]


def _thirds(data: SplitSet) -> tuple[Part, Part]:
    """Two thirds of the training part to fit, and one third to shuffle columns in; the same for all fits."""
    part = data.train
    stratify = part.y if data.task == "classes" else None
    rows = train_test_split(np.arange(len(part.y)), test_size=1 / 3, random_state=0, stratify=stratify)
    first, second = (Part(part.x.iloc[some] if is_table(part.x) else part.x[some], part.y[some]) for some in rows)
    return first, second
