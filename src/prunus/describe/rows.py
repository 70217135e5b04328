"""Rows that have descended a fitted tree: each is read, routed and predicted only once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csc_array, csr_array

from prunus.describe.columns import TableColumn
from prunus.describe.record import NodeSummary
from prunus.estimators.torch_state import plain_torch
from prunus.search.columns import Column, KnownColumn, as_columns, read_columns
from prunus.search.predict import class_scores, find_leaves, goes_left, leaf_outputs, split_sums
from prunus.search.record import ReadableRecord
from prunus.targets import Target
from prunus.tree import Tree
from prunus.tree.paths import path_nodes
from prunus.tree.prediction import find_ends, find_routes, hard_outputs, row_outputs, score_rows

__all__ = [
    "ReadableRows",
    "RowsInTree",
    "agreement",
    "largest_routes",
    "predict_readable",
    "readable_columns",
    "score_paths",
    "send_encoded",
    "send_readable",
    "send_rows",
]


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


Doubles = npt.NDArray[np.float64]
Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ReadableRows:
    """The paths of some rows in a readable tree; what pages ask of it they also ask of `RowsInTree`."""

    record: ReadableRecord
    columns: Sequence[Column]
    ends: Nodes
    """The leaf of each row, (n,)."""
    predictions: Doubles
    """Probabilities of all classes, or values, (n, k)."""
    is_hard: bool = True

    @property
    def leaves(self) -> list[int]:
        """All leaves."""
        return sorted(self.record.leaves)

    @cached_property
    def _passing(self) -> dict[int, Nodes]:
        nodes, begins = path_nodes(self.ends)
        rows = np.repeat(np.arange(len(self.ends)), np.diff(begins))
        order = np.argsort(nodes, kind="stable")
        found, starts = np.unique(nodes[order], return_index=True)
        return dict(zip(found.tolist(), np.split(rows[order], starts[1:]), strict=True))

    def at(self, t: int) -> Nodes:
        """The rows that pass node t."""
        return self._passing.get(t, np.zeros(0, dtype=np.int64))

    def predicted(self, target: Target) -> Doubles:  # noqa: ARG002
        """Probabilities of all classes, or values, (n, k)."""
        return self.predictions

    def sums(self, node: NodeSummary, rows: Nodes) -> Doubles:
        """The weighted sums of a split, (len(rows),); NaN where a number of it is missing."""
        return split_sums(self.record.splits[node.node], self.columns, rows)

    def goes_left(self, t: int, rows: Nodes) -> npt.NDArray[np.bool_]:
        """Which of these rows go left at a split."""
        return goes_left(self.record.splits[t], self.columns, rows)


def send_readable(estimator: Any, X: Any) -> ReadableRows:  # noqa: N803
    """Send the rows of a table through a readable tree."""
    ends = estimator.apply(X)  # which also looks at the table
    columns = read_columns(estimator.columns_, X)
    return ReadableRows(estimator.record_, columns, ends, _predictions(estimator, columns, ends))


def predict_readable(estimator: Any, matrix: Doubles) -> Doubles:
    """Probabilities of all classes, or values, (n, k), of rows as a matrix, see `as_matrix`."""
    columns = as_columns(estimator.columns_, matrix)
    return _predictions(estimator, columns, find_leaves(estimator.record_, columns))


def _predictions(estimator: Any, columns: Sequence[Column], ends: Nodes) -> Doubles:
    target, record = estimator.target_, estimator.record_
    if target.task == "classes":
        return class_scores(record, columns, ends, target.n_outputs)[1]
    return leaf_outputs(record, columns, ends, target.n_outputs)


def readable_columns(columns: Sequence[KnownColumn]) -> list[TableColumn]:
    """The columns of the table that a readable tree knows; a value is its own code, a level its position."""
    return [_readable_column(feature, column) for feature, column in enumerate(columns)]


def _readable_column(feature: int, column: KnownColumn) -> TableColumn:
    code = column.typical
    if column.kind == "category":
        code = float("nan") if code is None else float(column.levels.index(str(code)))
    return TableColumn(
        positions=np.array([feature]),
        feature=feature,
        name=column.name,
        kind=column.kind,
        levels=list(column.levels),
        typical=column.typical,
        encoded=np.array([float("nan") if code is None else code], dtype=np.float64),
    )
