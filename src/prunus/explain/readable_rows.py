"""Rows that have descended a readable tree, as pages and explanations need them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.explain.summary_record import NodeSummary
from prunus.explain.values import TableColumn
from prunus.search.columns import Column, KnownColumn, as_columns, read_columns
from prunus.search.predict import class_scores, find_leaves, goes_left, leaf_outputs, split_sums
from prunus.search.record import ReadableRecord
from prunus.targets import Target
from prunus.tree.paths import path_nodes

__all__ = ["ReadableRows", "predict_readable", "readable_columns", "send_readable"]

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
