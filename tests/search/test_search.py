"""Searches of the engine: what they report, and what holds for every tree that they return."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prunus import _core
from prunus.search.engine import bin_columns
from prunus.search.problem import Category, Number
from tests.search.reference import SearchNode, SearchRows, SearchTree, ends_of_rows, tree_worth
from tests.search.searches import GREEDY, KINDS, arguments, job, random_rows, search, tables
from tests.tolerances import SAME_WORTH


def leaf_weights(tree: SearchTree, rows: SearchRows) -> list[float]:
    """The weight of the rows in each leaf."""
    weights = np.bincount(ends_of_rows(tree, rows.columns), weights=rows.weight, minlength=len(tree))
    return [float(weights[q]) for q, node in enumerate(tree) if node is None]


@given(tables(largest=60), st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_every_search_keeps_its_limits(rows: SearchRows, terms: int, cycles: int, seed: int) -> None:
    tree, reported = search(rows, leaves=5, terms=terms, cycles=cycles, seed=seed)
    size = max(1.0, float(rows.weight @ (rows.y**2).sum(1)))
    assert tree_worth(tree, rows) == pytest.approx(reported, abs=SAME_WORTH * size)
    assert len(tree) <= 9
    assert len(tree) == 1 or min(leaf_weights(tree, rows)) >= rows.least
    for q, node in enumerate(tree):
        if node is not None:
            assert_split(node, q, terms, rows)


def assert_split(node: SearchNode, q: int, terms: int, rows: SearchRows) -> None:
    """A split is as large as it may be, and all of its numbers are finite."""
    columns = [column for column, _, _ in node.terms]
    assert q < node.left < node.right
    assert len(columns) == len(set(columns)) <= terms
    assert all(np.isfinite(weight) for _, weight, _ in node.terms)
    assert not np.isnan(node.threshold)
    assert all((group is None) == (not rows.columns.is_category[column]) for column, _, group in node.terms)


@given(tables(smallest=8, largest=60), st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_no_search_is_worse_than_the_greedy_tree(rows: SearchRows, seed: int) -> None:
    _, greedy = search(rows, **GREEDY)
    _, searched = search(rows, seed=seed)
    _, pairs = search(rows, seed=seed, terms=2, cycles=2)
    assert searched >= greedy - SAME_WORTH
    assert pairs >= greedy - SAME_WORTH


@pytest.mark.parametrize("terms", [1, 2])
def test_a_search_reports_what_leaves_are_worth_without_their_price(terms: int) -> None:
    rows = random_rows(3, 200, numbers=3, least=3.0)
    for rounds in (0, 50):
        tree, reported = search(rows, price=0.5, terms=terms, rounds=rounds)
        assert tree_worth(tree, rows) == pytest.approx(reported, rel=SAME_WORTH)


def test_a_high_price_leaves_one_leaf() -> None:
    rows = random_rows(0, 100)
    for rounds in (0, 50):
        assert search(rows, price=1e9, rounds=rounds)[0] == [None]


@pytest.mark.parametrize("kind", KINDS)
def test_searches_find_what_growth_cannot(kind: str) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (400, 3))
    other = (x[:, 0] > 0) != (x[:, 1] > 0)  # no split of one column gains anything
    y = {
        "numbers": np.stack((other,), 1),
        "several numbers": np.stack((other, ~other), 1),
        "two classes": np.eye(2)[other.astype(int)],
        "classes": np.eye(4)[2 * other.astype(int)],
    }[kind]
    columns = bin_columns([Number(x[:, j]) for j in range(3)])
    rows = SearchRows(columns, np.ones(400), y.astype(float), least=5.0, is_classes="classes" in kind)
    greedy, searched = (search(rows, leaves=4, rounds=rounds, cycles=2)[1] for rounds in (0, 400))
    best = tree_worth([None], SearchRows(columns, np.ones(400), y.astype(float), is_classes=False)) + 0
    assert searched > greedy
    assert searched > best


def test_pairs_find_an_oblique_split() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 4))
    y = (x[:, 0] - 2 * x[:, 2] > 0.3).astype(float)[:, None]
    rows = SearchRows(bin_columns([Number(x[:, j]) for j in range(4)]), np.ones(300), y, least=5.0)
    tree, reported = search(rows, leaves=2, terms=2, rounds=200, polish=2000, cycles=2)
    assert tree[0] is not None
    assert {column for column, _, _ in tree[0].terms} == {0, 2}
    assert reported >= 0.97 * y.sum()


@pytest.mark.parametrize("terms", [1, 2])
def test_a_search_depends_on_its_seed_alone(terms: int) -> None:
    rows = random_rows(1, 300, numbers=4, categories=2, least=3.0)
    jobs = [job(300, terms=terms, seed=seed, least=3.0) for seed in range(5)]
    alone = [_core.search(**arguments(rows), jobs=[one], threads=1)[0] for one in jobs]
    for threads in (1, 2, 7):
        assert _core.search(**arguments(rows), jobs=jobs, threads=threads) == alone
    assert len({worth for _, worth in alone}) > 1 or terms == 1


def test_a_search_does_not_change_what_it_is_given() -> None:
    rows = random_rows(1, 100)
    before = {name: value.copy() for name, value in arguments(rows).items() if isinstance(value, np.ndarray)}
    search(rows, terms=2)
    for name, value in before.items():
        np.testing.assert_array_equal(value, arguments(rows)[name])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_few_rows(n: int, kind: str) -> None:
    rows = random_rows(0, n, kind=kind)
    tree, reported = search(rows, terms=2, cycles=2)
    assert tree_worth(tree, rows) == pytest.approx(reported, abs=SAME_WORTH)


def test_constant_columns_give_one_leaf() -> None:
    columns = bin_columns([Number(np.ones(20)), Number(np.full(20, np.nan))])
    rows = SearchRows(columns, np.ones(20), np.random.default_rng(0).normal(size=(20, 1)))
    assert search(rows, terms=2, cycles=2)[0] == [None]


@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1e30])
def test_numbers_that_lie_close_together_or_far_apart(scale: float) -> None:
    random = np.random.default_rng(0)
    values = np.concatenate(
        (random.normal(size=40), scale * np.arange(20), 1 + np.spacing(np.float32(1)) * np.arange(20))
    )
    columns = bin_columns([Number(values), Number(random.permutation(values))])
    rows = SearchRows(columns, np.ones(80), random.normal(size=(80, 1)))
    for seed in range(5):
        tree, reported = search(rows, terms=2, cycles=2, polish=2000, seed=seed)
        assert tree_worth(tree, rows) == pytest.approx(reported, rel=SAME_WORTH)


@pytest.mark.parametrize("rounds", [0, 60])
def test_a_leaf_without_a_least_weight_has_rows_all_the_same(rounds: int) -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        x = random.normal(size=(150, 3))
        codes = random.integers(0, 8, 150)
        columns = bin_columns([*map(Number, x.T), Category(codes, tuple("abcdefgh"))])
        weight = 10 ** random.uniform(-3, 3, 150)
        y = np.round(x[:, :1]) / 3e-6  # nothing but rounding errors is left to gain when it is known
        rows = SearchRows(columns, weight, y, least=0.0)
        tree, _ = search(rows, leaves=12, rounds=rounds)
        assert len(tree) > 1
        assert min(leaf_weights(tree, rows)) > 0


def test_sums_of_two_terms_may_part_missing_values_from_all_others() -> None:
    """Searches that go on from such a split once took the first feature of its sum for a column."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 6, (14, 120))
    missing = random.random(120) < 0.3
    number = Number(np.where(missing, np.nan, random.normal(size=120)))
    columns = bin_columns([*(Category(own, tuple("abcdef")) for own in codes), number])
    y = 3 * missing + 0.5 * (codes < 3).sum(0) + 0.3 * random.normal(size=120)
    rows = SearchRows(columns, np.ones(120), y[:, None])
    for seed in range(8):
        tree, reported = search(rows, leaves=12, terms=2, cycles=4, polish=3, anneal=0, seed=seed)
        assert tree_worth(tree, rows) == pytest.approx(reported, rel=SAME_WORTH)


def test_no_jobs_give_no_trees() -> None:
    assert _core.search(**arguments(random_rows(0, 10)), jobs=[], threads=2) == []
