"""Methods of clustering: trees of clusters that place any rows."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.harness.clusterers import GHHC, BirchTree, HKMeans
from benchmarks.harness.clusterers.heap import heap_numbers
from prunus.metrics import dendrogram_purity

Clusterer = Callable[..., Any]
CLUSTERERS = pytest.mark.parametrize(
    "clusterer", [HKMeans, BirchTree, functools.partial(GHHC, steps=50)], ids=["HKMeans", "BIRCH", "gHHC"]
)


def blobs(n: int, seed: int = 0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Four clusters far apart, in directions that differ."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    centers = np.array([[9.0, 9, 0], [9, -9, 0], [-9, 0, 9], [-9, 0, -9]])
    return centers[y] + rng.normal(size=(n, 3)), y


@CLUSTERERS
def test_four_clusters_far_apart_are_found(clusterer: Clusterer) -> None:
    x, y = blobs(400)
    tree = clusterer(depth=4, random_state=0).fit(x)
    assert dendrogram_purity(tree.apply(x), y) > 0.99
    new, labels = blobs(100, seed=1)
    assert dendrogram_purity(tree.apply(new), labels) > 0.99


@CLUSTERERS
def test_a_row_is_placed_by_itself(clusterer: Clusterer) -> None:
    x, _ = blobs(120)
    tree = clusterer(depth=3, random_state=0).fit(x)
    nodes = tree.apply(x)
    assert nodes.dtype == np.int64
    assert nodes.shape == (120,)
    assert np.array_equal(tree.apply(x[::-1])[::-1], nodes)
    assert np.array_equal(tree.apply(x[7:8]), nodes[7:8])
    assert np.array_equal(tree.apply(x.astype(np.float32)), nodes)


@CLUSTERERS
def test_the_same_seed_gives_the_same_tree(clusterer: Clusterer) -> None:
    x = np.random.default_rng(0).normal(size=(200, 4))
    first, again = (clusterer(depth=4, random_state=3).fit(x).apply(x) for _ in range(2))
    assert np.array_equal(first, again)


@CLUSTERERS
@pytest.mark.parametrize("depth", [2, 4])
def test_there_are_at_most_as_many_leaves_as_the_depth_allows(clusterer: Clusterer, depth: int) -> None:
    x = np.random.default_rng(0).normal(size=(300, 4))
    nodes = np.unique(clusterer(depth=depth, random_state=0).fit(x).apply(x))
    assert 2 <= len(nodes) <= 2**depth


@CLUSTERERS
def test_depth_0_is_the_root(clusterer: Clusterer) -> None:
    x, _ = blobs(20)
    assert (clusterer(depth=0, random_state=0).fit(x).apply(x) == 0).all()


@CLUSTERERS
def test_equal_rows_stay_together(clusterer: Clusterer) -> None:
    equal = np.ones((30, 3))
    assert len(np.unique(clusterer(depth=4, random_state=0).fit(equal).apply(equal))) == 1
    x = np.repeat(blobs(8)[0], 20, axis=0)
    nodes = clusterer(depth=4, random_state=0).fit(x).apply(x).reshape(8, 20)
    assert (nodes == nodes[:, :1]).all()


@CLUSTERERS
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows_are_enough(clusterer: Clusterer, n: int) -> None:
    x, _ = blobs(n)
    assert clusterer(depth=6, random_state=0).fit(x).apply(x).shape == (n,)


@CLUSTERERS
def test_a_constant_column_changes_nothing(clusterer: Clusterer) -> None:
    x, y = blobs(200)
    wide = np.column_stack((x, np.zeros(len(x))))
    assert dendrogram_purity(clusterer(depth=4, random_state=0).fit(wide).apply(wide), y) > 0.99


def test_hierarchical_kmeans_stops_at_its_depth_and_at_single_rows() -> None:
    x, _ = blobs(100)
    assert HKMeans(depth=2).fit(x).apply(x).max() < 7
    assert len(np.unique(HKMeans(depth=6).fit(x[:5]).apply(x[:5]))) == 5


def test_birch_comes_close_to_the_leaves_allowed() -> None:
    x = np.random.default_rng(0).normal(size=(2000, 4))
    assert 40 <= len(BirchTree(depth=6).fit(x).centers_) <= 64


def test_training_moves_the_nodes_and_keeps_them_in_the_ball() -> None:
    x = np.random.default_rng(0).normal(size=(200, 4))
    start, end = (GHHC(depth=4, steps=steps).fit(x).places_ for steps in (0, 100))
    assert not start.equal(end)
    assert end.norm(dim=1).max() <= 0.8 + 1e-6


def test_heap_numbers_follow_the_merges() -> None:
    assert heap_numbers(np.array([[0, 1], [2, 3]])).tolist() == [5, 6, 1]
    assert heap_numbers(np.empty((0, 2))).tolist() == [0]
    chain = np.array([[0, 1], *([i + 1, 61 + i] for i in range(1, 61))])
    assert heap_numbers(chain).max() < 2**62


def test_leaves_too_deep_for_heap_numbers_are_named() -> None:
    chain = np.array([[0, 1], *([i + 1, 62 + i] for i in range(1, 62))])
    with pytest.raises(ValueError, match=r"at most 61 levels deep .* got 62; ask for fewer"):
        heap_numbers(chain)
