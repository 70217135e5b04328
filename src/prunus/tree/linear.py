"""Outputs of a tree as linear functions of encoded rows."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.tree.paths import path_nodes
from prunus.tree.record import Floats, Tree

__all__ = ["LinearOutputs", "outputs_along", "outputs_at"]

Doubles = npt.NDArray[np.float64]


class LinearOutputs(NamedTuple):
    """The function ``weight @ x + constant`` of an encoded row, x of shape (d,)."""

    weight: Doubles
    """(k, d)."""
    constant: Doubles
    """(k,)."""


def outputs_at(tree: Tree, t: int) -> LinearOutputs:
    """The outputs of rows whose one path ends in node t, before they are limited, and without the network of a leaf."""
    path, _ = path_nodes(np.array([t]))
    found = _sum(tree, path, tree.mass[path])
    return LinearOutputs(found.weight, found.constant + tree.correction[t])


def outputs_along(tree: Tree, z: Floats) -> LinearOutputs:
    """The outputs of a row with these routes, (T,), before they are limited, and without the network of a leaf."""
    nodes = np.flatnonzero(z)
    return _sum(tree, nodes, z[nodes])


def _sum(tree: Tree, nodes: npt.NDArray[np.int64], amounts: Floats) -> LinearOutputs:
    """The sum of the functions of some nodes, each multiplied by an amount, and of what all rows share."""
    leaves, part = tree.leaves, amounts.astype(np.float64)
    constant = leaves.bias.astype(np.float64)
    if leaves.constant is not None:
        constant = constant + part @ leaves.constant[nodes]
    if leaves.slope is None:
        d = 0 if leaves.shared is None else leaves.shared.shape[1]
        weight = np.zeros((tree.n_outputs, d))
    else:
        weight = np.tensordot(part, leaves.slope[nodes], 1)
    if leaves.shared is not None:
        weight = weight + leaves.shared
    return LinearOutputs(weight, constant)
