"""The last levels of a tree with constant leaves: leaves with linear models become small trees of constants."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from prunus.hardening.leaf_models import Doubles, Floats
from prunus.hardening.sketch import Sketch
from prunus.targets.links import IDENTITY, SOFTMAX, Link
from prunus.tree.paths import Nodes, passing

__all__ = ["Guide", "grow_along_models", "grow_by_columns", "set_constants"]

FEWEST_ROWS = 2
"""A leaf has at least so many training rows."""
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

    _at_leaves(ends, grow)


def grow_by_columns(
    sketch: Sketch,
    x: Floats,
    ends: Nodes,
    guide: Guide,
    *,
    fewest_rows: int = FEWEST_ROWS,
    price: float = 0.0,
    max_leaves: int | None = None,
) -> None:
    """Split each leaf, and its children in turn, by single columns, until the depth of the sketch.

    A split that lowers the mean squared error of the rows of its leaf by less than `price` is taken back.
    """
    from sklearn.tree import DecisionTreeRegressor  # slow to import, and few trees need it

    def grow(node: int, rows: Nodes) -> None:
        levels = sketch.depth - int(np.log2(node + 1))
        if not levels or len(rows) < 2 * fewest_rows or max_leaves == 1:
            return
        greedy = DecisionTreeRegressor(
            max_depth=levels,
            min_samples_leaf=fewest_rows,
            max_leaf_nodes=max_leaves,
            ccp_alpha=price,
            random_state=0,
        )
        greedy.fit(x[rows], guide.values[rows], sample_weight=guide.weight[rows])
        _copy(sketch, node, greedy.tree_)

    _at_leaves(ends, grow)


def set_constants(sketch: Sketch, ends: Nodes, prior: Doubles, wanted: Doubles, guide: Guide, rows: float) -> None:
    """Give each leaf one value: the mean of what was predicted of its rows, moved towards what was wanted of them.

    Parameters
    ----------
    sketch : Sketch
    ends : array of shape (n,)
        The leaf of each row.
    prior, wanted : arrays of shape (n, k)
        What was predicted before, and what is wanted: outputs, or means that the link of `guide` turns into outputs.
    guide : Guide
    rows : float
        The prior counts as much as so many rows.
    """
    sketch.models.slope[:] = 0.0
    nodes = len(sketch.kept)
    total = passing(ends, guide.weight, nodes)
    for k in range(prior.shape[1]):
        before, after = (passing(ends, guide.weight * part[:, k], nodes) for part in (prior, wanted))
        mean = before / np.maximum(total, 1e-30)
        value = mean + (after - before) / np.maximum(total + rows, 1e-30) if np.isfinite(rows) else mean
        sketch.models.constant[:, k] = value
    for node in np.flatnonzero(total == 0).tolist():  # without rows: the value of the rows around it
        sketch.models.constant[node] = sketch.models.constant[(node - 1) // 2]
    sketch.models.constant[:] = guide.link.outputs(sketch.models.constant)


def _at_leaves(ends: Nodes, grow: Callable[[int, Nodes], None]) -> None:
    order = np.argsort(ends, kind="stable")
    nodes, begins = np.unique(ends[order], return_index=True)
    for node, rows in zip(nodes.tolist(), np.split(order, begins[1:]), strict=True):
        grow(node, rows)


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


def _copy(sketch: Sketch, node: int, greedy: Any) -> None:
    """Copy the nodes of a tree of scikit-learn below a leaf."""
    places = {0: node}
    for i in range(greedy.node_count):
        here, left = places[i], int(greedy.children_left[i])
        if left < 0:
            continue
        weight = np.zeros(sketch.weight.shape[1])
        weight[greedy.feature[i]] = 1.0
        # scikit-learn sends a row that equals the threshold to the left, here it goes right.
        places[left], places[int(greedy.children_right[i])] = sketch.split(here, weight, -_next(greedy.threshold[i]))


def _next(threshold: float) -> float:
    """The smallest number of single precision above a threshold of double precision, which may lie between two."""
    nearest = np.float32(threshold)
    return float(nearest if float(nearest) > threshold else np.nextafter(nearest, np.float32(np.inf)))
