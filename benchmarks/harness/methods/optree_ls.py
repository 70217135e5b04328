"""Optree-LS: trees improved one node at a time until no node can be."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.harness.methods.axis_tree import (
    AxisTree,
    AxisTreeMethod,
    Leaf,
    Split,
    depth_of,
    fill_leaves,
    leaf_numbers,
    n_splits,
)
from benchmarks.harness.methods.interface import Rows, Targets, Task
from benchmarks.harness.methods.split_scores import Evidence, best_split, score_of

__all__ = ["OptreeLS"]

DIGITS = 10
"""Of shares of the error; what is smaller is rounding."""


class OptreeLS(AxisTreeMethod):
    """Local search for the tree with the least error plus `alpha` for each split (Dunn, 2018).

    A step visits a node, all nodes in random order, and takes the best of: another feature and threshold for it, its
    subtrees as they are; one of its subtrees, or a leaf, in its place; or a split, if it is a leaf. All thresholds are
    tried, and the answers of all leaves below follow. It ends when no node can be improved, and starts anew from CART
    and from trees that are random in part; the best tree is kept. Errors of values are squared, in units of the
    variance of y.

    Parameters
    ----------
    depth : int
        Of the tree, at most.
    alpha : float
        Share of errors, or of the variance, that a split must save.
    restarts : int
        Trees to start from.

    Attributes
    ----------
    objective_ : float
        Error and costs of splits of the tree, on the training rows.
    n_parameters : int
        The feature and the threshold of each split, and the answer of each leaf.

    Examples
    --------
    >>> x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    >>> OptreeLS("classes", depth=2).fit(x, np.array([0, 1, 1, 0])).predict(x)
    array([0, 1, 1, 0])
    """

    def __init__(
        self, task: Task, *, random_state: int = 0, depth: int = 6, alpha: float = 1e-4, restarts: int = 10
    ) -> None:
        super().__init__(task, random_state=random_state)
        self.depth = depth
        self.alpha = alpha
        self.restarts = restarts

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:  # noqa: ARG002
        rng = np.random.default_rng(self.random_state)
        evidence = Evidence.of(x, y, self.task)
        search = Search(x, evidence, self.depth, self.alpha * evidence.worst, rng)
        starts = [self._start(x, y, number) for number in range(self.restarts)]
        best = max((search.improve(start) for start in starts), key=search.worth)
        self.tree_ = best
        self.objective_ = (evidence.most - search.worth(best)) / evidence.worst
        fill_leaves(best, x, y, self.task)

    def _start(self, x: Rows, y: Targets, number: int) -> AxisTree:
        """CART; after it, trees that choose from random thresholds of some features."""
        kind = DecisionTreeClassifier if self.task == "classes" else DecisionTreeRegressor
        options = {} if number == 0 else {"splitter": "random", "max_features": "sqrt"}
        grown = kind(max_depth=self.depth, random_state=self.random_state + number, **options).fit(x, y).tree_
        return _as_tree(grown, 0)


@dataclass
class Search:
    """What the steps share; `cost` is that of a split, in the units of scores."""

    x: Rows
    evidence: Evidence
    depth: int
    cost: float
    rng: np.random.Generator

    def worth(self, tree: AxisTree, rows: npt.NDArray[np.int64] | None = None) -> float:
        """Score of the rows in the leaves of a tree, less the costs of its splits."""
        rows = np.arange(len(self.x)) if rows is None else rows
        leaves = leaf_numbers(tree, self.x, rows)
        return score_of(leaves, self.evidence, rows) - self.cost * n_splits(tree)

    def improve(self, tree: AxisTree) -> AxisTree:
        """The tree where no node can be improved by itself."""
        improved = True
        while improved:
            improved = False
            for path in self.rng.permutation(_paths(tree)):
                tree, better = self._visit(tree, str(path), np.arange(len(self.x)), 0)
                improved |= better
        return tree

    def _visit(self, tree: AxisTree, path: str, rows: npt.NDArray[np.int64], level: int) -> tuple[AxisTree, bool]:
        """Improve the node at the end of a path of turns; one that is no longer there stays as it is."""
        if not path:
            return self._step(tree, rows, self.depth - level)
        if isinstance(tree, Leaf):
            return tree, False
        left = tree.goes_left(self.x, rows)
        if path[0] == "l":
            tree.left, better = self._visit(tree.left, path[1:], rows[left], level + 1)
        else:
            tree.right, better = self._visit(tree.right, path[1:], rows[~left], level + 1)
        return tree, better

    def _step(self, tree: AxisTree, rows: npt.NDArray[np.int64], depth: int) -> tuple[AxisTree, bool]:
        """The best tree that differs from this one in its root only, or takes one of its subtrees."""
        candidates: list[AxisTree] = [Leaf()]
        if isinstance(tree, Split):
            candidates += [tree.left, tree.right]
        left, right = (tree.left, tree.right) if isinstance(tree, Split) else (Leaf(), Leaf())
        if len(rows) > 1 and max(depth_of(left), depth_of(right)) < depth:
            sides = [leaf_numbers(side, self.x, rows) for side in (left, right)]
            found = best_split(self.x[rows], self.evidence.take(rows), sides[0], sides[1])
            if found is not None:
                candidates.append(Split(found.feature, found.threshold, left, right))
        best = max(candidates, key=lambda candidate: self._rank(candidate, rows))
        return (best, True) if self._rank(best, rows) > self._rank(tree, rows) else (tree, False)

    def _rank(self, tree: AxisTree, rows: npt.NDArray[np.int64]) -> tuple[float, int]:
        """Worth, free of rounding errors; of equal ones the smaller tree."""
        return round(self.worth(tree, rows) / self.evidence.worst, DIGITS), -n_splits(tree)


def _paths(tree: AxisTree) -> list[str]:
    """Turns, l and r, from the root to each node."""
    if isinstance(tree, Leaf):
        return [""]
    below = [(turn, _paths(side)) for turn, side in (("l", tree.left), ("r", tree.right))]
    return ["", *(turn + path for turn, paths in below for path in paths)]


def _as_tree(grown: Any, node: int) -> AxisTree:
    """scikit-learn's tree below a node."""
    left, right = int(grown.children_left[node]), int(grown.children_right[node])
    if left < 0:
        return Leaf()
    threshold = float(grown.threshold[node])
    return Split(int(grown.feature[node]), threshold, _as_tree(grown, left), _as_tree(grown, right))
