"""Trees whose leaves predict linearly while they are searched: what leaves are worth, and which columns they use."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prunus.search.engine import EngineTable, Splits, bin_columns, read_table
from prunus.search.kinds import choose_slopes
from prunus.search.outcome import RIDGE, read_outcome
from prunus.search.problem import Category, Number, Problem
from prunus.search.record import Split, Term
from tests.search.reference import (
    LARGEST_SLOPE_VALUE,
    SearchRows,
    ends_of_rows,
    greedy_tree,
    tree_worth,
    worth,
)
from tests.search.searches import GREEDY, random_rows, search
from tests.tolerances import SAME_WORTH

KINDS = ("numbers", "several numbers")


def slope_values(rows: SearchRows) -> npt.NDArray[np.float64]:
    values = np.nan_to_num(rows.columns.values[list(rows.slopes)].T.astype(np.float64))
    found: npt.NDArray[np.float64] = values.clip(-LARGEST_SLOPE_VALUE, LARGEST_SLOPE_VALUE)
    return found


def lowered_by_least_squares(rows: SearchRows, some: npt.NDArray[np.int64]) -> float:
    """The squared error of zeros, less that of a ridge regression: a row more for each slope says that it is 0."""
    weight, y, x = rows.weight[some], rows.y[some], slope_values(rows)[some]
    p, k = x.shape[1], y.shape[1]
    x = x - np.average(x, axis=0, weights=weight)  # so that the ridge does not depend on where zero is
    known = np.sqrt(weight)[:, None] * np.column_stack((np.ones(len(some)), x))
    ridge = np.column_stack((np.zeros(p), np.sqrt(RIDGE * weight.sum()) * np.eye(p)))
    design, target = np.vstack((known, ridge)), np.vstack((np.sqrt(weight)[:, None] * y, np.zeros((p, k))))
    found = np.linalg.lstsq(design, target, rcond=None)[0]
    return float((target**2).sum() - ((target - design @ found) ** 2).sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slopes", [(0,), (2, 0), (0, 1, 2), (3, 2, 1, 0)])
def test_a_linear_leaf_is_worth_what_a_ridge_regression_explains(kind: str, slopes: tuple[int, ...]) -> None:
    for seed in range(5):
        rows = random_rows(seed, 40, numbers=4, kind=kind, weighted=True, slopes=slopes)
        everything = np.arange(40)
        expected = lowered_by_least_squares(rows, everything)
        assert worth(rows, everything) == pytest.approx(expected, rel=SAME_WORTH)
        assert search(rows, leaves=1)[1] == pytest.approx(expected, rel=SAME_WORTH)


@pytest.mark.parametrize("kind", KINDS)
def test_the_worth_of_an_outcome_is_that_of_the_reference(kind: str) -> None:
    rows = random_rows(0, 60, numbers=3, kind=kind, weighted=True, slopes=(1, 2))
    outcome = replace(read_outcome(Problem([], rows.y, rows.weight)), values=rows.y, slopes=slope_values(rows))
    place = np.arange(60) % 4
    found = outcome.worth(outcome.cells(place, 5))
    for j in range(4):
        assert found[j] == pytest.approx(worth(rows, np.flatnonzero(place == j)), rel=SAME_WORTH)
    assert found[4] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slopes", [(1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("n", [63, 400])
def test_greedy_trees_with_linear_leaves_are_those_of_the_reference(kind: str, slopes: tuple[int, ...], n: int) -> None:
    sizes = []
    for seed in range(3):
        rows = random_rows(seed, n, numbers=3, categories=2, kind=kind, least=4.0, slopes=slopes)
        found = search(rows, leaves=6, **GREEDY)[0]
        assert found == greedy_tree(rows, 6)
        sizes.append(len(found))
    assert max(sizes) == 11


@given(
    st.integers(0, 10**6), st.integers(1, 40), st.sampled_from(KINDS), st.sampled_from([(0,), (1, 0)]), st.booleans()
)
@settings(max_examples=60, deadline=None)
def test_trees_with_linear_leaves_are_worth_what_the_reference_says(
    seed: int, n: int, kind: str, slopes: tuple[int, ...], weighted: bool
) -> None:
    rows = random_rows(seed, n, kind=kind, weighted=weighted, slopes=slopes, least=2.0)
    size = max(1.0, float(rows.weight @ (rows.y**2).sum(1)))
    greedy, expected = search(rows, **GREEDY)[1], greedy_tree(rows, 6)
    assert greedy == pytest.approx(tree_worth(expected, rows), abs=SAME_WORTH * size)
    for terms in (1, 2):
        tree, reported = search(rows, terms=terms, cycles=2, seed=seed)
        assert tree_worth(tree, rows) == pytest.approx(reported, abs=SAME_WORTH * size)
        assert reported >= greedy - SAME_WORTH * size
        weights = np.bincount(ends_of_rows(tree, rows.columns), weights=rows.weight, minlength=len(tree))
        assert len(tree) == 1 or min(weights[q] for q, node in enumerate(tree) if node is None) >= rows.least


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12, 1e30])
def test_numbers_far_from_all_others_do_not_drown_them(size: float) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 3))
    x[random.random((200, 3)) < 0.02] *= size
    y = np.where(x[:, 1] < 0.2, 1, -1) * x[:, 0].clip(-2, 2) + 0.1 * random.normal(size=200)
    columns = bin_columns([Number(own) for own in x.T])
    rows = SearchRows(columns, np.ones(200), y[:, None], least=5.0, slopes=(0, 1, 2))
    power = float((y**2).sum())
    for terms in (1, 2):
        tree, reported = search(rows, leaves=6, terms=terms)
        assert tree_worth(tree, rows) == pytest.approx(reported, abs=1e-6 * power)
    assert search(rows, leaves=6, **GREEDY)[1] == pytest.approx(tree_worth(greedy_tree(rows, 6), rows), rel=1e-6)
    assert 0.5 * power < reported < power


def test_rows_of_little_weight_are_worth_as_much_each() -> None:
    rows = random_rows(0, 50, numbers=3, slopes=(0, 1))
    light = replace(rows, weight=1e-15 * rows.weight)
    assert search(light, leaves=1)[1] == pytest.approx(1e-15 * search(rows, leaves=1)[1], rel=SAME_WORTH, abs=0)


def test_linear_leaves_are_split_where_the_slope_changes() -> None:
    """Constant leaves would be split by the slope itself."""
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (300, 2))
    y = np.where(x[:, 1] < 0.2, 3 * x[:, 0], -3 * x[:, 0])[:, None]
    rows = SearchRows(read_table(Problem([Number(x[:, 0]), Number(x[:, 1])], y)).binned, np.ones(300), y)
    constant = search(rows, leaves=2, **GREEDY)[0][0]
    linear = search(replace(rows, slopes=(0,)), leaves=2, **GREEDY)[0][0]
    assert constant is not None
    assert linear is not None
    assert [constant.terms[0][0], linear.terms[0][0]] == [0, 1]


def chosen(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], splits: Splits, count: int) -> tuple[int, ...]:
    columns: list[Number | Category] = [Number(own) for own in x.T]
    columns.append(Category(np.arange(len(x)) % 3, ("a", "b", "c")))
    table: EngineTable = read_table(Problem(columns, y[:, None]))
    return choose_slopes(table, np.arange(len(x)), splits, count)


def test_slopes_are_chosen_by_what_they_explain_within_the_leaves() -> None:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (400, 4))
    x[:, 3] = x[:, 1] + 0.01 * random.normal(size=400)  # says nothing that column 1 does not say
    y = 9.0 * (x[:, 0] > 0) + 2 * x[:, 1] + x[:, 2]
    cut: Splits = {0: Split((Term(0, 1.0),), 0.0)}
    assert chosen(x, y, {}, 1) == (0,)
    assert chosen(x, y, cut, 1) == (1,)
    assert chosen(x, y, cut, 2) == (1, 2)
    assert set(chosen(x, y, cut, 9)) == {0, 1, 2, 3}


def test_slopes_may_change_their_sign_from_leaf_to_leaf() -> None:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (400, 3))
    y = np.where(x[:, 0] < 0, x[:, 1], -x[:, 1]) + 0.3 * x[:, 2]
    assert chosen(x, y, {}, 1) == (2,)
    assert chosen(x, y, {0: Split((Term(0, 1.0),), 0.0)}, 1) == (1,)


def test_without_numbers_that_vary_there_are_no_slopes() -> None:
    assert chosen(np.ones((20, 2)), np.arange(20.0), {}, 2) == ()
