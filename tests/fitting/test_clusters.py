"""Where clustering starts, and the hierarchy that is read off a kept tree."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, is_monotonic, is_valid_linkage, linkage
from sklearn.metrics import adjusted_rand_score

from prunus.fitting.cluster_start import agreed_halves, cluster_splits, ward_halves
from prunus.fitting.hierarchy import Hierarchy, flat_labels, labels_at_depth, read_hierarchy
from tests.estimators.problems import Floats, table

Kept = npt.NDArray[np.bool_]


def kept_tree(n_nodes: int, *pruned: int) -> Kept:
    """The nodes of a tree without the subtrees at these nodes."""
    kept = np.ones(n_nodes, dtype=bool)
    kept[list(pruned)] = False
    for t in range(1, n_nodes):
        kept[t] &= kept[(t - 1) // 2]
    return kept


def hierarchy_of(tree: Kept, at: dict[int, list[float]]) -> Hierarchy:
    """That of rows of one number, which end in these nodes."""
    x = np.array([[value] for values in at.values() for value in values], dtype=np.float32)
    ends = np.repeat(list(at), [len(values) for values in at.values()])
    return read_hierarchy(tree, x, ends, np.ones(len(ends)))


FULL = kept_tree(7)
FOUR = {3: [0.0], 4: [1.0], 5: [10.0], 6: [14.0]}


def test_merges_are_those_of_ward() -> None:
    found = hierarchy_of(FULL, FOUR)
    assert found.leaves.tolist() == [3, 4, 5, 6]
    assert found.children.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert found.nodes.tolist() == [1, 2, 0]
    assert found.counts.tolist() == [2, 2, 4]
    assert_allclose(found.heights, linkage([[0.0], [1.0], [10.0], [14.0]], "ward")[:, 2])
    two = hierarchy_of(kept_tree(3), {1: [0.0, 0.0], 2: [3.0, 3.0]})
    assert_allclose(two.heights, [linkage([[0.0], [0.0], [3.0], [3.0]], "ward")[-1, 2]])


def test_leaves_are_numbered_from_left_to_right_and_merged_from_below() -> None:
    found = hierarchy_of(kept_tree(15, 7, 8, 9, 10, 5, 6), {3: [0.0], 4: [1.0], 2: [9.0]})
    assert (found.leaves.tolist(), found.children.tolist()) == ([3, 4, 2], [[0, 1], [3, 2]])
    found = hierarchy_of(FULL, {3: [-9.0], 4: [9.0], 5: [-1.0], 6: [1.0]})
    assert found.nodes.tolist() == [2, 1, 0]
    assert found.heights[2] == found.heights[1] > found.heights[0], "a merge is no lower than those below it"
    found = hierarchy_of(kept_tree(15), {t: [1.0] for t in range(7, 15)})
    assert (found.heights.tolist(), found.nodes.tolist()) == ([0.0] * 7, [6, 5, 4, 3, 2, 1, 0])


@pytest.mark.parametrize(("tree", "end"), [(kept_tree(1), 0), (kept_tree(7, 1, 2), 0), (FULL, 5)])
def test_one_leaf_has_no_merges(tree: Kept, end: int) -> None:
    found = hierarchy_of(tree, {end: [1.0, 2.0]})
    assert found.leaves.tolist() == [end]
    assert found.children.shape == (0, 2)
    assert found.heights.shape == found.nodes.shape == found.counts.shape == (0,)
    assert flat_labels(found, len(tree), 1).tolist() == [0] * len(tree)
    assert labels_at_depth(found, len(tree), 2).tolist() == [0] * len(tree)


def test_nodes_that_no_row_reaches_are_passed_over() -> None:
    found = hierarchy_of(kept_tree(15), {7: [0.0], 10: [1.0], 12: [5.0]})
    assert found.leaves.tolist() == [7, 10, 12]
    assert found.nodes.tolist() == [1, 0]
    assert found.children.tolist() == [[0, 1], [3, 2]]
    assert found.counts.tolist() == [2, 3]
    x, ends = np.array([[0.0], [1.0], [10.0], [14.0]], dtype=np.float32), np.array([3, 4, 5, 6])
    weighted = read_hierarchy(FULL, x, ends, np.array([1.0, 0.0, 1.0, 1.0]))
    assert (weighted.leaves.tolist(), weighted.nodes.tolist()) == ([3, 5, 6], [2, 0])


def test_a_weight_of_two_is_a_row_twice() -> None:
    x, ends, weight = table(20).astype(np.float32), np.arange(20) % 4 + 3, np.arange(20) % 3 + 1
    first = read_hierarchy(FULL, x, ends, weight.astype(float))
    second = read_hierarchy(FULL, np.repeat(x, weight, 0), np.repeat(ends, weight), np.ones(weight.sum()))
    assert_array_equal(first.children, second.children)
    assert_allclose(first.heights, second.heights)


def test_the_closest_merge_comes_first_and_cuts_are_subtrees() -> None:
    found = hierarchy_of(FULL, FOUR)
    flat = {4: [0, 1, 2, 3], 3: [0, 0, 1, 2], 2: [0, 0, 1, 1], 1: [0] * 4}
    assert {k: flat_labels(found, 7, k)[3:].tolist() for k in flat} == flat
    cuts = {0: [0] * 4, 1: [0, 0, 1, 1], 2: [0, 1, 2, 3], 9: [0, 1, 2, 3]}
    assert {depth: labels_at_depth(found, 7, depth)[3:].tolist() for depth in cuts} == cuts
    early = hierarchy_of(kept_tree(7, 5, 6), {3: [0.0], 4: [1.0], 2: [9.0]})
    assert labels_at_depth(early, 7, 2)[[3, 4, 2]].tolist() == [0, 1, 2]
    assert labels_at_depth(early, 7, 1)[[3, 4, 2]].tolist() == [0, 0, 1]


def test_nodes_that_no_row_reached_belong_to_a_neighbor() -> None:
    found = hierarchy_of(kept_tree(15), {7: [0.0], 10: [1.0], 11: [5.0], 12: [9.0]})
    for labels in (flat_labels(found, 15, 4), labels_at_depth(found, 15, 3)):
        assert labels[[7, 10, 11, 12]].tolist() == [0, 1, 2, 3]
        assert labels[[8, 9]].tolist() == [0, 1]
        assert set(labels[13:]) <= {2, 3}
        assert labels.min() == 0


def reached(seed: int) -> tuple[Kept, dict[int, list[float]]]:
    """A tree with pruned pairs, and rows in some of its leaves."""
    random = np.random.default_rng(seed)
    tree = kept_tree(31, *[t for pair in range(1, 31, 2) if random.random() < 0.2 for t in (pair, pair + 1)])
    leaves = np.array([t for t in np.flatnonzero(tree) if 2 * t + 1 >= 31 or not tree[2 * t + 1]])
    some = random.choice(leaves, size=random.integers(1, len(leaves) + 1), replace=False)
    return tree, {int(t): random.normal(size=3).tolist() for t in some}


def test_every_node_has_a_label_and_hierarchies_are_linkages_that_cut_alike() -> None:
    for seed in range(20):
        tree, at = reached(seed)
        found, ends = hierarchy_of(tree, at), list(at)
        matrix = np.column_stack((found.children, found.heights, found.counts)).astype(np.float64)
        assert len(at) == 1 or (is_valid_linkage(matrix) and is_monotonic(matrix))
        for k in range(1, len(at) + 1):
            labels = flat_labels(found, 31, k)
            assert np.unique(labels).tolist() == np.unique(labels[ends]).tolist() == list(range(k))
            last, first = found.heights[len(at) - k :], found.heights[: len(at) - k]
            if len(at) > 1 and (not first.size or not last.size or first.max() < last.min()):
                assert adjusted_rand_score(fcluster(matrix, k, "maxclust"), labels[found.leaves]) == 1.0
        for depth in range(6):
            labels, finer = labels_at_depth(found, 31, depth), labels_at_depth(found, 31, depth + 1)
            assert np.unique(labels).tolist() == np.unique(labels[ends]).tolist()
            assert len(set(zip(finer[15:].tolist(), labels[15:].tolist(), strict=True))) == finer.max() + 1
        assert_array_equal(labels_at_depth(found, 31, 5)[ends], flat_labels(found, 31, len(at))[ends])


def same_halves(one: object, other: object) -> bool:
    a, b = np.asarray(one, dtype=bool), np.asarray(other, dtype=bool)
    return bool((a == b).all() or (a != b).all())


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_halves_are_those_of_ward(n: int) -> None:
    for seed in range(8):
        points = table(n, 3, seed=seed)
        before, halves = points.copy(), ward_halves(points, np.ones(n))
        assert same_halves(halves, fcluster(linkage(points, "ward"), 2, "maxclust") == 2)
        assert halves.dtype == bool
        assert not halves[0]
        assert_array_equal(points, before)


def test_a_point_of_weight_two_is_the_point_twice() -> None:
    for seed in range(8):
        points, weight = table(20, 2, seed=seed), np.random.default_rng(seed).integers(1, 4, size=20)
        repeated = ward_halves(np.repeat(points, weight, axis=0), np.ones(weight.sum()))
        assert_array_equal(np.repeat(ward_halves(points, weight.astype(float)), weight), repeated)


def test_most_spaces_win() -> None:
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    wide, high = square * [9.0, 1.0], square * [1.0, 9.0]
    assert same_halves(agreed_halves([wide, high, wide], np.ones(4)), [0, 0, 1, 1])
    assert same_halves(agreed_halves([high, wide, high], np.ones(4)), [0, 1, 0, 1])


def splits_of(x: Floats, depth: int, seed: int = 0) -> Any:
    return cluster_splits(x.astype(np.float32), np.ones(len(x)), depth, 4.0, np.random.RandomState(seed))


@pytest.mark.parametrize(
    "x",
    [np.ones((5, 2)), np.ones((1, 3)), np.repeat([[0.0, 1.0], [2.0, 3.0]], 4, axis=0), np.repeat(table(3), 300, axis=0),
     1e-12 * table(10), 1e12 * table(10), np.array([[0.0], [1.0], [1e9]])],
    ids=["equal", "one", "two", "many equal", "small", "large", "far"],
)  # fmt: skip
def test_splits_are_finite(x: Floats) -> None:
    for depth in (0, 1, 3):
        directions, biases = splits_of(x, depth)
        assert directions.shape == (2**depth - 1, x.shape[1])
        assert biases.shape == (2**depth - 1,)
        assert np.isfinite(directions).all()
        assert np.isfinite(biases).all()
    if (x == x[0]).all():
        assert_array_equal(directions, 0.0)
        assert (biases < 0).all(), "equal rows are not split"


@pytest.mark.parametrize("n", [40, 2_000])
def test_splits_part_blobs_sharply(n: int) -> None:
    blob = np.arange(n) % 4
    x = np.array([[0.0, 0.0], [0.0, 10.0], [50.0, 0.0], [50.0, 20.0]])[blob] + table(n, 2)
    directions, biases = splits_of(x, 2)
    right = x @ directions.T + biases >= 0
    assert adjusted_rand_score(blob, np.where(right[:, 0], 2 + right[:, 2], right[:, 1])) == 1.0
    assert_allclose((x @ directions[0] + biases[0]).std(), 4.0, rtol=1e-3)


@pytest.mark.parametrize("d", [1, 3, 301])
def test_two_clumps_are_split_at_the_root(d: int) -> None:
    side = np.arange(80) % 2
    x = table(80, d) * 0.1 + 5 * side[:, None]
    direction, bias = splits_of(x, 1)
    assert same_halves(x @ direction[0] + bias[0] >= 0, side)


def test_the_same_seed_gives_the_same_splits() -> None:
    x = table(900, 4)
    for one, other in zip(splits_of(x, 3, seed=3), splits_of(x, 3, seed=3), strict=True):
        assert_array_equal(one, other)
