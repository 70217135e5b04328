"""The last levels of a tree with constant leaves: leaves with linear models become small trees of constants."""

from dataclasses import dataclass

import numpy as np

from prunus.hardening.leaf_models import Doubles, Floats
from prunus.hardening.sketch import Sketch
from prunus.ops.heap import depth_of_nodes, level
from prunus.targets.links import IDENTITY, SOFTMAX, Link
from prunus.tree.paths import Nodes, passing

__all__ = ["Guide", "grow_along_models", "node_means", "set_constants"]

FEWEST_ROWS = 2
"""A leaf has at least this many training rows."""
SMALL = 1e-4
"""A leaf is not split if its values vary by less than this share of the variance of all values."""
PAIRS = 3
"""Splits between this many of the most frequent classes of a leaf are tried."""


@dataclass(frozen=True)
class Guide:
    """What each row should have as its output, for the choice of splits."""

    values: Doubles
    """What splits are to tell apart, (n, m): outputs, or probabilities of classes."""
    weight: Doubles
    """(n,)."""
    link: Link = IDENTITY
    """What makes outputs from the means of leaves; the values are probabilities if it is that of classes."""


def grow_along_models(sketch: Sketch, x: Floats, ends: Nodes, guide: Guide) -> None:
    """Split each leaf, and its children in turn, along its own linear model, until the depth of the sketch.

    A linear function of a row is a sum, and so is the score of a split: thresholds on that sum make the steps of a
    constant model out of the slope.
    """
    mean = guide.weight @ guide.values / guide.weight.sum()
    least = SMALL * float(guide.weight @ np.square(guide.values - mean).sum(1)) / guide.weight.sum()

    def grow(node: int, rows: Nodes) -> None:
        if 2 * node + 2 >= len(sketch.kept) or len(rows) < 2 * FEWEST_ROWS:
            return
        values, weight = guide.values[rows], guide.weight[rows]
        center = weight @ values / weight.sum()
        if weight @ np.square(values - center).sum(1) <= least * weight.sum():
            return
        models = sketch.models
        outputs = x[rows] @ models.slope[node].T + models.constant[node]
        directions = _directions(outputs, values, weight, is_share=guide.link is SOFTMAX)
        tried = [(_best_threshold(outputs @ u, values, weight), u) for u in directions]
        (gain, threshold), u = max(tried, key=lambda found: found[0][0])
        if gain <= 0:
            return
        weights = u @ models.slope[node]
        left, right = sketch.split(node, weights, float(u @ models.constant[node] - threshold))
        is_right = x[rows] @ weights + sketch.bias[node] >= 0
        grow(left, rows[~is_right])
        grow(right, rows[is_right])

    for node, rows in leaf_rows(ends):
        grow(node, rows)


def set_constants(
    sketch: Sketch, ends: Nodes, prior: Doubles, wanted: Doubles, weight: Doubles, rows: float, *, link: Link = IDENTITY
) -> None:
    """Give each leaf one value: the mean of what was predicted of its rows, moved towards what was wanted of them.

    See `node_means`; the link turns means into outputs. A leaf without rows gets the value of the rows around it.
    """
    sketch.models.slope[:] = 0.0
    means = node_means(ends, prior, wanted, weight, rows, len(sketch.kept))
    sketch.models.constant[:] = link.outputs(means)


def node_means(ends: Nodes, prior: Doubles, wanted: Doubles, weight: Doubles, rows: float, nodes: int) -> Doubles:
    """A value for each node, (T, k); a node without rows has that of its parent.

    Parameters
    ----------
    ends : array of shape (n,)
        The leaf of each row.
    prior, wanted : arrays of shape (n, k)
        What was predicted before, and what is wanted.
    weight : array of shape (n,)
    rows : float
        The prior counts as much as this many rows.
    nodes : int
        Number of nodes, T.
    """
    total = passing(ends, weight, nodes)
    before, after = (
        np.column_stack([passing(ends, weight * column, nodes) for column in part.T]) for part in (prior, wanted)
    )
    means: Doubles = before / np.maximum(total, 1e-30)[:, None]
    if np.isfinite(rows):
        means += (after - before) / np.maximum(total + rows, 1e-30)[:, None]
    for d in range(1, depth_of_nodes(nodes) + 1):
        above = means[level(d - 1)].repeat(2, axis=0)
        means[level(d)] = np.where(total[level(d), None] > 0, means[level(d)], above)
    return means


def leaf_rows(ends: Nodes) -> list[tuple[int, Nodes]]:
    """The rows that end in each leaf, given the leaf of each row, (n,)."""
    order = np.argsort(ends, kind="stable")
    leaves, begins = np.unique(ends[order], return_index=True)
    return list(zip(leaves.tolist(), np.split(order, begins[1:]), strict=True))


def _directions(outputs: Doubles, values: Doubles, weight: Doubles, *, is_share: bool) -> list[Doubles]:
    """Directions, (k,), in the space of outputs along which a split is tried."""
    k = outputs.shape[1]
    if k == 1:
        return [np.ones(1)]
    center = weight @ values / weight.sum()
    if not is_share:
        spread = (values - center) * np.sqrt(weight)[:, None]
        return [np.linalg.eigh(spread.T @ spread)[1][:, -1]]
    frequent = np.argsort(-center)[: PAIRS if k > 2 else 2]
    pairs = [(a, b) for i, a in enumerate(frequent) for b in frequent[i + 1 :]]
    return [np.eye(k)[a] - np.eye(k)[b] for a, b in pairs]


def _best_threshold(a: Doubles, values: Doubles, weight: Doubles) -> tuple[float, float]:
    """How much the sum of squares falls by the best threshold on a, (n,), and that threshold."""
    order = np.argsort(a, kind="stable")
    a, w = a[order], weight[order]
    sums = np.cumsum(values[order] * w[:, None], axis=0)
    left = np.cumsum(w)[:-1]
    total, right = sums[-1], left[-1] + w[-1] - left
    gain = (np.square(sums[:-1]).sum(1) / left) + np.square(total - sums[:-1]).sum(1) / right
    gain -= np.square(total).sum() / w.sum()
    allowed = a[1:] > a[:-1]
    allowed[: FEWEST_ROWS - 1] = allowed[len(allowed) - FEWEST_ROWS + 1 :] = False
    if not allowed.any():
        return 0.0, 0.0
    best = int(np.where(allowed, gain, -np.inf).argmax())
    return float(gain[best]), float((a[best] + a[best + 1]) / 2)
