"""The data of the interactive page: the description of a tree, its weights, and some rows."""

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.describe.columns import table_columns
from prunus.describe.numbers import exact_number, short_number
from prunus.describe.read import Words, read_words, summarize
from prunus.describe.reasons import column_orders
from prunus.describe.record import Curve, NodeSummary, TreeSummary
from prunus.describe.rows import ReadableRows, RowsInTree, readable_columns, send_readable, send_rows
from prunus.describe.words import PLACES, formula_parts, point_text, probability_text, split_parts
from prunus.estimators.readable import ReadableTree
from prunus.estimators.single_tree import check_single_tree
from prunus.palette import COLORS
from prunus.render.page_charts import BINS, TableColumns, add_charts, counted_levels, read_coloring
from prunus.render.page_rows import (
    GivenRows,
    add_split_columns,
    column_record,
    features,
    given_rows,
    model_record,
    n_picked,
    outcomes,
    read_truth,
    row_lists,
    splits,
)
from prunus.search.predict import has_scores
from prunus.search.questions import OPPOSITE, Comparison, Question, comparisons, sum_words, switch_words
from prunus.search.record import LeafFormula, ReadableRecord, Term
from prunus.search.words import bracketed, instant_text
from prunus.targets import Target

__all__ = [
    "add_rows",
    "add_scores",
    "add_values",
    "curve_record",
    "node_record",
    "page_record",
    "readable_nodes",
    "rounded",
    "tree_record",
]

Record = dict[str, Any]

COUNTED = 50_000
"""Largest number of rows that histograms of scores are made from."""
PANEL_BINS = 32
DIGITS, BOX_DIGITS = 4, 3
"""Number of digits in the words of a split, in the panel and in a box."""
BOX_TERMS = 3
"""Number of terms of a split that a box can show."""


def node_record(node: NodeSummary, cluster: int | None = None) -> Record:
    """A node as plain types: its share, its distribution, its split in words, and its prediction."""
    record: Record = {
        "node": node.node,
        "leaf": node.is_leaf,
        "share": rounded(node.share),
        "distribution": [rounded(value) for value in node.distribution],
        "pruned": node.n_pruned,
    }
    if node.spread:
        record["spread"] = [rounded(value) for value in node.spread]
    if node.mass is not None:
        record["mass"] = rounded(node.mass)
    exact = exact_number if node.question is not None else None
    if not node.is_leaf:
        record["words"] = split_parts(node, BOX_TERMS, exact or partial(short_number, digits=BOX_DIGITS))[0]
    if node.threshold is not None and isfinite(node.threshold):
        record["threshold"] = rounded(node.threshold)
    if node.column is not None:
        words = split_parts(node, 1, exact or partial(short_number, digits=DIGITS))
        record |= {"condition": [" ".join(side) for side in words], "single": True}
    if cluster is not None:
        record["label"] = cluster
    elif node.value:
        record["value"] = [rounded(value) for value in node.value]
    if node.offset:
        record["offset"] = [rounded(value) for value in node.offset]
    return record


def curve_record(curve: Curve, columns: TableColumns | None = None) -> Record:
    """A curve as the page draws it: the points within the range that is shown, as numbers and as text.

    With the columns of a table, it has the distribution of its own one: counts in bins of equal width over that range,
    or counts of the levels.
    """
    points, values = curve.visible()
    write = partial(short_number, digits=DIGITS)
    record: Record = {
        "name": curve.title,
        "x": [rounded(point) for point in points] if curve.is_number else None,  # type: ignore[arg-type]
        "points": [point_text(curve, point, write) for point in points],
        "values": [[rounded(value) for value in row] for row in values.tolist()],
    }
    if curve.unit is not None:
        record["unit"] = curve.unit
    if curve.other is not None:
        record["points"].append("any other")
        record["values"].append([rounded(value) for value in curve.other])
    if curve.has_missing:
        record["missing"] = [rounded(value) for value in curve.missing]
    if columns is not None:
        record["counts"] = _counts(curve, columns)
    return record


def _counts(curve: Curve, columns: TableColumns) -> list[int]:
    """How many rows have the values of a curve; rows without a value, or beyond the range, are not counted."""
    if curve.shown is not None:
        low, high = curve.shown
        values = columns.numbers(curve.feature)
        inside = values[(values >= low) & (values <= high)]
        return np.histogram(inside, BINS, (low, high))[0].tolist() if high > low else [len(inside)]
    counts = counted_levels(columns.levels(curve.feature, curve.unit))
    counts.pop(None, None)
    known = [counts.pop(str(point), 0) for point in curve.points]
    return known if curve.other is None else [*known, sum(counts.values())]


def add_rows(nodes: dict[int, Record], rows: RowsInTree | ReadableRows) -> None:
    """Add how many of the given rows pass each node."""
    for t, node in nodes.items():
        node["rows"] = len(rows.at(t))


