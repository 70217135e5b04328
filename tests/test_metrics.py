"""Dendrogram purity against its definition, pair by pair."""

import math
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.cluster.hierarchy import linkage

from prunus.errors import InputValueError
from prunus.metrics import dendrogram_purity

SELF_PAIRS = pytest.mark.parametrize("self_pairs", [True, False])
SECONDS = 1.0
"""Limit for a million points: ten times the seconds that they take on an idle core."""


def random_labels(n: int, n_classes: int, seed: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(seed).integers(n_classes, size=n)


def ancestors(node: int) -> list[int]:
    """The nodes on the way from a node to the root."""
    path = [node]
    while path[-1]:
        path.append((path[-1] - 1) // 2)
    return path


def clusters_of_nodes(nodes: npt.NDArray[np.int64]) -> list[set[int]]:
    """The points of each node, deep nodes first."""
    found: dict[int, set[int]] = {}
    for point, node in enumerate(nodes.tolist()):
        for ancestor in ancestors(node):
            found.setdefault(ancestor, set()).add(point)
    return [found[node] for node in sorted(found, reverse=True)]


def clusters_of_merges(merges: npt.NDArray[Any]) -> list[set[int]]:
    """The points of each cluster, in the order of the merges."""
    found: list[set[int]] = [{i} for i in range(len(merges) + 1)]
    for row in merges:
        found.append(found[int(row[0])] | found[int(row[1])])
    return found


def by_definition(clusters: list[set[int]], y: Any, *, self_pairs: bool) -> float:
    """The mean over pairs of the same class of its share in the first cluster that holds both; parents come last."""
    labels = np.asarray(y)
    shares = []
    for i in range(len(labels)):
        for j in range(len(labels)):
            if labels[i] == labels[j] and (self_pairs or i != j):
                least = sorted(next(cluster for cluster in clusters if {i, j} <= cluster))
                shares.append(np.mean(labels[least] == labels[i]))
    return float(np.mean(shares)) if shares else math.nan


@SELF_PAIRS
@pytest.mark.parametrize(("seed", "n_classes"), [(0, 1), (1, 3), (2, 3), (3, 20)])
def test_random_trees_agree_with_the_definition(seed: int, self_pairs: bool, n_classes: int) -> None:
    nodes = np.random.default_rng(seed).integers(31, size=41)  # inner nodes are among them
    y = random_labels(41, n_classes, seed + 10)
    expected = by_definition(clusters_of_nodes(nodes), y, self_pairs=self_pairs)
    assert dendrogram_purity(nodes, y, self_pairs=self_pairs) == pytest.approx(expected, rel=1e-12)


@SELF_PAIRS
@pytest.mark.parametrize(("seed", "method"), [(0, "ward"), (1, "average"), (2, "single")])
def test_linkages_agree_with_the_definition(seed: int, self_pairs: bool, method: str) -> None:
    x = np.random.default_rng(seed).normal(size=(33, 2))
    y = random_labels(33, 4, seed)
    merges = linkage(x, method)
    expected = by_definition(clusters_of_merges(merges), y, self_pairs=self_pairs)
    assert dendrogram_purity(merges, y, self_pairs=self_pairs) == pytest.approx(expected, rel=1e-12)


@SELF_PAIRS
def test_deep_nodes_agree_with_the_definition(self_pairs: bool) -> None:
    rng = np.random.default_rng(0)
    deep = 2**50 + rng.integers(-40, 40, size=30)
    nodes = np.concatenate((deep, [0, 2, 2**50 - 2, 2**50 - 1]))
    y = random_labels(len(nodes), 3, 1)
    expected = by_definition(clusters_of_nodes(nodes), y, self_pairs=self_pairs)
    assert dendrogram_purity(nodes, y, self_pairs=self_pairs) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("level", [53, 54, 57, 61])
def test_the_last_node_of_a_deep_level_is_on_that_level(level: int) -> None:
    last = 2 ** (level + 1) - 2  # one more is a power of two, to which float64 would round
    assert dendrogram_purity([last, last - 1, 1], ["a", "b", "a"], self_pairs=False) == pytest.approx(2 / 3)
    assert dendrogram_purity([last, last - 1, 1], ["a", "a", "b"], self_pairs=False) == 1.0


@pytest.mark.parametrize(
    "y",
    [
        ["ash", "ash", "elm", "ash", "oak", "oak"],
        [-5, -5, 3, -5, 2**60, 2**60],
        np.array([9, 9, 200, 9, 17, 17], dtype=np.uint8),
        [0.5, 0.5, -1.5, 0.5, 7.0, 7.0],
        [True, True, True, True, False, False],
    ],
    ids=["text", "large integers", "uint8", "fractions", "bool"],
)
def test_classes_may_be_of_any_type(y: Any) -> None:
    nodes = [3, 4, 4, 5, 6, 2]
    codes = np.unique(np.asarray(y), return_inverse=True)[1]
    assert dendrogram_purity(nodes, y) == pytest.approx(dendrogram_purity(nodes, codes), rel=1e-15)
    merges = linkage([[0.0], [1.0], [3.0], [7.0], [15.0], [31.0]])
    assert dendrogram_purity(merges, y) == pytest.approx(dendrogram_purity(merges, codes), rel=1e-15)


def test_one_point_is_a_pair_with_itself_or_none() -> None:
    for hierarchy in ([5], np.empty((0, 2)), np.empty((0, 4))):
        assert dendrogram_purity(hierarchy, ["a"]) == 1.0
        assert math.isnan(dendrogram_purity(hierarchy, ["a"], self_pairs=False))


@pytest.mark.parametrize(
    ("leaf", "y", "message"),
    [
        ([1, 2, 2], [0, 1], "leaf and y must have the same length, got 3 and 2"),
        ([1, -2], [0, 1], "heap order, whole numbers from 0 to"),
        ([1, 2.5], [0, 1], "heap order, whole numbers from 0 to"),
        ([1, 2**62], [0, 1], "heap order, whole numbers from 0 to"),
        ([1, math.nan], [0, 1], "heap order, whole numbers from 0 to"),
        ([1, math.inf], [0, 1], "heap order, whole numbers from 0 to"),
        (np.zeros((2, 3)), [0, 1, 2], r"\(n - 1, 2\) or \(n - 1, 4\) for a linkage, got \(2, 3\)"),
        (5, [0], r"shape \(n,\) for nodes"),
        ([[0, 1]], [0, 1, 2], "a linkage of 3 points must have 2 rows, got 1"),
        ([[0, 1], [0, 2]], [0, 1, 2], "merge each cluster exactly once and after it was made"),
        ([[0, 3], [1, 2]], [0, 1, 2], "merge each cluster exactly once and after it was made"),
        ([[0, 0.5], [1, 2]], [0, 1, 2], "merge each cluster exactly once and after it was made"),
        ([[0, math.nan], [1, 2]], [0, 1, 2], "merge each cluster exactly once and after it was made"),
        ([], [], r"y must have shape \(n,\), n at least 1"),
        ([1, 2], [[0, 1]], r"y must have shape \(n,\), n at least 1, got \(1, 2\)"),
    ],
)
def test_mistakes_are_named(leaf: Any, y: Any, message: str) -> None:
    with pytest.raises(InputValueError, match=message):
        dendrogram_purity(leaf, y)


@pytest.mark.parametrize("depth", [6, 12])
def test_a_million_points_take_less_than_a_second(depth: int) -> None:
    rng = np.random.default_rng(0)
    nodes = rng.integers(2**depth - 1, 2 ** (depth + 1) - 1, size=1_000_000)
    y = rng.integers(26, size=1_000_000)
    start = time.perf_counter()
    purity = dendrogram_purity(nodes, y)
    assert time.perf_counter() - start < SECONDS
    assert 0.03 < purity < 0.05
