"""Greedy trees of the engine against those of the reference."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prunus.search.engine import bin_columns
from prunus.search.problem import Category, Number
from tests.search.reference import SearchRows, SearchTree, best_cut, ends_of_rows, greedy_tree, tree_worth, worth
from tests.search.searches import GREEDY, KINDS, random_rows, search, tables
from tests.tolerances import SAME_WORTH


def total(rows: SearchRows) -> float:
    """What rounding is measured against."""
    return max(1.0, float(rows.weight @ (rows.y**2).sum(1)))


@given(tables(), st.sampled_from([1, 2, 3, 6]), st.sampled_from([0.0, 0.0, 0.7]))
@settings(max_examples=100, deadline=None)
def test_greedy_trees_are_worth_what_the_reference_says(rows: SearchRows, leaves: int, price: float) -> None:
    found, reported = search(rows, leaves=leaves, price=price, **GREEDY)
    expected = greedy_tree(rows, leaves, price)
    assert tree_worth(found, rows) == pytest.approx(reported, abs=SAME_WORTH * total(rows))
    assert tree_worth(expected, rows) == pytest.approx(reported, abs=SAME_WORTH * total(rows))
    assert len(found) == len(expected) <= 2 * leaves - 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [63, 500])
def test_greedy_trees_are_those_of_the_reference(kind: str, n: int) -> None:
    for seed in range(5):
        rows = random_rows(seed, n, numbers=3, categories=2, kind=kind, least=4.0)
        if "classes" in kind:  # shares of classes tie
            rows.weight[:] = np.random.default_rng(seed).uniform(0.5, 1, n)
        found, expected = search(rows, leaves=8, **GREEDY)[0], greedy_tree(rows, 8)
        if kind == "classes":  # a group and its complement tie
            assert parts(found, rows) == parts(expected, rows)
        else:
            assert found == expected


def parts(tree: SearchTree, rows: SearchRows) -> set[frozenset[int]]:
    """The rows of each leaf."""
    ends = ends_of_rows(tree, rows.columns)
    return {frozenset(np.flatnonzero(ends == q).tolist()) for q in np.unique(ends)}


@given(st.integers(0, 10**6), st.sampled_from(KINDS))
@settings(max_examples=60, deadline=None)
def test_the_best_of_cuts_that_tie_is_found(seed: int, kind: str) -> None:
    rows = random_rows(seed, 30, numbers=2, categories=1, kind=kind)
    rows = SearchRows(rows.columns, rows.weight, np.round(rows.y), is_classes=rows.is_classes)
    everything = np.arange(30)
    best = max(best_cut(rows, everything, column).gain for column in range(3))
    _, reported = search(rows, leaves=2, **GREEDY)
    gained = reported - worth(rows, everything)
    assert gained >= best - SAME_WORTH * total(rows)


def test_a_group_of_levels_is_the_best_of_all_groups() -> None:
    random = np.random.default_rng(0)
    codes = np.arange(60) % 5
    y = random.normal(size=(60, 1)) + random.normal(size=5)[codes][:, None]
    rows = SearchRows(bin_columns([Category(codes, tuple("abcde"))]), np.ones(60), y)
    gains = []
    for group in itertools.chain.from_iterable(itertools.combinations(range(5), size) for size in (1, 2)):
        left = np.isin(codes, group)
        gains.append(worth(rows, np.flatnonzero(left)) + worth(rows, np.flatnonzero(~left)))
    found, reported = search(rows, leaves=2, **GREEDY)
    assert len(found) == 3
    assert reported == pytest.approx(max(gains), abs=SAME_WORTH * total(rows))


def test_levels_that_mean_nothing_are_not_preferred_to_a_number_that_means_something() -> None:
    chosen = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        number = random.normal(size=200)
        codes = random.integers(0, 60, 200)
        columns = bin_columns([Category(codes, tuple(map(str, range(60)))), Number(number)])
        rows = SearchRows(columns, np.ones(200), (0.7 * (number > 0) + random.normal(size=200))[:, None], least=5.0)
        root = search(rows, leaves=2, **GREEDY)[0][0]
        chosen.append(root is not None and root.terms[0][0])
    assert sum(column == 1 for column in chosen) >= 8


@pytest.mark.parametrize("missing_is_high", [False, True])
def test_missing_values_go_to_the_side_that_they_are_like(missing_is_high: bool) -> None:
    values = np.array([0.0, 0, 0, 1, 1, 1, np.nan, np.nan])
    y = np.where(np.isnan(values), float(missing_is_high), values)[:, None]
    rows = SearchRows(bin_columns([Number(values)]), np.ones(8), y)
    root = search(rows, leaves=2, **GREEDY)[0][0]
    assert root is not None
    assert root.missing_left is not missing_is_high


def test_values_that_are_missing_later_go_to_the_larger_side() -> None:
    values = np.array([0.0, 1, 1, 1, 1])
    for sign in (1, -1):
        rows = SearchRows(bin_columns([Number(sign * values)]), np.ones(5), values[:, None])
        root = search(rows, leaves=2, **GREEDY)[0][0]
        assert root is not None
        assert root.missing_left is (sign == -1)


def test_missing_values_are_split_from_all_others() -> None:
    values = np.array([0.0, 1, 2, 3, np.nan, np.nan])
    rows = SearchRows(bin_columns([Number(values)]), np.ones(6), np.isnan(values).astype(float)[:, None])
    tree, _ = search(rows, leaves=2, **GREEDY)
    assert tree[0] is not None
    assert tree[0].threshold == np.inf
    assert ends_of_rows(tree, rows.columns).tolist() == [1, 1, 1, 1, 2, 2]


@given(st.integers(0, 10**6), st.sampled_from(KINDS))
@settings(max_examples=60, deadline=None)
def test_a_row_of_weight_two_is_two_rows(seed: int, kind: str) -> None:
    once = random_rows(seed, 20, kind=kind)
    y = np.round(4 * once.y) / 4  # sums are exact
    weight = np.random.default_rng(seed).integers(1, 4, 20)
    twice = np.repeat(np.arange(20), weight)
    heavy = SearchRows(once.columns, weight.astype(float), y, 3.0, is_classes=once.is_classes)
    # The same columns, so that bins are the same as well.
    columns = type(once.columns)(
        **{
            **vars(once.columns),
            "bins": once.columns.bins[:, twice].copy(),
            "values": once.columns.values[:, twice].copy(),
        }
    )
    repeated = SearchRows(columns, np.ones(len(twice)), y[twice], 3.0, is_classes=once.is_classes)
    assert search(heavy, leaves=5, **GREEDY) == search(repeated, leaves=5, **GREEDY)


def test_bootstrap_samples_are_searched_as_tables_of_their_own() -> None:
    rows = random_rows(0, 50)
    drawn = np.random.default_rng(0).integers(0, 50, 80)
    counts = np.bincount(drawn, minlength=50)
    tree, reported = search(rows, leaves=4, rows=drawn.astype(np.int32), **GREEDY)
    present = np.flatnonzero(counts)
    own = SearchRows(rows.columns, counts.astype(float), rows.y)
    ends = ends_of_rows(tree, rows.columns)
    expected = sum(worth(own, present[ends[present] == q]) for q, node in enumerate(tree) if node is None)
    assert reported == pytest.approx(expected, abs=SAME_WORTH * total(own))
