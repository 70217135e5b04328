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


def test_heap_numbers_follow_the_merges() -> None:
    assert heap_numbers(np.array([[0, 1], [2, 3]])).tolist() == [5, 6, 1]
    assert heap_numbers(np.empty((0, 2))).tolist() == [0]
    chain = np.array([[0, 1], *([i + 1, 61 + i] for i in range(1, 61))])
    assert heap_numbers(chain).max() < 2**62
