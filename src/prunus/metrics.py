"""Measures of how well a hierarchy of clusters matches known classes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError, InputValueError

__all__ = ["dendrogram_purity"]

Counts = npt.NDArray[np.float64]
MAX_DEPTH = 62
"""Number of levels below the root whose nodes in heap order int64 can number."""


def dendrogram_purity(leaf: Any, y: Any, *, self_pairs: bool = True) -> float:
    """Expected purity of the least common ancestor of two points of the same class.

    A pair of points of the same class is drawn, each such pair with the same probability. Their least common ancestor
    is the smallest cluster of the hierarchy that holds both, and its purity is the share of their class among its
    points. The result is 1 if every class has a subtree of its own. It is exact and takes O(n + nodes * classes).

    Parameters
    ----------
    leaf : int array of shape (n,), or array of shape (n - 1, 2) or (n - 1, 4)
        The hierarchy. It is either the node of each point in a binary tree in heap order (the root is 0, the children
        of t are 2t+1 and 2t+2), as `apply` returns it; points may end in inner nodes. Or it is a linkage of scipy or
        `children_` of scikit-learn, whose row i merges two clusters into cluster n + i.
    y : array of shape (n,)
        Classes of the points, of any type that can be sorted.
    self_pairs : bool
        Whether a point with itself counts as a pair, whose least common ancestor is the leaf of the point. The
        published code of argmin trees counts such pairs; other authors often do not. With many points the difference
        is small.

    Returns
    -------
    float
        A number in (0, 1]; NaN if there is no pair.

    Examples
    --------
    >>> dendrogram_purity([3, 3, 4, 2], ["a", "a", "b", "b"])
    0.875
    >>> from scipy.cluster.hierarchy import linkage
    >>> dendrogram_purity(linkage([[0.0], [0.1], [5.0], [5.1]]), [0, 0, 1, 1])
    1.0
    """
    tree = np.asarray(leaf)
    if tree.dtype.kind not in "iuf":
        raise InputTypeError(f"leaf must be numbers, of nodes or of a linkage, got dtype {tree.dtype}")
    codes, n_classes = _read_classes(y)
    if tree.ndim == 1:
        purity_sum, pairs = _of_nodes(_check_nodes(tree, len(codes)), codes, n_classes, self_pairs=self_pairs)
    elif tree.ndim == 2 and tree.shape[1] in (2, 4):
        merges = _check_merges(tree[:, :2], len(codes))
        purity_sum, pairs = _of_merges(merges, codes, n_classes, self_pairs=self_pairs)
    else:
        raise InputValueError(
            f"leaf must have shape (n,) for nodes, (n - 1, 2) or (n - 1, 4) for a linkage, got {tree.shape}"
        )
    return purity_sum / pairs if pairs > 0 else float("nan")


def _read_classes(y: Any) -> tuple[npt.NDArray[np.int64], int]:
    classes = np.asarray(y)
    if classes.ndim != 1 or not len(classes):
        raise InputValueError(f"y must have shape (n,), n at least 1, got {classes.shape}")
    if classes.dtype.kind in "iu" and classes.min() >= 0 and classes.max() < len(classes):
        occurs = np.bincount(classes) > 0  # sorting a million points takes longer than everything else
        codes_of_classes = np.cumsum(occurs) - 1
        return codes_of_classes[classes], int(occurs.sum())
    values, codes = np.unique(classes, return_inverse=True)
    return codes.astype(np.int64), len(values)


def _check_nodes(nodes: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    if len(nodes) != n:
        raise InputValueError(f"leaf and y must have the same length, got {len(nodes)} and {n}")
    whole = _as_integers(nodes)
    if whole is None or whole.min() < 0 or whole.max() >= 2**MAX_DEPTH:
        raise InputValueError(
            f"leaf must be nodes in heap order, whole numbers from 0 to 2**{MAX_DEPTH} - 1, "
            f"got numbers from {nodes.min()} to {nodes.max()}"
        )
    return whole


def _check_merges(merges: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    if len(merges) != n - 1:
        raise InputValueError(f"a linkage of {n} points must have {n - 1} rows, got {len(merges)}")
    whole = _as_integers(merges)
    if whole is not None:
        made_later = whole >= n + np.arange(n - 1)[:, None]
        if not made_later.any() and np.array_equal(np.sort(whole, axis=None), np.arange(2 * n - 2)):
            return whole
    raise InputValueError("a linkage must merge each cluster exactly once and after it was made")


def _as_integers(numbers: npt.NDArray[Any]) -> npt.NDArray[np.int64] | None:
    """Convert to integers; return None if some numbers are not whole."""
    if not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
        return None
    whole: npt.NDArray[np.int64] = numbers.astype(np.int64)
    return whole


def _of_nodes(
    nodes: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], n_classes: int, *, self_pairs: bool
) -> tuple[float, float]:
    """Return the sum of the purities of all pairs and the number of pairs, from the deepest level up.

    The pairs whose least common ancestor is a node are those in the node without those in either of its children.
    """
    distinct, position = _distinct(nodes)
    counts = np.bincount(position * n_classes + codes, minlength=len(distinct) * n_classes).reshape(-1, n_classes)
    ending = counts.astype(np.float64)  # points of each class that end in each node
    level = np.searchsorted(2 ** np.arange(1, MAX_DEPTH + 1) - 1, distinct, side="right")
    purity_sum = 0.0
    children, child_total, child_pairs = np.empty(0, np.int64), np.empty((0, n_classes)), np.empty((0, n_classes))
    for d in range(int(level.max()), -1, -1):
        here = level == d
        parents, position = np.unique(np.concatenate((distinct[here], (children - 1) // 2)), return_inverse=True)
        total, pairs_below = np.zeros((2, len(parents), n_classes))
        np.add.at(total, position, np.concatenate((ending[here], child_total)))
        np.add.at(pairs_below, position, np.concatenate((np.zeros_like(ending[here]), child_pairs)))
        pairs = total**2 if self_pairs else total * (total - 1)
        purity_sum += _sum_of_purities(total, pairs - pairs_below)
        children, child_total, child_pairs = parents, total, pairs
    return purity_sum, float(child_pairs.sum())


def _distinct(nodes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct nodes and the position of each point's node among them; small numbers need no sorting."""
    if nodes.max() > 4 * len(nodes) + 1024:
        distinct, position = np.unique(nodes, return_inverse=True)
        return distinct, position
    distinct = np.flatnonzero(np.bincount(nodes))
    positions = np.zeros(int(nodes.max()) + 1, dtype=np.int64)
    positions[distinct] = np.arange(len(distinct))
    return distinct, positions[nodes]


