"""The data of the interactive page: the description of a tree, its weights, and some rows."""

from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.describe.columns import TableValues, counted_levels
from prunus.describe.numbers import exact_number, percent, short_number
from prunus.describe.read import with_agreement
from prunus.describe.reasons import column_orders
from prunus.describe.record import Curve, LearnedTree, NodeSummary, SearchedTree, TreeDescription, TreeSummary
from prunus.describe.rows import LearnedRows, Rows, send_rows
from prunus.describe.words import PLACES, formula_parts, point_text, probability_text, split_parts
from prunus.palette import COLORS
from prunus.render.page_charts import BINS, add_charts, read_coloring
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
from prunus.search.record import LeafFormula, Term
from prunus.search.words import bracketed, instant_text

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


def curve_record(curve: Curve, columns: TableValues | None = None) -> Record:
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


def _counts(curve: Curve, columns: TableValues) -> list[int]:
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


def add_rows(nodes: dict[int, Record], rows: Rows) -> None:
    """Add how many of the given rows pass each node."""
    for t, node in nodes.items():
        node["rows"] = len(rows.at(t))


def add_scores(nodes: dict[int, Record], rows: LearnedRows) -> None:
    """Add histograms of the scores of the rows that pass each split."""
    tree, step = rows.tree.model, -(-len(rows.x) // COUNTED)
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


def add_values(nodes: dict[int, Record], rows: Rows, y: npt.NDArray[np.float64]) -> Record:
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


def readable_nodes(tree: SearchedTree) -> dict[int, Record]:
    """The nodes with their questions and formulas, as plain types; infinite thresholds are strings."""
    return {node.node: _node(node, tree) for node in tree.nodes}


def _node(node: NodeSummary, tree: SearchedTree) -> Record:
    record = node_record(node)
    if node.question is not None:
        record["condition"] = [" ".join(side) for side in split_parts(node, 1, exact_number)]
        record["question"] = _question(node, node.question)
        return record
    leaf = tree.model.leaves[node.node]
    is_classes = tree.classes is not None
    if node.value:
        record["value"] = list(node.value)
        if is_classes:
            record["probabilities"] = probability_text(node, tree.outputs, exact_number)
    record["scored"] = is_classes and has_scores(leaf, len(tree.outputs))
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


def page_record(tree: TreeDescription, X: Any = None, y: Any = None) -> Record:  # noqa: N803
    """All data that the page of a tree shows, as plain types. The rows of X descend the tree once."""
    if X is None:
        return tree_record(tree)
    rows = send_rows(tree, X)
    truth = None if y is None else read_truth(tree.target, y, len(rows.ends))
    picked, lists = row_lists(rows, truth, n_picked(X))
    given = given_rows(tree, X, truth, picked, lists)
    record = tree_record(tree, rows, given)
    return record | {"samples": [row | of_tree for row, of_tree in zip(given.records, record["samples"], strict=True)]}


def tree_record(tree: TreeDescription, rows: Rows | None = None, given: GivenRows | None = None) -> Record:
    """The data of the page of a tree; of the rows that can be picked, only what the tree does with them."""
    if rows is not None:
        tree = with_agreement(tree, rows)
    target: Any = tree.target
    record: Record = {
        "task": target.task,
        "link": tree.link,
        "hard": tree.routing == "hard",
        "subtitle": _subtitle(tree, rows),
        "warning": tree.warning,
        "facts": _facts(tree),
        "colors": COLORS,
        "outputs": list(tree.outputs),
        "features": features(tree),
        "curves": [],
        "samples": [],
        "lists": {},
    }
    record["orders"] = column_orders(len(record["features"])).tolist()
    if isinstance(tree, SearchedTree):
        nodes = readable_nodes(tree)
        columns = enumerate(record["features"])
        record |= {"readable": True}
        record["columns"] = [{"feature": i, "kind": one["kind"], "label": one["name"]} for i, one in columns]
    else:
        assert isinstance(tree, LearnedTree)
        cluster = tree.model.cluster
        nodes = {
            node.node: node_record(node, None if cluster is None else int(cluster[node.node])) for node in tree.nodes
        }
        add_split_columns(nodes, tree)
        record |= {
            "columns": [column_record(column) for column in tree.inputs],
            "split": splits(tree.model),
            "model": model_record(tree.model),
            "curves": [curve_record(curve, None if given is None else given.columns) for curve in tree.curves],
        }
    record["nodes"] = list(nodes.values())
    if target.classes is None:
        is_scaled = isinstance(tree, LearnedTree)
        record["scale"] = target.deviation.tolist() if is_scaled else [1.0] * target.n_outputs
        record["mean"] = target.mean.tolist() if is_scaled else [0.0] * target.n_outputs
    if rows is not None and given is not None:
        record |= _of_rows(nodes, rows, given)
        if isinstance(rows, LearnedRows):
            add_scores(nodes, rows)
    return record


def _of_rows(nodes: dict[int, Record], rows: Rows, given: GivenRows) -> Record:
    """What the page shows of given rows; their numbers and charts are added to the nodes."""
    coloring = read_coloring(rows, given.truth)
    add_rows(nodes, rows)
    add_charts(nodes, rows, given.columns, coloring)
    record = {"samples": outcomes(rows, given.picked), "lists": given.lists, "n_rows": given.n}
    if given.truth is not None and rows.tree.classes is None and not rows.tree.clusters:
        record["values"] = add_values(nodes, rows, given.truth)
    return record | {"coloring": coloring.record()}


def _subtitle(tree: TreeDescription, rows: Rows | None) -> str:
    leaves = "1 leaf" if tree.n_leaves == 1 else f"{tree.n_leaves} leaves"
    parts = [tree.kind, f"depth {tree.depth}", leaves]
    if tree.agreement is not None and rows is not None:
        parts.append(_agreement(tree.agreement, rows))
    return ", ".join(parts)


def _agreement(agreement: float, rows: Rows) -> str:
    """How far one path tells what all routes predict, beside what one class for all rows would tell."""
    if rows.tree.clusters:
        return f"one path is the largest route for {percent(agreement)} of rows"
    if rows.tree.classes is None:
        return f"R^2 of one path against all routes: {agreement:.3f}"
    predicted = rows.predictions.argmax(1)
    largest = percent(np.bincount(predicted).max() / len(predicted))
    return f"one path agrees with all routes for {percent(agreement)} of rows; the largest class has {largest}"


def _facts(tree: TreeSummary) -> list[list[str]]:
    nodes = f"{len(tree.nodes)} kept of {tree.n_nodes}, {tree.n_active} that rows may pass"
    return [
        ["kind", tree.kind],
        ["leaf", tree.leaf],
        ["nodes", str(len(tree.nodes)) if tree.routing == "hard" else nodes],
        ["parameters", f"{tree.n_parameters:,}"],
    ]
