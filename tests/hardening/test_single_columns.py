"""Greedy trees of single columns, guided by a soft tree."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening.single_columns import Table, grow_single_columns
from prunus.hardening.sketch import Sketch
from prunus.targets.links import IDENTITY, SOFTMAX
from tests.hardening.problems import Doubles, rows

N = 300


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


def grow(given: Table, *, depth: int = 4, max_leaves: int | None = None, held_out: Any = None) -> Sketch:
    held_out = np.arange(N) % 4 == 0 if held_out is None else held_out
    return grow_single_columns(given, held_out, np.ones(N, dtype=bool), depth, max_leaves)


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


@pytest.mark.parametrize("depth", [1, 2, 5])
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
    assert errors[0] < 0.5 * errors[1]


def test_rows_that_are_not_fitted_do_not_matter() -> None:
    given = table(noise=0.5)
    nothing, some = np.zeros(N, dtype=bool), np.arange(N) % 3 > 0
    wild = Table(given.x, given.prior, np.where(some[:, None], given.wanted, 1e6), given.weight)
    found = grow_single_columns(wild, nothing, some, 3, None)
    expected = grow_single_columns(given[some], nothing[some], np.ones(some.sum(), dtype=bool), 3, None)
    assert_array_equal(found.models.constant, expected.models.constant)
    assert_array_equal(found.bias, expected.bias)


def test_the_unit_of_weights_does_not_matter_without_noise() -> None:
    one, thousand = (grow(table(weight=np.full(N, weight))) for weight in (1.0, 1000.0))
    assert_array_equal(one.bias, thousand.bias)
