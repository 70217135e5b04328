"""Rows that have descended a fitted tree: each is encoded, routed and predicted only once."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csc_array, csr_array

from prunus.explain.summary_record import NodeSummary
from prunus.fitting.torch_state import plain_torch
from prunus.targets import Target
from prunus.tree import Tree
from prunus.tree.paths import path_nodes
from prunus.tree.prediction import find_ends, find_routes, hard_outputs, row_outputs, score_rows

__all__ = ["RowsInTree", "agreement", "largest_routes", "score_paths", "send_encoded", "send_rows"]


@dataclass(frozen=True)
class RowsInTree:
    """The paths and outputs of some rows in a tree."""

    tree: Tree
    x: npt.NDArray[np.float32]
    """The encoded rows, (n, d)."""
    ends: npt.NDArray[np.int64]
    """The last kept node on each row's one path, (n,)."""
    soft: npt.NDArray[np.float64]
    """Outputs along all routes, (n, k); along one path in a hard tree."""

    @cached_property
    def passing(self) -> csc_array:
        """Which rows pass each node on their one path, as the columns of a sparse bool array, (n, T)."""
        nodes, begins = path_nodes(self.ends)
        passes = np.ones(len(nodes), dtype=bool)
        return csr_array((passes, nodes, begins), shape=(len(self.ends), self.tree.n_nodes)).tocsc()

    @property
    def is_hard(self) -> bool:
        """Whether each row follows one path."""
        return self.tree.is_hard

    @property
    def leaves(self) -> list[int]:
        """All leaves."""
        found: list[int] = np.flatnonzero(self.tree.is_leaf).tolist()
        return found

    def predicted(self, target: Target) -> npt.NDArray[np.float64]:
        """Probabilities of all classes, or values, (n, k); (n, 0) for clusters."""
        return np.zeros((len(self.x), 0)) if target.task == "clusters" else target.predictions(self.soft)

    def scores(self, t: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The scores of these rows at a linear split, (len(rows),): a row goes left if its score is negative."""
        tree = self.tree
        if tree.weight is None or tree.bias is None:
            raise ValueError("only linear splits are known by their weights")
        sums: npt.NDArray[np.float64] = self.x[rows].astype(np.float64) @ tree.weight[t].astype(np.float64)
        return sums + float(tree.bias[t])

    def sums(self, node: NodeSummary, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The weighted sums of a linear split in the units of the table, (len(rows),)."""
        assert node.threshold is not None
        return self.scores(node.node, rows) + node.threshold

    def goes_left(self, t: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of these rows go left at a linear split, (len(rows),)."""
        return self.scores(t, rows) < 0

    def at(self, t: int) -> npt.NDArray[np.int64]:
        """The rows that pass node t."""
        rows: npt.NDArray[np.int64] = self.passing.indices[self.passing.indptr[t] : self.passing.indptr[t + 1]]
        return rows


@plain_torch()
def send_rows(estimator: Any, X: Any) -> RowsInTree:  # noqa: N803
    """Send the rows of a table through a fitted estimator's tree."""
    return send_encoded(estimator.tree_, estimator.encoder_.transform(X))


@plain_torch()
def send_encoded(tree: Tree, x: npt.NDArray[np.float32]) -> RowsInTree:
    """Send encoded rows, (n, d), through a tree."""
    return RowsInTree(tree, x, find_ends(tree, x), row_outputs(tree, x))


@plain_torch()
def agreement(tree: Tree, target: Target, rows: RowsInTree) -> float:
    """How far predictions along one path agree with those along all routes; 1 means completely.

    For clusters it is the share of rows whose largest route leads to the leaf at the end of their path.
    """
    if target.task == "clusters":
        leaves = np.flatnonzero(tree.is_leaf)
        largest = leaves[find_routes(tree, rows.x)[:, leaves].argmax(1)]
        return float(np.mean(largest == rows.ends))
    return target.agreement(rows.soft, hard_outputs(tree, rows.x, rows.ends))


@plain_torch()
def largest_routes(passed: RowsInTree, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The largest share of each of these rows that reaches one leaf, of all that reaches leaves, (len(rows),)."""
    leaves = np.flatnonzero(passed.tree.is_leaf)
    reached = find_routes(passed.tree, passed.x[rows])[:, leaves].astype(np.float64)
    total = reached.sum(1)
    largest: npt.NDArray[np.float64] = np.divide(reached.max(1), total, out=np.ones_like(total), where=total > 0)
    return largest


@plain_torch()
def score_paths(passed: RowsInTree, rows: npt.NDArray[np.int64]) -> list[list[float]] | None:
    """The scores of the splits on the path of each of these rows; None if splits are linear, as weights tell them."""
    tree = passed.tree
    if tree.splits.is_linear:
        return None
    with torch.inference_mode():
        scores = score_rows(tree.splits, torch.from_numpy(passed.x[rows])).numpy()
    found = []
    for score, end in zip(scores, passed.ends[rows], strict=True):
        nodes, _ = path_nodes(np.array([end]))
        found.append(
            [float(f"{score[t]:.6g}") for t in sorted(nodes.tolist()) if not tree.is_leaf[t] and t < len(score)]
        )
    return found
