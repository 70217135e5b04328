"""Fitted trees of every kind, with rows to show: what renderers tell of them is compared with what they predict."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from prunus import (
    ArgminTreeClassifier,
    ArgminTreeClusterer,
    ArgminTreeRegressor,
    ReadableTreeClassifier,
    ReadableTreeRegressor,
)
from tests.estimators import readable_problems as readable
from tests.estimators.problems import as_pandas, labels, mixed, table, values

X = pd.DataFrame(
    table(150, 4) * [1.0, 100.0, 0.01, 1.0] + [0.0, 5000.0, 1.0, 0.0], columns=["age", "rooms", "tax", "size"]
)
STONES = readable.stones(200)
TASKS = ("numbers", "log", "two", "logit", "three", "pairs")


def target(task: str) -> npt.NDArray[Any]:
    """Values, positive values, classes, or two columns of values."""
    y = values(table(150, 4))
    found = {"numbers": 10 * y + 50, "log": np.exp(y / 2), "pairs": np.column_stack([y, 3 - y])}
    names = ("no", "yes") if task in ("two", "logit") else ("red", "green", "blue")
    return found[task] if task in found else labels(table(150, 4), names)


@cache
def tree(task: str, leaf: str = "constant", routing: str = "soft", **options: Any) -> Any:
    """A tree of depth 2 that learns a task."""
    chosen: Any = {"leaf": leaf, "routing": routing, "depth": 2, "max_epochs": 15, "random_state": 0} | options
    if task in ("numbers", "log", "pairs"):
        return ArgminTreeRegressor(loss="gamma" if task == "log" else "squared_error", **chosen).fit(X, target(task))
    loss = "binary_cross_entropy" if task == "logit" else "cross_entropy"
    return ArgminTreeClassifier(loss=loss, **chosen).fit(X, target(task))


def predicted(estimator: Any, frame: Any) -> npt.NDArray[np.float64]:
    """Probabilities or values, (n, k)."""
    is_classes = hasattr(estimator, "predict_proba")
    found = estimator.predict_proba(frame) if is_classes else estimator.predict(frame)
    return np.asarray(found, dtype=np.float64).reshape(len(frame), -1)


EDGES = [
    *("1969-12-31 23:59", "2000-02-29 00:00", "2100-03-01 13:00", "1900-02-28", "1900-03-01", "1970-01-01"),
    *("1969-12-31 23:59:59.999999", "2024-02-29", "2024-12-31 23:59:59", "2025-01-01", "2100-02-28 12:00"),
]
"""Dates before 1970, and at the ends of years, of February and of centuries."""


def dates() -> tuple[pd.DataFrame, Any, pd.DataFrame]:
    """Dates whose weekdays, months and hours matter, and others: missing ones, before 1970, of leap years."""
    random = np.random.default_rng(0)
    sold = pd.Series(pd.Timestamp("2021-11-01") + pd.to_timedelta(random.integers(0, 26_000, size=1500), unit="h"))
    frame = pd.DataFrame({"sold": sold, "size": random.normal(size=1500)})
    y = 10 + 3.0 * (sold.dt.day_of_week >= 5) + np.cos(sold.dt.month / 2) + np.sin(sold.dt.hour / 4)
    y = y + 0.3 * frame["size"] + 0.2 * random.normal(size=1500)
    frame.loc[::20, "sold"] = pd.NaT
    odd = pd.to_datetime(EDGES, format="ISO8601")
    return frame, y.to_numpy(), pd.concat([frame[:40], pd.DataFrame({"sold": odd, "size": 0.5})], ignore_index=True)


def towns() -> tuple[pd.DataFrame, Any, pd.DataFrame]:
    """A category of so many levels that most only have effects, and rows with unseen and missing levels."""
    random = np.random.default_rng(0)
    codes = random.integers(60, size=600)
    names = [None if c == 7 else "constructor" if c == 9 else f"town {c}" for c in codes]
    frame = pd.DataFrame({"town": np.array(names, dtype=object), "size": random.normal(size=600)})
    y = 10 + random.normal(size=60)[codes] + 0.3 * frame["size"].to_numpy() + 0.3 * random.normal(size=600)
    odd = pd.DataFrame({"town": ["__proto__", None, "constructor"], "size": [0.5, -0.5, 0.0]})
    return frame, y, pd.concat([frame[:40], odd], ignore_index=True)


def of_frame(frame: pd.DataFrame, y: Any, **options: Any) -> Any:
    return ArgminTreeRegressor(**{"depth": 2, "max_epochs": 30, "random_state": 0} | options).fit(frame, y)


@dataclass(frozen=True)
class Example:
    """A fitted tree and rows that are shown."""

    fit: Callable[[], tuple[Any, pd.DataFrame]]
    rows: tuple[int, ...] = (0, 41)
    change: dict[str, Any] | None = None
    """Values that are entered for the last of these rows."""
    computed: bool = True
    """Whether the page computes predictions, not Python alone."""
    exact: float = 3e-6
    """Relative to the largest prediction: the page has weights in single precision, and adds in double precision."""


def _of_task(task: str, leaf: str = "constant", routing: str = "soft", **options: Any) -> Example:
    computed = "mlp" not in (leaf, options.get("split"))
    return Example(lambda: (tree(task, leaf, routing, **options), X), change={"rooms": 5100.0}, computed=computed)


def _of_mixed(**options: Any) -> Example:
    frame = as_pandas(mixed(80))
    y = frame["count"] ** 2 + 20.0 * (frame["color"] == "red") + 10.0 * frame["member"]
    return Example(lambda: (of_frame(frame, y, **options), frame), (3, 5, 7, 20), {"size": 0.25})


def _of(made: Callable[[], tuple[pd.DataFrame, Any, pd.DataFrame]], change: Any, **options: Any) -> Example:
    return Example(lambda: (of_frame(*made()[:2], **options), made()[2]), (0, 5, 40, 41, 42), change)


def _of_readable() -> dict[str, Example]:
    noisy = readable.values(STONES) + np.random.default_rng(0).normal(size=len(STONES))
    letters = readable.classes(STONES, "abc")
    made: dict[str, Callable[[], Any]] = {
        "searched values": lambda: ReadableTreeRegressor(max_leaf_nodes=5, random_state=0).fit(STONES, noisy),
        "searched classes": lambda: ReadableTreeClassifier(max_leaf_nodes=5, random_state=0).fit(STONES, letters),
        **{name: lambda found=found: found for name, found in readable.examples().items()},  # type: ignore[misc]
        **{
            name: lambda split=split: readable.fitted(readable.tree_of(split))  # type: ignore[misc]
            for name, split in readable.SPLITS.items()
        },
    }
    return {
        f"readable, {name}": Example(lambda fit=fit: (fit(), STONES), (0, 13, 39), {"size": 1.75}, exact=1e-12)  # type: ignore[misc]
        for name, fit in made.items()
    }


EXAMPLES: dict[str, Example] = {
    **{f"{task}, constant": _of_task(task) for task in ("numbers", "two", "three")},
    **{f"{task}, hard": _of_task(task, routing="hard") for task in ("log", "logit")},
    **{f"{task}, linear": _of_task(task, "linear") for task in ("numbers", "log", "logit", "three", "pairs")},
    **{f"{task}, linear, hard": _of_task(task, "linear", "hard") for task in ("numbers", "two", "three")},
    **{f"{task}, additive": _of_task(task, "additive") for task in ("numbers", "two", "pairs")},
    **{f"{task}, additive, hard": _of_task(task, "additive", "hard", pieces=3) for task in ("log", "three")},
    "single columns": _of_task("numbers", routing="hard", max_split_features=1),
    "exponential units": _of_task("numbers", "linear", split="elu"),
    "networks in splits": _of_task("three", "additive", split="mlp"),
    "networks in leaves": _of_task("numbers", "mlp"),
    "networks": _of_task("numbers", "mlp", split="sparse_mlp"),
    "mixed, additive": _of_mixed(leaf="additive", pieces=4),
    "mixed, linear": _of_mixed(leaf="linear", routing="hard"),
    "dates, linear": _of(dates, {"sold": pd.Timestamp("2023-07-16 15:00")}, leaf="linear"),
    "dates, single columns": _of(dates, {"size": 0.75}, routing="hard", max_split_features=1),
    "towns, additive": _of(towns, {"size": 0.75}, leaf="additive", pieces=3),
    "towns, single columns": _of(towns, {"size": 0.75}, routing="hard", max_split_features=1),
    "clusters": Example(
        lambda: (ArgminTreeClusterer(depth=3, n_clusters=3, random_state=0).fit(X), X), change={"rooms": 5100.0}
    ),
    **_of_readable(),
}


@cache
def example(name: str) -> tuple[Any, pd.DataFrame]:
    """The fitted tree and the rows of an example."""
    return EXAMPLES[name].fit()
