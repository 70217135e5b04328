"""The data of the interactive page: the description of a tree in plain types, all words included, and some rows."""

from dataclasses import asdict
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.describe.columns import TableValues, counted_levels
from prunus.describe.functions import log_odds
from prunus.describe.numbers import exact_number, percent, short_number
from prunus.describe.read import with_agreement
from prunus.describe.reasons import column_orders
from prunus.describe.record import Curve, LearnedTree, NodeSummary, SearchedTree, TreeDescription
from prunus.describe.rows import LearnedRows, Rows, send_rows
from prunus.describe.sentences import case_words
from prunus.describe.words import formula_parts, in_lines, point_text, probability_text, split_parts
from prunus.palette import COLORS
from prunus.render.page_charts import BINS, add_charts, read_coloring
from prunus.render.page_inputs import InputList, learned_inputs, model_record, splits
from prunus.render.page_rows import GivenRows, features, given_rows, n_picked, outcomes, read_truth, row_lists
from prunus.render.page_words import facts, help_texts, legend, subtitle
from prunus.search.predict import has_scores
from prunus.search.questions import Comparison, Question, comparisons

__all__ = ["page_record", "tree_record"]

Record = dict[str, Any]

COUNTED = 50_000
"""Largest number of rows that histograms of scores are made from."""
PANEL_BINS = 32
DIGITS, BOX_DIGITS = 4, 3
"""Number of digits in the words of a split, in the panel and in a box."""
BOX_TERMS = 3
"""Number of terms of a split that a box can show."""
LONGEST = 26
"""Number of characters of a name in a box."""
MOST_OUTPUTS = 3
"""Number of outputs whose values a box can show."""


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
    short = in_lines(tree, LONGEST)
    nodes = {node.node: _node(tree, node, of_box) for node, of_box in zip(tree.nodes, short.nodes, strict=True)}
    columns = features(tree)
    record: Record = {
        "task": tree.target.task,
        "link": tree.link,
        "hard": tree.routing == "hard",
        "subtitle": subtitle(tree, rows),
        "warning": tree.warning,
        "facts": facts(tree),
        "colors": COLORS,
        "outputs": list(tree.outputs),
        "features": columns,
        "orders": column_orders(len(columns)).tolist(),
        "samples": [],
        "lists": {},
        **_curves(tree, None if given is None else given.columns),
        **(_searched(tree, nodes) if isinstance(tree, SearchedTree) else _learned(tree, nodes)),
    }
    if rows is not None and given is not None:
        record |= _of_rows(nodes, rows, given)
        if isinstance(rows, LearnedRows):
            _add_scores(nodes, rows)
    by = record["coloring"]["by"] if "coloring" in record else None
    return record | {
        "nodes": list(nodes.values()),
        "legend": legend(tree, by),
        "help": help_texts(tree, record, nodes[0]),
    }


def _node(tree: TreeDescription, node: NodeSummary, of_box: NodeSummary) -> Record:
    """A node as plain types: its share, its distribution, its split and its prediction in words.

    In boxes names are short.
    """
    record: Record = {
        "node": node.node,
        "leaf": node.is_leaf,
        "share": _rounded(node.share),
        "distribution": _all_rounded(node.distribution),
        "pruned": node.n_pruned,
    }
    if node.spread:
        record["spread"] = _all_rounded(node.spread)
    if node.mass is not None:
        record["mass"] = _rounded(node.mass)
    if node.value and not tree.clusters:
        record["value"] = _all_rounded(node.value)
    if node.is_leaf:
        record["said"] = _said(tree, node)
    else:
        box, panel = (exact_number if tree.exact else partial(short_number, digits=k) for k in (BOX_DIGITS, DIGITS))
        record["words"] = split_parts(of_box, BOX_TERMS, box)[0]
        record["condition"] = [" ".join(side) for side in split_parts(node, BOX_TERMS, panel)]
    if node.threshold is not None and isfinite(node.threshold):
        record["threshold"] = node.threshold if tree.exact else _rounded(node.threshold)
    if node.column is not None:
        record["single"] = True
    predicted = _predicted(tree, node)
    return record | ({"predicts": predicted} if predicted else {})


