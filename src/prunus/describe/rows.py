"""Rows that have descended a fitted tree: each is read, routed and predicted only once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.describe.record import LearnedTree, NodeSummary, SearchedTree, TreeDescription
from prunus.fitting.torch_state import plain_torch
from prunus.search.columns import Column, as_columns, as_matrix, read_columns
from prunus.search.predict import class_scores, find_leaves, goes_left, leaf_outputs, split_sums
from prunus.tree.paths import path_nodes
from prunus.tree.prediction import find_ends, find_routes, hard_outputs, row_outputs, score_rows

__all__ = ["LearnedRows", "Rows", "SearchedRows", "agreement", "largest_routes", "score_paths", "send_rows"]

Doubles = npt.NDArray[np.float64]
Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """The paths and predictions of some rows in a tree."""

    tree: TreeDescription
    x: npt.NDArray[Any]
    """The rows as the tree reads them, (n, d): encoded, or the numbers and codes of levels of the table."""
    ends: Nodes
    """The last kept node on each row's one path, (n,)."""
    predictions: Doubles
    """Probabilities of all classes, or values, (n, k); (n, 0) for clusters."""

    @property
    def answers(self) -> npt.NDArray[Any]:
        """What `predict` returns: labels, values, or clusters."""
        target = self.tree.target
        if not target.is_classes:
            return self.predictions
        answers: npt.NDArray[Any] = target.labels[self.predictions.argmax(1)]  # type: ignore[attr-defined]
        return answers

    @cached_property
    def _passing(self) -> dict[int, Nodes]:
        """The rows that pass each node on their one path."""
        nodes, begins = path_nodes(self.ends)
        rows = np.repeat(np.arange(len(self.ends)), np.diff(begins))
        order = np.argsort(nodes, kind="stable")
        found, starts = np.unique(nodes[order], return_index=True)
        return dict(zip(found.tolist(), np.split(rows[order], starts[1:]), strict=True))

    def at(self, t: int) -> Nodes:
        """The rows that pass node t."""
        return self._passing.get(t, np.zeros(0, dtype=np.int64))

    def predict(self, x: npt.NDArray[Any]) -> Doubles:
        """The predictions of other rows that were read like these."""
        raise NotImplementedError

    def sums(self, node: NodeSummary, rows: Nodes) -> Doubles:
        """The weighted sums of a linear split, (len(rows),); NaN where a number of a readable tree is missing."""
        raise NotImplementedError

    def goes_left(self, t: int, rows: Nodes) -> npt.NDArray[np.bool_]:
        """Which of these rows go left at a linear split, (len(rows),)."""
        raise NotImplementedError


@dataclass(frozen=True)
class LearnedRows(Rows):
    """Rows in a tree that was learned by gradient descent."""

    tree: LearnedTree
    soft: Doubles
    """Outputs along all routes, (n, k); along one path in a hard tree."""

    @property
    def answers(self) -> npt.NDArray[Any]:
        """What `predict` returns: labels, values, or clusters."""
        cluster = self.tree.model.cluster
        return self.tree.target.answers(self.soft) if cluster is None else cluster[self.ends]

    @plain_torch()
    def predict(self, x: npt.NDArray[Any]) -> Doubles:
        """The predictions of other encoded rows."""
        return self.tree.target.predictions(row_outputs(self.tree.model, x))

    def scores(self, t: int, rows: Nodes) -> Doubles:
        """The scores of these rows at a linear split, (len(rows),): a row goes left if its score is negative."""
        model = self.tree.model
        if model.weight is None or model.bias is None:
            raise ValueError("only linear splits are known by their weights")
        sums: Doubles = self.x[rows].astype(np.float64) @ model.weight[t].astype(np.float64)
        return sums + float(model.bias[t])

    def sums(self, node: NodeSummary, rows: Nodes) -> Doubles:
        """The weighted sums of a linear split in the units of the table, (len(rows),)."""
        assert node.threshold is not None
        return self.scores(node.node, rows) + node.threshold

    def goes_left(self, t: int, rows: Nodes) -> npt.NDArray[np.bool_]:
        """Which of these rows go left at a linear split, (len(rows),)."""
        return self.scores(t, rows) < 0


