"""A hard tree while it is built: splits, merged leaves, and which splits are taken away first."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening import builder as module
from prunus.hardening.builder import TreeBuilder, complete_tree, deepened, merge_leaves, weakest_first
from prunus.hardening.leaf_models import LeafModels
from tests.hardening.problems import Floats, by_thresholds, root, rows

X = np.arange(-4, 4, dtype=np.float32)[:, None] + 0.5
VALUES = [0.0, 1.0, 10.0, 14.0, 100.0, 102.0, 200.0, 203.0]


def eight() -> TreeBuilder:
    """A tree of depth 3 with one row of X in each leaf; leaves 7 to 14 have VALUES."""
    return by_thresholds(3, [0.0, -2.0, 2.0, -3.0, -1.0, 1.0, 3.0], [0.0] * 7 + VALUES)


def merged(builder: TreeBuilder, x: Floats = X, weight: object = None, **options: object) -> list[int]:
    weights = np.ones(len(x)) if weight is None else np.asarray(weight, dtype=np.float64)
    merge_leaves(builder, x, builder.ends(x), weights, **options)  # type: ignore[arg-type]
    leaves = sorted(builder.leaves.tolist())
    assert_array_equal(np.unique(builder.ends(x)), [leaf for leaf in leaves if leaf in builder.ends(x)])
    return leaves


def test_leaves_are_split_into_two_with_their_models() -> None:
    builder = root(3, constant=3.0, slope=[1.0, 2.0])
    assert builder.depth == 3
    assert_array_equal(builder.leaves, [0])
    assert builder.split(0, np.array([1.0, 0.0]), 0.0) == (1, 2)
    assert builder.split(2, np.array([0.0, 1.0]), 0.0) == (5, 6)
    assert_array_equal(builder.leaves, [1, 5, 6])
    for node in (1, 2, 5, 6):
        assert_array_equal(builder.models.constant[node], [3.0])
        assert_array_equal(builder.models.slope[node], [[1.0, 2.0]])
    x = rows(50)
    right, up = x[:, 0] >= 0, x[:, 1] >= 0
    assert_array_equal(builder.ends(x), np.where(right, np.where(up, 6, 5), 1))
    assert builder.ends(x[:0]).shape == (0,)


def test_rows_go_right_where_the_score_is_not_negative() -> None:
    builder = root(2, d=1)
    builder.split(0, np.ones(1), -1.0)
    builder.split(1, np.ones(1), 0.0)
    x = np.array([[-0.5], [0.0], [np.nextafter(np.float32(1), np.float32(0))], [1.0], [7.0]], dtype=np.float32)
    assert_array_equal(builder.ends(x), [3, 4, 4, 2, 2])


def test_many_rows_are_sent_down_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    builder, x = eight(), rows(50, 1)
    at_once = builder.ends(x)
    monkeypatch.setattr(module, "CHUNK", 7)
    assert_array_equal(builder.ends(x), at_once)


def test_merged_leaves_become_their_mean() -> None:
    builder = by_thresholds(2, [0.0, -1.0, 1.0], [0, 0, 0, 1, 2, 3, 7])
    builder.models.slope[5], builder.models.slope[6] = 1.0, -1.0
    builder.merge(2, 0.25)
    assert_array_equal(builder.leaves, [2, 3, 4])
    assert_array_equal(builder.models.constant[2], [0.25 * 3 + 0.75 * 7])
    assert_array_equal(builder.models.slope[2], [[0.25 - 0.75]])
    assert_array_equal(builder.weight[2], [0.0])
    assert_array_equal(builder.ends(np.array([[-2], [-0.5], [0.5], [2]], dtype=np.float32)), [3, 4, 2, 2])


def test_a_deeper_tree_has_the_same_leaves() -> None:
    given = complete_tree(np.ones((1, 1)), np.zeros(1), LeafModels(np.arange(3.0)[:, None], np.zeros((3, 1, 1))))
    builder = deepened(given, 3)
    assert builder.depth == 3
    assert_array_equal(builder.leaves, [1, 2])
    assert_array_equal(builder.ends(np.array([[-1.0], [1.0]], dtype=np.float32)), [1, 2])
    assert_array_equal(builder.models.constant[:3, 0], [0, 1, 2])
    builder.split(1, np.ones(1), 1.0)
    assert_array_equal(given.leaves, [1, 2])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, range(7, 15)),
        ({"max_leaves": 8}, range(7, 15)),
        ({"max_leaves": 7}, [3, 9, 10, 11, 12, 13, 14]),  # 0 and 1
        ({"max_leaves": 6}, [3, 5, 9, 10, 13, 14]),  # 100 and 102
        ({"max_leaves": 5}, [3, 5, 6, 9, 10]),  # 200 and 203
        ({"max_leaves": 4}, [3, 4, 5, 6]),  # 10 and 14
        ({"max_leaves": 3}, [1, 5, 6]),
        ({"max_leaves": 2}, [1, 2]),
        ({"max_leaves": 1}, [0]),
        ({"fewest": 1.0}, range(7, 15)),
        ({"fewest": 1.5}, range(3, 7)),
        ({"fewest": 2.0}, range(3, 7)),
        ({"fewest": 3.0}, [1, 2]),
        ({"fewest": 5.0}, [0]),
        ({"fewest": 1.0, "weight": [5.0, 5.0, 5.0, 0.1, 5.0, 5.0, 5.0, 5.0]}, [4, 7, 8, 11, 12, 13, 14]),
        ({"max_leaves": 7, "weight": [100.0, 100, 1, 1, 1, 1, 1, 1]}, [5, 7, 8, 9, 10, 13, 14]),
    ],
    ids=str,
)
def test_the_cheapest_pairs_and_small_leaves_are_merged_first(options: dict[str, object], expected: list[int]) -> None:
    assert merged(eight(), **options) == list(expected)  # type: ignore[arg-type]


def test_a_merged_leaf_has_the_weighted_mean_of_its_rows() -> None:
    for weight in (np.ones(8), np.array([100.0, 100, 1, 1, 1, 1, 1, 1])):
        builder = eight()
        merged(builder, weight=weight, max_leaves=1)
        assert_allclose(builder.models.constant[0], [weight @ VALUES / weight.sum()])


def test_weights_are_repetitions() -> None:
    x, times = rows(60, 1), np.random.default_rng(0).integers(1, 4, 60)
    found = []
    for repeated, weight in ((x, times), (x.repeat(times, axis=0), None)):
        builder = by_thresholds(3, [0.0, -1.0, 1.0, -2.0, -0.5, 0.5, 2.0], np.sin(np.arange(15)).tolist())
        found.append((merged(builder, repeated, weight, max_leaves=3), builder.models.constant))
    assert found[0][0] == found[1][0]
    assert_allclose(found[0][1], found[1][1])


def test_leaves_without_rows_cost_nothing() -> None:
    builder, x = eight(), X[[0, 1, 2, 3, 6, 7]]  # none in leaves 11 and 12
    merge_leaves(builder, x, builder.ends(x), np.ones(6), max_leaves=7)
    assert_array_equal(builder.leaves, [5, 7, 8, 9, 10, 13, 14])


def test_a_small_leaf_beside_an_inner_node_stays() -> None:
    builder = root(2, d=1)
    builder.split(0, np.ones(1), 3.0)
    builder.split(2, np.ones(1), 0.0)
    assert merged(builder, weight=[0.1] + [5.0] * 7, fewest=1.0) == [1, 5, 6]
    assert merged(root(2, d=1), max_leaves=1, fewest=100.0) == [0]


def test_models_are_compared_for_their_rows_by_what_is_asked() -> None:
    builder = by_thresholds(1, [0.0], [0.0, 0.0, 0.0])
    builder.models.slope[1:, 0, 0] = 2.0, -1.0
    merged(builder, max_leaves=1)
    assert_allclose(builder.models.slope[0, 0], [0.5])
    builder = eight()  # all but the first two leaves are the same
    assert 3 not in merged(builder, max_leaves=7, compared=lambda outputs: (outputs > 0.5).astype(np.float64))


def test_the_splits_that_are_worth_least_go_first() -> None:
    x, values = np.arange(4, dtype=np.float32)[:, None], np.array([[0.0], [1.0], [10.0], [14.0]])
    builder = by_thresholds(2, [2.0, 1.0, 3.0], [0.0] * 7)
    assert weakest_first(builder, builder.ends(x), values, np.ones(4)) == [1, 2, 0]
    assert weakest_first(builder, builder.ends(x), values, np.array([100.0, 100.0, 1.0, 1.0])) == [2, 1, 0]
    assert weakest_first(root(0), np.zeros(3, dtype=np.int64), np.ones((3, 1)), np.ones(3)) == []
