"""Small random tables, and searches of them by the engine and by the reference."""

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from prunus import _core
from prunus.search.engine import bin_columns
from prunus.search.problem import Category, Number
from tests.search.reference import SearchNode, SearchRows, SearchTree

GREEDY: dict[str, Any] = {"rounds": 0}
KINDS = ("numbers", "several numbers", "two classes", "classes")


def job(n: int, **options: Any) -> dict[str, Any]:
    """What a search is asked for."""
    usual = {
        "rows": np.arange(n, dtype=np.int32),
        "leaves": 6,
        "terms": 1,
        "least": 1.0,
        "price": 0.0,
        "accuracy": 0.0,
        "cycles": 1,
        "rounds": 60,
        "polish": 200,
        "anneal": 40,
        "seed": 0,
        "slopes": [],
    }
    return usual | options


def arguments(rows: SearchRows) -> dict[str, Any]:
    """The arrays of the engine."""
    columns, k = rows.columns, rows.y.shape[1]
    labels = np.ascontiguousarray(rows.y.argmax(1), dtype=np.int32) if rows.is_classes and k > 2 else None
    targets = None if labels is not None else np.ascontiguousarray(rows.y[:, 1:] if rows.is_classes else rows.y)
    return {
        "bins": columns.bins,
        "bin_count": columns.bin_count,
        "is_category": columns.is_category,
        "values": columns.values,
        "edges": columns.edges,
        "weight": rows.weight,
        "targets": targets,
        "labels": labels,
        "outputs": k if targets is None else targets.shape[1],
        "is_share": rows.is_classes and k == 2,
    }


def search(table: SearchRows, **options: Any) -> tuple[SearchTree, float]:
    """The tree that the engine finds, and what it says that the tree is worth."""
    limits = {"least": table.least, "accuracy": table.accuracy, "slopes": list(table.slopes)}
    wanted = job(len(table.weight), **limits, **options)
    ((nodes, worth),) = _core.search(**arguments(table), jobs=[wanted], threads=1)
    tree = [None if node is None else SearchNode(*node) for node in nodes]
    return [node._replace(threshold=0.0) if node is not None and node.is_group else node for node in tree], worth


def random_rows(
    seed: int,
    n: int,
    *,
    numbers: int = 2,
    categories: int = 1,
    kind: str = "numbers",
    weighted: bool = False,
    **limits: Any,
) -> SearchRows:
    """A table with ties and missing values, and targets that depend on it a little."""
    random = np.random.default_rng(seed)
    columns: list[Number | Category] = []
    for _ in range(numbers):
        values = random.normal(size=n) if random.random() < 0.5 else random.integers(0, 4, n).astype(float)
        columns.append(Number(np.where(random.random(n) < random.choice([0, 0.2]), np.nan, values)))
    for _ in range(categories):
        levels = int(random.integers(1, 7))
        codes = np.where(random.random(n) < random.choice([0, 0.2]), -1, random.integers(0, levels, n))
        columns.append(Category(codes, tuple(map(str, range(levels))), ordered=bool(random.random() < 0.2)))
    first = columns[0]
    signal = first.codes if isinstance(first, Category) else np.nan_to_num(first.values)
    noisy = signal + random.normal(size=n)
    weight = random.choice([0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    return SearchRows(
        bin_columns(columns), weight, _targets(random, noisy, kind), is_classes="classes" in kind, **limits
    )


def _targets(random: np.random.Generator, noisy: npt.NDArray[np.float64], kind: str) -> npt.NDArray[np.float64]:
    if kind == "numbers":
        return noisy[:, None]
    if kind == "several numbers":
        return np.stack((noisy, random.normal(size=len(noisy)), -(noisy**2)), axis=1)
    count = 2 if kind == "two classes" else 4
    found: npt.NDArray[np.float64] = np.eye(count)[np.clip(np.round(noisy), 0, count - 1).astype(int)]
    return found


@st.composite
def tables(draw: st.DrawFn, *, smallest: int = 1, largest: int = 40) -> SearchRows:
    """Random rows of all kinds."""
    numbers, categories = draw(st.sampled_from([(1, 0), (0, 1), (2, 1), (3, 2)]))
    kind = draw(st.sampled_from(KINDS))
    accuracy = draw(st.sampled_from([0.0, 0.0, 0.3, 1.0])) if "classes" in kind else 0.0
    return random_rows(
        draw(st.integers(0, 10**6)),
        draw(st.integers(smallest, largest)),
        numbers=numbers,
        categories=categories,
        kind=kind,
        weighted=draw(st.booleans()),
        least=draw(st.sampled_from([0.5, 1.0, 2.5, 5.0])),
        accuracy=accuracy,
    )
