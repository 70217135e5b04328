"""The data of the clustering benchmark: how a set is read and split."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.tables import Rows, split_rows

__all__ = ["SETS", "Clusters", "SetInfo", "read_clusters"]

GLASS = ["Id", "RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe", "Type"]


@dataclass(frozen=True)
class Clusters:
    """A set whose rows are to be clustered. The classes only score; `test` is for the score alone as well."""

    x: Any
    """DataFrame, or float32 array, of shape (n, features)."""
    y: npt.NDArray[np.int64]
    """Class numbers from 0."""
    train: Rows
    valid: Rows
    test: Rows

    def part(self, rows: Rows) -> Any:
        """Some rows of x."""
        return self.x.iloc[rows] if isinstance(self.x, pd.DataFrame) else self.x[rows]


@dataclass(frozen=True)
class SetInfo:
    """A set of the benchmark."""

    name: str
    rows: int
    read: Callable[[Path], tuple[Any, Any]]
    """From the folder of the data: the features and the classes."""


def read_clusters(folder: Path, name: str, seed: int) -> Clusters:
    """The set, with the seed's split: that of the accuracy benchmark."""
    x, classes = SETS[name].read(folder)
    y = np.unique(np.asarray(classes), return_inverse=True)[1].astype(np.int64)
    return Clusters(x, y, *split_rows(y, len(y), seed))


def _read_glass(folder: Path) -> tuple[Any, Any]:
    table = pd.read_csv(folder / "raw" / "glass.data", header=None, names=GLASS)
    return table.drop(columns=["Id", "Type"]), table["Type"]


def _read_covtype(folder: Path) -> tuple[Any, Any]:
    table = pd.read_csv(folder / "raw" / "covtype.data.xz", header=None, dtype=np.float32).to_numpy()
    return np.ascontiguousarray(table[:, :-1]), table[:, -1]


def _read_indexed(name: str, folder: Path) -> tuple[Any, Any]:
    table = pd.read_csv(folder / f"{name}.csv.gz")
    return table.drop(columns="target"), table["target"]


SETS = {
    info.name: info
    for info in (
        SetInfo("glass", 214, _read_glass),
        SetInfo("satimage", 6_430, lambda folder: _read_indexed("satimage", folder)),
        SetInfo("letter", 20_000, lambda folder: _read_indexed("letter", folder)),
        SetInfo("covtype", 581_012, _read_covtype),
    )
}
"""Small ones first."""
