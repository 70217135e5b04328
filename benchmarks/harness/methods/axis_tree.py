"""Trees that compare one feature with a threshold in each split: what several methods learn."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness.methods.interface import MethodBase, Rows, Targets, Task

__all__ = [
    "AxisTree",
    "AxisTreeMethod",
    "Leaf",
    "Split",
    "depth_of",
    "fill_leaves",
    "leaf_numbers",
    "n_parameters",
    "n_splits",
    "values",
]


@dataclass
class Leaf:
    """Where rows end, with the answer for them."""

    value: float = 0.0


@dataclass
class Split:
    """Rows with ``x[feature] <= threshold`` go left, others right."""

    feature: int
    threshold: float
    left: "AxisTree"
    right: "AxisTree"

    def goes_left(self, x: Rows, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of some rows do; in double precision, as a threshold between two close numbers must be."""
        answers: npt.NDArray[np.bool_] = x[rows, self.feature] <= np.float64(self.threshold)
        return answers


AxisTree = Leaf | Split


class AxisTreeMethod(MethodBase):
    """A method that learns such a tree: `n_parameters` are its features, thresholds and answers."""

    tree_: AxisTree

    def _predict(self, x: Any) -> npt.NDArray[Any]:
        return values(self.tree_, x)

    def _count(self) -> int:
        return n_parameters(self.tree_)


def values(tree: AxisTree, x: Rows) -> npt.NDArray[np.float64]:
    """The answers for rows, (n,).

    >>> values(Split(0, 0.5, Leaf(3.0), Leaf(4.0)), np.array([[0.0], [1.0]], np.float32))
    array([3., 4.])
    """
    leaves = leaves_of(tree)
    return np.array([leaf.value for leaf in leaves])[leaf_numbers(tree, x)]


def leaf_numbers(tree: AxisTree, x: Rows, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int64]:
    """Leaf of each row, or of each of some rows, (n,), numbered from the left."""
    rows = np.arange(len(x)) if rows is None else rows
    numbers = np.zeros(len(x), dtype=np.int64)
    _number(tree, x, rows, numbers, 0)
    return numbers[rows]


def leaves_of(tree: AxisTree) -> list[Leaf]:
    """Leaves from the left."""
    return [tree] if isinstance(tree, Leaf) else leaves_of(tree.left) + leaves_of(tree.right)


def n_splits(tree: AxisTree) -> int:
    """Splits of the tree."""
    return len(leaves_of(tree)) - 1


def n_parameters(tree: AxisTree) -> int:
    """The feature and the threshold of each split, and the answer of each leaf.

    >>> n_parameters(Split(0, 0.5, Leaf(), Leaf()))
    4
    """
    return 2 * n_splits(tree) + len(leaves_of(tree))


def depth_of(tree: AxisTree) -> int:
    """Splits on the longest way from the root."""
    return 0 if isinstance(tree, Leaf) else 1 + max(depth_of(tree.left), depth_of(tree.right))


def fill_leaves(tree: AxisTree, x: Rows, y: Targets, task: Task) -> None:
    """Give each leaf the most frequent class, or the mean, of its rows; a leaf without rows that of all."""
    numbers = leaf_numbers(tree, x)
    for number, leaf in enumerate(leaves_of(tree)):
        inside = y[numbers == number]
        inside = inside if len(inside) else y
        leaf.value = float(np.bincount(inside).argmax() if task == "classes" else inside.mean())


def _number(tree: AxisTree, x: Rows, rows: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], first: int) -> int:
    """Number the leaves from `first`; returns the next number."""
    if isinstance(tree, Leaf):
        numbers[rows] = first
        return first + 1
    left = tree.goes_left(x, rows)
    middle = _number(tree.left, x, rows[left], numbers, first)
    return _number(tree.right, x, rows[~left], numbers, middle)
