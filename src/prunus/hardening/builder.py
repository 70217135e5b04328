"""A hard tree while it is built: its splits, the nodes that it has so far, and the model of each."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from prunus.hardening.leaf_models import Doubles, Floats, LeafModels
from prunus.ops.heap import depth_of_nodes, n_nodes, n_splits
from prunus.ops.routes import linear_leaves
from prunus.tree import Layers, Leaves, Splits
from prunus.tree.paths import Nodes, last_kept, passing

__all__ = ["HardTree", "TreeBuilder", "complete_tree", "deepened", "merge_leaves", "weakest_first"]

Bools = npt.NDArray[np.bool_]

CHUNK = 65_536


class HardTree(NamedTuple):
    """A hard tree as plain arrays for encoded rows."""

    splits: Splits
    leaves: Leaves
    kept: Bools
    """(T,)."""
    limits: Doubles | None
    """See `prunus.tree.Tree.limits`."""


@dataclass(frozen=True)
class TreeBuilder:
    """A hard tree that is still being built; its arrays are changed in place.

    A node has both children or none. Rows go right where ``x @ weight[t] + bias[t]`` is not negative.
    """

    weight: Doubles
    """(S, d)."""
    bias: Doubles
    """(S,)."""
    kept: Bools
    """(T,): whether the tree has this node."""
    models: LeafModels
    """A model for each node; only those of leaves matter."""

    @property
    def depth(self) -> int:
        """Largest depth that the tree can have."""
        return depth_of_nodes(len(self.kept))

    @property
    def leaves(self) -> Nodes:
        """The nodes without children."""
        has_child = np.zeros_like(self.kept)
        has_child[: len(self.bias)] = self.kept[1::2]
        return np.flatnonzero(self.kept & ~has_child)

    def ends(self, x: Floats) -> Nodes:
        """The leaf that each row, (n, d), ends in."""
        ends = np.zeros(len(x), dtype=np.int64)
        if not self.depth:
            return ends
        weight, bias = torch.from_numpy(self.weight), torch.from_numpy(self.bias)
        for begin in range(0, len(x), CHUNK):
            rows = slice(begin, begin + CHUNK)
            ends[rows] = linear_leaves(torch.from_numpy(x[rows].astype(np.float64)), weight, bias).numpy()
        return last_kept(self.kept)[ends]

    def split(self, node: int, weight: Doubles, bias: float) -> tuple[int, int]:
        """Give a leaf two children with its own model, and return them."""
        left, right = 2 * node + 1, 2 * node + 2
        self.weight[node], self.bias[node] = weight, bias
        for child in (left, right):
            self.kept[child] = True
            self.models.constant[child] = self.models.constant[node]
            self.models.slope[child] = self.models.slope[node]
        return left, right

    def merge(self, node: int, share: float) -> None:
        """Take the two children of a node away, both leaves; it gets the mean of their models.

        `share` is the left child's part of the rows.
        """
        left, right = 2 * node + 1, 2 * node + 2
        for values in (self.models.constant, self.models.slope):
            values[node] = share * values[left] + (1 - share) * values[right]
        self.kept[left] = self.kept[right] = False
        self.weight[node], self.bias[node] = 0.0, 0.0

    def finished(self, columns: Nodes, d: int, leaf: str, inherited: Leaves, limits: Doubles | None = None) -> HardTree:
        """The plain arrays of the tree, for all d encoded columns, of which the builder has these.

        The bias of the leaves, and what they share, is inherited from the soft tree.
        """
        weight = np.zeros((len(self.bias), d), dtype=np.float32)
        weight[:, columns] = self.weight
        constant = np.zeros(self.models.constant.shape, dtype=np.float32)
        constant[self.leaves] = self.models.constant[self.leaves]
        slope = None
        if leaf == "linear":
            slope = np.zeros((*constant.shape, d), dtype=np.float32)
            for node in self.leaves:
                slope[node][:, columns] = self.models.slope[node]
        splits = Splits(Layers((weight,), (self.bias.astype(np.float32),)))
        leaves = Leaves(inherited.bias, constant=constant, slope=slope, shared=inherited.shared, kind=leaf)
        return HardTree(splits, leaves, self.kept, limits)


def complete_tree(weight: Doubles, bias: Doubles, models: LeafModels) -> TreeBuilder:
    """A builder that begins with a complete tree."""
    return TreeBuilder(weight, bias, np.ones(len(models.constant), dtype=bool), models)


def deepened(builder: TreeBuilder, depth: int) -> TreeBuilder:
    """A copy with room for a larger depth."""
    nodes, splits = n_nodes(depth), n_splits(depth)

    def enlarged(values: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
        out = np.zeros((length, *values.shape[1:]), dtype=values.dtype)
        out[: len(values)] = values
        return out

    models = LeafModels(enlarged(builder.models.constant, nodes), enlarged(builder.models.slope, nodes))
    return TreeBuilder(
        enlarged(builder.weight, splits), enlarged(builder.bias, splits), enlarged(builder.kept, nodes), models
    )


def merge_leaves(
    builder: TreeBuilder,
    x: Floats,
    ends: Nodes,
    weight: Doubles,
    *,
    max_leaves: int | None = None,
    fewest: float = 0.0,
    compared: Callable[[Doubles], Doubles] = lambda outputs: outputs,
) -> None:
    """Merge pairs of leaves, those first whose predictions of their rows change least.

    Parameters
    ----------
    builder : TreeBuilder
    x : array of shape (n, d)
    ends : array of shape (n,)
        The leaf of each row.
    weight : array of shape (n,)
    max_leaves : int, optional
        Merging ends when there are no more leaves than this.
    fewest : float
        Before that, leaves with a smaller total weight are merged with their siblings.
    compared : callable
        Turns outputs, (n, k), into what is compared: probabilities, for classes.
    """
    total = passing(ends, weight, len(builder.kept))
    rows = {node: np.flatnonzero(ends == node) for node in builder.leaves.tolist()}

    def cost(node: int) -> float:
        children = (2 * node + 1, 2 * node + 2)
        share = total[children[0]] / max(total[node], 1e-30)
        models, change = builder.models, 0.0
        slope, constant = (share * part[children[0]] + (1 - share) * part[children[1]] for part in (
            models.slope, models.constant))  # fmt: skip
        for child in children:
            here = rows[child]
            before = x[here] @ models.slope[child].T + models.constant[child]
            difference = compared(x[here] @ slope.T + constant) - compared(before)
            change += float(weight[here] @ np.square(difference).sum(1))
        return change

    def candidate(node: int) -> tuple[bool, float, int]:
        is_large = min(total[2 * node + 1], total[2 * node + 2]) >= fewest
        return is_large, cost(node), node

    parents = {(node - 1) // 2 for node in rows if node}
    heap = [candidate(node) for node in parents if {2 * node + 1, 2 * node + 2} <= rows.keys()]
    heapq.heapify(heap)
    while heap:
        is_large, _, node = heapq.heappop(heap)
        if is_large and (max_leaves is None or len(rows) <= max_leaves):
            break
        left, right = 2 * node + 1, 2 * node + 2
        builder.merge(node, float(total[left] / max(total[node], 1e-30)))
        rows[node] = np.concatenate((rows.pop(left), rows.pop(right)))
        parent = (node - 1) // 2
        if node and {2 * parent + 1, 2 * parent + 2} <= rows.keys():
            heapq.heappush(heap, candidate(parent))


def weakest_first(builder: TreeBuilder, ends: Nodes, values: Doubles, weight: Doubles) -> list[int]:
    """The splits of a tree in the order in which they are taken away, that above the leaves which is worth least first.

    Parameters
    ----------
    builder : TreeBuilder
    ends : array of shape (n,)
        The leaf of each row.
    values : array of shape (n, k)
        What splits separate. The worth of a split is by how much it lowers the sum of squared distances from the means.
    weight : array of shape (n,)
    """
    nodes = len(builder.kept)
    total = passing(ends, weight, nodes)
    worth = sum(np.square(passing(ends, weight * column, nodes)) for column in values.T) / np.maximum(total, 1e-300)
    gain = worth[1::2] + worth[2::2] - worth[: nodes // 2]
    inner = set(np.flatnonzero(builder.kept[1::2]).tolist())

    def is_last(t: int) -> bool:
        return t in inner and 2 * t + 1 not in inner and 2 * t + 2 not in inner

    heap = [(float(gain[t]), t) for t in inner if is_last(t)]
    heapq.heapify(heap)
    order = []
    while heap:
        t = heapq.heappop(heap)[1]
        inner.discard(t)
        order.append(t)
        if is_last((t - 1) // 2):
            heapq.heappush(heap, (float(gain[(t - 1) // 2]), (t - 1) // 2))
    return order
