"""Clusters that few columns explain: the leaves of a tree that is searched for the columns of the table themselves."""

import numpy as np

from prunus.hardening.growing import node_means
from prunus.hardening.hard_tree import HardTree
from prunus.hardening.leaf_models import Doubles, Floats
from prunus.hardening.searched import Choice, Kind, Size, Table, make_tree
from prunus.tree import Layers, Leaves, Splits
from prunus.tree.paths import Nodes

__all__ = ["search_clusters"]

MOST_ROWS, MOST_OUTPUTS = 30_000, 64
"""A tree is searched from at most this many rows, and tells at most this many principal components apart."""


def search_clusters(
    x: Floats, columns: Nodes, wanted: Doubles, weight: Doubles, size: Size, *, least: float, threads: int, seed: int
) -> HardTree:
    """The tree whose leaves have the means nearest to their rows, as the centers of k-means have.

    Parameters
    ----------
    x : array of shape (n, d)
        Encoded rows.
    columns : array
        Those of their columns that splits may use.
    wanted : array of shape (n, k)
        The columns that are told apart, of unit variance.
    weight : array of shape (n,)
    size : Size
    least : float
        What the rows of a cluster must weigh.
    threads : int
    seed : int
    """
    counts = weight > 0
    told_apart = _principal(wanted[counts], weight[counts])
    table = Table(x[counts][:, columns], told_apart, told_apart, weight[counts]).thinned(MOST_ROWS)
    choice = Choice(Kind(0.0, size.terms, True, least), size.leaves, 0.0)
    sketch = make_tree(table, choice, size, threads=threads, seed=seed)
    means = node_means(sketch.ends(x[:, columns]), wanted, wanted, weight, 0.0, len(sketch.kept))
    splits = np.zeros((len(sketch.bias), x.shape[1]), dtype=np.float32)
    splits[:, columns] = sketch.weight
    constant = np.zeros(means.shape, dtype=np.float32)
    constant[sketch.leaves] = means[sketch.leaves]
    leaves = Leaves(np.zeros(wanted.shape[1], dtype=np.float32), constant=constant, kind="constant")
    return HardTree(Splits(Layers((splits,), (sketch.bias.astype(np.float32),))), leaves, sketch.kept, None)


def _principal(wanted: Doubles, weight: Doubles) -> Doubles:
    """The principal components of values, (n, k), whose squared distances are nearly those of the values."""
    if wanted.shape[1] <= MOST_OUTPUTS:
        return wanted
    spread = wanted - weight @ wanted / weight.sum()
    directions = np.linalg.eigh((spread.T * weight) @ spread)[1]
    found: Doubles = spread @ directions[:, -MOST_OUTPUTS:]
    return found
