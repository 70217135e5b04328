"""Rows of training: equal ones are merged into one with a weight."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from prunus.fitting.rows import Rows, merge_rows


@pytest.mark.parametrize("n", [1, 2, 7, 200])
@pytest.mark.parametrize("values_each", [1, 3, 1000])
def test_equal_rows_are_merged_in_the_order_of_their_values(n: int, values_each: int) -> None:
    random = np.random.default_rng(n + values_each)
    rows = (random.integers(0, values_each, size=(n, 4)) - values_each // 2) * random.choice([-0.5, 0.5])
    merged, group = merge_rows(Rows(rows[:, 1:].astype(np.float32), rows[:, 0]))
    expected, count = np.unique(rows, axis=0, return_counts=True)
    assert_array_equal(np.column_stack((merged.y, merged.x)), expected)
    weight = np.full(len(expected), count[0]) if merged.weight is None else merged.weight
    assert_array_equal(weight, count)
    assert_array_equal(expected[group], rows)
