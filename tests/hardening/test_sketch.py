"""A hard tree while it is made."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from prunus.hardening import sketch as module
from prunus.hardening.leaf_models import LeafModels
from prunus.hardening.sketch import complete_sketch, deepened
from tests.hardening.problems import by_thresholds, root, rows


def test_a_root_is_the_only_leaf() -> None:
    for depth in (0, 3):
        sketch = root(depth)
        assert sketch.depth == depth
        assert_array_equal(sketch.leaves, [0])
        assert_array_equal(sketch.ends(rows(4)), np.zeros(4))


def test_a_leaf_is_split_into_two_with_its_model() -> None:
    sketch = root(2, constant=3.0, slope=[1.0, 2.0])
    assert sketch.split(0, np.array([1.0, -1.0]), 0.5) == (1, 2)
    assert sketch.split(2, np.array([0.0, 1.0]), 0.0) == (5, 6)
    assert_array_equal(sketch.leaves, [1, 5, 6])
    for node in (1, 2, 5, 6):
        assert_array_equal(sketch.models.constant[node], [3.0])
        assert_array_equal(sketch.models.slope[node], [[1.0, 2.0]])


def test_rows_go_right_where_the_score_is_not_negative() -> None:
    sketch = root(2, d=1)
    sketch.split(0, np.ones(1), -1.0)
    sketch.split(1, np.ones(1), 0.0)
    x = np.array([[-0.5], [0.0], [np.nextafter(np.float32(1), np.float32(0))], [1.0], [7.0]], dtype=np.float32)
    assert_array_equal(sketch.ends(x), [3, 4, 4, 2, 2])


def test_rows_end_in_leaves() -> None:
    sketch = root(3)
    sketch.split(0, np.array([1.0, 0.0]), 0.0)
    sketch.split(2, np.array([0.0, 1.0]), 0.0)
    x = rows(50)
    right, up = x[:, 0] >= 0, x[:, 1] >= 0
    assert_array_equal(sketch.ends(x), np.where(right, np.where(up, 6, 5), 1))


def test_many_rows_are_sent_down_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    sketch, x = by_thresholds(2, [0.0, -1.0, 1.0], [0.0] * 7), rows(50, 1)
    at_once = sketch.ends(x)
    monkeypatch.setattr(module, "CHUNK", 7)
    assert_array_equal(sketch.ends(x), at_once)


def test_no_rows_have_no_ends() -> None:
    assert root(2).ends(rows(0)).shape == (0,)


def test_merged_leaves_become_their_mean() -> None:
    sketch = by_thresholds(2, [0.0, -1.0, 1.0], [0, 0, 0, 1, 2, 3, 7])
    sketch.models.slope[5], sketch.models.slope[6] = 1.0, -1.0
    sketch.merge(2, 0.25)
    assert_array_equal(sketch.leaves, [2, 3, 4])
    assert_array_equal(sketch.models.constant[2], [0.25 * 3 + 0.75 * 7])
    assert_array_equal(sketch.models.slope[2], [[0.25 - 0.75]])
    assert_array_equal(sketch.weight[2], [0.0])
    assert_array_equal(sketch.ends(np.array([[-2], [-0.5], [0.5], [2]], dtype=np.float32)), [3, 4, 2, 2])


def test_splitting_and_merging_gives_the_leaf_back() -> None:
    sketch = root(1, constant=3.0, slope=[1.0, 2.0])
    sketch.split(0, np.ones(2), 0.0)
    sketch.merge(0, 0.3)
    assert_array_equal(sketch.leaves, [0])
    np.testing.assert_allclose(sketch.models.constant[0], [3.0])
    np.testing.assert_allclose(sketch.models.slope[0], [[1.0, 2.0]])


def test_a_deeper_sketch_has_the_same_leaves() -> None:
    models = LeafModels(np.arange(3.0)[:, None], np.zeros((3, 1, 1)))
    given = complete_sketch(np.ones((1, 1)), np.zeros(1), models)
    sketch = deepened(given, 3)
    assert sketch.depth == 3
    assert_array_equal(sketch.leaves, [1, 2])
    assert_array_equal(sketch.ends(np.array([[-1.0], [1.0]], dtype=np.float32)), [1, 2])
    assert_array_equal(sketch.models.constant[:3, 0], [0, 1, 2])
    sketch.split(1, np.ones(1), 1.0)
    assert_array_equal(given.leaves, [1, 2])
    assert_array_equal(deepened(sketch, 4).leaves, sketch.leaves)
