"""Splits that searches find for leaves, and the order in which splits are taken away."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.tree import DecisionTreeRegressor

from prunus.hardening.growing import leaf_rows
from prunus.hardening.sketch import Sketch
from prunus.hardening.splitting import SearchRows, split_leaves, weakest_first
from prunus.search.engine import Job
from tests.hardening.problems import Doubles, Floats, root, rows


def split(sketch: Sketch, x: Floats, values: Doubles, weight: Any = None, **options: Any) -> Sketch:
    """Split all leaves of a sketch."""
    weight = np.ones(len(x)) if weight is None else weight
    job = Job(np.arange(len(x)), **({"leaves": 1000, "least": 1.0} | options))
    found = SearchRows.read(x, weight).with_targets(values)
    split_leaves(sketch, found, leaf_rows(sketch.ends(x)), job, threads=1)
    return sketch


def mean_error(sketch: Sketch, x: Floats, values: Doubles) -> float:
    ends = sketch.ends(x)
    return float(sum(np.square(values[rows] - values[rows].mean(0)).sum() for _, rows in leaf_rows(ends)) / len(x))


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_greedy_splits_of_single_columns_are_those_of_scikit_learn(depth: int) -> None:
    x = rows(150, 3)
    values = np.stack((x[:, 0] * x[:, 1], x[:, 2]), 1).astype(np.float64)
    sketch = split(root(depth, d=3, k=2), x, values, least=4.0)
    greedy = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=4, random_state=0).fit(x, values)
    ends, leaves = sketch.ends(x), greedy.apply(x)
    assert len(set(zip(ends.tolist(), leaves.tolist(), strict=True))) == len(sketch.leaves) == greedy.get_n_leaves()


def test_leaves_are_split_by_their_own_rows() -> None:
    x = rows(200)
    sketch = root(2, k=1)
    sketch.split(0, np.array([1.0, 0.0]), 0.0)
    values = np.where(x[:, :1] < 0, x[:, 1:] > 0.5, x[:, 1:] > -0.5).astype(np.float64)
    assert mean_error(split(sketch, x, values), x, values) == 0
    assert_array_equal(sketch.leaves, [3, 4, 5, 6])
    assert_array_equal(sketch.weight[1:], [[0, 1], [0, 1]])


def test_there_is_no_more_room_than_the_depth() -> None:
    x = rows(300)
    sketch = split(root(2), x, np.abs(x[:, :1]).astype(np.float64))
    before = sketch.weight.copy()
    assert sketch.leaves.max() <= 6
    assert_array_equal(split(sketch, x, np.abs(x[:, :1]).astype(np.float64)).weight, before)


def test_two_columns_tell_apart_what_one_cannot() -> None:
    x = rows(300)
    values = (x.sum(1, keepdims=True) > 0.3).astype(np.float64)
    sketch = split(root(1), x, values, leaves=2, terms=2, rounds=100)
    assert mean_error(sketch, x, values) < 0.2 * mean_error(split(root(1), x, values), x, values)
    assert_array_equal(np.count_nonzero(sketch.weight, axis=1), [2])


def test_rows_of_more_weight_choose_the_split() -> None:
    x = np.arange(12, dtype=np.float32)[:, None]
    weight = np.where(x[:, 0] < 6, 1.0, 1e-6)
    sketch = split(root(1, d=1), x, x.astype(np.float64), weight, least=0.0)
    assert_array_equal(sketch.ends(x), [1] * 3 + [2] * 9)


@pytest.mark.parametrize("value", [1.0, 3.0, 0.1, 1e-30, 1e30, -1.0, -0.7, 0.0])
def test_neighboring_numbers_are_told_apart(value: float) -> None:
    for begin in (np.float32(value), np.nextafter(np.float32(value), np.float32(np.inf))):
        x = np.repeat(np.array([begin, np.nextafter(begin, np.float32(np.inf))]), 3)[:, None]
        sketch = split(root(1, d=1), x, np.repeat([0.0, 1.0], 3)[:, None])
        assert_array_equal(sketch.ends(x), np.repeat([1, 2], 3))


def test_the_splits_that_are_worth_least_go_first() -> None:
    x = np.arange(4, dtype=np.float32)[:, None]
    values = np.array([[0.0], [1.0], [10.0], [14.0]])
    sketch = split(root(2, d=1), x, values)
    assert weakest_first(sketch, sketch.ends(x), values, np.ones(4)) == [1, 2, 0]
    assert weakest_first(sketch, sketch.ends(x), values, np.array([100.0, 100.0, 1.0, 1.0])) == [2, 1, 0]


def test_a_root_has_no_splits_to_take_away() -> None:
    assert weakest_first(root(0), np.zeros(3, dtype=np.int64), np.ones((3, 1)), np.ones(3)) == []
