"""From a trained model to the record of its tree: statistics of the training rows, and what they correct."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from prunus.ops import integer_pruning
from prunus.ops.heap import depth_of_nodes, level
from prunus.tree.importances import Compare, importances
from prunus.tree.paths import last_kept, parts_rows, passing
from prunus.tree.prediction import device_path_outputs, find_leaves, hard_outputs, path_outputs, soft_outputs
from prunus.tree.record import Floats, Leaves, Routing, Splits, Tree

__all__ = ["Prune", "TrainedRows", "best_pruning", "keep_largest", "keep_pairs", "node_statistics", "read_tree"]

Bools = npt.NDArray[np.bool_]
Nodes = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Agree = Callable[[Doubles, Doubles], float]
"""Tells how far soft and hard predictions agree, given the outputs of both, (n, k)."""
Prune = Callable[[Doubles, Nodes], Bools]
"""Chooses the kept nodes, (T,), given the weight of the rows that pass each node, (T,), and each row's leaf, (n,)."""
Correct = Callable[[npt.NDArray[np.floating], Floats, Doubles | None, Nodes, int], Doubles]
"""Computes the correction of each node, (T, k), given what is wanted of the rows and their outputs, (n, k), their
weights, (n,), the nodes that they end in, (n,), and the number of nodes, T."""
COMPARED = 10_000
"""Soft and hard predictions are compared on at most this many of the training rows."""


class NodeStatistics(NamedTuple):
    """Statistics of values, (n, k), over the rows that pass each node of a tree."""

    mean: Doubles
    """Means, (T, k); a node that no row passes has the mean of its parent."""
    spread: Doubles
    """Standard deviations, (T, k); 0 for a node that no row passes."""


