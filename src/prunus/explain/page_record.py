"""The data of the interactive page: the summary of a tree, its weights, and some rows."""

from base64 import b64encode
from math import isfinite
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.data.arrays import reading
from prunus.data.columns import Column, NumberKind, read_labels, read_numbers
from prunus.data.tables import read_table
from prunus.errors import InputValueError
from prunus.explain.page_charts import TableColumns, add_charts, read_coloring
from prunus.explain.page_nodes import add_rows, add_scores, add_values, curve_record, node_record
from prunus.explain.rows import RowsInTree, send_rows
from prunus.explain.summary import TreeSummary, check_estimator, summarize
from prunus.palette import COLORS
from prunus.targets import Target
from prunus.tree import Tree

__all__ = ["page_record"]

Record = dict[str, Any]

MAX_WEIGHTS = 60_000
"""Largest number of weights in the linear models of nodes; with more, the page only shows predictions of given rows."""
MAX_ROWS, MAX_CELLS = 100, 8_000
"""Largest number of rows that can be picked, taken at equal steps from the table."""


def page_record(estimator: Any, X: Any = None, y: Any = None) -> Record:  # noqa: N803
    """All data that the page shows, as plain types. The rows of X descend the tree once."""
    check_estimator(estimator, "export_html")
    target, encoder = estimator.target_, estimator.encoder_
    rows = None if X is None else send_rows(estimator, X)
    summary = summarize(estimator, rows)
    nodes = {node.node: node_record(estimator.tree_, node) for node in summary.nodes}
    columns = None if X is None else TableColumns(X, encoder.columns_)
    record: Record = {
        "task": target.task,
        "link": target.link.name,
        "hard": summary.routing == "hard",
        "subtitle": _subtitle(summary),
        "warning": summary.warning,
        "facts": _facts(summary),
        "colors": COLORS,
        "outputs": list(summary.outputs),
        "columns": [_column(column) for column in encoder.columns_],
        "features": _features(estimator),
        "split": _splits(estimator.tree_),
        "model": _model(estimator.tree_),
        "curves": [curve_record(curve, columns) for curve in summary.curves],
        "samples": [],
        "nodes": list(nodes.values()),
    }
    if target.task != "classes":
        record |= {"scale": target.deviation.tolist(), "mean": target.mean.tolist()}
    if rows is not None and columns is not None:
        truth = None if y is None else _truth(target, y, rows.x)
        record["samples"] = _samples(estimator, rows, X, truth)
        coloring = read_coloring(estimator, rows, truth)
        record["coloring"] = coloring.record()
        add_rows(nodes, rows)
        add_scores(nodes, rows)
        add_charts(nodes, summary, rows, columns, coloring)
        if target.task == "numbers" and truth is not None:
            record["values"] = add_values(nodes, rows, truth)
    return record


