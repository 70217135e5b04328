"""Readable trees that are made by hand, with every form of split and leaf, and estimators that have them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pandas as pd

from prunus import ReadableTreeClassifier, ReadableTreeRegressor, search
from prunus.search.predict import find_leaves
from prunus.search.problem import FamilyMember, Found, Limits, Problem
from prunus.search.record import Leaf, LeafFormula, NodeRows, ReadableRecord, Split, Term

Doubles = npt.NDArray[np.float64]

SIZE, AGE, COLOR, CLARITY, MEMBER, SINCE = range(6)
"""The columns of `stones`."""


def stones(n: int = 400, *, seed: int = 0) -> pd.DataFrame:
    """Numbers of few digits, which often lie at thresholds, whole numbers, categories, booleans and dates."""
    random = np.random.default_rng(seed)
    size = (random.integers(0, 60, n) / 10).astype(object)
    color = random.choice(["D", "E", "F", "rosy, or pink"], n).astype(object)
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n), unit="D")
    size[::17], color[::13] = None, None
    return pd.DataFrame(
        {
            "size": size.astype(float),
            "age": random.integers(18, 80, n),
            "color": color,
            "clarity": random.choice(["IF", "SI", "VS"], n),
            "member": random.random(n) < 0.5,
            "since": since,
        }
    )


def values(frame: pd.DataFrame) -> Doubles:
    """A value for each row."""
    base: Doubles = 2 * frame["size"].fillna(3).to_numpy() + 0.1 * frame["age"].to_numpy()
    return base + 5.0 * np.asarray(frame["color"] == "E")


def classes(frame: pd.DataFrame, names: Any = ("no", "yes")) -> npt.NDArray[Any]:
    """Classes of about equal sizes."""
    order = values(frame).argsort(kind="stable").argsort(kind="stable")
    found: npt.NDArray[Any] = np.array(list(names))[order * len(names) // len(frame)]
    return found


def constant(*outputs: float) -> Leaf:
    return Leaf(tuple(map(LeafFormula, outputs)))


def level_of(*levels: str, of: int = COLOR, weight: float = 1.0, missing: float = 0.0) -> Term:
    return Term(of, weight, levels, missing)


def tree_of(split: Split, *leaves: Leaf) -> ReadableRecord:
    """A tree with one split."""
    return ReadableRecord({0: split}, dict(enumerate(leaves or (constant(1.5), constant(20.25)), start=1)))


SPLITS = {
    "number": Split((Term(AGE, 1.0),), 40.0),
    "number with missing": Split((Term(SIZE, 1.0),), 2.5, missing_left=True),
    "small number": Split((Term(SIZE, 1.0),), 1.2e-7),
    "boolean": Split((Term(MEMBER, 1.0),), 0.5),
    "date": Split((Term(SINCE, 1.0),), float(pd.Timestamp("2021-03-04 12:30:15").timestamp())),
    "day": Split((Term(SINCE, 1.0),), float(pd.Timestamp("2021-03-04").timestamp())),
    "is missing": Split((Term(SIZE, 1.0),), -np.inf, missing_left=True),
    "one of two is missing": Split((Term(SIZE, 1.0), Term(AGE, 1.0)), np.inf),
    "level": Split((level_of("E"),), 0.5),
    "levels and missing": Split((level_of("E", "rosy, or pink", missing=1.0),), 0.5),
    "two numbers": Split((Term(SIZE, 1.0), Term(AGE, 0.072)), 5.4, missing_left=True),
    "difference": Split((Term(AGE, 1.0), Term(SIZE, -7.25)), 12345.5 / 400),
    "number and levels": Split((Term(SIZE, 1.0), level_of("E", "F", weight=1.7)), 3.2),
    "number and levels, and missing": Split((Term(SIZE, 1.0), level_of("E", weight=-0.3, missing=1.0)), 3.2, True),
    "levels and number": Split((level_of("E", "F"), Term(SIZE, -0.3)), 0.25),
    "number at a rounding error": Split((Term(SIZE, 1.0), level_of("E", weight=0.1)), 0.8),
    "number and boolean": Split((Term(SIZE, 1.0), Term(MEMBER, 1.4)), 3.2),
    "any of two groups": Split((level_of("E", missing=1.0), level_of("IF", of=CLARITY)), 0.5),
    "both of two groups": Split((level_of("E", "F"), level_of("IF", "SI", of=CLARITY)), 1.5),
    "two groups as a sum": Split((level_of("E"), level_of("IF", of=CLARITY, weight=-1.0)), 0.5),
    "three columns": Split((Term(SIZE, 1.0), Term(AGE, 0.05), level_of("D", weight=-2.5)), 4.1),
}
"""One split of each form; thresholds are values of rows where that is possible."""


def record_of_values() -> ReadableRecord:
    """A tree with many forms of splits and constant leaves."""
    splits = {
        0: SPLITS["two numbers"],
        1: SPLITS["levels and missing"],
        2: SPLITS["number and levels"],
        4: SPLITS["number with missing"],
        5: SPLITS["both of two groups"],
        6: SPLITS["day"],
    }
    leaves = {3: 1.5, 9: 20.25, 10: -3.0, 11: 1234.5, 12: 0.125, 13: 7.0, 14: 8.3}
    return ReadableRecord(splits, {t: constant(value) for t, value in leaves.items()})


def record_of_formulas() -> ReadableRecord:
    """A tree whose leaves have formulas."""
    first = LeafFormula(1.25, (Term(SIZE, 2.5, missing=3.0), level_of("E", weight=-4.0)), -2.0, 14.0)
    second = LeafFormula(-10.0, (Term(AGE, 0.5), Term(MEMBER, 3.0)), low=3.5)
    return ReadableRecord(
        {0: SPLITS["number"], 2: SPLITS["level"]}, {1: Leaf((first,)), 5: Leaf((second,)), 6: constant(7)}
    )


def record_of_two_classes() -> ReadableRecord:
    """Two classes: probabilities in two leaves, a formula in the third."""
    odds = LeafFormula(-1.5, (Term(SIZE, 0.75, missing=2.0), level_of("IF", of=CLARITY, weight=-1.0)), -3.0, 4.0)
    return ReadableRecord(
        {0: SPLITS["number and levels"], 1: SPLITS["number"]},
        {3: constant(0.97, 0.03), 4: Leaf((odds,)), 2: constant(0.125, 0.875)},
    )


def record_of_three_classes(*, formulas: bool = False) -> ReadableRecord:
    """Three classes, with constant probabilities or a leaf with scores."""
    last = constant(0.0, 0.013, 0.987)
    if formulas:
        scores = [
            LeafFormula(c, (Term(SIZE, w, missing=1.0),), -5.0, 5.0) for c, w in ((0.5, 1.0), (1.0, -0.5), (0.0, 0.0))
        ]
        last = Leaf(tuple(scores))
    splits = {0: SPLITS["any of two groups"], 2: SPLITS["two numbers"]}
    return ReadableRecord(splits, {1: constant(0.9, 0.07, 0.03), 5: constant(0.2, 0.5, 0.3), 6: last})


def with_rows(record: ReadableRecord, problem: Problem) -> ReadableRecord:
    """The record, with what it says of the rows of a problem."""
    leaves = find_leaves(record, problem.columns)
    y = np.eye(problem.n_classes)[problem.y] if problem.n_classes else problem.y
    weight = np.ones(len(y)) if problem.weight is None else problem.weight
    found = {}
    for t in (*record.splits, *record.leaves):
        above = leaves + 1
        while (above > t + 1).any():
            above = np.where(above > t + 1, above // 2, above)
        here = above == t + 1
        own = weight[here]
        mean = np.average(y[here], axis=0, weights=own) if own.any() else np.zeros(y.shape[1])
        spread = np.average((y[here] - mean) ** 2, axis=0, weights=own) ** 0.5 if own.any() else np.zeros(y.shape[1])
        listed = () if problem.n_classes else tuple(spread.tolist())
        found[t] = NodeRows(float(own.sum()), tuple(mean.tolist()), listed)
    return replace(record, rows=found)


@contextmanager
def finding(record: ReadableRecord) -> Iterator[None]:
    """A search that finds this tree, whatever it is given."""

    def find_tree(problem: Problem, limits: Limits, **_: Any) -> Found:
        known = with_rows(record, problem)
        y = problem.y
        whole = (
            constant(*np.bincount(y, minlength=problem.n_classes) / len(y))
            if problem.n_classes
            else constant(*y.mean(0))
        )
        stump = with_rows(ReadableRecord({}, {0: whole}), problem)
        family = (FamilyMember(1, 0.25, 0.0625, stump), FamilyMember(known.n_leaves, 0.5, 0.125, known))
        return Found(known, family, {"max_leaf_nodes": limits.max_leaf_nodes})

    with patch.object(search, "find_tree", find_tree, create=True):
        yield


def fitted(record: ReadableRecord, X: Any = None, y: Any = None, **options: Any) -> Any:  # noqa: N803
    """An estimator whose fit has found this tree; without y, one of numbers."""
    X = stones() if X is None else X  # noqa: N806
    y = values(X) if y is None else y
    kind = ReadableTreeRegressor if np.asarray(y).dtype.kind == "f" else ReadableTreeClassifier
    with finding(record):
        return kind(random_state=0, **options).fit(X, y)


def examples() -> dict[str, Any]:
    """Fitted estimators with every form of leaf."""
    X = stones()  # noqa: N806
    return {
        "values": fitted(record_of_values()),
        "formulas": fitted(record_of_formulas()),
        "two classes": fitted(record_of_two_classes(), X, classes(X)),
        "three classes": fitted(record_of_three_classes(), X, classes(X, ("a", "b", "c"))),
        "scores": fitted(record_of_three_classes(formulas=True), X, classes(X, (1, 2, 3))),
        "two outputs": fitted(
            ReadableRecord(
                record_of_formulas().splits, {1: constant(1.5, -2.0), 5: constant(0.0, 3e6), 6: constant(-7, 8)}
            ),
            X,
            np.stack((values(X), -values(X)), axis=1),
        ),
        "one leaf": fitted(ReadableRecord({}, {0: constant(4.125)})),
    }
