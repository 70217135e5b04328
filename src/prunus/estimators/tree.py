"""The tree that was learned, as plain arrays."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from prunus.estimators.node_statistics import NodeStatistics
from prunus.estimators.prediction import hard_nodes, linear_splits
from prunus.nn import TreeModel
from prunus.ops import integer_pruning
from prunus.ops.heap import depth_of_nodes, level
from prunus.training import Samples

__all__ = ["Tree", "read_tree"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Tree:
    """A complete tree in heap order: root 0, children of t are 2t+1 (left) and 2t+2 (right), T nodes.

    A row goes left at split t where ``weight[t] @ x + bias[t] < 0``, x the encoded row; it stops at the last kept node.
    """

    mass: Floats
    """Node masses a, (T,): how much of a sample a node can receive; 0 is pruned."""
    kept: npt.NDArray[np.bool_]
    """Nodes of the hard tree, (T,); the root always is."""
    share: npt.NDArray[np.float64]
    """Share of the training samples, by weight, whose path passes each kept node, (T,); zero elsewhere."""
    weight: Floats | None
    """Weights of the splits on encoded inputs, (S, d); None if the splits are not linear."""
    bias: Floats | None
    """Thresholds, (S,)."""
    passing: NodeStatistics | None = None
    """Of the outputs that were to be learned, (T, k), over the training samples whose path passes each kept node:
    shares of the classes, or values in standard units."""

    @property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """Kept nodes without a kept child, (T,)."""
        child = np.zeros_like(self.kept)
        inner = np.arange(len(self.kept) // 2)
        child[inner] = self.kept[2 * inner + 1] | self.kept[2 * inner + 2]
        return self.kept & ~child

    @property
    def n_leaves(self) -> int:
        """Number of leaves of the kept tree."""
        return int(self.is_leaf.sum())

    @property
    def depth(self) -> int:
        """Depth of the kept tree."""
        return int(np.log2(np.flatnonzero(self.kept).max() + 1))


@torch.no_grad()
def read_tree(model: TreeModel, train: Samples, *, in_pairs: bool = False) -> Tree:
    """The tree of a model whose masses are stored, with the training samples for what is counted.

    With `in_pairs` a node is kept if its sibling is, so that every row ends in a leaf of the kept tree; and splits that
    part no rows, neither themselves nor below, are not kept.
    """
    tree = model.tree
    everything = torch.ones(len(tree.a), dtype=torch.bool)
    leaves = hard_nodes(model, train.x.numpy(), everything)
    passing = _passing(leaves, train.weight, len(tree.a))
    kept = _kept(passing, tree.pruning_strength * len(train) / (tree.batch_size or len(train)))
    if in_pairs:
        children = kept[1:].view(-1, 2)
        children |= children.flip(1)
        children &= _parts(passing).unsqueeze(1)
    linear = linear_splits(model)
    return Tree(
        mass=tree.a.numpy().copy(),
        kept=kept.numpy(),
        share=torch.where(kept, passing / passing[0], 0.0).numpy(),
        weight=None if linear is None else linear[0].numpy(),
        bias=None if linear is None else linear[1].numpy(),
    )


def _passing(leaves: Tensor, weight: Tensor | None, nodes: int) -> Tensor:
    """Weight of the samples whose path passes each node, (T,)."""
    passing = torch.bincount(leaves, None if weight is None else weight.double(), minlength=nodes).double()
    for d in range(depth_of_nodes(nodes), 0, -1):
        passing[level(d - 1)] += passing[level(d)].view(-1, 2).sum(1)
    return passing


def _parts(passing: Tensor) -> Tensor:
    """Which splits, (S,), send rows both ways, or have such splits below."""
    parts = (passing[1:].view(-1, 2) > 0).all(1)
    below = torch.cat((parts, parts.new_zeros(len(parts) + 1)))
    for d in range(depth_of_nodes(len(passing)) - 1, 0, -1):
        below[level(d - 1)] |= below[level(d)].view(-1, 2).any(1)
    return below[: len(parts)]


def _kept(passing: Tensor, lam: float) -> Tensor:
    """The best hard pruning where samples follow one path, and the root in any case.

    Splits that only their signs matter of have scores of 1 and -1, and a node the reward of the samples that pass it.
    """
    kept = integer_pruning(passing.unsqueeze(0), lam)  # one sample with the rewards of all
    kept[0] = True
    return kept