def node_statistics(
    values: npt.NDArray[np.floating], ends: npt.NDArray[np.int64], weight: Doubles | None, n_nodes: int
) -> NodeStatistics:
    """Means and standard deviations, given the node that the path of each row ends in, (n,).

    Examples
    --------
    >>> node_statistics(np.array([[1.0], [3.0]]), np.array([1, 2]), None, 3).mean.tolist()
    [[2.0], [1.0], [3.0]]
    """
    total = passing(ends, weight, n_nodes)
    mean, spread = np.zeros((2, n_nodes, values.shape[1]))
    for k in range(values.shape[1]):
        column = values[:, k].astype(np.float64)
        middle = np.average(column, weights=weight)  # sums of squares around it lose fewer digits
        column -= middle
        first = column if weight is None else column * weight
        mean[:, k] = passing(ends, first, n_nodes) / np.maximum(total, 1e-30)
        square = passing(ends, first * column, n_nodes) / np.maximum(total, 1e-30)
        spread[:, k] = np.sqrt(np.maximum(square - mean[:, k] ** 2, 0.0))
        mean[:, k] = np.clip(mean[:, k] + middle, values[:, k].min(), values[:, k].max())  # up to rounding it is there
    for d in range(1, depth_of_nodes(n_nodes) + 1):
        empty = np.arange(n_nodes)[level(d)][total[level(d)] <= 0]
        mean[empty] = mean[(empty - 1) // 2]
    return NodeStatistics(mean, spread)


class TrainedRows(NamedTuple):
    """The rows that a tree was trained on."""

    x: Floats
    """The encoded rows, (n, d)."""
    wanted: npt.NDArray[np.floating]
    """What is wanted of each row, (n, k), see `prunus.targets.Target.wanted`."""
    weight: Doubles | None
    """(n,)."""
    owner: Nodes
    """The column of the table that each encoded column comes from, (d,)."""
    n_features: int
    """Number of columns of the table."""


def read_tree(
    splits: Splits,
    leaves: Leaves,
    mass: Floats,
    rows: TrainedRows,
    *,
    prune: Prune,
    correct: Correct | None,
    compared: Compare,
    n_parameters: int,
    routing: Routing = "soft",
    cut: bool = False,
    by_path: bool = False,
    agree: Agree | None = None,
    limits: tuple[Doubles, Doubles] | None = None,
    device: torch.device | None = None,
) -> Tree:
    """The record of a trained tree. The training rows descend the tree once for all its statistics.

    In a hard tree the kept nodes get the mass 1, and all others 0; if the tree is `cut`, all that are not kept get the
    mass 0 in a soft tree, too. Without `correct` there is no correction. Importances are about outputs on the scale
    that `compared` puts them on, and along one path if the tree is used `by_path`. With `agree`, the record of a soft
    tree says how far its hard predictions agree with its soft ones. `limits` are the smallest and the largest output,
    (k,) each, or those of each node, (T, k) each. If leaves have a network, it is computed on the `device`.
    """
    n_nodes = len(mass)
    leaf = find_leaves(splits, rows.x)
    total = passing(leaf, rows.weight, n_nodes)
    kept = prune(total, leaf)
    if routing == "hard":
        mass = kept.astype(np.float32)
    elif cut:
        mass = np.where(kept, mass, np.float32(0))
    last = last_kept(kept)
    ends = last[leaf]
    share = np.where(kept, total / total[0], 0.0)
    statistics = node_statistics(rows.wanted, ends, rows.weight, n_nodes)
    tree = Tree(
        splits=splits,
        leaves=leaves,
        mass=mass,
        kept=kept,
        ends=last,
        correction=np.zeros((n_nodes, len(leaves.bias))),
        share=share,
        mean=statistics.mean,
        spread=statistics.spread,
        importances=np.zeros(rows.n_features),
        n_parameters=n_parameters,
        routing=routing,
        limits=None if limits is None else np.stack([np.broadcast_to(end, statistics.mean.shape) for end in limits]),
    )
    if correct is not None:
        outputs = _path_outputs(tree, rows.x, ends, device)
        tree = replace(tree, correction=correct(rows.wanted, outputs, rows.weight, ends, n_nodes))
    found = importances(tree, rows.x, rows.weight, rows.owner, rows.n_features, compared=compared, hard=by_path)
    tree = replace(tree, importances=found)
    if agree is None or tree.is_hard or n_nodes == 1:  # then there is only one way
        return tree
    return replace(tree, agreement=_agreement(tree, rows.x, ends, agree))


def best_pruning(total: Doubles, lam: float) -> Bools:
    """The nodes, (T,), that the best hard pruning keeps if rows follow one path; the root is always kept.

    Only the signs of the scores matter along one path. As if all scores were 1 or -1, the reward of a node is the
    total weight of the rows that pass it, (T,).

    >>> best_pruning(np.array([10.0, 1.0, 9.0]), lam=4.0).tolist()
    [True, False, True]
    """
    kept = integer_pruning(torch.from_numpy(total).unsqueeze(0), lam)  # a single sample with the sum of all rewards
    kept[0] = True
    return kept.numpy()


def keep_largest(kept: Bools, total: Doubles, max_leaves: int) -> Bools:
    """The kept nodes without those that fewest rows pass, (T,), so that there are at most this many leaves.

    >>> keep_largest(np.ones(7, dtype=bool), np.array([9.0, 6.0, 3.0, 4.0, 2.0, 2.0, 1.0]), 3).tolist()
    [True, True, True, True, True, False, False]
    """
    kept = kept.copy()
    while True:
        inner = np.flatnonzero(kept[1:].reshape(-1, 2).any(1))
        leaves = int(kept.sum()) - len(inner)
        last = [t for t in inner.tolist() if not (kept[4 * t + 3 : 4 * t + 7]).any()]
        if leaves <= max_leaves or not last:
            return kept
        smallest = min(last, key=lambda t: total[t])
        kept[2 * smallest + 1 : 2 * smallest + 3] = False


def keep_pairs(kept: Bools, total: Doubles) -> Bools:
    """The kept nodes and their siblings, (T,), without the children of splits below which rows are never separated.

    Every row then ends in a leaf of the kept tree.

    >>> keep_pairs(np.array([True, False, True]), np.array([10.0, 1.0, 9.0])).tolist()
    [True, True, True]
    """
    paired = kept.copy()
    paired[1:] = np.repeat(kept[1:].reshape(-1, 2).any(1) & parts_rows(total), 2)
    return paired


def _agreement(tree: Tree, x: Floats, ends: Nodes, agree: Agree) -> float | None:
    """The agreement of soft and hard predictions of some rows; None if numbers are too large to compare."""
    step = -(-len(x) // COMPARED)
    x, ends = x[::step], ends[::step]
    with np.errstate(over="ignore", invalid="ignore"):
        found = agree(soft_outputs(tree, x), hard_outputs(tree, x, ends))
    return found if math.isfinite(found) else None


def _path_outputs(tree: Tree, x: Floats, ends: Nodes, device: torch.device | None) -> Floats:
    """Outputs of rows that follow one path to these nodes, (n, k), without the correction."""
    if device is None or device.type == "cpu" or tree.leaves.network is None:
        found: Floats = path_outputs(tree.leaves, tree.mass, x, ends).numpy()
        return found
    return device_path_outputs(tree, x, ends, device)
