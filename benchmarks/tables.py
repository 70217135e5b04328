"""The data: which tables there are, and how one is read and split."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.published import PUBLISHED

__all__ = ["Part", "Rows", "Split", "TableInfo", "read_index", "read_split", "split_rows"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TableInfo:
    """A table of the index."""

    name: str
    file: str
    is_regression: bool
    rows: int
    features: int
    categorical: tuple[str, ...]

    @property
    def task(self) -> str:
        """Regression or classification."""
        return "regression" if self.is_regression else "classification"


@dataclass(frozen=True)
class Part:
    """Some rows of a table."""

    x: pd.DataFrame
    y: npt.NDArray[Any]
    """Targets: numbers, or class numbers from 0."""


@dataclass(frozen=True)
class Split:
    """A table in three parts. Only the final score of a method may look at `test`."""

    train: Part
    valid: Part
    test: Part
    n_classes: int
    """0 for regression."""


def read_index(folder: Path) -> dict[str, TableInfo]:
    """The tables of the benchmark: the published regression sets, then all sets with classes."""
    index = json.loads((folder / "index.json").read_text())
    names = [*PUBLISHED, *(name for name, entry in index.items() if entry["task"] != "regression")]
    return {name: _info(name, index[name]) for name in names}


def read_split(folder: Path, info: TableInfo, seed: int) -> Split:
    """60 % to train, 20 % to validate, 20 % to test, with equal shares of the classes; the seed shuffles.

    Numbers to predict are scaled to mean 0 and variance 1 by the training part: options of CART and XGBoost are
    absolute, and some of these targets vary by 0.0004. R^2 means the same.
    """
    table = pd.read_csv(
        folder / info.file,
        dtype=dict.fromkeys(info.categorical, "category"),
        keep_default_na=False,
        na_values=[""],
    )
    x = table.drop(columns="target")
    x.columns = [f"x{i}" for i in range(x.shape[1])]  # XGBoost and LightGBM refuse some characters in names
    y = table["target"].to_numpy(dtype=float) if info.is_regression else pd.factorize(table["target"], sort=True)[0]
    train, valid, test = split_rows(None if info.is_regression else y, len(y), seed)
    if info.is_regression:
        y = (y - y[train].mean()) / y[train].std()
    parts = [Part(x.iloc[rows].reset_index(drop=True), y[rows]) for rows in (train, valid, test)]
    return Split(parts[0], parts[1], parts[2], 0 if info.is_regression else int(y.max()) + 1)


def split_rows(classes: npt.NDArray[Any] | None, n: int, seed: int) -> tuple[Rows, Rows, Rows]:
    """Rows to train, 60 % of n, to validate and to test, with equal shares of the classes, if there are any."""

    def cut(rows: Rows, share: float) -> tuple[Rows, Rows]:
        stratify = None if classes is None else classes[rows]
        first, second = train_test_split(rows, test_size=share, random_state=seed, stratify=stratify)
        return first, second

    rest, test = cut(np.arange(n), 0.2)
    train, valid = cut(rest, 0.25)
    return train, valid, test


def _info(name: str, entry: dict[str, Any]) -> TableInfo:
    return TableInfo(
        name=name,
        file=entry["file"],
        is_regression=entry["task"] == "regression",
        rows=entry["rows"],
        features=entry["features"],
        categorical=tuple(entry["categorical"]),
    )
