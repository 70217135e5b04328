"""Trees of few columns in each split that are searched, guided by a soft tree."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening.searched import Size, Table, search_tree
from prunus.hardening.sketch import Sketch
from prunus.targets.links import IDENTITY, SOFTMAX
from tests.hardening.problems import Doubles, rows

N = 240
"""Fewer than the bins of a search, so that it finds all thresholds exactly."""


def table(*, noise: float = 0.0, is_share: bool = False, weight: Any = None) -> Table:
    """Steps of two columns; the soft tree knows them, the rows have noise."""
    x, random = rows(N, 3), np.random.default_rng(1)
    steps = (x[:, 0] > 0) + 2.0 * (x[:, 1] > 0)
    prior = np.eye(4)[steps.astype(int)] if is_share else steps[:, None]
    if is_share:
        wanted = np.where(random.random((N, 1)) < noise, np.eye(4)[random.integers(0, 4, N)], prior)
    else:
        wanted = prior + noise * random.normal(size=(N, 1))
    return Table(x, prior, wanted, np.ones(N) if weight is None else weight, SOFTMAX if is_share else IDENTITY)


def grow(
    given: Table, *, terms: int = 1, depth: int = 4, max_leaves: int | None = None, held_out: Any = None
) -> Sketch:
    held_out = np.arange(N) % 4 == 0 if held_out is None else held_out
    return search_tree(given, held_out, np.ones(N, dtype=bool), Size(terms, depth, max_leaves))


def outputs(sketch: Sketch, given: Table) -> Doubles:
    found: Doubles = sketch.models.constant[sketch.ends(given.x)]
    return found


@pytest.mark.parametrize("held_out", [None, np.zeros(N, dtype=bool)])
@pytest.mark.parametrize("is_share", [False, True])
def test_steps_are_found(is_share: bool, held_out: Any) -> None:
    given = table(is_share=is_share)
    sketch = grow(given, held_out=held_out)
    found = outputs(sketch, given)
    if is_share:
        assert_array_equal(found.argmax(1), given.prior.argmax(1))
        assert_allclose(np.exp(found).sum(1), 1.0, atol=1e-4)
    else:
        assert_allclose(found, given.prior, atol=0.05)


@pytest.mark.parametrize("is_share", [False, True])
def test_splits_are_single_columns(is_share: bool) -> None:
    sketch = grow(table(noise=0.3, is_share=is_share))
    used = np.count_nonzero(sketch.weight, axis=1)
    assert used.max() == 1
    assert set(np.unique(sketch.weight)) <= {0.0, 1.0}
    assert not sketch.models.slope.any()


@pytest.mark.parametrize("max_leaves", [2, 3, 5])
@pytest.mark.parametrize("is_share", [False, True])
def test_there_are_as_few_leaves_as_wished(is_share: bool, max_leaves: int) -> None:
    assert len(grow(table(noise=1.0, is_share=is_share), max_leaves=max_leaves).leaves) <= max_leaves


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_a_tree_is_as_deep_as_wished(depth: int) -> None:
    sketch = grow(table(noise=1.0), depth=depth)
    assert sketch.depth == depth
    assert sketch.leaves.max() < 2 ** (depth + 1) - 1


def test_a_soft_tree_that_is_wrong_is_ignored() -> None:
    right, wrong = table(), table()
    wrong = Table(wrong.x, 50.0 * wrong.x[:, 2:].astype(np.float64), wrong.wanted, wrong.weight)
    assert_allclose(outputs(grow(wrong), wrong), right.wanted, atol=0.05)


def test_a_soft_tree_that_is_right_helps() -> None:
    given = table(noise=3.0)
    alone = Table(given.x, given.wanted, given.wanted, given.weight)
    errors = [np.square(outputs(grow(one), one) - given.prior).mean() for one in (given, alone)]
    assert errors[0] < 0.8 * errors[1]


def test_rows_that_are_not_fitted_do_not_matter() -> None:
    given = table(noise=0.5)
    nothing, some = np.zeros(N, dtype=bool), np.arange(N) % 3 > 0
    wild = Table(given.x, given.prior, np.where(some[:, None], given.wanted, 1e6), given.weight)
    found = search_tree(wild, nothing, some, Size(1, 3))
    expected = search_tree(given[some], nothing[some], np.ones(some.sum(), dtype=bool), Size(1, 3))
    assert_array_equal(found.models.constant, expected.models.constant)
    assert_array_equal(found.bias, expected.bias)


def test_the_unit_of_weights_does_not_matter_without_noise() -> None:
    one, thousand = (grow(table(weight=np.full(N, weight))) for weight in (1.0, 1000.0))
    assert_array_equal(one.bias, thousand.bias)


def diagonal() -> Table:
    x = rows(N, 3)
    wanted = (x[:, :2].sum(1, keepdims=True) > 0).astype(np.float64)
    return Table(x, wanted, wanted, np.ones(N))


def test_splits_of_two_columns_need_fewer_leaves() -> None:
    given = diagonal()
    one, two = (grow(given, terms=terms, depth=6) for terms in (1, 2))
    assert np.count_nonzero(two.weight, axis=1).max() == 2
    assert len(two.leaves) < len(one.leaves)
    assert np.square(outputs(two, given) - given.wanted).mean() < 0.02


def test_a_tree_may_be_deeper_than_one_search() -> None:
    x = np.sort(rows(400, 1), axis=0)
    steps = np.cumsum(2.0 ** np.arange(400) % 97)[:, None] ** 3  # best-first growth makes a long chain
    given = Table(x, steps, steps, np.ones(400))
    deep = search_tree(given, np.arange(400) % 9 == 0, np.ones(400, dtype=bool), Size(1, 14))
    assert deep.leaves.max() >= 2**11 - 1
    assert len(deep.leaves) > 100


def test_rows_without_weight_do_not_matter() -> None:
    given, nothing = table(noise=0.5), np.arange(N) % 3 == 0
    weight = np.where(nothing, 0.0, 1.0)
    wild = Table(given.x, given.prior, np.where(nothing[:, None], 1e6, given.wanted), weight)
    held_out = np.arange(N) % 4 == 0
    found = search_tree(wild, held_out, np.ones(N, dtype=bool), Size(1, 3))
    counted = np.ones(int((~nothing).sum()), dtype=bool)
    expected = search_tree(given[~nothing], held_out[~nothing], counted, Size(1, 3))
    assert_array_equal(found.models.constant, expected.models.constant)
    assert_array_equal(found.bias, expected.bias)


@pytest.mark.parametrize("terms", [1, 2])
def test_threads_do_not_matter(terms: int) -> None:
    given = table(noise=1.0)
    held_out, everything = np.arange(N) % 4 == 0, np.ones(N, dtype=bool)
    one, two = (search_tree(given, held_out, everything, Size(terms, 4), threads=threads) for threads in (1, 2))
    assert_array_equal(one.weight, two.weight)
    assert_array_equal(one.bias, two.bias)
