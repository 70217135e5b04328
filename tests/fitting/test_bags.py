"""What each tree of a forest sees: rows to train on, rows to validate on, and columns."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from prunus.fitting.bags import Bags
from prunus.fitting.rows import Rows

N = 103
VALUES = np.zeros((N, 1))
CLASSES = np.repeat([0, 1, 2], [70, 30, 3])


def bags(y: Any = VALUES, n_features: int = 4, **options: Any) -> Bags:
    return Bags(y, n_features, **{"seed": 0, "held_out": 0.15} | options)


def test_every_row_is_held_out_by_one_of_enough_trees() -> None:
    made = [bags().of(k) for k in range(7)]
    assert_array_equal(np.unique(np.concatenate([bag.valid for bag in made if bag.valid is not None])), np.arange(N))
    train, valid = made[3].train, made[3].valid
    assert train is not None
    assert valid is not None
    assert len(valid) == 16
    assert_array_equal(np.sort(np.concatenate((train, valid))), np.arange(N))


@pytest.mark.parametrize("k", [0, 5, 11])
def test_classes_are_held_out_in_proportion(k: int) -> None:
    counts = np.bincount(CLASSES[bags(CLASSES, held_out=0.2).of(k).valid], minlength=3)
    assert np.abs(counts - 0.2 * np.array([70, 30, 3])).max() <= 1


def test_drawn_rows_train_and_others_validate() -> None:
    bag = bags(bootstrap=True).of(2)
    assert bag.train is not None
    assert bag.valid is not None
    assert bag.count is not None
    assert bag.count.sum() == N
    assert 0.5 < len(bag.train) / N < 0.75
    assert not set(bag.train) & set(bag.valid)
    assert len(bag.valid) == 16


def test_a_row_that_was_drawn_twice_has_twice_the_weight() -> None:
    weight = np.linspace(1, 2, N)
    bag = bags(held_out=None, bootstrap=True).of(0)
    assert bag.count is not None
    assert bag.count.max() > 1
    found = bag.of(Rows(np.zeros((N, 4), dtype=np.float32), VALUES, weight))
    assert_array_equal(found.weight, bag.count * weight[bag.train])


def test_number_of_columns() -> None:
    for asked, seen in [(1.0, 10), (0.7, 7), (0.01, 1), (3, 3), (50, 10)]:
        features = bags(n_features=10, held_out=None, max_features=asked).of(0).features
        assert len(np.unique(features)) == seen


def test_trees_see_different_rows_and_columns_whatever_the_others_are() -> None:
    first, second = (bags(n_features=10, seed=3, bootstrap=True, max_features=0.5) for _ in range(2))
    assert_array_equal(first.of(4).features, second.of(4).features)
    assert_array_equal(first.train_rows(4), second.train_rows(4))
    assert not np.array_equal(first.of(4).features, first.of(5).features)
    assert not np.array_equal(first.train_rows(4), first.train_rows(5))
    assert first.of(4).seed != first.of(5).seed


def test_without_drawing_and_validation_trees_train_on_all_rows() -> None:
    made = bags(held_out=None)
    assert not made.leaves_rows_out
    assert made.of(0).train is None
    assert_array_equal(made.train_rows(0), np.arange(N))
