"""Where clustering starts, and the hierarchy that is read off a kept tree."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, is_monotonic, is_valid_linkage, linkage
from sklearn.metrics import adjusted_rand_score

from prunus.fitting.cluster_start import cluster_splits, ward_halves
from prunus.fitting.hierarchy import Hierarchy, flat_labels, labels_at_depth, read_hierarchy
from prunus.tree.reading import node_statistics
from tests.estimators.problems import Floats, table

Nodes = npt.NDArray[np.int64]
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


def test_two_leaves() -> None:
    found = hierarchy_of(kept_tree(3), {1: [0.0, 0.0], 2: [3.0, 3.0]})
    assert found.leaves.tolist() == [1, 2]
    assert found.children.tolist() == [[0, 1]]
    assert found.nodes.tolist() == [0]
    assert found.counts.tolist() == [2]
    assert_allclose(found.heights, [linkage([[0.0], [0.0], [3.0], [3.0]], "ward")[-1, 2]])


def test_four_leaves() -> None:
    found = hierarchy_of(FULL, FOUR)
    assert found.leaves.tolist() == [3, 4, 5, 6]
    assert found.children.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert found.nodes.tolist() == [1, 2, 0]
    assert found.counts.tolist() == [2, 2, 4]
    assert_allclose(found.heights, linkage([[0.0], [1.0], [10.0], [14.0]], "ward")[:, 2])


def test_leaves_of_different_depths_are_numbered_from_left_to_right() -> None:
    found = hierarchy_of(kept_tree(15, 7, 8, 9, 10, 5, 6), {3: [0.0], 4: [1.0], 2: [9.0]})
    assert found.leaves.tolist() == [3, 4, 2]
    assert found.children.tolist() == [[0, 1], [3, 2]]


def test_a_merge_is_no_lower_than_those_below_it() -> None:
    found = hierarchy_of(FULL, {3: [-9.0], 4: [9.0], 5: [-1.0], 6: [1.0]})
    assert found.nodes.tolist() == [2, 1, 0]
    assert found.heights[2] == found.heights[1] > found.heights[0]


def test_merges_of_the_same_height_come_from_below() -> None:
    found = hierarchy_of(kept_tree(15), {t: [1.0] for t in range(7, 15)})
    assert found.heights.tolist() == [0.0] * 7
    assert found.nodes.tolist() == [6, 5, 4, 3, 2, 1, 0]


def test_one_leaf() -> None:
    for tree, end in ((kept_tree(1), 0), (kept_tree(7, 1, 2), 0), (FULL, 5)):
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


def test_rows_without_weight_reach_no_node() -> None:
    x, ends = np.array([[0.0], [1.0], [10.0], [14.0]], dtype=np.float32), np.array([3, 4, 5, 6])
    found = read_hierarchy(FULL, x, ends, np.array([1.0, 0.0, 1.0, 1.0]))
    assert found.leaves.tolist() == [3, 5, 6]
    assert found.nodes.tolist() == [2, 0]


def test_a_weight_of_two_is_a_row_twice() -> None:
    x, ends, weight = table(20).astype(np.float32), np.arange(20) % 4 + 3, np.arange(20) % 3 + 1
    first = read_hierarchy(FULL, x, ends, weight.astype(float))
    second = read_hierarchy(FULL, np.repeat(x, weight, 0), np.repeat(ends, weight), np.ones(weight.sum()))
    assert_array_equal(first.children, second.children)
    assert_allclose(first.heights, second.heights)


@pytest.mark.parametrize(
    ("n_clusters", "expected"),
    [(4, [0, 1, 2, 3]), (3, [0, 0, 1, 2]), (2, [0, 0, 1, 1]), (1, [0, 0, 0, 0])],
)
def test_the_closest_merge_first(n_clusters: int, expected: list[int]) -> None:
    assert flat_labels(hierarchy_of(FULL, FOUR), 7, n_clusters)[3:].tolist() == expected


@pytest.mark.parametrize(("depth", "expected"), [(0, [0] * 4), (1, [0, 0, 1, 1]), (2, [0, 1, 2, 3]), (9, [0, 1, 2, 3])])
def test_subtrees_at_a_depth(depth: int, expected: list[int]) -> None:
    assert labels_at_depth(hierarchy_of(FULL, FOUR), 7, depth)[3:].tolist() == expected


def test_rows_that_end_early_are_clusters_at_greater_depths() -> None:
    found = hierarchy_of(kept_tree(7, 5, 6), {3: [0.0], 4: [1.0], 2: [9.0]})
    assert labels_at_depth(found, 7, 2)[[3, 4, 2]].tolist() == [0, 1, 2]
    assert labels_at_depth(found, 7, 1)[[3, 4, 2]].tolist() == [0, 0, 1]


def test_nodes_that_no_row_reached_belong_to_a_neighbor() -> None:
    found = hierarchy_of(kept_tree(15), {7: [0.0], 10: [1.0], 11: [5.0], 12: [9.0]})
    for labels in (flat_labels(found, 15, 4), labels_at_depth(found, 15, 3)):
        assert labels[[7, 10, 11, 12]].tolist() == [0, 1, 2, 3]
        assert labels[8] == 0  # sibling of a cluster
        assert labels[9] == 1
        assert labels[13] in (2, 3)
        assert labels[14] in (2, 3)
        assert labels.min() == 0


def reached(seed: int) -> tuple[Kept, dict[int, list[float]]]:
    """A tree with pruned pairs, and rows in some of its leaves."""
    random = np.random.default_rng(seed)
    tree = kept_tree(31, *[t for pair in range(1, 31, 2) if random.random() < 0.2 for t in (pair, pair + 1)])
    leaves = np.array([t for t in np.flatnonzero(tree) if 2 * t + 1 >= 31 or not tree[2 * t + 1]])
    some = random.choice(leaves, size=random.integers(1, len(leaves) + 1), replace=False)
    return tree, {int(t): random.normal(size=3).tolist() for t in some}


@pytest.mark.parametrize("seed", range(20))
def test_every_node_has_a_label_whatever_is_reached(seed: int) -> None:
    tree, at = reached(seed)
    found = hierarchy_of(tree, at)
    ends = list(at)
    for n_clusters in range(1, len(at) + 1):
        labels = flat_labels(found, 31, n_clusters)
        assert np.unique(labels).tolist() == np.unique(labels[ends]).tolist() == list(range(n_clusters))
    for depth in range(6):
        labels, finer = labels_at_depth(found, 31, depth), labels_at_depth(found, 31, depth + 1)
        assert np.unique(labels).tolist() == np.unique(labels[ends]).tolist()
        assert len(set(zip(finer[15:].tolist(), labels[15:].tolist(), strict=True))) == finer.max() + 1
    assert_array_equal(labels_at_depth(found, 31, 5)[ends], flat_labels(found, 31, len(at))[ends])


@pytest.mark.parametrize("seed", range(20))
def test_hierarchies_are_linkages_that_cut_alike(seed: int) -> None:
    tree, at = reached(seed)
    found = hierarchy_of(tree, at)
    if len(at) == 1:
        return
    matrix = np.column_stack((found.children, found.heights, found.counts)).astype(np.float64)
    assert is_valid_linkage(matrix)
    assert is_monotonic(matrix)
    for k in range(1, len(at) + 1):
        last, first = found.heights[len(at) - k :], found.heights[: len(at) - k]
        if not first.size or not last.size or first.max() < last.min():
            ours = flat_labels(found, 31, k)[found.leaves]
            assert adjusted_rand_score(fcluster(matrix, k, "maxclust"), ours) == 1.0


# The start


def same_halves(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    return bool((first == second).all() or (first != second).all())


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n", [2, 3, 40])
def test_halves_are_those_of_ward(n: int, seed: int) -> None:
    points = table(n, 3, seed=seed)
    expected = fcluster(linkage(points, "ward"), 2, "maxclust") == 2
    halves = ward_halves(points, np.ones(n))
    assert halves.dtype == bool
    assert not halves[0]
    assert same_halves(halves, expected)


@pytest.mark.parametrize("seed", range(10))
def test_a_point_of_weight_two_is_the_point_twice(seed: int) -> None:
    points, weight = table(20, 2, seed=seed), np.random.default_rng(seed).integers(1, 4, size=20)
    repeated = ward_halves(np.repeat(points, weight, axis=0), np.ones(weight.sum()))
    assert_array_equal(np.repeat(ward_halves(points, weight.astype(float)), weight), repeated)


def test_halves_do_not_change_what_they_are_given() -> None:
    points, weight = table(9), np.ones(9)
    before = points.copy()
    ward_halves(points, weight)
    assert_array_equal(points, before)
    assert_array_equal(weight, 1.0)


@pytest.mark.parametrize(
    "x",
    [
        np.ones((5, 2)),
        np.ones((1, 3)),
        np.repeat([[0.0, 1.0], [2.0, 3.0]], 4, axis=0),
        np.repeat(table(3), 300, axis=0),
        1e-12 * table(10),
        1e12 * table(10),
        np.array([[0.0], [1.0], [1e9]]),
    ],
    ids=["equal", "one", "two", "many equal", "small", "large", "far"],
)
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_splits_are_finite(x: Floats, depth: int) -> None:
    x32 = x.astype(np.float32)
    directions, biases = cluster_splits(x32, np.ones(len(x)), depth, 4.0, np.random.RandomState(0))
    assert directions.shape == (2**depth - 1, x.shape[1])
    assert biases.shape == (2**depth - 1,)
    assert np.isfinite(directions).all()
    assert np.isfinite(biases).all()


def test_rows_that_are_equal_are_not_split() -> None:
    directions, biases = cluster_splits(np.ones((5, 2), np.float32), np.ones(5), 2, 4.0, np.random.RandomState(0))
    assert_array_equal(directions, 0.0)
    assert (biases < 0).all()


@pytest.mark.parametrize("n", [40, 2_000])
def test_splits_part_blobs_sharply(n: int) -> None:
    blob = np.arange(n) % 4
    x = (np.array([[0.0, 0.0], [0.0, 10.0], [50.0, 0.0], [50.0, 20.0]])[blob] + table(n, 2)).astype(np.float32)
    directions, biases = cluster_splits(x, np.ones(n), 2, 4.0, np.random.RandomState(0))
    right = x @ directions.T + biases >= 0
    assert adjusted_rand_score(blob, np.where(right[:, 0], 2 + right[:, 2], right[:, 1])) == 1.0
    assert_allclose((x @ directions[0] + biases[0]).std(), 4.0, rtol=1e-3)


def test_means_of_nodes() -> None:
    values, leaves = np.array([[0.0, 1.0], [2.0, 3.0], [10.0, 0.0]]), np.array([3, 3, 5])
    means = node_statistics(values, leaves, np.array([1.0, 3.0, 4.0]), 7).mean
    left, right, root = [1.5, 2.5], [10.0, 0.0], [5.75, 1.25]
    assert_allclose(means, [root, left, right, left, left, right, right])
