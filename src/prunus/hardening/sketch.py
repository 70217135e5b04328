"""A hard tree while it is made: its splits, the nodes that it has so far, and the model of each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.hardening.leaf_models import Doubles, Floats, LeafModels
from prunus.ops.heap import depth_of_nodes, n_nodes, n_splits
from prunus.ops.routes import linear_leaves
from prunus.tree.paths import Nodes, last_kept

__all__ = ["Sketch", "complete_sketch", "deepened"]

CHUNK = 65_536


@dataclass(frozen=True)
class Sketch:
    """A hard tree that is still being made; its arrays are changed in place.

    A node has both children or none. Rows go right where ``x @ weight[t] + bias[t]`` is not negative.
    """

    weight: Doubles
    """(S, d)."""
    bias: Doubles
    """(S,)."""
    kept: npt.NDArray[np.bool_]
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


def complete_sketch(weight: Doubles, bias: Doubles, models: LeafModels) -> Sketch:
    """A sketch of a complete tree."""
    return Sketch(weight, bias, np.ones(len(models.constant), dtype=bool), models)


def deepened(sketch: Sketch, depth: int) -> Sketch:
    """A copy of a sketch with room for a larger depth."""
    nodes, splits = n_nodes(depth), n_splits(depth)

    def enlarged(values: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
        out = np.zeros((length, *values.shape[1:]), dtype=values.dtype)
        out[: len(values)] = values
        return out

    models = LeafModels(enlarged(sketch.models.constant, nodes), enlarged(sketch.models.slope, nodes))
    return Sketch(enlarged(sketch.weight, splits), enlarged(sketch.bias, splits), enlarged(sketch.kept, nodes), models)
