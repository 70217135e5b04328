"""Random readable trees over a table of mixed columns, drawn by hypothesis; rows often lie exactly at thresholds."""

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from prunus.search.columns import learn_columns
from prunus.search.predict import split_sums
from prunus.search.record import Leaf, LeafFormula, ReadableRecord, Split, Term
from tests.estimators.readable_problems import classes, fitted

WEIGHTS = (0.3, -0.07, 1.7, -2.5, 1e-7, -1234.5, 1 / 3)
COLORS = ("D", "E", "o'blue", "rosy, or pink", 'g"')
SIZES = ("IF", "SI", "", "ß")
NAMES = ("size", "count", "color", 'x"; DROP', "member", "since", "took")
CATEGORIES = {2: COLORS, 3: SIZES}
NUMBERS = (0, 1, 4, 5, 6)


def rows(n: int, seed: int, *, unseen: bool = False) -> pd.DataFrame:
    """Numbers of few digits, categories, booleans, dates and durations, some of them missing."""
    random = np.random.default_rng(seed)
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(-(10**8), 10**8, n), unit="s")
    values = (
        random.integers(-30, 60, n) / 10,
        random.integers(-3, 9, n).astype(float),
        random.choice([*COLORS, *(["unseen"] if unseen else [])], n).astype(object),
        random.choice([*SIZES, *(["other"] if unseen else [])], n).astype(object),
        (random.random(n) < 0.5).astype(object),
        pd.Series(since),
        pd.Series(pd.to_timedelta(random.integers(-1000, 1000, n), unit="s")),
    )
    table = pd.DataFrame(dict(zip(NAMES, values, strict=True)))
    return table.mask(random.random(table.shape) < 0.1) if seed else table


TRAIN = rows(150, seed=1)
TEST = rows(60, seed=2, unseen=True)
COLUMNS = learn_columns(TRAIN)[1]
ROWS = np.arange(len(TRAIN))


@st.composite
def terms(draw: st.DrawFn, *, missing: bool) -> Term:
    """A term of a column; missing numbers count as something in formulas alone."""
    feature = draw(st.integers(0, len(NAMES) - 1))
    weight = draw(st.sampled_from((1.0, *WEIGHTS)))
    if feature in CATEGORIES:
        levels = draw(st.lists(st.sampled_from(CATEGORIES[feature]), min_size=1, max_size=3, unique=True))
        return Term(feature, weight, tuple(levels), float(draw(st.booleans())))
    return Term(feature, weight, missing=draw(st.sampled_from((0.0, 3.0, -0.1))) if missing else 0.0)


@st.composite
def splits(draw: st.DrawFn) -> Split:
    """A number, a group of levels, or a sum; the threshold is often what a row has."""
    form = draw(st.sampled_from(("number", "levels", "sum", "sum", "is missing")))
    missing_left = draw(st.booleans())
    if form == "is missing":
        return Split(
            (Term(draw(st.sampled_from(NUMBERS)), 1.0),), draw(st.sampled_from((-np.inf, np.inf))), missing_left
        )
    if form == "levels":
        feature = draw(st.sampled_from(sorted(CATEGORIES)))
        levels = draw(st.lists(st.sampled_from(CATEGORIES[feature]), min_size=1, max_size=4, unique=True))
        return Split((Term(feature, 1.0, tuple(levels), float(draw(st.booleans()))),), 0.5, missing_left)
    if form == "number":
        own: tuple[Term, ...] = (Term(draw(st.sampled_from(NUMBERS)), 1.0),)
    else:
        own = tuple(draw(st.lists(terms(missing=False), min_size=1, max_size=3)))
    sums = split_sums(Split(own, 0.0), COLUMNS, ROWS)
    threshold = draw(st.sampled_from(np.unique(sums[~np.isnan(sums)]).tolist()))
    return Split(own, round(threshold, 2) if draw(st.booleans()) else threshold, missing_left)


@st.composite
def formulas(draw: st.DrawFn) -> LeafFormula:
    """A constant and some terms, within limits or not."""
    constant = draw(st.sampled_from((0.0, 1.25, -0.1, 1e-5, 1234.5)))
    own = draw(st.lists(terms(missing=True), min_size=0, max_size=3))
    low, high = (draw(st.sampled_from((None, limit))) for limit in (-2.5, 3.7))
    return LeafFormula(constant, tuple(own), low, high)


@st.composite
def leaves(draw: st.DrawFn, width: int, *, of_classes: bool) -> Leaf:
    """A leaf with formulas, or one that is constant."""
    if draw(st.booleans()):
        listed = st.lists(formulas(), min_size=width, max_size=width)
        return Leaf(tuple(draw(listed)[: 1 if width == 2 and of_classes and draw(st.booleans()) else width]))
    values = draw(st.lists(st.integers(0, 9), min_size=width, max_size=width).filter(any))
    return Leaf(tuple(LeafFormula(value / sum(values) if of_classes else value / 7) for value in values))


@st.composite
def records(draw: st.DrawFn, width: int = 1, *, of_classes: bool = False) -> ReadableRecord:
    """A tree of depth three at most."""
    inner: dict[int, Split] = {}
    ends: dict[int, Leaf] = {}
    waiting = [0]
    while waiting:
        t = waiting.pop()
        if t < 7 and draw(st.integers(0, 3)):
            inner[t] = draw(splits())
            waiting += [2 * t + 1, 2 * t + 2]
        else:
            ends[t] = draw(leaves(width, of_classes=of_classes))
    return ReadableRecord(inner, ends)


def of_numbers(record: ReadableRecord, width: int = 1) -> Any:
    """An estimator of numbers with this tree."""
    y = np.arange(len(TRAIN), dtype=float)
    return fitted(record, TRAIN, y if width == 1 else np.stack((y,) * width, axis=1))


def of_classes(record: ReadableRecord, labels: Any = ("no", "it's", 'b"')) -> Any:
    """An estimator of classes with this tree."""
    frame = pd.DataFrame({"size": np.arange(len(TRAIN)), "age": 0, "color": "D"})
    return fitted(record, TRAIN, classes(frame, labels))


@st.composite
def estimators(draw: st.DrawFn) -> Any:
    """A fitted readable tree of any kind."""
    kind = draw(st.sampled_from(("numbers", "two numbers", "two classes", "three classes")))
    if kind == "numbers":
        return of_numbers(draw(records()))
    if kind == "two numbers":
        return of_numbers(draw(records(2)), 2)
    if kind == "two classes":
        return of_classes(draw(records(2, of_classes=True)), draw(st.sampled_from((("no", "it's"), (False, True)))))
    return of_classes(draw(records(3, of_classes=True)))


def with_nodes_as_values(estimator: Any) -> Any:
    """An estimator with the same splits, whose values are the nodes of its leaves."""
    record = estimator.record_
    return of_numbers(ReadableRecord(record.splits, {t: Leaf((LeafFormula(float(t)),)) for t in record.leaves}))
