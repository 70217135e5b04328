"""Fewer leaves: those whose predictions differ least are merged first."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening.merging import merge_leaves
from prunus.hardening.sketch import Sketch
from tests.hardening.problems import Floats, by_thresholds, root, rows

X = np.arange(-4, 4, dtype=np.float32)[:, None] + 0.5
ONES = np.ones(8)


def eight() -> Sketch:
    """A sketch of depth 3 with one row of X in each leaf; leaves 7 to 14 have the values below."""
    values = [0.0] * 7 + [0, 1, 10, 14, 100, 102, 200, 203]
    return by_thresholds(3, [0.0, -2.0, 2.0, -3.0, -1.0, 1.0, 3.0], values)


def merged(sketch: Sketch, x: Floats = X, weight: object = ONES, **options: object) -> list[int]:
    merge_leaves(sketch, x, sketch.ends(x), np.asarray(weight, dtype=np.float64), **options)  # type: ignore[arg-type]
    leaves: list[int] = sketch.leaves.tolist()
    return leaves


def test_nothing_is_merged_without_a_limit() -> None:
    assert merged(eight()) == list(range(7, 15))
    assert merged(eight(), max_leaves=8) == list(range(7, 15))


@pytest.mark.parametrize("max_leaves", range(1, 8))
def test_there_are_as_many_leaves_as_allowed(max_leaves: int) -> None:
    assert len(merged(eight(), max_leaves=max_leaves)) == max_leaves


@pytest.mark.parametrize(
    ("max_leaves", "expected"),
    [
        (7, [3, 9, 10, 11, 12, 13, 14]),  # 0 and 1
        (6, [3, 5, 9, 10, 13, 14]),  # 100 and 102
        (5, [3, 5, 6, 9, 10]),  # 200 and 203
        (4, [3, 4, 5, 6]),  # 10 and 14
        (3, [1, 5, 6]),
        (2, [1, 2]),
        (1, [0]),
    ],
)
def test_the_cheapest_pairs_are_merged_first(max_leaves: int, expected: list[int]) -> None:
    assert sorted(merged(eight(), max_leaves=max_leaves)) == expected


def test_a_merged_leaf_has_the_mean_of_its_rows() -> None:
    sketch = eight()
    merged(sketch, max_leaves=1)
    assert_allclose(sketch.models.constant[0], [630 / 8])


def test_weights_count_as_rows() -> None:
    weight = np.array([100.0, 100, 1, 1, 1, 1, 1, 1])
    sketch = eight()
    assert sorted(merged(sketch, weight=weight, max_leaves=7)) == [5, 7, 8, 9, 10, 13, 14]
    assert_allclose(sketch.models.constant[5], [101.0])
    merged(sketch, weight=weight, max_leaves=1)
    values = np.array([0, 1, 10, 14, 100, 102, 200, 203])
    assert_allclose(sketch.models.constant[0], [weight @ values / weight.sum()])


def test_weights_are_repetitions() -> None:
    x, times = rows(60, 1), np.random.default_rng(0).integers(1, 4, 60)
    found = []
    for repeated, weight in ((x, times), (x.repeat(times, axis=0), np.ones(times.sum()))):
        sketch = by_thresholds(3, [0.0, -1.0, 1.0, -2.0, -0.5, 0.5, 2.0], np.sin(np.arange(15)).tolist())
        found.append((merged(sketch, repeated, weight, max_leaves=3), sketch.models.constant))
    assert found[0][0] == found[1][0]
    assert_allclose(found[0][1], found[1][1])


def test_leaves_without_rows_cost_nothing() -> None:
    here = [0, 1, 2, 3, 6, 7]  # none in leaves 11 and 12
    assert sorted(merged(eight(), X[here], ONES[here], max_leaves=7)) == [5, 7, 8, 9, 10, 13, 14]


@pytest.mark.parametrize(("fewest", "expected"), [(0.5, 8), (1.0, 8), (1.5, 4), (2.0, 4), (3.0, 2), (5.0, 1)])
def test_small_leaves_are_merged(fewest: float, expected: int) -> None:
    assert len(merged(eight(), fewest=fewest)) == expected


def test_only_small_leaves_are_merged() -> None:
    weight = [5.0, 5.0, 5.0, 0.1, 5.0, 5.0, 5.0, 5.0]
    assert sorted(merged(eight(), weight=weight, fewest=1.0)) == [4, 7, 8, 11, 12, 13, 14]


def test_a_small_leaf_beside_an_inner_node_stays() -> None:
    sketch = root(2, d=1)
    sketch.split(0, np.ones(1), 3.0)
    sketch.split(2, np.ones(1), 0.0)
    assert merged(sketch, weight=[0.1] + [5.0] * 7, fewest=1.0) == [1, 5, 6]


def test_models_are_compared_for_their_rows() -> None:
    sketch = by_thresholds(1, [0.0], [0.0, 0.0, 0.0])
    sketch.models.slope[1:, 0, 0] = 2.0, -1.0
    merged(sketch, max_leaves=1)
    assert_allclose(sketch.models.slope[0, 0], [0.5])


def test_what_is_compared_decides() -> None:
    sketch = eight()  # all but the first two leaves are the same
    leaves = merged(sketch, max_leaves=7, compared=lambda outputs: (outputs > 0.5).astype(np.float64))
    assert 3 not in leaves


def test_a_single_leaf_stays() -> None:
    for depth in (0, 2):
        assert merged(root(depth, d=1), max_leaves=1, fewest=100.0) == [0]


def test_rows_still_end_in_leaves() -> None:
    for max_leaves in range(1, 9):
        sketch = eight()
        leaves = merged(sketch, max_leaves=max_leaves)
        assert_array_equal(np.unique(sketch.ends(X)), sorted(leaves))
