"""The data of the interactive page: the summary of a tree, its weights, and some rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prunus.estimators.readable import ReadableTree
from prunus.estimators.single_tree import check_single_tree
from prunus.explain.page_charts import add_charts, read_coloring
from prunus.explain.page_lists import row_lists
from prunus.explain.page_nodes import add_rows, add_scores, add_values, curve_record, node_record
from prunus.explain.page_readable import readable_nodes
from prunus.explain.page_rows import (
    GivenRows,
    add_split_columns,
    column_record,
    features,
    given_rows,
    model_record,
    n_picked,
    outcomes,
    read_truth,
    splits,
)
from prunus.explain.readable_rows import ReadableRows, readable_columns, send_readable
from prunus.explain.reasons import column_orders
from prunus.explain.rows import RowsInTree, send_rows
from prunus.explain.summary import summarize
from prunus.explain.summary_record import TreeSummary
from prunus.explain.values import table_columns
from prunus.explain.wording import read_words
from prunus.palette import COLORS
from prunus.targets import Target

__all__ = ["page_record", "tree_record"]

Record = dict[str, Any]


def page_record(estimator: Any, X: Any = None, y: Any = None) -> Record:  # noqa: N803
    """All data that the page of a tree shows, as plain types. The rows of X descend the tree once."""
    check_single_tree(estimator)
    is_readable = isinstance(estimator, ReadableTree)
    describe: Callable[..., Record] = readable_record if is_readable else tree_record
    if X is None:
        return describe(estimator)
    rows = send_readable(estimator, X) if is_readable else send_rows(estimator, X)
    truth = None if y is None else read_truth(estimator.target_, y, len(rows.ends))
    picked, lists = row_lists(estimator.target_, rows, truth, n_picked(X))
    columns = readable_columns(estimator.columns_) if is_readable else table_columns(estimator.encoder_.columns_)
    given = given_rows(estimator, columns, X, truth, picked, lists)
    record = describe(estimator, rows, given)
    return record | {"samples": [row | of_tree for row, of_tree in zip(given.records, record["samples"], strict=True)]}


def tree_record(estimator: Any, rows: RowsInTree | None = None, given: GivenRows | None = None) -> Record:
    """The data of the page of a tree; of the rows that can be picked, only what the tree does with them."""
    target, encoder = estimator.target_, estimator.encoder_
    summary = summarize(estimator, rows)
    cluster = estimator.tree_.cluster
    nodes = {
        node.node: node_record(node, None if cluster is None else int(cluster[node.node])) for node in summary.nodes
    }
    columns = None if given is None else given.columns
    record: Record = {
        "task": target.task,
        "link": target.link.name,
        "hard": summary.routing == "hard",
        "subtitle": _subtitle(summary, target, rows),
        "warning": summary.warning,
        "facts": _facts(summary),
        "colors": COLORS,
        "outputs": list(summary.outputs),
        "columns": [column_record(column) for column in encoder.columns_],
        "features": features(table_columns(encoder.columns_), estimator.feature_importances_),
        "orders": column_orders(encoder.n_features_in_).tolist(),
        "split": splits(estimator.tree_),
        "model": model_record(estimator.tree_),
        "curves": [curve_record(curve, columns) for curve in summary.curves],
        "samples": [],
        "lists": {},
        "nodes": list(nodes.values()),
    }
    if target.task != "classes":
        record |= {"scale": target.deviation.tolist(), "mean": target.mean.tolist()}
    add_split_columns(nodes, summary)
    if rows is not None and given is not None:
        record |= _of_rows(estimator, nodes, summary, rows, given)
        add_scores(nodes, rows)
    return record


def readable_record(estimator: Any, rows: ReadableRows | None = None, given: GivenRows | None = None) -> Record:
    """The data of the page of a readable tree: the numbers that predict, in place of weights of encoded columns."""
    words, target = read_words(estimator), estimator.target_
    columns = readable_columns(estimator.columns_)
    nodes = readable_nodes(words, estimator.record_)
    record: Record = {
        "task": target.task,
        "link": target.link.name,
        "hard": True,
        "readable": True,
        "subtitle": _subtitle(words.summary, target, rows),
        "warning": words.summary.warning,
        "facts": _facts(words.summary),
        "colors": COLORS,
        "outputs": list(words.summary.outputs),
        "columns": [{"feature": i, "kind": one.kind, "label": one.name} for i, one in enumerate(columns)],
        "features": features(columns, estimator.feature_importances_),
        "orders": column_orders(len(columns)).tolist(),
        "curves": [],
        "samples": [],
        "lists": {},
        "nodes": list(nodes.values()),
    }
    if target.task != "classes":
        record |= {"scale": [1.0] * target.n_outputs, "mean": [0.0] * target.n_outputs}
    if rows is not None and given is not None:
        record |= _of_rows(estimator, nodes, words.summary, rows, given)
    return record


def _of_rows(
    estimator: Any,
    nodes: dict[int, Record],
    summary: TreeSummary,
    rows: RowsInTree | ReadableRows,
    given: GivenRows,
) -> Record:
    """What the page shows of given rows; their numbers and charts are added to the nodes."""
    target = estimator.target_
    coloring = read_coloring(estimator, summary.outputs, rows, given.truth)
    add_rows(nodes, rows)
    add_charts(nodes, summary, rows, given.columns, coloring)
    record = {"samples": outcomes(target, rows, given.picked), "lists": given.lists, "n_rows": given.n}
    if target.task == "numbers" and given.truth is not None:
        record["values"] = add_values(nodes, rows, given.truth)
    return record | {"coloring": coloring.record()}


def _subtitle(summary: TreeSummary, target: Target, rows: RowsInTree | ReadableRows | None) -> str:
    leaves = "1 leaf" if summary.n_leaves == 1 else f"{summary.n_leaves} leaves"
    parts = [summary.kind, f"depth {summary.depth}", leaves]
    if summary.agreement is not None and isinstance(rows, RowsInTree):
        parts.append(_agreement(summary.agreement, target, rows))
    return ", ".join(parts)


def _agreement(agreement: float, target: Target, rows: RowsInTree) -> str:
    """How far one path tells what all routes predict, beside what one class for all rows would tell."""
    if target.task == "numbers":
        return f"R^2 of one path against all routes: {agreement:.3f}"
    if target.task == "clusters":
        return f"one path is the largest route for {agreement:.1%} of rows"
    predicted = target.predictions(rows.soft).argmax(1)
    largest = np.bincount(predicted).max() / len(predicted)
    return f"one path agrees with all routes for {agreement:.1%} of rows; the largest class has {largest:.1%}"


def _facts(summary: TreeSummary) -> list[list[str]]:
    nodes = f"{len(summary.nodes)} kept of {summary.n_nodes}, {summary.n_active} that rows may pass"
    return [
        ["kind", summary.kind],
        ["leaf", summary.leaf],
        ["nodes", str(len(summary.nodes)) if summary.routing == "hard" else nodes],
        ["parameters", f"{summary.n_parameters:,}"],
    ]
