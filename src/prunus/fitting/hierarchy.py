"""The hierarchy of the clusters of a kept tree, and the flat clusters that it can be cut into."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Hierarchy", "flat_labels", "labels_at_depth", "merge_closest", "read_hierarchy"]

Floats = npt.NDArray[np.float64]
Nodes = npt.NDArray[np.int64]
Kept = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Hierarchy:
    """Which clusters merge, numbered as in scikit-learn and scipy."""

    leaves: Nodes
    """The nodes of the clusters at the bottom, from left to right, (L,); these clusters have the numbers 0 to L - 1."""
    children: Nodes
    """The two clusters that merge into cluster L + i, (L - 1, 2)."""
    heights: Floats
    """The distance of each merge, (L - 1,), increasing: Ward's distance, or that of a merge below if it is larger."""
    nodes: Nodes
    """The node of each merge, (L - 1,)."""
    counts: Nodes
    """How many clusters of the bottom each merge contains, (L - 1,)."""


def read_hierarchy(kept: Kept, x: npt.NDArray[np.float32], ends: Nodes, weight: Floats) -> Hierarchy:
    """The hierarchy of rows, (n, d), that end in these nodes of a kept tree; nodes that no row reaches are left out.

    Siblings must be kept together, see `prunus.tree.reading.keep_pairs`.
    """
    total, spread = _within(x, ends, weight, len(kept))
    height = np.zeros(len(kept))
    inner = np.flatnonzero(kept[1::2])  # nodes whose left child is kept; the right one then is kept, too
    for t in inner[::-1].tolist():
        left, right = 2 * t + 1, 2 * t + 2
        merging = max(0.0, spread[t] - spread[left] - spread[right])
        height[t] = max((2 * merging) ** 0.5, height[left], height[right])
    merging_rows = [t for t in inner.tolist() if total[2 * t + 1] > 0 < total[2 * t + 2]]
    merges = sorted(
        merging_rows, key=lambda t: (height[t], -t)
    )  # children come before parents: their numbers are larger
    leaves = _from_left_to_right(np.setdiff1d(np.flatnonzero(kept & (total > 0)), inner))
    number = {int(t): i for i, t in enumerate(leaves)}
    count = dict.fromkeys(number, 1)
    children = np.zeros((len(merges), 2), dtype=np.int64)
    for i, t in enumerate(merges):
        pair = [_first_with(number, 2 * t + side) for side in (1, 2)]
        children[i] = [number[node] for node in pair]
        number[t], count[t] = len(leaves) + i, sum(count[node] for node in pair)
    nodes = np.array(merges, dtype=np.int64)
    return Hierarchy(leaves, children, height[nodes], nodes, np.array([count[t] for t in merges], dtype=np.int64))


def _within(x: npt.NDArray[np.float32], ends: Nodes, weight: Floats, n_nodes: int) -> tuple[Floats, Floats]:
    """Weight of the rows in each node, and the sum of their squared distances from their mean, (T,) both."""
    total = np.bincount(ends, weights=weight, minlength=n_nodes).astype(np.float64)
    sums = np.stack([np.bincount(ends, weights=weight * column, minlength=n_nodes) for column in x.T], axis=1)
    squares = np.bincount(ends, weights=weight * np.square(x, dtype=np.float64).sum(1), minlength=n_nodes)
    for t in range(n_nodes - 1, 0, -1):
        for of_nodes in (total, sums, squares):
            of_nodes[(t - 1) // 2] += of_nodes[t]
    return total, squares - np.square(sums).sum(1) / np.maximum(total, 1e-30)


def _from_left_to_right(nodes: Nodes) -> Nodes:
    depth = np.floor(np.log2(nodes + 1)).astype(np.int64)
    deepest = depth.max()
    return nodes[np.argsort((nodes + 1 - 2**depth) * 2 ** (deepest - depth))]


def _first_with(number: dict[int, int], t: int) -> int:
    """The first node with a number: this node, or the node below it that all its rows pass."""
    waiting = [t]
    while waiting:
        node = waiting.pop(0)
        if node in number:
            return node
        waiting += [2 * node + 1, 2 * node + 2]
    raise AssertionError("a node with rows has a cluster below it")


def flat_labels(hierarchy: Hierarchy, n_nodes: int, n_clusters: int) -> Nodes:
    """The cluster of rows that end in each node, (T,), when the closest clusters have merged into n_clusters.

    A node that no row reached in `fit` gets the cluster of a neighbor.
    """
    merged = set(hierarchy.nodes[: max(0, len(hierarchy.leaves) - n_clusters)].tolist())
    return _labels(n_nodes, [t for t in (*hierarchy.leaves.tolist(), *merged) if not _below(t, merged)])


def merge_closest(kept: Kept, hierarchy: Hierarchy, max_leaves: int) -> Kept:
    """The nodes that stay, (T,), when the closest clusters have merged until there are at most max_leaves of them."""
    merged = set(hierarchy.nodes[: max(0, len(hierarchy.leaves) - max_leaves)].tolist())
    gone = np.array([_below(t, merged) for t in range(len(kept))])
    left: Kept = kept & ~gone
    return left


def labels_at_depth(hierarchy: Hierarchy, n_nodes: int, depth: int) -> Nodes:
    """The cluster of rows that end in each node, (T,), if the subtrees at this depth are the clusters."""
    tops = {((t + 1) >> max(0, int(t + 1).bit_length() - 1 - depth)) - 1 for t in hierarchy.leaves.tolist()}
    return _labels(n_nodes, list(tops))


def _below(t: int, merged: set[int]) -> bool:
    while t > 0:
        t = (t - 1) // 2
        if t in merged:
            return True
    return False


def _labels(n_nodes: int, tops: list[int]) -> Nodes:
    """For each node, (T,), the number of its subtree among these, from left to right; other nodes take a neighbor's."""
    ordered = _from_left_to_right(np.array(tops, dtype=np.int64))
    label = np.full(n_nodes, -1, dtype=np.int64)
    label[ordered] = np.arange(len(ordered))
    for t in range(1, n_nodes):  # nodes in a subtree take its number
        if label[t] < 0:
            label[t] = label[(t - 1) // 2]
    above = label.copy()
    for t in range(n_nodes - 1, 0, -1):  # nodes above subtrees take the number of one below
        if above[(t - 1) // 2] < 0:
            above[(t - 1) // 2] = above[t]
    for t in range(1, n_nodes):  # all others take the number of their parent
        if above[t] < 0:
            above[t] = above[(t - 1) // 2]
    return above
