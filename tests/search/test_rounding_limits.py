"""Round numbers keep what a search promises: rows in each leaf, few digits, and no terms that make no difference."""

import numpy as np
import pytest

from prunus.search.find import find_tree
from prunus.search.outcome import read_outcome
from prunus.search.predict import route
from prunus.search.problem import Category, Limits, Number, Problem
from prunus.search.record import Split, Term
from prunus.search.rounding import round_splits


@pytest.mark.parametrize("least", [13, 37])
def test_rounded_leaves_have_enough_rows(least: int) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((4, 200)).round(1)
        y = (x[0] + x[1] > 0.3) + 0.3 * x[2] + rng.standard_normal(200)
        columns = [Number(own) for own in x]
        record = find_tree(Problem(columns, y[:, None]), Limits(max_leaf_nodes=8, min_samples_leaf=least)).record
        counts = np.unique(route(dict(record.splits), columns), return_counts=True)[1]
        assert counts.min() >= least


@pytest.mark.parametrize("leaf_terms", [0, 1])
def test_a_number_that_is_far_away_costs_no_digits(leaf_terms: int) -> None:
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, 300))
    y = z + (x > 0)
    x[:2] = 1e45, -1e300
    limits = Limits(max_leaf_nodes=4, max_split_features=2, max_leaf_features=leaf_terms)
    record = find_tree(Problem([Number(x), Number(z)], y[:, None]), limits).record
    assert record.splits
    for split in record.splits.values():
        assert all(len(f"{number:.15g}") <= 6 for number in (split.threshold, *(term.weight for term in split.terms)))


@pytest.mark.parametrize("weight", [600.0, -600.0])
def test_a_term_that_makes_no_difference_goes(weight: float) -> None:
    rng = np.random.default_rng(0)
    codes, size = rng.integers(0, 3, 200), rng.uniform(0, 300, 200)
    columns: list[Number | Category] = [Number(size), Category(codes, ("a", "b", "c"))]
    of_group = Problem(columns, (codes == 1)[:, None] + 0.01 * rng.standard_normal((200, 1)))
    split = Split((Term(0, 1.0), Term(1, weight, ("b",))), max(weight, 0.0) - 1e-3 * (weight < 0))
    found = round_splits({0: split}, columns, read_outcome(of_group))[0]
    assert found == Split((Term(1, np.sign(weight), ("b",)),), np.sign(weight) / 2)
    assert (route({0: found}, columns) == route({0: split}, columns)).all()
    of_size = Problem(columns, (size > 100)[:, None] + 0.01 * rng.standard_normal((200, 1)))
    split = Split((Term(0, 1.0), Term(1, 1e-6, ("b",))), 100.0)
    assert round_splits({0: split}, columns, read_outcome(of_size))[0].terms == (Term(0, 1.0),)


@pytest.mark.parametrize("missing_left", [False, True])
def test_a_threshold_that_no_row_crosses_asks_for_missing_values(missing_left: bool) -> None:
    x = np.r_[np.linspace(1, 2, 50), np.full(50, np.nan)]
    y = np.isnan(x).astype(np.float64)
    split = Split((Term(0, 1.0),), 0.3 if missing_left else 7.7, missing_left)
    columns: list[Number | Category] = [Number(x)]
    found = round_splits({0: split}, columns, read_outcome(Problem(columns, y[:, None])))[0]
    assert found.threshold == (-np.inf if missing_left else np.inf)
    np.testing.assert_array_equal(route({0: found}, columns), route({0: split}, columns))
    between = Split((Term(0, 1.0),), 1.5, missing_left)
    y = np.where(np.isnan(x), missing_left, x < 1.5).astype(np.float64)
    assert np.isfinite(round_splits({0: between}, columns, read_outcome(Problem(columns, y[:, None])))[0].threshold)


@pytest.mark.parametrize("both", [False, True])
def test_rows_without_one_of_two_numbers(both: bool) -> None:
    first, second = np.linspace(1, 2, 100), np.linspace(3, 2, 100)
    first[:30] = np.nan
    second[60:] = np.nan if both else second[60:]
    columns: list[Number | Category] = [Number(first), Number(second)]
    y = (np.isnan(first) | np.isnan(second)).astype(np.float64)
    split = Split((Term(0, 1.0), Term(1, 4.7)), 100.0)
    found = round_splits({0: split}, columns, read_outcome(Problem(columns, y[:, None])))[0]
    assert found == Split((Term(0, 1.0), Term(1, 1.0)) if both else (Term(0, 1.0),), np.inf)
    np.testing.assert_array_equal(route({0: found}, columns), route({0: split}, columns))
