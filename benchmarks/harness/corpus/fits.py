"""How an estimator of the corpus learns from its table."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from benchmarks.harness.corpus.outputs import Fitted
from benchmarks.harness.corpus.tables import Table
from prunus.data import FileTable

__all__ = [
    "Fit",
    "from_files",
    "in_parts",
    "one_tree_more",
    "twice",
    "weighted",
    "weighted_by_fractions",
    "with_eval_set",
    "with_three_leaves",
]

Learn = Callable[[Any, Table, Path], Any]


@dataclass(frozen=True)
class Fit:
    """An estimator, a table, and how the one learns from the other."""

    estimator: Any
    table: Callable[[], Table]
    learn: Learn | None = None
    """Takes an estimator, a table and a folder for files, and returns the fitted estimator. By default `fit` does."""

    def __call__(self, folder: Path) -> Fitted:
        """Fit the estimator."""
        table, estimator = self.table(), clone(self.estimator)
        learned = estimator.fit(table.X, table.y) if self.learn is None else self.learn(estimator, table, folder)
        return learned if isinstance(learned, Fitted) else Fitted(learned, table.new_X, table.new_y)


def weighted(estimator: Any, table: Table, _: Path) -> Any:
    """Some rows have the weight 0."""
    return estimator.fit(table.X, table.y, sample_weight=table.weight)


def weighted_by_fractions(estimator: Any, table: Table, _: Path) -> Any:
    """No weight is a whole number."""
    return estimator.fit(table.X, table.y, sample_weight=0.3 + table.weight)


def with_eval_set(estimator: Any, table: Table, _: Path) -> Any:
    """The rows that are predicted also validate."""
    return estimator.fit(table.X, table.y, eval_set=(table.new_X, table.new_y))


def twice(estimator: Any, table: Table, _: Path) -> Any:
    """A first fit to some of the rows, which a warm start continues."""
    first = table.first(100)
    return estimator.fit(first.X, first.y).fit(table.X, table.y)


def in_parts(estimator: Any, table: Table, _: Path) -> Any:
    """One epoch of each part."""
    for k in range(0, len(table.y), 80):
        of_classes = {"classes": sorted(set(table.y))} if is_classifier(estimator) else {}
        estimator.partial_fit(table.X[k : k + 80], table.y[k : k + 80], **of_classes)
    return estimator


def one_tree_more(estimator: Any, table: Table, _: Path) -> Any:
    """A warm start adds a tree to a forest."""
    estimator.fit(table.X, table.y)
    return estimator.set_params(n_trees=estimator.n_trees + 1).fit(table.X, table.y)


def with_three_leaves(estimator: Any, table: Table, _: Path) -> Any:
    """A smaller tree, which the fit has found as well."""
    return estimator.fit(table.X, table.y).with_leaves(3)


def from_files(suffix: str, *, clusters: bool = False, **options: Any) -> Learn:
    """A fit to three files, in which y is the column "target" and the weights are the column "weight"."""

    def learn(estimator: Any, table: Table, folder: Path) -> Fitted:
        frame, new = (X.drop(columns="wait") for X in (table.X, table.new_X))  # CSV has no durations
        whole = frame.assign(target=table.y, weight=0.5 + table.weight)
        for k, rows in enumerate(np.array_split(np.arange(len(whole)), 3)):
            _write(whole.iloc[rows].reset_index(drop=True), folder / f"part{k}{suffix}")
        named = {"columns": list(frame)} if clusters else {"target": "target", "weight": "weight"}
        files = FileTable(folder / f"part*{suffix}", **named, **options)
        return Fitted(estimator.fit(files), new, table.new_y, files)

    return learn


def _write(frame: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    else:
        frame.to_parquet(path, index=False, row_group_size=100)
