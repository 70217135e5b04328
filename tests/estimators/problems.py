"""Small tables, and estimators that learn from them in a moment."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from prunus import ArgminTreeClassifier, ArgminTreeRegressor
from prunus.fitting.training_options import nested

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]
Kind = TypeVar("Kind")

SPLITS = ("linear", "elu", "mlp", "sparse_mlp")
LEAVES = ("additive", "constant", "linear", "mlp")
KINDS = [*(("linear", leaf) for leaf in LEAVES), ("elu", "linear"), ("mlp", "additive"), ("sparse_mlp", "mlp")]
"""Every leaf with the splits that predictions have a kernel for, and every other split with another leaf."""


def table(n: int = 60, columns: int = 3, *, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(n, columns))


def values(x: Floats) -> Floats:
    """A product of two columns, the last one, and noise."""
    return x[:, 0] * x[:, 1] + x[:, -1] + 0.1 * np.random.default_rng(1).normal(size=len(x))


def labels(x: Floats, names: Any = (0, 1)) -> Labels:
    """Classes of equal sizes, by the sum of the columns."""
    order = x.sum(1).argsort().argsort()
    found: Labels = np.array(list(names))[order * len(names) // len(x)]
    return found


def made(kind: Callable[[], Kind], options: dict[str, Any]) -> Kind:
    """An estimator with these options, those of training among them."""
    estimator: Any = kind()
    estimator.set_params(**nested(options))
    found: Kind = estimator
    return found


def classifier(**options: Any) -> ArgminTreeClassifier:
    """A tree of depth 2 that is trained for 5 epochs, on all rows."""
    tree = ArgminTreeClassifier(depth=2, max_epochs=5, random_state=0)
    return tree.set_params(**nested(options))


def regressor(**options: Any) -> ArgminTreeRegressor:
    """A tree of depth 2 that is trained for 5 epochs, on all rows."""
    tree = ArgminTreeRegressor(depth=2, max_epochs=5, random_state=0)
    return tree.set_params(**nested(options))


def mixed(n: int = 40, *, seed: int = 0) -> dict[str, list[Any]]:
    """Columns of numbers, whole numbers, text, booleans and dates; some values are missing."""
    random = np.random.default_rng(seed)
    size = random.normal(size=n).tolist()
    color = random.choice(["red", "green", "blue"], size=n).tolist()
    since: list[Any] = [date(2020, 1, 1) + timedelta(days=int(days)) for days in random.integers(0, 1000, size=n)]
    for column, missing in ((size, 3), (color, 5), (since, 7)):
        column[missing] = None
    return {
        "size": size,
        "count": random.integers(0, 9, size=n).tolist(),
        "color": color,
        "member": (random.random(n) < 0.5).tolist(),
        "since": since,
    }


def as_pandas(columns: dict[str, list[Any]]) -> Any:
    frame = pd.DataFrame(columns)
    return frame.assign(since=pd.to_datetime(frame["since"]), color=frame["color"].astype("category"))


def as_polars(columns: dict[str, list[Any]]) -> pl.DataFrame:
    return pl.DataFrame(columns)


@contextmanager
def nothing_printed(capfd: Any) -> Iterator[None]:
    capfd.readouterr()
    yield
    assert capfd.readouterr() == ("", "")