def add_scores(nodes: dict[int, Record], rows: RowsInTree) -> None:
    """Add histograms of the scores of the rows that pass each split."""
    tree, step = rows.tree, -(-len(rows.x) // COUNTED)
    if tree.weight is None or tree.bias is None:
        return
    for t, node in nodes.items():
        here = rows.at(t)
        here = here[here % step == 0]
        if node["leaf"] or not len(here):
            continue
        # Not a product of matrices: on some processors numpy's warns of invalid values where there are none.
        scores = np.einsum("nd,d->n", rows.x[here], tree.weight[t]) + tree.bias[t]
        reach = float(max(1.0, np.quantile(np.abs(scores), 0.99)))
        counts, _ = np.histogram(np.clip(scores, -reach, reach), PANEL_BINS, (-reach, reach))
        node["scores"] = {"low": rounded(-reach), "high": rounded(reach), "counts": counts.tolist()}


def add_values(nodes: dict[int, Record], rows: RowsInTree | ReadableRows, y: npt.NDArray[np.float64]) -> Record:
    """Add histograms of the first output of the rows that pass each node, all over the same range."""
    low, high = map(float, np.quantile(y[:, 0], [0.005, 0.995]))
    least = 2 * PANEL_BINS * float(np.spacing(max(abs(low), abs(high))))  # bins that numbers of this size tell apart
    if high - low <= least:
        high = low + max(1.0, least)
    for t, node in nodes.items():
        inside = np.clip(y[rows.at(t), 0], low, high)
        node["values"] = np.histogram(inside, PANEL_BINS, (low, high))[0].tolist()
    return {"low": rounded(low), "high": rounded(high)}


def rounded(value: float) -> float:
    """The number, rounded to the digits that the page shows."""
    return float(f"{float(value):.6g}")


def readable_nodes(words: Words, tree: ReadableRecord) -> dict[int, Record]:
    """The nodes with their questions and formulas, as plain types; infinite thresholds are strings."""
    return {t: _node(node, tree, words.summary) for t, node in words.nodes.items()}


def _node(node: NodeSummary, tree: ReadableRecord, summary: TreeSummary) -> Record:
    record = node_record(node)
    if node.question is not None:
        record["condition"] = [" ".join(side) for side in split_parts(node, 1, exact_number)]
        record["question"] = _question(node, node.question)
        return record
    leaf = tree.leaves[node.node]
    is_classes = summary.classes is not None
    if node.value:
        record["value"] = list(node.value)
        if is_classes:
            record["probabilities"] = probability_text(node, summary.outputs, exact_number)
    record["scored"] = is_classes and has_scores(leaf, len(summary.outputs))
    record["outputs"] = [_formula(formula) for formula in leaf.outputs]
    if node.formulas:
        record["formulas"] = [
            {"output": formula.output, "words": formula_parts(formula, 1, exact_number)} for formula in node.formulas
        ]
    return record


def _question(node: NodeSummary, question: Question) -> Record:
    split = question.split
    terms = [
        _term(term) | {"name": column.name, "label": part.label, "strength": part.strength}
        for term, column, part in zip(split.terms, question.columns, node.split, strict=True)
    ]
    return {
        "terms": terms,
        "threshold": split.threshold if isfinite(split.threshold) else f"{'-' * (split.threshold < 0)}Infinity",
        "missing_left": split.missing_left,
        "cases": [_case(question, case) for case in comparisons(question)],
    }


def _case(question: Question, case: Comparison) -> Record:
    """What is compared in a case, such as "size where color is E", and how it lies to the limit on either side."""
    is_single = len(case.terms) == 1 and (case.switch is not None or question.split.terms[0].weight == 1)
    i = case.terms[0]
    column = question.columns[i]
    limit = instant_text(column.kind, case.limit, exact_number) if is_single else exact_number(case.limit)
    return {
        "switch": case.switch,
        "on": case.on,
        "feature": question.split.terms[i].feature if is_single else None,
        "what": bracketed(column.name) if is_single else sum_words(question, exact_number),
        "where": "" if case.switch is None else f" where {switch_words(question, case.switch, on=case.on)}",
        "left": f"{PLACES[case.sign]} {limit}",
        "right": f"{PLACES[OPPOSITE[case.sign]]} {limit}",
    }


def _term(term: Term) -> Record:
    levels = None if term.levels is None else list(term.levels)
    return {"feature": term.feature, "weight": term.weight, "levels": levels, "missing": term.missing}


def _formula(formula: LeafFormula) -> Record:
    terms = [_term(term) for term in formula.terms]
    return {"constant": formula.constant, "terms": terms, "low": formula.low, "high": formula.high}


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
