"""New levels of a tree: leaves are split along their models, or where the function to follow bends most."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.hardening.builder import TreeBuilder
from prunus.hardening.leaf_models import Doubles, Floats
from prunus.ops.heap import depth_of_nodes, level
from prunus.targets.links import IDENTITY, SOFTMAX, Link
from prunus.tree.paths import Nodes, passing

__all__ = ["CurvatureData", "SplitTargets", "grow_along_models", "grow_where_curved", "node_means", "set_constants"]

FEWEST_ROWS = 2
"""A leaf has at least this many training rows."""
SMALL = 1e-4
"""A leaf is not split if its values vary by less than this share of the variance of all values."""
PAIRS = 3
"""Splits between this many of the most frequent classes of a leaf are tried."""
DIRECTIONS = 3
"""This many directions are tried in a leaf."""
SHARES = (0.2, 0.35, 0.5, 0.65, 0.8)
"""Thresholds are tried that leave these shares of the rows on the left."""
PENALTY = 1.0
"""The penalty on the change of a model, against a sum over rows."""
LEAST_GAIN = 0.02
"""A split must lower the squared error of its leaf by this share."""
FLOOR = 1e-2
"""Added to the variances of the columns in a leaf, as a share of their mean."""
FLAT = 1e-8
"""Directions whose bend is below this share of the largest one, both squared, are not tried: some only distinguish
copies of a column."""
MAX_ROWS = 30_000


@dataclass(frozen=True)
class SplitTargets:
    """What each row should have as its output, for the choice of splits."""

    values: Doubles
    """What splits are to separate, (n, m): outputs, or probabilities of classes."""
    weight: Doubles
    """(n,)."""
    link: Link = IDENTITY
    """What makes outputs from the means of leaves; the values are probabilities if it is that of classes."""


def grow_along_models(builder: TreeBuilder, x: Floats, ends: Nodes, targets: SplitTargets) -> None:
    """Split each leaf, and its children in turn, along its own linear model, until the depth of the builder.

    A linear function of a row is a sum, and so is the score of a split: thresholds on that sum make the steps of a
    constant model out of the slope.
    """
    mean = targets.weight @ targets.values / targets.weight.sum()
    least = SMALL * float(targets.weight @ np.square(targets.values - mean).sum(1)) / targets.weight.sum()

    def grow(node: int, rows: Nodes) -> None:
        if 2 * node + 2 >= len(builder.kept) or len(rows) < 2 * FEWEST_ROWS:
            return
        values, weight = targets.values[rows], targets.weight[rows]
        center = weight @ values / weight.sum()
        if weight @ np.square(values - center).sum(1) <= least * weight.sum():
            return
        models = builder.models
        outputs = x[rows] @ models.slope[node].T + models.constant[node]
        directions = _output_directions(outputs, values, weight, is_share=targets.link is SOFTMAX)
        tried = [(_best_threshold(outputs @ u, values, weight), u) for u in directions]
        (gain, threshold), u = max(tried, key=lambda found: found[0][0])
        if gain <= 0:
            return
        weights = u @ models.slope[node]
        left, right = builder.split(node, weights, float(u @ models.constant[node] - threshold))
        is_right = x[rows] @ weights + builder.bias[node] >= 0
        grow(left, rows[~is_right])
        grow(right, rows[is_right])

    for node, rows in leaf_rows(ends):
        grow(node, rows)


def set_constants(
    builder: TreeBuilder,
    ends: Nodes,
    prior: Doubles,
    wanted: Doubles,
    weight: Doubles,
    rows: float,
    *,
    link: Link = IDENTITY,
) -> None:
    """Give each leaf one value: the mean of what was predicted of its rows, moved towards what was wanted of them.

    See `node_means`; the link turns means into outputs. A leaf without rows gets the value of the rows around it.
    """
    builder.models.slope[:] = 0.0
    means = node_means(ends, prior, wanted, weight, rows, len(builder.kept))
    builder.models.constant[:] = link.outputs(means)


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


def _output_directions(outputs: Doubles, values: Doubles, weight: Doubles, *, is_share: bool) -> list[Doubles]:
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


"""A leaf is not split if its squared error is below this share of the variance of all rows."""


@dataclass(frozen=True)
class CurvatureData:
    """Rows with the outputs that a tree should have for them."""

    x: Floats
    """Encoded rows, (n, d)."""
    matrix: Doubles
    offset: Doubles
    """The map to the coordinates of the linear models: ``x @ matrix.T + offset``."""
    wanted: Doubles
    """(n, k)."""
    weight: Doubles
    """(n,)."""
    max_columns: int | None
    """Largest number of columns in a split."""
    owner: Nodes
    """The column of the table that each encoded column belongs to, (d,)."""

    @cached_property
    def scale(self) -> Doubles:
        """The scale of each encoded column, (d,)."""
        scale: Doubles = np.maximum(self.x.std(0, dtype=np.float64), 1e-6)
        return scale


class Cut(NamedTuple):
    """A split of a leaf, with the change of the model on both sides."""

    error: float
    weight: Doubles
    bias: float
    left: Doubles
    right: Doubles


def grow_where_curved(builder: TreeBuilder, rows: CurvatureData) -> None:
    """Split each leaf, and its children in turn, until the depth of the builder.

    Where a function is curved, the products of the residuals of its linear fit with the products of two coordinates are
    largest along the direction in which it bends: the principal Hessian direction. A plane across this direction leaves
    two parts that are less curved.
    """
    if len(rows.x) > MAX_ROWS:
        some = slice(None, None, -(-len(rows.x) // MAX_ROWS))
        rows = CurvatureData(rows.x[some], rows.matrix, rows.offset, rows.wanted[some], rows.weight[some],
                    rows.max_columns, rows.owner)  # fmt: skip
    z = rows.x.astype(np.float64) @ rows.matrix.T + rows.offset
    design = np.concatenate((np.ones((len(z), 1)), z), axis=1)
    center = rows.weight @ rows.wanted / rows.weight.sum()
    least = SMALL * float(rows.weight @ np.square(rows.wanted - center).sum(1)) / len(z)
    fewest = 2 * design.shape[1]

    def grow(node: int, here: Nodes) -> None:
        if 2 * node + 2 >= len(builder.kept) or len(here) < 2 * fewest:
            return
        outputs = rows.x[here] @ builder.models.slope[node].T + builder.models.constant[node]
        residual = rows.wanted[here] - outputs
        cut = _best_cut(rows, here, design[here], residual, fewest, least * len(here))
        if cut is None:
            return
        children = builder.split(node, cut.weight, cut.bias)
        is_right = rows.x[here] @ cut.weight + cut.bias >= 0
        for child, change, own in zip(children, (cut.left, cut.right), (here[~is_right], here[is_right]), strict=True):
            builder.models.slope[child] += change[1:].T @ rows.matrix
            builder.models.constant[child] += change[0] + change[1:].T @ rows.offset
            grow(child, own)

    ends = builder.ends(rows.x)
    for node in np.unique(ends).tolist():
        grow(node, np.flatnonzero(ends == node))


def _best_cut(
    rows: CurvatureData, here: Nodes, design: Doubles, residual: Doubles, fewest: int, least: float
) -> Cut | None:
    """The best of the tried splits of a leaf; None if none is worth it."""
    weight = rows.weight[here]
    whole = _Sums.of(design, residual, weight, [0, len(here)])
    (change,), (error,) = whole.solved()
    if error <= least:
        return None
    rest = (residual - design @ change) * weight[:, None]
    x = rows.x[here].astype(np.float64)
    cuts: list[Cut] = []
    for direction in _directions(rows, x, rest):
        a = x @ direction
        thresholds = np.unique(np.quantile(a, SHARES))
        part = np.searchsorted(thresholds, a, side="right").astype(np.int8)
        order, counts = np.argsort(part, kind="stable"), np.bincount(part, minlength=len(thresholds) + 1)
        parts = _Sums.of(design[order], residual[order], weight[order], [0, *np.cumsum(counts).tolist()])
        left, right = parts.on_both_sides(whole)
        allowed = np.minimum(left.rows, right.rows) >= fewest
        (to_left, error_left), (to_right, error_right) = left[allowed].solved(), right[allowed].solved()
        found = zip(error_left + error_right, -thresholds[allowed], to_left, to_right, strict=True)
        cuts += [Cut(float(both), direction, float(bias), one, other) for both, bias, one, other in found]
    best = min(cuts, key=lambda cut: cut.error, default=None)
    return best if best is not None and best.error <= (1 - LEAST_GAIN) * error else None


def _directions(rows: CurvatureData, x: Doubles, rest: Doubles) -> list[Doubles]:
    """Directions, (d,), in which the weighted residuals, (n, k), of rows, (n, d), bend most."""
    x = (x - x.mean(0)) / rows.scale
    if rows.max_columns is not None:
        return [_few_columns(hessian, rows) / rows.scale for hessian in _hessians(x, rest)[:1]]
    variance = x.T @ x / len(x)
    variance += FLOOR * np.trace(variance) / len(variance) * np.eye(len(variance)) + 1e-9 * np.eye(len(variance))
    root = np.linalg.cholesky(variance)
    curved = sum(hessian @ hessian for hessian in _hessians(np.linalg.solve(root, x.T).T, rest))
    values, vectors = np.linalg.eigh(curved)
    largest = [vector for value, vector in zip(values, vectors.T, strict=True) if value > FLAT * values[-1]]
    return [np.linalg.solve(root.T, vector) / rows.scale for vector in largest[: -DIRECTIONS - 1 : -1]]


def _hessians(x: Doubles, rest: Doubles) -> list[Doubles]:
    """For each output the mean product of the residual with the products of two coordinates, (d, d), largest first."""
    found = [(x * rest[:, [j]]).T @ x / len(x) for j in range(rest.shape[1])]
    return sorted(found, key=lambda hessian: -float(np.square(hessian).sum()))


def _few_columns(hessian: Doubles, rows: CurvatureData) -> Doubles:
    """The direction of the largest bend in at most this many columns, (d,)."""
    values, vectors = np.linalg.eigh(hessian)
    largest = vectors[:, np.abs(values).argmax()]
    size = np.bincount(rows.owner, weights=np.square(largest))
    chosen = np.isin(rows.owner, np.argsort(-size)[: rows.max_columns])
    inside = np.flatnonzero(chosen)
    values, vectors = np.linalg.eigh(hessian[np.ix_(inside, inside)])
    direction = np.zeros(len(hessian))
    direction[inside] = vectors[:, np.abs(values).argmax()]
    return direction


@dataclass(frozen=True)
class _Sums:
    """The sums over the rows of several parts that a linear fit of each part is made from."""

    products: Doubles
    """(m, 1 + d, 1 + d)."""
    crossed: Doubles
    """(m, 1 + d, k)."""
    square: Doubles
    """(m,)."""
    rows: Nodes
    """(m,)."""

    @classmethod
    def of(cls, design: Doubles, residual: Doubles, weight: Doubles, bounds: list[int]) -> "_Sums":
        """The sums of the rows between one bound and the next."""
        weighted, square = design * weight[:, None], weight * np.square(residual).sum(1)
        parts = [slice(*pair) for pair in pairwise(bounds)]
        return cls(
            np.stack([weighted[part].T @ design[part] for part in parts]),
            np.stack([weighted[part].T @ residual[part] for part in parts]),
            np.array([square[part].sum() for part in parts]),
            np.diff(bounds),
        )

    def __getitem__(self, parts: npt.NDArray[np.bool_]) -> "_Sums":
        return _Sums(self.products[parts], self.crossed[parts], self.square[parts], self.rows[parts])

    def on_both_sides(self, whole: "_Sums") -> tuple["_Sums", "_Sums"]:
        """The sums of all parts before, and of all parts after, each bound between two parts."""
        own = (self.products, self.crossed, self.square, self.rows)
        left: list[Any] = [np.cumsum(part, axis=0)[:-1] for part in own]
        of_all = (whole.products, whole.crossed, whole.square, whole.rows)
        return _Sums(*left), _Sums(*(total - part for total, part in zip(of_all, left, strict=True)))

    def solved(self) -> tuple[Doubles, Doubles]:
        """The change of the model, (m, 1 + d, k), and the squared error that is left, (m,)."""
        penalty = np.full(self.products.shape[1], PENALTY)
        penalty[0] *= 0.1
        change: Doubles = np.linalg.solve(self.products + np.diag(penalty), self.crossed).astype(np.float64)
        improved = 2 * self.crossed - self.products @ change
        return change, self.square - (change * improved).sum((1, 2))