def _said(tree: TreeDescription, node: NodeSummary) -> str:
    """What a leaf predicts, as its box says it."""
    if tree.clusters:
        return tree.clusters[node.node]
    values = node.value or node.distribution
    if tree.classes is not None:
        return tree.outputs[values.index(max(values))]
    if tree.exact and node.formulas:
        return " ".join(formula_parts(node.formulas[0], 1, exact_number))
    told = _numbers(tree, (node.offset or values)[:MOST_OUTPUTS]) + ", …" * (len(tree.outputs) > MOST_OUTPUTS)
    return f"{told} + curves" if node.offset else told if node.value else f"mean {told}"


def _predicted(tree: TreeDescription, node: NodeSummary) -> str:
    """What paths that end in a node predict, as the panel says it; nothing if none ends there or it is a formula."""
    if tree.clusters:
        return tree.clusters.get(node.node, "")
    if not node.value or not (node.is_leaf or node.n_pruned):
        return ""
    if tree.classes is None:
        told = ", ".join(_numbers(tree, node.value).split(", "))
    elif tree.exact:
        told = probability_text(node, tree.outputs, exact_number)
    else:
        best = max(node.value)
        told = f"{tree.outputs[node.value.index(best)]} ({percent(best)})"
    return told if tree.routing == "hard" else f"{told}, where a path ends here"


def _numbers(tree: TreeDescription, values: tuple[float, ...]) -> str:
    return ", ".join(map(exact_number if tree.exact else partial(short_number, digits=DIGITS), values))


def _learned(tree: TreeDescription, nodes: dict[int, Record]) -> Record:
    """What the page needs to predict rows, of a tree that was learned by gradient descent."""
    assert isinstance(tree, LearnedTree)
    for node in tree.nodes:
        record, column = nodes[node.node], node.column
        if tree.model.cluster is not None:
            record["label"] = int(tree.model.cluster[node.node])
        if column is not None:
            record["column"] = {
                "feature": node.split[0].feature,
                "thresholds": list(column.thresholds),
                "low_left": column.low_left,
            } | ({} if column.unit is None else {"unit": column.unit})
    target: Any = tree.target
    scale = {} if tree.classes is not None else {"scale": target.deviation.tolist(), "mean": target.mean.tolist()}
    display = None if tree.clusters else target.display_scale(tree.outputs)
    return scale | {
        "columns": learned_inputs(tree.inputs),
        "split": splits(tree.model),
        "model": model_record(tree.model),
        "constant": tree.model.leaves.is_constant,
        "display": {} if display is None else _display(display.names, display.matrix, display.offset),
    }


def _searched(tree: SearchedTree, nodes: dict[int, Record]) -> Record:
    """The same of a readable tree, with the numbers that predict."""
    inputs = InputList()
    for node in tree.nodes:
        record = nodes[node.node]
        if node.question is not None:
            record["question"] = _question(inputs, node, node.question)
            continue
        leaf = tree.model.leaves[node.node]
        if node.value and tree.classes is not None:
            record["value"] = list(node.value)
            record["probabilities"] = probability_text(node, tree.outputs, exact_number)
        record["scored"] = tree.classes is not None and has_scores(leaf, len(tree.outputs))
        weights = [formula.weights for formula in node.formulas] or [()] * len(leaf.outputs)
        record["outputs"] = [inputs.formula(formula, own) for formula, own in zip(leaf.outputs, weights, strict=True)]
        if node.formulas:
            record["formulas"] = [
                {"output": formula.output, "words": formula_parts(formula, 1, exact_number)}
                for formula in node.formulas
            ]
    k = len(tree.outputs)
    names = tree.target.display_scale(tree.outputs).names
    m = len(names)
    return {
        "readable": True,
        "columns": inputs.records,
        "display": _display(names, np.eye(m, k), np.zeros(m)),
        **({} if tree.classes is not None else {"scale": [1.0] * k, "mean": [0.0] * k}),
    }


def _display(names: tuple[str, ...], matrix: npt.NDArray[np.float64], offset: npt.NDArray[np.float64]) -> Record:
    return {"names": list(names), "matrix": matrix.tolist(), "offset": offset.tolist()}


def _question(inputs: InputList, node: NodeSummary, question: Question) -> Record:
    split = question.split
    finite = isfinite(split.threshold)
    return {
        "terms": inputs.terms(split.terms, node.split, fill=False),
        "names": [column.name for column in question.columns],
        "start": -split.threshold if finite else f"{'-' * (split.threshold > 0)}Infinity",
        "missing_left": split.missing_left,
        "cases": [_case(question, case) for case in comparisons(question)],
    }


