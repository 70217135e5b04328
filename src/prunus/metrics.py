"""How well a hierarchy of clusters matches classes that are known."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError, InputValueError

__all__ = ["dendrogram_purity"]

Counts = npt.NDArray[np.float64]
MAX_DEPTH = 62
"""Of nodes in heap order that int64 can number."""


def dendrogram_purity(leaf: Any, y: Any, *, self_pairs: bool = True) -> float:
    """The expected purity of the least common ancestor of two points of the same class.

    Two points of one class are drawn, all such pairs with the same probability; their least common ancestor is the
    smallest cluster of the hierarchy that holds both; its purity is the share of their class among its points. 1 if
    every class has a subtree of its own. Exact, in O(n + nodes * classes).

    Parameters
    ----------
    leaf : int array of shape (n,), or array of shape (n - 1, 2) or (n - 1, 4)
        The hierarchy. Either each point's node in a binary tree in heap order (root 0, children of t are 2t+1 and
        2t+2), as `apply` returns them; points may end in inner nodes. Or a linkage of scipy, or `children_` of
        scikit-learn: row i merges two clusters into cluster n + i.
    y : array of shape (n,)
        Classes, of any type that can be sorted.
    self_pairs : bool
        Whether a point with itself is a pair, whose ancestor is the point's leaf. The published code of argmin trees
        counts them; other authors often do not. For large data it hardly matters.

    Returns
    -------
    float
        In (0, 1]; NaN if there is no pair.

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
        raise InputTypeError(f"leaf must hold nodes or a linkage, numbers, however: its dtype is {tree.dtype}")
    codes, n_classes = _read_classes(y)
    if tree.ndim == 1:
        gained, pairs = _of_nodes(_check_nodes(tree, len(codes)), codes, n_classes, self_pairs=self_pairs)
    elif tree.ndim == 2 and tree.shape[1] in (2, 4):
        merges = _check_merges(tree[:, :2], len(codes))
        gained, pairs = _of_merges(merges, codes, n_classes, self_pairs=self_pairs)
    else:
        raise InputValueError(
            f"leaf must have shape (n,) for nodes, (n - 1, 2) or (n - 1, 4) for a linkage, however: {tree.shape}"
        )
    return gained / pairs if pairs > 0 else float("nan")


def _read_classes(y: Any) -> tuple[npt.NDArray[np.int64], int]:
    classes = np.asarray(y)
    if classes.ndim != 1 or not len(classes):
        raise InputValueError(f"y must have shape (n,), n at least 1, however: {classes.shape}")
    if classes.dtype.kind in "iu" and classes.min() >= 0 and classes.max() < len(classes):
        occurs = np.bincount(classes) > 0  # sorting a million takes longer than all the rest
        places = np.cumsum(occurs) - 1
        return places[classes], int(occurs.sum())
    values, codes = np.unique(classes, return_inverse=True)
    return codes.astype(np.int64), len(values)


def _check_nodes(nodes: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    if len(nodes) != n:
        raise InputValueError(f"leaf and y must have the same length, however: {len(nodes)} and {n}")
    whole = _whole(nodes)
    if whole is None or whole.min() < 0 or whole.max() >= 2**MAX_DEPTH:
        raise InputValueError("leaf must hold nodes in heap order, whole numbers from 0 on")
    return whole


def _check_merges(merges: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    if len(merges) != n - 1:
        raise InputValueError(f"a linkage of {n} points must have {n - 1} rows, however: {len(merges)}")
    whole = _whole(merges)
    if whole is not None:
        made_later = whole >= n + np.arange(n - 1)[:, None]
        if not made_later.any() and np.array_equal(np.sort(whole, axis=None), np.arange(2 * n - 2)):
            return whole
    raise InputValueError("a linkage must merge each cluster once, after it was made")


def _whole(numbers: npt.NDArray[Any]) -> npt.NDArray[np.int64] | None:
    """The numbers as integers; None if they are none."""
    if not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
        return None
    whole: npt.NDArray[np.int64] = numbers.astype(np.int64)
    return whole


def _of_nodes(
    nodes: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], n_classes: int, *, self_pairs: bool
) -> tuple[float, float]:
    """Sum of the purities of all pairs, and their number; from the leaves up, a level at a time."""
    here, place = _distinct(nodes)
    counts = np.bincount(place * n_classes + codes, minlength=len(here) * n_classes).reshape(-1, n_classes)
    ending = counts.astype(np.float64)
    level = np.searchsorted(2 ** np.arange(1, MAX_DEPTH + 1) - 1, here, side="right")
    gained = 0.0
    below = np.empty(0, np.int64), np.empty((0, n_classes)), np.empty((0, n_classes))
    for d in range(int(level.max()), -1, -1):
        own = level == d
        at = np.concatenate((here[own], (below[0] - 1) // 2))
        at, place = np.unique(at, return_inverse=True)
        total, apart = np.zeros((2, len(at), n_classes))
        np.add.at(total, place, np.concatenate((ending[own], below[1])))
        np.add.at(apart, place, np.concatenate((np.zeros_like(ending[own]), below[2])))
        pairs = total**2 if self_pairs else total * (total - 1)
        gained += _purities(total, pairs - apart)
        below = at, total, pairs
    return gained, float(below[2].sum())


def _distinct(nodes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The nodes that occur, and the place of each point's among them; without sorting, if they are small numbers."""
    if nodes.max() > 4 * len(nodes) + 1024:
        here, place = np.unique(nodes, return_inverse=True)
        return here, place
    here = np.flatnonzero(np.bincount(nodes))
    places = np.zeros(int(nodes.max()) + 1, dtype=np.int64)
    places[here] = np.arange(len(here))
    return here, places[nodes]


def _purities(total: Counts, pairs: Counts) -> float:
    """Sum of purities of pairs, (nodes, classes), that part in nodes with so many points of each class."""
    size = total.sum(1, keepdims=True)
    return float((pairs * total / size).sum())


def _of_merges(
    merges: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], n_classes: int, *, self_pairs: bool
) -> tuple[float, float]:
    """As `_of_nodes`: points in the order of the leaves make each cluster a slice, and counts differences of sums."""
    n = len(codes)
    begin, end = _slices(merges, n)
    ordered = np.empty(n, dtype=np.int64)
    ordered[begin[:n]] = codes
    size = (end - begin)[n:].astype(np.float64)
    gained, pairs = (float(n), float(n)) if self_pairs else (0.0, 0.0)
    for k in range(n_classes):
        before = np.concatenate(([0], np.cumsum(ordered == k)))
        total = (before[end] - before[begin]).astype(np.float64)
        apart = 2 * total[merges[:, 0]] * total[merges[:, 1]]
        gained += float((apart * total[n:] / size).sum())
        pairs += float(apart.sum())
    return gained, pairs


def _slices(merges: npt.NDArray[np.int64], n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where each of the 2n - 1 clusters begins and ends if the leaves stand in the tree's order."""
    size = [1] * n
    for left, right in merges.tolist():
        size.append(size[left] + size[right])
    begin = [0] * len(size)
    for i, (left, right) in zip(range(len(size) - 1, n - 1, -1), reversed(merges.tolist()), strict=True):
        begin[left] = begin[i]
        begin[right] = begin[i] + size[left]
    first = np.array(begin, dtype=np.int64)
    return first, first + np.array(size, dtype=np.int64)
