"""The way in: a set by its name, split, and prepared for the methods that are compared on it."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness.methods.interface import Task, is_table
from benchmarks.harness.sets.catalog import SETS, STAND_INS, note_of
from benchmarks.harness.sets.files import locate
from benchmarks.harness.sets.indexed import IndexEntry, read_indexed
from benchmarks.harness.sets.preprocessing import preprocess
from benchmarks.harness.sets.raw import RawTable, class_numbers
from benchmarks.harness.sets.readers import with_target
from benchmarks.harness.sets.sources import SOURCES
from benchmarks.harness.splits import Parts, RowNumbers, official_parts, shuffled_parts
from prunus.errors import InputValueError

__all__ = ["SPLIT_SEED", "Part", "SplitSet", "load_clusters", "load_scaled", "load_table", "read_raw"]

SPLIT_SEED = 459_107
"""The seed of the paper's splits."""


@dataclass(frozen=True)
class Part:
    """Some rows of a set."""

    x: Any
    y: npt.NDArray[Any]


@dataclass(frozen=True)
class SplitSet:
    """A set in three parts.

    Parameters
    ----------
    name : str
    task : {"classes", "values"}
    x : float32 array or DataFrame of shape (n, d)
        All rows.
    y : int64 array of class numbers from 0, or float64 array of values
    rows : Parts
        Which rows each part has.
    feature_names : list of str of length d, optional
    note : str, optional
        What differs from the paper's data; for readers of a table.
    """

    name: str
    task: Task
    x: Any
    y: npt.NDArray[Any]
    rows: Parts
    feature_names: list[str] = field(default_factory=list)
    note: str = ""

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 if values are predicted."""
        return int(self.y.max()) + 1 if self.task == "classes" else 0

    @cached_property
    def train(self) -> Part:
        """Rows to learn from."""
        return self._part(self.rows.train)

    @cached_property
    def valid(self) -> Part:
        """Rows to choose options and to stop early by."""
        return self._part(self.rows.valid)

    @cached_property
    def test(self) -> Part:
        """Rows for the final score alone."""
        return self._part(self.rows.test)

    def _part(self, rows: RowNumbers) -> Part:
        return Part(self.x.iloc[rows] if is_table(self.x) else self.x[rows], self.y[rows])


def read_raw(name: str, folder: str | Path | None = None) -> RawTable:
    """Read one of the paper's sets or of the tables that stand in for them: the keys of ``SETS`` and ``STAND_INS``.

    Parameters
    ----------
    name : str
    folder : str or Path, optional
        Searched for the files first; then the cache folder is, then the source is asked.
    """
    place = None if folder is None else Path(folder).expanduser()
    if place is not None and not place.is_dir():
        raise InputValueError(f"folder must be a folder, got {place}")
    if name in STAND_INS:
        info = STAND_INS[name]
        return with_target(read_indexed(name, place, keys=info.keys), info.task, info.keys, info.test_rows)
    if name in SETS:
        return SETS[name].read(locate(name, SOURCES[SETS[name].source], place))
    raise InputValueError(f"name must be one of {', '.join([*SETS, *STAND_INS])}, got {name!r}")


def load_scaled(
    name: str, folder: str | Path | None = None, *, seed: int = SPLIT_SEED, quantile: bool | None = None
) -> SplitSet:
    """A set as the paper's tables have it: numbers scaled by the training part, categories one-hot, float32.

    Parameters
    ----------
    name, folder
        See `read_raw`.
    seed : int, default=459107
        Of the parts that are not official, and of what is random in preprocessing.
    quantile : bool, optional
        Whether numbers are scaled to a normal distribution by their quantiles, or to z-scores. By default as in the
        paper: true for the five large sets and those that stand in for them.
    """
    table = read_raw(name, folder)
    if quantile is None:
        quantile = name in STAND_INS or SETS[name].quantile
    rows = official_parts(table, seed)
    x, names = preprocess(table, rows.train, quantile=quantile, seed=seed)
    return SplitSet(name, table.task, x, table.y, rows, names, note_of(name))


def load_table(folder: Path, entry: IndexEntry, seed: int) -> SplitSet:
    """A table as the benchmark of accuracy has it: a DataFrame with categories and missing values.

    Numbers to predict are scaled to mean 0 and variance 1 by the training part: options of CART and XGBoost are
    absolute, and some of these targets vary by 0.0004. R^2 means the same.
    """
    table = read_indexed(entry.name, folder)
    x = table.drop(columns="target")
    x.columns = [f"x{i}" for i in range(x.shape[1])]  # XGBoost and LightGBM refuse some characters in names
    if entry.task == "classes":
        y = class_numbers(table["target"])
        return SplitSet(entry.name, "classes", x, y, shuffled_parts(y, len(y), seed))
    y = table["target"].to_numpy(dtype=np.float64)
    rows = shuffled_parts(None, len(y), seed)
    return SplitSet(entry.name, "values", x, (y - y[rows.train].mean()) / y[rows.train].std(), rows)


def load_clusters(name: str, folder: Path, seed: int) -> SplitSet:
    """A set whose rows are clustered, in the units of its source; the classes only score.

    Parameters
    ----------
    name : str
        Of the paper's sets, or of a table in the index of the folder.
    folder : Path
    seed : int
    """
    if name in SETS:
        raw = read_raw(name, folder)
        x, y = raw.numbers, raw.y
    else:
        table = read_indexed(name, folder)
        x, y = table.drop(columns="target"), class_numbers(table["target"])
    if (x.dtypes == np.float32).all():
        x = np.ascontiguousarray(x.to_numpy())  # without names, as Covtype's columns are named by their numbers
    return SplitSet(name, "classes", x, y, shuffled_parts(y, len(y), seed))