def _sum_of_purities(total: Counts, pairs: Counts) -> float:
    """Sum the purities of pairs; both arrays, of shape (nodes, classes), have counts for each node and class."""
    size = total.sum(1, keepdims=True)
    return float((pairs * total / size).sum())


def _of_merges(
    merges: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], n_classes: int, *, self_pairs: bool
) -> tuple[float, float]:
    """Return the same as `_of_nodes`, for a linkage.

    If the points are sorted in the order of the leaves, each cluster is a slice, and the number of its points of a
    class is a difference of cumulative sums.
    """
    n = len(codes)
    begin, end = _slices(merges, n)
    ordered = np.empty(n, dtype=np.int64)
    ordered[begin[:n]] = codes
    size = (end - begin)[n:].astype(np.float64)
    purity_sum, pairs = (float(n), float(n)) if self_pairs else (0.0, 0.0)
    for k in range(n_classes):
        before = np.concatenate(([0], np.cumsum(ordered == k)))
        total = (before[end] - before[begin]).astype(np.float64)
        merged_pairs = 2 * total[merges[:, 0]] * total[merges[:, 1]]
        purity_sum += float((merged_pairs * total[n:] / size).sum())
        pairs += float(merged_pairs.sum())
    return purity_sum, pairs


def _slices(merges: npt.NDArray[np.int64], n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where each of the 2n - 1 clusters begins and ends if the points are in the order of the leaves."""
    size = [1] * n
    for left, right in merges.tolist():
        size.append(size[left] + size[right])
    begin = [0] * len(size)
    for i, (left, right) in zip(range(len(size) - 1, n - 1, -1), reversed(merges.tolist()), strict=True):
        begin[left] = begin[i]
        begin[right] = begin[i] + size[left]
    first = np.array(begin, dtype=np.int64)
    return first, first + np.array(size, dtype=np.int64)
