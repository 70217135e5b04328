"""Trees of few columns in each split that are searched, guided by a soft tree."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeRegressor

from prunus.hardening.builder import TreeBuilder
from prunus.hardening.growing import leaf_rows
from prunus.hardening.searched import BinnedRows, SearchData, TreeSize, search_tree, split_leaves
from prunus.search.engine import Job
from prunus.targets.links import IDENTITY, SOFTMAX
from tests.hardening.problems import Doubles, Floats, root, rows

N = 240
"""Fewer than the bins of a search, so that it finds all thresholds exactly."""
EVERYTHING, NOTHING, QUARTER = np.ones(N, dtype=bool), np.zeros(N, dtype=bool), np.arange(N) % 4 == 0


def table(*, noise: float = 0.0, is_share: bool = False, weight: Any = None) -> SearchData:
    """Steps of two columns; the soft tree knows them, the rows have noise."""
    x, random = rows(N, 3), np.random.default_rng(1)
    steps = (x[:, 0] > 0) + 2.0 * (x[:, 1] > 0)
    prior = np.eye(4)[steps.astype(int)] if is_share else steps[:, None]
    if is_share:
        wanted = np.where(random.random((N, 1)) < noise, np.eye(4)[random.integers(0, 4, N)], prior)
    else:
        wanted = prior + noise * random.normal(size=(N, 1))
    return SearchData(x, prior, wanted, np.ones(N) if weight is None else weight, SOFTMAX if is_share else IDENTITY)


def grow(given: SearchData, *, held_out: Any = QUARTER, threads: int = 1, **size: Any) -> TreeBuilder:
    wanted = TreeSize(**{"terms": 1, "depth": 4} | size)
    return search_tree(given, held_out, EVERYTHING, wanted, threads=threads)


def outputs(builder: TreeBuilder, given: SearchData) -> Doubles:
    found: Doubles = builder.models.constant[builder.ends(given.x)]
    return found


@pytest.mark.parametrize("held_out", [QUARTER, NOTHING])
@pytest.mark.parametrize("is_share", [False, True])
def test_steps_are_found(is_share: bool, held_out: Any) -> None:
    given = table(is_share=is_share)
    found = outputs(grow(given, held_out=held_out), given)
    if is_share:
        assert_array_equal(found.argmax(1), given.prior.argmax(1))
        assert_allclose(np.exp(found).sum(1), 1.0, atol=1e-4)
    else:
        assert_allclose(found, given.prior, atol=0.05)


@pytest.mark.parametrize("is_share", [False, True])
@pytest.mark.parametrize("size", [{}, {"max_leaves": 2}, {"max_leaves": 5}, {"depth": 0}, {"depth": 2}, {"depth": 5}])
def test_trees_are_as_small_as_asked_with_single_columns(is_share: bool, size: dict[str, int]) -> None:
    builder, depth = grow(table(noise=1.0, is_share=is_share), **size), size.get("depth", 4)
    assert len(builder.leaves) <= size.get("max_leaves", 2**depth)
    assert builder.depth == depth
    assert builder.leaves.max() < 2 ** (depth + 1) - 1
    assert np.count_nonzero(builder.weight, axis=1).max(initial=0) <= 1
    assert set(np.unique(builder.weight)) <= {0.0, 1.0}
    assert not builder.models.slope.any()


def test_a_soft_tree_that_is_wrong_is_ignored_and_one_that_is_right_helps() -> None:
    right, wrong = table(), table()
    wrong = SearchData(wrong.x, 50.0 * wrong.x[:, 2:].astype(np.float64), wrong.wanted, wrong.weight)
    assert_allclose(outputs(grow(wrong), wrong), right.wanted, atol=0.05)
    given = table(noise=3.0)
    alone = SearchData(given.x, given.wanted, given.wanted, given.weight)
    errors = [np.square(outputs(grow(one), one) - given.prior).mean() for one in (given, alone)]
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize("by_weight", [False, True])
def test_rows_that_do_not_count_do_not_matter(by_weight: bool) -> None:
    given, some = table(noise=0.5), np.arange(N) % 3 > 0
    held_out = QUARTER if by_weight else NOTHING
    weight = some.astype(np.float64) if by_weight else given.weight
    wild = SearchData(given.x, given.prior, np.where(some[:, None], given.wanted, 1e6), weight)
    found = search_tree(wild, held_out, EVERYTHING if by_weight else some, TreeSize(1, 3))
    expected = search_tree(given[some], held_out[some], np.ones(some.sum(), dtype=bool), TreeSize(1, 3))
    assert_array_equal(found.models.constant, expected.models.constant)
    assert_array_equal(found.bias, expected.bias)


def test_the_unit_of_weights_does_not_matter_without_noise() -> None:
    one, thousand = (grow(table(weight=np.full(N, weight))) for weight in (1.0, 1000.0))
    assert_array_equal(one.bias, thousand.bias)


def test_splits_of_two_columns_need_fewer_leaves() -> None:
    x = rows(N, 3)
    wanted = (x[:, :2].sum(1, keepdims=True) > 0).astype(np.float64)
    given = SearchData(x, wanted, wanted, np.ones(N))
    one, two = (grow(given, terms=terms, depth=6) for terms in (1, 2))
    assert np.count_nonzero(two.weight, axis=1).max() == 2
    assert len(two.leaves) < len(one.leaves)
    assert np.square(outputs(two, given) - given.wanted).mean() < 0.02


def test_a_tree_may_be_deeper_than_one_search() -> None:
    x = np.sort(rows(400, 1), axis=0)
    steps = np.cumsum(2.0 ** np.arange(400) % 97)[:, None] ** 3  # best-first growth makes a long chain
    given = SearchData(x, steps, steps, np.ones(400))
    deep = search_tree(given, np.arange(400) % 9 == 0, np.ones(400, dtype=bool), TreeSize(1, 14))
    assert deep.leaves.max() >= 2**11 - 1
    assert len(deep.leaves) > 100


@pytest.mark.parametrize("terms", [1, 2])
def test_threads_do_not_matter(terms: int) -> None:
    one, two = (grow(table(noise=1.0), terms=terms, threads=threads) for threads in (1, 2))
    assert_array_equal(one.weight, two.weight)
    assert_array_equal(one.bias, two.bias)


def split(builder: TreeBuilder, x: Floats, values: Doubles, weight: Any = None, **options: Any) -> TreeBuilder:
    """Split all leaves of a tree."""
    job = Job(np.arange(len(x)), **({"leaves": 1000, "least": 1.0} | options))
    found = BinnedRows.read(x, np.ones(len(x)) if weight is None else weight).with_targets(values)
    split_leaves(builder, found, leaf_rows(builder.ends(x)), job, threads=1)
    return builder


def mean_error(builder: TreeBuilder, x: Floats, values: Doubles) -> float:
    ends = builder.ends(x)
    return float(sum(np.square(values[rows] - values[rows].mean(0)).sum() for _, rows in leaf_rows(ends)) / len(x))


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_greedy_splits_of_single_columns_are_those_of_scikit_learn(depth: int) -> None:
    x = rows(150, 3)
    values = np.stack((x[:, 0] * x[:, 1], x[:, 2]), 1).astype(np.float64)
    builder = split(root(depth, d=3, k=2), x, values, least=4.0)
    greedy = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=4, random_state=0).fit(x, values)
    ends, leaves = builder.ends(x), greedy.apply(x)
    assert len(set(zip(ends.tolist(), leaves.tolist(), strict=True))) == len(builder.leaves) == greedy.get_n_leaves()


def test_leaves_are_split_by_their_own_rows_while_there_is_room() -> None:
    x, builder = rows(200), root(2, k=1)
    builder.split(0, np.array([1.0, 0.0]), 0.0)
    values = np.where(x[:, :1] < 0, x[:, 1:] > 0.5, x[:, 1:] > -0.5).astype(np.float64)
    for _ in range(2):  # the second time there is no room
        assert mean_error(split(builder, x, values), x, values) == 0
        assert_array_equal(builder.leaves, [3, 4, 5, 6])
        assert_array_equal(builder.weight[1:], [[0, 1], [0, 1]])


def test_two_columns_tell_apart_what_one_cannot() -> None:
    x = rows(300)
    values = (x.sum(1, keepdims=True) > 0.3).astype(np.float64)
    builder = split(root(1), x, values, leaves=2, terms=2, rounds=100)
    assert mean_error(builder, x, values) < 0.2 * mean_error(split(root(1), x, values), x, values)
    assert_array_equal(np.count_nonzero(builder.weight, axis=1), [2])


def test_rows_of_more_weight_choose_the_split() -> None:
    x = np.arange(12, dtype=np.float32)[:, None]
    weight = np.where(x[:, 0] < 6, 1.0, 1e-6)
    builder = split(root(1, d=1), x, x.astype(np.float64), weight, least=0.0)
    assert_array_equal(builder.ends(x), [1] * 3 + [2] * 9)


@pytest.mark.parametrize("value", [1.0, 3.0, 0.1, 1e-30, 1e30, -1.0, -0.7, 0.0])
def test_neighboring_numbers_are_told_apart(value: float) -> None:
    for begin in (np.float32(value), np.nextafter(np.float32(value), np.float32(np.inf))):
        x = np.repeat(np.array([begin, np.nextafter(begin, np.float32(np.inf))]), 3)[:, None]
        builder = split(root(1, d=1), x, np.repeat([0.0, 1.0], 3)[:, None])
        assert_array_equal(builder.ends(x), np.repeat([1, 2], 3))
