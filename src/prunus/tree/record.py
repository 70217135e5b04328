"""The record of a fitted tree: everything that was learned, as plain arrays.

Trees are complete and in heap order: the root is node 0, the children of node t are 2t+1 (left) and 2t+2 (right). A
tree of depth D has S = 2^D - 1 splits and T = 2^(D+1) - 1 nodes; d is the number of columns of an encoded row, k the
number of outputs. All weights apply to encoded rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

from prunus.ops.heap import depth_of_nodes

__all__ = ["Floats", "Layers", "Leaves", "Routing", "Splits", "Tree"]

Floats = npt.NDArray[np.float32]
Routing = Literal["soft", "hard"]


@dataclass(frozen=True)
class Layers:
    """Linear layers, with a nonlinear unit between each two of them."""

    weights: tuple[Floats, ...]
    """The matrix of each layer, (outputs, inputs)."""
    biases: tuple[Floats, ...]
    """The bias of each layer, (outputs,)."""
    unit: str = "elu"
    """The unit between two layers: "elu" or "relu"."""


@dataclass(frozen=True)
class Splits:
    """How the inner nodes score a row: it goes left where its score is negative, and right otherwise."""

    layers: Layers | None
    """From encoded rows, (n, d), to scores, (n, S); None if `function` computes them."""
    bounded: bool = False
    """Whether the scores pass an exponential linear unit at the end, so that none is below -1."""
    function: Callable[[Tensor], Tensor] | None = None
    """A user's own torch module, from encoded rows to scores; such a tree cannot be saved or exported."""

    @property
    def is_linear(self) -> bool:
        """Whether a linear function of the row decides which side it takes."""
        return self.layers is not None and len(self.layers.weights) == 1

    @property
    def weight(self) -> Floats | None:
        """Weights of linear splits, (S, d); None for others."""
        return self.layers.weights[0] if self.layers is not None and self.is_linear else None

    @property
    def bias(self) -> Floats | None:
        """Biases of linear splits, (S,); None for others."""
        return self.layers.biases[0] if self.layers is not None and self.is_linear else None


@dataclass(frozen=True)
class Leaves:
    """How outputs, (n, k), are made from encoded rows x, (n, d), and their routes z, (n, T).

    The outputs of a row are a sum:

        bias + sum over nodes t of z[t] (constant[t] + slope[t] @ x) + shared @ x + network(x and z side by side)

    Parts that are None are left out.
    """

    bias: Floats
    """A constant that is added to the outputs of all rows, (k,)."""
    constant: Floats | None = None
    """The value of each node, (T, k)."""
    slope: Floats | None = None
    """The linear model of each node, (T, k, d)."""
    shared: Floats | None = None
    """A linear model for all rows, (k, d)."""
    network: Layers | None = None
    """From rows and routes side by side, (n, d + T), to (n, k)."""
    kind: str = ""
    """The kind of leaf by its name in `prunus.nn.registry`, such as "constant"."""

    @property
    def is_constant(self) -> bool:
        """Whether a row's outputs depend on its routes alone."""
        return self.slope is None and self.shared is None and self.network is None

    @property
    def is_linear(self) -> bool:
        """Whether the outputs at the end of a path are a linear function of the row."""
        return self.network is None


@dataclass(frozen=True)
class Tree:
    """A fitted tree.

    The *kept* nodes are the tree that pictures show and hard predictions follow: a row descends by the signs of its
    scores, and its path ends in the last kept node. Soft predictions follow all routes to nodes with a positive mass.
    In a *hard* tree all predictions are hard: its kept nodes have the mass 1, and all others 0.
    """

    splits: Splits
    """How the inner nodes score rows."""
    leaves: Leaves
    """How outputs are made from rows and routes."""
    mass: Floats
    """Node masses a, (T,): how much of a row each node can receive; a node with mass 0 is pruned."""
    kept: npt.NDArray[np.bool_]
    """Whether each node is kept, (T,). The root always is, and so is the parent of a kept node."""
    ends: npt.NDArray[np.int64]
    """The last kept node on the path from the root to each node, (T,)."""
    correction: npt.NDArray[np.float64]
    """What is added to the outputs of rows whose one path ends in each node, (T, k), for the routes not taken."""
    share: npt.NDArray[np.float64]
    """Share of the training rows, by weight, whose path passes each kept node, (T,); 0 elsewhere."""
    mean: npt.NDArray[np.float64]
    """Mean of the ideal outputs over these rows, (T, k): shares of the classes, or values in standard units. A node
    that no row passes has the mean of its parent."""
    spread: npt.NDArray[np.float64]
    """Standard deviation of the ideal outputs over these rows, (T, k); 0 for a node that no row passes."""
    importances: npt.NDArray[np.float64]
    """Share of each column of the table in the changes of outputs if its values are shuffled, (n_features,). Shares add
    up to 1, or are all 0 if outputs do not depend on the row."""
    n_parameters: int
    """Number of learned parameters of the torch model."""
    cluster: npt.NDArray[np.int64] | None = None
    """The cluster of rows that end in each node, (T,); None unless clusters were learned."""
    routing: Routing = "soft"
    """Whether rows follow all their routes or one path."""
    limits: npt.NDArray[np.float64] | None = None
    """The smallest and the largest output of rows whose one path ends in each node, (2, T, k), so that models in leaves
    do not go far beyond what was seen in training; those of the root hold for soft predictions. None if outputs have no
    limits."""
    agreement: float | None = None
    """How far hard predictions of the training rows agree with soft ones, see `prunus.targets.Target.agreement`; None
    if it is not known or there is only one way, as in hard trees and for clusters."""

    @property
    def is_hard(self) -> bool:
        """Whether every row follows one path."""
        return self.routing == "hard"

    @property
    def weight(self) -> Floats | None:
        """Weights of the splits, (S, d); None if they are not linear."""
        return self.splits.weight

    @property
    def bias(self) -> Floats | None:
        """Biases of the splits, (S,); None if not linear. A row goes left if ``weight @ x + bias`` is negative."""
        return self.splits.bias

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the complete tree, T."""
        return len(self.mass)

    @property
    def n_outputs(self) -> int:
        """Number of outputs, k."""
        return len(self.leaves.bias)

    @cached_property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """Whether each node is kept and has no kept child, (T,)."""
        return self.kept & ~_has_child(self.kept)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of the kept tree."""
        return int(self.is_leaf.sum())

    @property
    def all_pruned(self) -> bool:
        """Whether the tree has splits, but none of them is kept."""
        return self.n_nodes > 1 and self.n_leaves == 1

    @property
    def depth(self) -> int:
        """Depth of the kept tree."""
        return int(np.log2(np.flatnonzero(self.kept).max() + 1))

    @property
    def full_depth(self) -> int:
        """Depth of the complete tree, before pruning."""
        return depth_of_nodes(len(self.mass))


def _has_child(kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether each node, (T,), has a kept child."""
    has_child = np.zeros_like(kept)
    has_child[: len(kept) // 2] = kept[1:].reshape(-1, 2).any(1)
    return has_child
