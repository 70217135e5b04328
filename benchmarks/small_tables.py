"""Tables of the benchmark of small trees: at most this many rows of each, and the parts that a seed draws."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.harness.sets.indexed import IndexEntry, read_indexed
from benchmarks.harness.sets.loading import Part
from benchmarks.harness.sets.raw import class_numbers

__all__ = ["MOST_ROWS", "Protocol", "SmallSplit", "load_small", "split_small"]

MOST_ROWS = 12_000
TEST_SHARE = 0.25
SAMPLE_SEED = 0
"""Of the rows of a large table; they are the same for all seeds of the splits."""
MISSING = -999.0
"""What a missing number is for methods that take none."""
RowNumbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Protocol:
    """Which rows of a table train a tree, and which score it."""

    rows: int = MOST_ROWS
    """Rows of a table, at most."""
    train_rows: int | None = None
    """Rows of the training part that are used, at most."""
    inner: bool = False
    """Whether a part of the training part scores, so that the test part is not looked at."""


@dataclass(frozen=True)
class SmallSplit:
    """A table in two parts."""

    task: str
    x: Any
    """DataFrame with categories and missing values."""
    y: npt.NDArray[Any]
    """Class numbers from 0, or values."""
    train_rows: RowNumbers
    test_rows: RowNumbers

    @cached_property
    def matrix(self) -> npt.NDArray[np.float64]:
        """All rows as numbers: a column for each level of a category, and -999 where a number is missing."""
        names = list(self.x.select_dtypes("category").columns)
        encoded = pd.get_dummies(self.x, columns=names).astype("float64").fillna(MISSING)
        return np.ascontiguousarray(encoded.to_numpy())

    def train(self, *, as_table: bool) -> Part:
        """Rows to learn from."""
        return self._part(self.train_rows, as_table)

    def test(self, *, as_table: bool) -> Part:
        """Rows that score."""
        return self._part(self.test_rows, as_table)

    def _part(self, rows: RowNumbers, as_table: bool) -> Part:
        return Part(self.x.iloc[rows] if as_table else self.matrix[rows], self.y[rows])


def load_small(folder: Path, entry: IndexEntry, rows: int, cache: Path | None = None) -> Any:
    """A table with at most this many of its rows; kept in the cache folder, as large files take seconds to read."""
    path = None if cache is None else cache / f"{entry.name}-{rows}-{(entry.sha256 or '')[:12]}.pkl"
    if path is not None and path.exists():
        return pd.read_pickle(path)
    table = read_indexed(entry.name, folder)
    table = table.sample(min(rows, len(table)), random_state=SAMPLE_SEED)
    if path is not None and entry.sha256:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{np.random.default_rng().integers(1 << 62)}")  # others may write it as well
        table.to_pickle(draft)
        draft.replace(path)
    return table


def split_small(table: Any, entry: IndexEntry, seed: int, protocol: Protocol) -> SmallSplit:
    """The parts of a table: three quarters of its rows, or of those of the training part, to train; classes in equal
    shares, unless one has a single row.
    """
    classes = table["target"].astype(str).to_numpy() if entry.task == "classes" else None
    train, test = _cut(np.arange(len(table)), classes, seed)
    if protocol.inner:
        train, test = _cut(train, classes, seed)
    y = class_numbers(classes) if classes is not None else table["target"].to_numpy(dtype=np.float64)
    task = "classification" if classes is not None else "regression"
    return SmallSplit(task, table.drop(columns="target"), y, train[: protocol.train_rows], test)


def _cut(rows: RowNumbers, classes: npt.NDArray[Any] | None, seed: int) -> tuple[RowNumbers, RowNumbers]:
    labels = None if classes is None else classes[rows]
    if labels is not None and np.unique(labels, return_counts=True)[1].min() < 2:
        labels = None
    first, second = train_test_split(rows, test_size=TEST_SHARE, random_state=seed, stratify=labels)
    return first, second
