"""Nodes and curves as the interactive page shows them, with histograms of the rows that were given."""

from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.explain.curves import Curve
from prunus.explain.digits import exact_number, short_number
from prunus.explain.page_charts import BINS, TableColumns, counted_levels
from prunus.explain.phrases import point_text, split_parts
from prunus.explain.readable_rows import ReadableRows
from prunus.explain.rows import RowsInTree
from prunus.explain.summary_record import NodeSummary

__all__ = ["add_rows", "add_scores", "add_values", "curve_record", "node_record", "rounded"]

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