def _case(question: Question, case: Comparison) -> Record:
    words = asdict(case_words(question, case))
    i = words.pop("term")
    feature = None if i is None else question.split.terms[i].feature
    return words | {"switch": case.switch, "on": case.on, "feature": feature}


def _curves(tree: TreeDescription, columns: TableValues | None) -> Record:
    """The curves of additive leaves, and what they are added to."""
    if not tree.curves:
        return {"curves": []}
    curves, outputs, added_to, what = tree.curves, list(range(len(tree.outputs))), "value", "the value of a leaf"
    if tree.link == "log":
        added_to, what = "log value", "the logarithm of the value of a leaf"
    elif tree.classes is not None and len(outputs) == 2:
        curves, outputs, added_to = tuple(map(log_odds, curves)), [1], "log odds"
        what = f"the log odds of {tree.outputs[1]}"
    elif tree.classes is not None:
        added_to, what = "score", "the scores of the classes"
    told = (
        f"What each column adds to {what}. All leaves share these curves, which are 0 at a typical value. The "
        f"strongest comes first.{' The gray bars show how many rows have each value.' * (columns is not None)}"
    )
    drawn = [_curve(curve, columns) for curve in curves]
    return {"curves": drawn, "curve_outputs": outputs, "added_to": added_to, "curves_told": told}


def _curve(curve: Curve, columns: TableValues | None) -> Record:
    """A curve as the page draws it: the points within the range that is shown, as numbers and as text.

    With the columns of a table, it has the distribution of its own one: counts in bins of equal width over that range,
    or counts of the levels.
    """
    points, values = curve.visible()
    record: Record = {
        "name": curve.title,
        "x": _all_rounded(points) if curve.is_number else None,
        "points": [point_text(curve, point, partial(short_number, digits=DIGITS)) for point in points],
        "values": [_all_rounded(row) for row in values.tolist()],
    }
    if curve.unit is not None:
        record["unit"] = curve.unit
    if curve.other is not None:
        record["points"].append("any other")
        record["values"].append(_all_rounded(curve.other))
    if curve.has_missing:
        record["missing"] = _all_rounded(curve.missing)
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


def _add_rows(nodes: dict[int, Record], rows: Rows) -> None:
    """Add how many of the given rows pass each node."""
    for t, node in nodes.items():
        node["rows"] = len(rows.at(t))


def _add_scores(nodes: dict[int, Record], rows: LearnedRows) -> None:
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
        node["scores"] = {"low": _rounded(-reach), "high": _rounded(reach), "counts": counts.tolist()}


def _add_values(nodes: dict[int, Record], rows: Rows, y: npt.NDArray[np.float64]) -> Record:
    """Add histograms of the first output of the rows that pass each node, all over the same range."""
    low, high = map(float, np.quantile(y[:, 0], [0.005, 0.995]))
    least = 2 * PANEL_BINS * float(np.spacing(max(abs(low), abs(high))))  # bins that numbers of this size tell apart
    if high - low <= least:
        high = low + max(1.0, least)
    for t, node in nodes.items():
        inside = np.clip(y[rows.at(t), 0], low, high)
        node["values"] = np.histogram(inside, PANEL_BINS, (low, high))[0].tolist()
    return {"low": _rounded(low), "high": _rounded(high)}


def _rounded(value: Any) -> float:
    """The number, rounded to the digits that the page shows."""
    return float(f"{float(value):.6g}")


def _all_rounded(values: Any) -> list[float]:
    return [_rounded(value) for value in values]


def _of_rows(nodes: dict[int, Record], rows: Rows, given: GivenRows) -> Record:
    """What the page shows of given rows; their numbers and charts are added to the nodes."""
    coloring = read_coloring(rows, given.truth)
    _add_rows(nodes, rows)
    add_charts(nodes, rows, given.columns, coloring)
    record = {"samples": outcomes(rows, given.picked), "lists": given.lists, "n_rows": given.n}
    if given.truth is not None and rows.tree.classes is None and not rows.tree.clusters:
        record["values"] = _add_values(nodes, rows, given.truth)
    return record | {"coloring": coloring.record()}
