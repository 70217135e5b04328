"""The data of the interactive page: the summary of a tree, its weights, and some rows."""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.explain.curves import Curve
from prunus.explain.page_rows import (
    add_row_facts,
    column_orders,
    column_record,
    features,
    model_record,
    read_truth,
    samples,
    splits,
)
from prunus.explain.rows import RowsInTree, send_rows
from prunus.explain.summary import NodeSummary, TreeSummary, check_estimator, summarize
from prunus.explain.wording import point_text, short_number, split_parts
from prunus.palette import COLORS
from prunus.targets import Target
from prunus.tree import Tree

__all__ = ["page_record"]

Record = dict[str, Any]

COUNTED = 50_000
"""Largest number of rows that histograms are made from."""
BINS = 32
DIGITS = 4
"""Number of digits in the words of a split."""


def page_record(estimator: Any, X: Any = None, y: Any = None) -> Record:  # noqa: N803
    """All data that the page shows, as plain types. The rows of X descend the tree once."""
    check_estimator(estimator, "export_html")
    target, encoder = estimator.target_, estimator.encoder_
    rows = None if X is None else send_rows(estimator, X)
    summary = summarize(estimator, rows)
    nodes = {node.node: _node(estimator.tree_, node) for node in summary.nodes}
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
        "features": features(estimator),
        "orders": column_orders(encoder.n_features_in_).tolist(),
        "split": splits(estimator.tree_),
        "model": model_record(estimator.tree_),
        "curves": [_curve(curve) for curve in summary.curves],
        "samples": [],
        "lists": {},
        "nodes": list(nodes.values()),
    }
    if target.task != "classes":
        record |= {"scale": target.deviation.tolist(), "mean": target.mean.tolist()}
    add_row_facts(nodes, summary, rows)
    if rows is not None:
        truth = None if y is None else read_truth(target, y, rows.x)
        record |= samples(estimator, rows, X, truth)
        _add_scores(nodes, rows)
        if target.task == "numbers" and truth is not None:
            record["values"] = _add_values(nodes, rows, truth)
    return record


def _node(tree: Tree, node: NodeSummary) -> Record:
    record: Record = {
        "node": node.node,
        "leaf": node.is_leaf,
        "share": _rounded(node.share),
        "distribution": [_rounded(value) for value in node.distribution],
        "pruned": node.n_pruned,
    }
    if node.spread:
        record["spread"] = [_rounded(value) for value in node.spread]
    if node.mass is not None:
        record["mass"] = _rounded(node.mass)
    if node.threshold is not None:
        record["threshold"] = _rounded(node.threshold)
    if node.column is not None:
        words = split_parts(node, 1, partial(short_number, digits=DIGITS))
        record |= {"condition": [" ".join(side) for side in words], "single": True}
    if tree.cluster is not None:
        record["label"] = int(tree.cluster[node.node])
    elif node.value:
        record["value"] = [_rounded(value) for value in node.value]
    if node.offset:
        record["offset"] = [_rounded(value) for value in node.offset]
    return record


def _curve(curve: Curve) -> Record:
    """A curve as the page draws it: the points within the range that is shown, as numbers and as text."""
    points, values = curve.visible()
    write = partial(short_number, digits=DIGITS)
    record: Record = {
        "name": curve.name,
        "x": [_rounded(point) for point in points] if curve.is_number else None,  # type: ignore[arg-type]
        "points": [point_text(curve, point, write) for point in points],
        "values": [[_rounded(value) for value in row] for row in values.tolist()],
    }
    if curve.other is not None:
        record["points"].append("any other")
        record["values"].append([_rounded(value) for value in curve.other])
    if curve.has_missing:
        record["missing"] = [_rounded(value) for value in curve.missing]
    return record


def _subtitle(summary: TreeSummary, target: Target, rows: RowsInTree | None) -> str:
    leaves = "1 leaf" if summary.n_leaves == 1 else f"{summary.n_leaves} leaves"
    parts = [summary.kind, f"depth {summary.depth}", leaves]
    if summary.agreement is not None and rows is not None:
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
    nodes = f"{len(summary.nodes)} kept of {summary.n_nodes}, {summary.n_active} with a positive mass"
    return [
        ["kind", summary.kind],
        ["leaf", summary.leaf],
        ["nodes", str(len(summary.nodes)) if summary.routing == "hard" else nodes],
        ["parameters", f"{summary.n_parameters:,}"],
    ]


def _add_scores(nodes: dict[int, Record], rows: RowsInTree) -> None:
    """Add histograms of the scores of the rows that pass each split."""
    tree, step = rows.tree, -(-len(rows.x) // COUNTED)
    if tree.weight is None or tree.bias is None:
        return
    for t, node in nodes.items():
        here = rows.at(t)
        here = here[here % step == 0]
        if node["leaf"] or not len(here):
            continue
        scores = rows.x[here] @ tree.weight[t] + tree.bias[t]
        reach = float(max(1.0, np.quantile(np.abs(scores), 0.99)))
        counts, _ = np.histogram(np.clip(scores, -reach, reach), BINS, (-reach, reach))
        node["scores"] = {"low": _rounded(-reach), "high": _rounded(reach), "counts": counts.tolist()}


def _add_values(nodes: dict[int, Record], rows: RowsInTree, y: npt.NDArray[np.float64]) -> Record:
    """Add histograms of the first output of the rows that pass each node, all over the same range."""
    low, high = map(float, np.quantile(y[:, 0], [0.005, 0.995]))
    least = 2 * BINS * float(np.spacing(max(abs(low), abs(high))))  # bins that numbers of this size tell apart
    if high - low <= least:
        high = low + max(1.0, least)
    for t, node in nodes.items():
        inside = np.clip(y[rows.at(t), 0], low, high)
        node["values"] = np.histogram(inside, BINS, (low, high))[0].tolist()
    return {"low": _rounded(low), "high": _rounded(high)}


def _rounded(value: float) -> float:
    """The number, rounded to the digits that the page shows."""
    return float(f"{float(value):.6g}")
