"""The tables of the corpus: a few hundred rows from fixed seeds, and rows that no fit sees."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

__all__ = [
    "Table",
    "binary",
    "costs",
    "counts",
    "groups",
    "missing",
    "mixed",
    "mixed_classes",
    "numbers",
    "polars",
    "sparse_costs",
    "three_classes",
    "two_outputs",
    "wide",
]

Doubles = npt.NDArray[np.float64]

NEW = 40
"""Number of rows that no fit sees."""


@dataclass(frozen=True)
class Table:
    """Rows to learn from, and rows to predict."""

    X: Any
    y: Any
    weight: Doubles
    """Weights of the rows to learn from: 0, 1 or 2."""
    new_X: Any  # noqa: N815
    new_y: Any

    def first(self, n: int) -> "Table":
        """The first rows to learn from alone."""
        return replace(self, X=self.X[:n], y=self.y[:n], weight=self.weight[:n])


def _matrix(n: int = 240) -> Doubles:
    """Numbers of several kinds: bell-shaped, correlated, whole, and one with large values."""
    random = np.random.default_rng(1)
    x = random.normal(size=(n + NEW, 5))
    x[:, 2] = 0.6 * x[:, 2] + 0.8 * x[:, 0]
    x[:, 3] = np.floor(3 * np.abs(x[:, 3]))
    x[:, 4] = np.exp(x[:, 4])
    return x


def _values(x: Doubles) -> Doubles:
    noise = np.random.default_rng(2).normal(size=len(x))
    values: Doubles = x[:, 0] * x[:, 1] + np.abs(x[:, 2]) + 0.5 * np.minimum(x[:, 3], 4) + 0.1 * noise
    return values


def _labels(values: Doubles, names: tuple[str, ...]) -> npt.NDArray[Any]:
    """Classes of about equal sizes, in the order of the values."""
    found: npt.NDArray[Any] = np.array(names)[values.argsort().argsort() * len(names) // len(values)]
    return found


def _split(X: Any, y: Any) -> Table:  # noqa: N803
    n = len(y) - NEW
    weight = np.random.default_rng(3).integers(0, 3, n).astype(np.float64)
    return Table(X[:n], y[:n], weight, X[n:], y[n:])


def _from_matrix(of_rows: Callable[[Doubles], Any], n: int = 240) -> Table:
    x = _matrix(n)
    return _split(x, of_rows(x))


def numbers(n: int = 240) -> Table:
    """One number to predict."""
    return _from_matrix(_values, n)


def two_outputs() -> Table:
    """Two numbers to predict, of different sizes."""
    return _from_matrix(lambda x: np.column_stack((_values(x), 100 * _values(x[:, ::-1]))))


def binary(n: int = 240) -> Table:
    """Two classes, which are strings."""
    return _from_matrix(lambda x: _labels(_values(x), ("no", "yes")), n)


def three_classes() -> Table:
    """Three classes, the largest with half of the rows."""
    return _from_matrix(lambda x: _labels(_values(x), ("low", "middle", "high", "high")))


def _rates(x: Doubles) -> Doubles:
    rates: Doubles = np.exp(0.5 * x[:, 0] + 0.4 * (x[:, 1] > 0) * x[:, 3])
    return rates


def counts() -> Table:
    """Counts to predict."""
    return _from_matrix(lambda x: np.random.default_rng(4).poisson(_rates(x)))


def costs() -> Table:
    """Positive costs to predict."""
    return _from_matrix(lambda x: np.random.default_rng(5).gamma(2.0, _rates(x)))


def sparse_costs() -> Table:
    """Costs to predict, many of which are 0."""
    return _from_matrix(lambda x: np.random.default_rng(6).gamma(1.0, _rates(x)) * (x[:, 4] > 1))


def missing() -> Table:
    """Numbers some of which are missing, from a column that is then known to matter."""
    table = numbers()
    random = np.random.default_rng(7)
    holes, new_holes = (random.random(np.shape(X)) < 0.15 for X in (table.X, table.new_X))
    x, new_x = np.where(holes, np.nan, table.X), np.where(new_holes, np.nan, table.new_X)
    return replace(table, X=x, y=table.y + 2 * holes[:, 1], new_X=new_x, new_y=table.new_y + 2 * new_holes[:, 1])


def wide() -> Table:
    """More columns than rows to learn from; few of them tell anything."""
    table = numbers(100)
    noise = np.random.default_rng(11).normal(size=(100 + NEW, 140))
    return replace(table, X=np.hstack((table.X, noise[:100])), new_X=np.hstack((table.new_X, noise[100:])))


def groups() -> Table:
    """Four groups of rows, for clusters; y is the group."""
    random = np.random.default_rng(8)
    group = random.integers(0, 4, 240 + NEW)
    centers = random.normal(size=(4, 5)) * [4, 3, 2, 1, 0]
    return _split(centers[group] + random.normal(size=(len(group), 5)), group)


def _frame(n: int) -> pd.DataFrame:
    """Columns of all kinds, some values of which are missing: more than one of them carries the target."""
    random = np.random.default_rng(9)
    n += NEW
    color = random.choice(["red", "green", "blue", "violet, or pink"], n).astype(object)
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900 * 24, n), unit="h")
    frame = pd.DataFrame(
        {
            "size": np.round(random.normal(size=n), 2),
            "count": random.integers(0, 9, n),
            "color": pd.Categorical(color),
            "grade": pd.Categorical(random.choice(["bad", "fair", "good"], n), ["bad", "fair", "good"], ordered=True),
            "member": random.random(n) < 0.5,
            "since": since,
            "shop": [f"shop {k}" for k in random.integers(0, 40, n)],
            "wait": pd.to_timedelta(random.integers(0, 90, n), unit="min"),
        }
    )
    for column, step in (("size", 7), ("color", 11), ("since", 13), ("shop", 17)):
        frame.loc[frame.index % step == 3, column] = None
    return frame


def _of_frame(frame: pd.DataFrame) -> Doubles:
    """What the columns of the frame tell."""
    shop = frame["shop"].str.removeprefix("shop ").astype(float).fillna(20)
    values: Doubles = (
        frame["size"].fillna(1.5) * np.where(frame["member"], 2, -1)
        + 2.0 * (frame["color"] == "red")
        + frame["grade"].cat.codes
        + 1.5 * (frame["since"].dt.dayofweek > 4)
        + 0.1 * shop
    ).to_numpy(dtype=np.float64)
    return values + 0.1 * np.random.default_rng(10).normal(size=len(frame))


def _mixed(of_values: Callable[[Doubles], Any], n: int = 240) -> Table:
    """The last rows have a shop that no fit sees, and lack numbers that are never missing in a fit."""
    frame = _frame(n)
    table = _split(frame, of_values(_of_frame(frame)))
    new = table.new_X.astype({"count": float})
    new.loc[new.index[1:5], "count"] = np.nan
    new.loc[new.index[2:9], "shop"] = "elsewhere"
    return replace(table, new_X=new)


def mixed(n: int = 240) -> Table:
    """A frame of numbers, categories, booleans and dates, and a number to predict."""
    return _mixed(lambda values: values, n)


def mixed_classes() -> Table:
    """The same frame, and three classes to predict."""
    return _mixed(partial(_labels, names=("low", "middle", "high")))


def polars() -> Table:
    """The same frame as one of polars."""
    table = mixed()
    return replace(table, X=pl.from_pandas(table.X), new_X=pl.from_pandas(table.new_X))
