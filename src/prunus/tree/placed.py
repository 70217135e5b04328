"""A fitted tree on a device, such as a GPU, and what it computes for encoded rows that are there, too."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from prunus.ops.routes import tree_leaves, tree_routes
from prunus.tree.prediction import UNITS
from prunus.tree.record import Floats, Layers, Tree

__all__ = ["PlacedTree", "has_network", "has_split_network", "placed_path_outputs"]

FEWEST_ROWS, MOST_ROWS = 1 << 10, 1 << 18
"""Rows that are computed at once: with more of them, starting kernels takes no time beside them."""
CELLS = 1 << 27
"""Numbers, rows times the widest step of a computation, that are computed at once at most: they take 512 MiB."""


def has_split_network(tree: Tree) -> bool:
    """Whether a network computes the scores of the splits."""
    return tree.splits.layers is not None and len(tree.splits.layers.weights) > 1


def has_network(tree: Tree) -> bool:
    """Whether a network computes scores of splits or outputs."""
    return has_split_network(tree) or tree.leaves.network is not None


class PlacedTree:
    """The arrays of a tree on a device.

    It computes what `prunus.tree.prediction` computes on the CPU, from scores of all splits and routes to all nodes.
    Results agree up to rounding. A row on the edge of a split may therefore take another path.

    Parameters
    ----------
    tree : Tree
    device : torch.device

    Attributes
    ----------
    rows : int
        The number of rows that should be computed at once.
    """

    def __init__(self, tree: Tree, device: torch.device) -> None:
        def place(array: npt.NDArray[Any]) -> Tensor:
            return torch.tensor(array, device=device)

        splits, leaves = tree.splits, tree.leaves
        self.is_hard, self.depth = tree.is_hard, tree.full_depth
        self.function, self.bounded = splits.function, splits.bounded
        self.layers = None if splits.layers is None else _Network(splits.layers, device)
        self.mass, self.ends, self.correction = place(tree.mass), place(tree.ends), place(tree.correction)
        self.limits = None if tree.limits is None else place(tree.limits)
        self.bias = place(leaves.bias)
        self.constant = None if leaves.constant is None else place(leaves.constant)
        self.shared = None if leaves.shared is None else place(leaves.shared)
        self.network = None if leaves.network is None else _Network(leaves.network, device)
        self.slope: Tensor | None = None
        if leaves.slope is not None:
            self.slope = place(leaves.slope).transpose(0, 1).flatten(0, 1)  # (k T, d)
        widths = [tree.n_nodes, tree.n_outputs, 0 if self.slope is None else len(self.slope)]
        widths += [bias.numel() for network in (self.layers, self.network) if network for bias in network.biases]
        self.rows = max(FEWEST_ROWS, min(MOST_ROWS, CELLS // max(widths)))

    @torch.inference_mode()
    def outputs(self, x: Tensor, *, hard: bool = False) -> Tensor:
        """Outputs of rows, (n, k), in double precision, see `prunus.tree.prediction.row_outputs`."""
        scores = self._scores(x)
        if hard or self.is_hard:
            return self._hard_outputs(x, self.ends[tree_leaves(scores)])
        out = self._combined(x, tree_routes(scores, self.mass)).double()
        return out if self.limits is None else out.clamp(*self.limits[:, 0])

    @torch.inference_mode()
    def path_outputs(self, x: Tensor, ends: Tensor) -> Tensor:
        """Outputs of rows, (n, k), that follow one path to these nodes, (n,), without correction and limits."""
        return self._combined(x, self._path_routes(ends))

    @torch.inference_mode()
    def leaves(self, x: Tensor) -> Tensor:
        """The leaf of the complete tree at the end of each row's one path, (n,)."""
        return tree_leaves(self._scores(x))

    @torch.inference_mode()
    def routes(self, x: Tensor) -> Tensor:
        """Routes z, (n, T): how much of each row reaches each node."""
        scores = self._scores(x)
        return tree_routes(torch.where(scores < 0, -1.0, 1.0) if self.is_hard else scores, self.mass)

    def _scores(self, x: Tensor) -> Tensor:
        if self.layers is None:
            assert self.function is not None
            return self.function(x.cpu()).to(x.device)  # a user's own module, which stays on the CPU
        scores = self.layers(x)
        return functional.elu(scores) if self.bounded else scores

    def _hard_outputs(self, x: Tensor, ends: Tensor) -> Tensor:
        out = self._combined(x, self._path_routes(ends)).double() + self.correction[ends]
        return out if self.limits is None else out.clamp(*self.limits[:, ends])

    def _path_routes(self, ends: Tensor) -> Tensor:
        """Routes z, (n, T), of rows that follow one path to these nodes: masses on the path."""
        z = self.mass.new_zeros(len(ends), len(self.mass))
        nodes = ends.unsqueeze(1)
        for _ in range(self.depth + 1):  # short paths stay at the root
            z.scatter_(1, nodes, self.mass[nodes])
            nodes = ((nodes - 1) // 2).clamp(min=0)
        return z

    def _combined(self, x: Tensor, z: Tensor) -> Tensor:
        """Outputs, (n, k), of rows, (n, d), and their routes, (n, T)."""
        out = self.bias.expand(len(x), -1)
        if self.constant is not None:
            out = out + z @ self.constant
        if self.slope is not None:
            of_nodes = torch.unflatten(functional.linear(x, self.slope), 1, (-1, z.shape[1]))  # (n, k, T)
            out = out + of_nodes.mul_(z.unsqueeze(1)).sum(2)
        if self.shared is not None:
            out = out + functional.linear(x, self.shared)
        if self.network is not None:
            out = out + self.network(torch.cat((x, z), 1))
        return out


class _Network:
    """Linear layers on a device, with a nonlinear unit between each two of them."""

    def __init__(self, layers: Layers, device: torch.device) -> None:
        self.weights = [torch.tensor(weight, device=device) for weight in layers.weights]
        self.biases = [torch.tensor(bias, device=device) for bias in layers.biases]
        self.unit = UNITS[layers.unit]

    def __call__(self, x: Tensor) -> Tensor:
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = functional.linear(self.unit(x) if i else x, weight, bias)
        return x


def placed_path_outputs(tree: Tree, x: Floats, ends: npt.NDArray[np.int64], device: torch.device) -> Floats:
    """Outputs of rows that follow one path to these nodes, (n, k), without the correction, computed on a device."""
    placed, found = PlacedTree(tree, device), np.empty((len(x), tree.n_outputs), dtype=np.float32)
    for begin in range(0, len(x), placed.rows):
        rows = slice(begin, begin + placed.rows)
        of_rows = (torch.from_numpy(values[rows]).to(device) for values in (x, ends))
        found[rows] = placed.path_outputs(*of_rows).cpu().numpy()
    return found