@dataclass(frozen=True)
class SearchedRows(Rows):
    """Rows in a readable tree."""

    tree: SearchedTree
    columns: Sequence[Column]

    def predict(self, x: npt.NDArray[Any]) -> Doubles:
        """The predictions of other rows."""
        columns = as_columns(self.tree.known, x.astype(np.float64, copy=False))
        return _searched_predictions(self.tree, columns, find_leaves(self.tree.model, columns))

    def sums(self, node: NodeSummary, rows: Nodes) -> Doubles:
        """The sums of the terms of a split, (len(rows),); NaN where a number of it is missing."""
        return split_sums(self.tree.model.splits[node.node], self.columns, rows)

    def goes_left(self, t: int, rows: Nodes) -> npt.NDArray[np.bool_]:
        """Which of these rows go left at a split."""
        return goes_left(self.tree.model.splits[t], self.columns, rows)


@plain_torch()
def send_rows(tree: TreeDescription, X: Any, x: npt.NDArray[np.float32] | None = None) -> Rows:  # noqa: N803
    """Send the rows of a table through a tree; x is the encoded table, if it is known already."""
    if isinstance(tree, SearchedTree):
        ends, columns = tree.apply(X), read_columns(tree.known, X)
        return SearchedRows(tree, as_matrix(columns), ends, _searched_predictions(tree, columns, ends), columns)
    assert isinstance(tree, LearnedTree)
    x = tree.encoder.transform(X) if x is None else x
    soft = row_outputs(tree.model, x)
    predictions = np.zeros((len(x), 0)) if tree.target.is_clusters else tree.target.predictions(soft)
    return LearnedRows(tree, x, find_ends(tree.model, x), predictions, soft)


def _searched_predictions(tree: SearchedTree, columns: Sequence[Column], ends: Nodes) -> Doubles:
    k = tree.target.n_outputs
    if not tree.target.is_classes:
        return leaf_outputs(tree.model, columns, ends, k)
    return class_scores(tree.model, columns, ends, k)[1]


@plain_torch()
def agreement(rows: LearnedRows) -> float:
    """How far predictions along one path agree with those along all routes; 1 means completely.

    For clusters it is the share of rows whose largest route leads to the leaf at the end of their path.
    """
    model, target = rows.tree.model, rows.tree.target
    if target.is_clusters:
        leaves = np.flatnonzero(model.is_leaf)
        largest = leaves[find_routes(model, rows.x)[:, leaves].argmax(1)]
        return float(np.mean(largest == rows.ends))
    return target.agreement(rows.soft, hard_outputs(model, rows.x, rows.ends))


@plain_torch()
def largest_routes(passed: LearnedRows, rows: Nodes) -> Doubles:
    """The largest share of each of these rows that reaches one leaf, of all that reaches leaves, (len(rows),)."""
    model = passed.tree.model
    leaves = np.flatnonzero(model.is_leaf)
    reached = find_routes(model, passed.x[rows])[:, leaves].astype(np.float64)
    total = reached.sum(1)
    largest: Doubles = np.divide(reached.max(1), total, out=np.ones_like(total), where=total > 0)
    return largest


@plain_torch()
def score_paths(passed: LearnedRows, rows: Nodes) -> list[list[float]] | None:
    """The scores of the splits on the path of each of these rows; None if splits are linear, as weights tell them."""
    model = passed.tree.model
    if model.splits.is_linear:
        return None
    with torch.inference_mode():
        scores = score_rows(model.splits, torch.from_numpy(passed.x[rows])).numpy()
    found = []
    for score, end in zip(scores, passed.ends[rows], strict=True):
        nodes, _ = path_nodes(np.array([end]))
        found.append(
            [float(f"{score[t]:.6g}") for t in sorted(nodes.tolist()) if not model.is_leaf[t] and t < len(score)]
        )
    return found
