"""How much each column matters for the predictions of a tree, and records with columns left out."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from prunus.ops.routes import tree_leaves, tree_routes
from prunus.tree.prediction import after_first_layer
from prunus.tree.record import Floats, Layers, Splits, Tree

__all__ = ["Compare", "importances", "without_columns"]

Doubles = npt.NDArray[np.float64]
Columns = npt.NDArray[np.int64]
Compare = Callable[[Doubles], Doubles]
"""Puts outputs, (n, k), on a scale where squared differences mean the same everywhere, see `Target.compared`."""
MOST_ROWS, FEWEST_ROWS = 1_024, 128
"""Values are shuffled among at most, and at least, this many of the training rows."""
PRODUCTS = 1 << 24
"""Within these limits, the number of rows is such that all features together need about this many products."""


def without_columns(tree: Tree, left_out: npt.NDArray[np.bool_]) -> Tree:
    """The tree that predicts of any row what the given one predicts if the columns that are left out, (d,), are 0."""
    leaves, d = tree.leaves, len(left_out)
    arrays: dict[str, Any] = {
        name: np.where(left_out, np.float32(0), part)
        for name in ("slope", "shared")
        if (part := getattr(leaves, name)) is not None
    }
    network = leaves.network
    if network is not None:  # its inputs are the columns and, behind them, the routes
        routes = np.zeros(network.weights[0].shape[1] - d, dtype=bool)
        network = _without(network, np.concatenate((left_out, routes)))
    return replace(tree, splits=_splits(tree.splits, left_out), leaves=replace(leaves, **arrays, network=network))


def _splits(splits: Splits, left_out: npt.NDArray[np.bool_]) -> Splits:
    if splits.layers is not None:
        return replace(splits, layers=_without(splits.layers, left_out))
    assert splits.function is not None
    return replace(splits, function=partial(_seeing, torch.from_numpy(~left_out), splits.function))


def _seeing(seen: Tensor, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return function(x * seen)


def _without(layers: Layers, left_out: npt.NDArray[np.bool_]) -> Layers:
    first, *others = layers.weights
    return replace(layers, weights=(np.where(left_out, np.float32(0), first), *others))


@torch.inference_mode()
def importances(
    tree: Tree,
    x: Floats,
    weight: Doubles | None,
    owner: Columns,
    n_features: int,
    *,
    compared: Compare,
    hard: bool = False,
) -> Doubles:
    """Shares of the features in the changes of outputs, (n_features,); they add up to 1, or are all 0.

    The importance of a feature is the mean squared change of the outputs if its values, in all its encoded columns
    together, are shuffled among rows. For the same training rows these are always the same rows, shuffled in the same
    order, so that two features with equal values and equal weights are equally important.

    Parameters
    ----------
    tree : Tree
        The importances that it has are not read.
    x : array of shape (n, d)
        The training rows, encoded.
    weight : array of shape (n,) or None
        The weights of these rows.
    owner : array of shape (d,)
        The feature that each encoded column comes from.
    n_features : int
    compared : callable
        See `Compare`.
    hard : bool, default=False
        Whether rows follow one path in a soft tree, too.
    """
    found = np.zeros(n_features)
    if not len(owner):
        return found
    rows = _some_rows(len(x), weight, _n_rows(tree, n_features))
    shuffled = _Shuffled(tree, torch.from_numpy(x[rows]), hard=hard or tree.is_hard)
    order = np.argsort(owner, kind="stable")
    groups = np.split(order, np.searchsorted(owner[order], np.arange(1, n_features)))
    with np.errstate(over="ignore", invalid="ignore"):
        before = compared(shuffled.outputs(order[:0]))
        for feature, own in enumerate(groups):
            if shuffled.matter[own].any():
                found[feature] = np.mean((compared(shuffled.outputs(own)) - before) ** 2)
        total = found.sum()
    return found / total if 0 < total < np.inf else np.zeros(n_features)


def _some_rows(n: int, weight: Doubles | None, size: int) -> Columns:
    """The numbers of rows at equal distances, (m,); if rows have weights, each appears in proportion to its weight."""
    if weight is None:
        return np.arange(min(n, size)) * n // min(n, size)
    reached = np.cumsum(weight)
    places = (np.arange(size) + 0.5) * (reached[-1] / size)
    rows: Columns = np.searchsorted(reached, places, side="right").clip(max=n - 1)
    return rows


def _n_rows(tree: Tree, n_features: int) -> int:
    """The number of rows to shuffle: fewer if there are many features, nodes and outputs, or large networks."""
    networks = [layers for layers in (tree.splits.layers, tree.leaves.network) if layers is not None]
    products = sum(weight.size for layers in networks for weight in layers.weights[1:])
    products += sum(len(layers.weights[0]) for layers in networks)
    products += tree.n_nodes * tree.n_outputs
    return min(MOST_ROWS, max(FEWEST_ROWS, PRODUCTS // (products * max(1, n_features))))


class _LinearMap(NamedTuple):
    """A linear function of rows, and its values for some rows."""

    weight: Tensor
    """The weights of each encoded column, (d, p)."""
    values: Tensor
    """(n, p)."""

    def changed(self, own: Tensor, change: Tensor) -> Tensor:
        """The values, (n, p), if the columns `own` of the rows change by so much, (n, number of these columns)."""
        return torch.addmm(self.values, change, self.weight[own])


class _Shuffled:
    """Rows whose outputs are computed anew with some of their columns shuffled.

    All that is not linear in the rows is computed from linear functions of them, which a few columns change quickly.
    """

    def __init__(self, tree: Tree, x: Tensor, *, hard: bool) -> None:
        self._tree, self._x, self._hard = tree, x, hard
        order = np.random.default_rng(0).permutation(len(x))
        other = np.empty_like(order)
        other[order] = np.roll(order, 1)  # no row keeps its value
        self._change = (x[torch.from_numpy(other)] - x).T.contiguous()  # (d, n)
        mass = np.where(tree.kept, tree.mass, np.float32(0)) if hard else tree.mass
        self._mass = torch.from_numpy(mass.copy())
        self._used = self._mass.nonzero().flatten()
        splits, leaves, d = tree.splits, tree.leaves, x.shape[1]
        self._splits = self._first_layer(splits.layers)
        self._network = self._first_layer(leaves.network)
        self._slope = None if leaves.slope is None else self._map(leaves.slope[self._used.numpy()].reshape(-1, d))
        self._shared = None if leaves.shared is None else self._map(leaves.shared)
        maps = [made for made in (self._splits, self._network, self._slope, self._shared) if made is not None]
        matter = torch.stack([made.weight.any(1) for made in maps]).any(0) if maps else torch.zeros(d, dtype=torch.bool)
        self.matter: npt.NDArray[np.bool_] = (matter | (splits.layers is None)).numpy()
        """Whether outputs may depend on each encoded column, (d,)."""

    def _first_layer(self, layers: Layers | None) -> _LinearMap | None:
        return None if layers is None else self._map(layers.weights[0][:, : self._x.shape[1]], layers.biases[0])

    def _map(self, weight: Floats, bias: Floats | None = None) -> _LinearMap:
        of_columns = torch.from_numpy(np.array(weight.T, order="C"))
        values = self._x @ of_columns
        return _LinearMap(of_columns, values if bias is None else values + torch.from_numpy(bias.copy()))

    def outputs(self, columns: Columns) -> Doubles:
        """The outputs of all rows, (n, k), with these encoded columns shuffled."""
        own = torch.from_numpy(columns)
        change = self._change[own].T
        scores = self._scores(own, change)
        if self._hard:
            scores = torch.where(scores < 0, -1.0, 1.0)
        z = tree_routes(scores, self._mass)
        leaves = self._tree.leaves
        out = torch.from_numpy(leaves.bias.copy()).expand(len(z), -1)
        if leaves.constant is not None:
            out = out + z @ torch.from_numpy(leaves.constant.copy())
        if self._slope is not None:
            of_nodes = self._slope.changed(own, change).view(len(z), len(self._used), -1)  # (n, used, k)
            out = out + torch.bmm(z[:, self._used].unsqueeze(1), of_nodes).squeeze(1)
        if self._shared is not None:
            out = out + self._shared.changed(own, change)
        if self._network is not None and leaves.network is not None:
            of_routes = torch.from_numpy(leaves.network.weights[0][:, self._x.shape[1] :].copy())
            first = self._network.changed(own, change) + functional.linear(z, of_routes)
            out = out + after_first_layer(leaves.network, first)
        return self._corrected(out.double().numpy(), scores)

    def _scores(self, own: Tensor, change: Tensor) -> Tensor:
        splits = self._tree.splits
        if self._splits is None or splits.layers is None:
            assert splits.function is not None
            return splits.function(self._x.index_add(1, own, change))
        scores = after_first_layer(splits.layers, self._splits.changed(own, change))
        return functional.elu(scores) if splits.bounded else scores

    def _corrected(self, outputs: Doubles, scores: Tensor) -> Doubles:
        """Outputs with the correction of the node that a row's one path ends in, if it follows one, and limits."""
        tree = self._tree
        if not self._hard:
            return outputs if tree.limits is None else np.clip(outputs, *tree.limits[:, 0])
        ends = tree.ends[tree_leaves(scores).numpy()]
        outputs = outputs + tree.correction[ends]
        return outputs if tree.limits is None else np.clip(outputs, *tree.limits[:, ends])