def _truth(target: Target, y: Any, x: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """The values of the rows, (n, k), or their classes, (n,)."""
    with reading("y", "an array of the classes or values of the rows of X"):
        array = np.asarray(y)
    if array.ndim == 0 or len(array) != len(x):
        got = "a single value" if array.ndim == 0 else len(array)
        raise InputValueError(f"y must have a value for each of the {len(x)} rows of X, got {got}")
    if target.task == "numbers":
        return target.read(y, x)
    if array.size != len(x):
        raise InputValueError(f"y must have one class for each row of X, got y.shape={array.shape}")
    return array.ravel()


def _subtitle(summary: TreeSummary) -> str:
    leaves = "1 leaf" if summary.n_leaves == 1 else f"{summary.n_leaves} leaves"
    agreement = "" if summary.agreement is None else f", one path agrees with all routes: {summary.agreement:.1%}"
    return f"{summary.kind}, depth {summary.depth}, {leaves}{agreement}"


def _facts(summary: TreeSummary) -> list[list[str]]:
    nodes = f"{len(summary.nodes)} kept of {summary.n_nodes}, {summary.n_active} that rows may pass"
    return [
        ["kind", summary.kind],
        ["leaf", summary.leaf],
        ["nodes", str(len(summary.nodes)) if summary.routing == "hard" else nodes],
        ["parameters", f"{summary.n_parameters:,}"],
    ]


def _column(column: Any) -> Record:
    record = {name: getattr(column, name) for name in ("feature", "label", "kind", "center", "scale", "low", "high")}
    return (
        record
        | ({"category": column.category} if column.category is not None else {})
        | ({"piece": True} if column.piece else {})
    )


def _features(estimator: Any) -> list[Record]:
    """The columns of the table, each with its kind, its levels, and an initial value for the form."""
    found: dict[int, Record] = {}
    for column in estimator.encoder_.columns_:
        is_category = column.kind in ("category", "infrequent")
        feature = found.setdefault(
            column.feature, {"name": column.name, "kind": "number", "levels": [], "typical": None, "often": 0.0}
        )
        if is_category:
            feature["kind"] = "category"
            if column.kind == "category":
                feature["levels"].append(column.category)
                if column.scale > feature["often"]:  # the scale grows with the share of the level
                    feature["typical"], feature["often"] = column.category, column.scale
        elif column.kind != "missing" and not column.piece:
            feature["kind"] = column.kind
            feature["typical"] = 0.0 if column.kind == "boolean" else _rounded(column.center)
    for feature in found.values():
        del feature["often"]
    importance = estimator.feature_importances_
    return [found[i] | {"importance": _rounded(importance[i])} for i in sorted(found)]


def _splits(tree: Tree) -> Record:
    """Weights of the splits that are kept, or that have a positive mass."""
    if tree.weight is None or tree.bias is None:
        return {"nodes": [], "weight": "", "bias": ""}
    used = tree.kept | (tree.mass > 0)
    nodes = np.flatnonzero(used[1:].reshape(-1, 2).any(1))
    return {"nodes": nodes.tolist(), "weight": _floats(tree.weight[nodes]), "bias": _floats(tree.bias[nodes])}


def _model(tree: Tree) -> Record | None:
    """The arrays that the page needs to predict; None if it cannot predict."""
    if tree.weight is None:
        return None
    record: Record = {"elu": tree.splits.bounded, "mass": _floats(tree.mass)}
    record |= dict.fromkeys(("constant", "slope", "shared", "output"), "")
    if tree.cluster is not None:
        return record | {"position": {}}
    nodes, leaves = np.flatnonzero(tree.mass > 0), tree.leaves
    if leaves.constant is None or (leaves.slope is not None and leaves.slope[nodes].size > MAX_WEIGHTS):
        return None
    if tree.limits is not None:
        record["limits"] = _floats(tree.limits[:, nodes])
    return record | {
        "position": {int(t): i for i, t in enumerate(nodes)},
        "constant": _floats(leaves.constant[nodes]),
        "slope": "" if leaves.slope is None else _floats(leaves.slope[nodes]),
        "shared": "" if leaves.shared is None else _floats(leaves.shared),
        "output": _floats(leaves.bias),
    }


def _samples(estimator: Any, passed: RowsInTree, X: Any, truth: npt.NDArray[Any] | None) -> list[Record]:  # noqa: N803
    """Some rows, each with its values in the table, its class or value in y, and its predictions."""
    table = read_table(X)
    n, features = table.shape
    few = max(1, min(n, MAX_ROWS, MAX_CELLS // features))
    rows = np.unique(np.linspace(0, n - 1, few).astype(int))
    columns: dict[int, list[OutputColumn]] = {}
    for column in estimator.encoder_.columns_:
        columns.setdefault(column.feature, []).append(column)
    values = [_values(columns[feature], table.column(feature))[rows] for feature in range(features)]
    known = [None] * n if truth is None else truth.tolist()
    target = estimator.target_
    outputs = np.zeros((len(rows), 0)) if target.task == "clusters" else target.predictions(passed.soft[rows])
    return [
        {
            "row": int(i),
            "y": _known(known[i]),
            "values": [_plain(column[k]) for column in values],
            "outputs": [_rounded(value) for value in outputs[k]],
            "end": int(passed.ends[i]),
        }
        for k, i in enumerate(rows)
    ]


def _values(columns: list[OutputColumn], column: Column) -> npt.NDArray[np.object_]:
    """A column of a table as numbers, seconds or texts, with None for missing values."""
    if any(column.kind in ("category", "infrequent") for column in columns):
        labels = read_labels(column, columns[0].name)
        levels: npt.NDArray[np.object_] = np.array([*labels.levels, None], dtype=object)
        return cast(npt.NDArray[np.object_], levels[labels.codes])
    numbers = read_numbers(column, cast(NumberKind, columns[0].kind), columns[0].name)
    values = np.asarray(numbers, dtype=np.float64).astype(object)
    values[np.isnan(np.asarray(numbers, dtype=np.float64))] = None
    return values


def _floats(values: Any) -> str:
    return b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()


def _rounded(value: float) -> float:
    """The number, rounded to the digits that the page shows."""
    return float(f"{float(value):.6g}")


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else float(value)


def _known(value: Any) -> Any:
    """A class or the values of a row, as JSON can represent them."""
    if isinstance(value, list):
        return value[0] if len(value) == 1 else ", ".join(f"{part:.6g}" for part in value)
    is_plain = isinstance(value, (int, str)) and not isinstance(value, bool)
    is_plain = is_plain or (isinstance(value, float) and isfinite(value))
    return value if value is None or is_plain else str(value)
