"""What the interactive page knows of a tree: the summary, the weights, and some rows."""

from base64 import b64encode
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prunus.data.columns import NumberKind, read_labels, read_numbers
from prunus.data.tables import read_table
from prunus.estimators.prediction import linear_terms
from prunus.explain.summary import TreeSummary, tree_summary

__all__ = ["page_record"]

Record = dict[str, Any]

MAX_WEIGHTS = 60_000
"""Of linear models at the nodes: with more the page would be too large, and shows only rows that are given."""
MAX_ROWS, MAX_CELLS = 100, 8_000
"""Rows that can be picked: the table is thinned out evenly."""
COUNTED = 50_000
"""Rows that histograms are made of."""
BINS = 32
_TASKS = {"ArgminTreeClassifier": "classes", "ArgminTreeRegressor": "values", "ArgminTreeClusterer": "clusters"}


def page_record(estimator: Any, X: Any = None, y: Any = None) -> Record:  # noqa: N803
    """All that the page shows, of plain types only."""
    summary = tree_summary(estimator, X)
    task = _TASKS[summary.kind]
    nodes = {node.node: _node(estimator, node, task) for node in summary.nodes}
    record: Record = {
        "task": task,
        "subtitle": _subtitle(summary),
        "facts": _facts(summary),
        "outputs": list(summary.outputs),
        "columns": [_column(column) for column in estimator.encoder_.columns_],
        "features": _features(estimator),
        "split": _splits(estimator),
        "model": _model(estimator, task),
        "samples": [],
        "nodes": list(nodes.values()),
    }
    if task != "classes":
        record |= {"scale": estimator.target_scale_.tolist(), "mean": estimator.target_mean_.tolist()}
    if X is not None:
        record["samples"] = _samples(estimator, task, X, y)
        _add_scores(estimator, nodes, X)
        if task == "values" and y is not None:
            record["values"] = _add_values(estimator, nodes, X, np.asarray(y, dtype=np.float64).reshape(len(y), -1))
    return record


def _node(estimator: Any, node: Any, task: str) -> Record:
    record: Record = {
        "node": node.node,
        "leaf": node.is_leaf,
        "share": _rounded(node.share),
        "mass": _rounded(node.mass),
        "distribution": [_rounded(value) for value in node.distribution],
        "pruned": node.n_pruned,
    }
    if node.spread:
        record["spread"] = [_rounded(value) for value in node.spread]
    if node.threshold is not None:
        record["threshold"] = _rounded(node.threshold)
    if node.value and task != "clusters":
        record["value"] = [_rounded(value) for value in node.value]
    if task == "clusters":
        record["label"] = int(estimator._label_of_node[node.node])
    return record


def _subtitle(summary: TreeSummary) -> str:
    leaves = "1 leaf" if summary.n_leaves == 1 else f"{summary.n_leaves} leaves"
    agreement = "" if summary.agreement is None else f", one path agrees with all routes: {summary.agreement:.1%}"
    return f"{summary.kind}, depth {summary.depth}, {leaves}{agreement}"


def _facts(summary: TreeSummary) -> list[list[str]]:
    return [
        ["kind", summary.kind],
        ["leaf", summary.leaf],
        ["nodes", f"{len(summary.nodes)} kept of {summary.n_nodes}, {summary.n_active} with a positive mass"],
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
    """Columns of the table: kind, levels, and a value to begin with."""
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
                if column.scale > feature["often"]:  # grows with the share of the level
                    feature["typical"], feature["often"] = column.category, column.scale
        elif column.kind != "missing" and not column.piece:
            feature["kind"] = column.kind
            feature["typical"] = 0.0 if column.kind == "boolean" else _rounded(column.center)
    for feature in found.values():
        del feature["often"]
    importance = estimator.feature_importances_
    return [found[i] | {"importance": _rounded(importance[i])} for i in sorted(found)]


def _splits(estimator: Any) -> Record:
    """Weights of the splits that are kept, or that soft routes pass."""
    tree = estimator.tree_
    if tree.weight is None:
        return {"nodes": [], "weight": "", "bias": ""}
    inner = np.arange(len(tree.weight))
    used = tree.kept | (tree.mass > 0)
    nodes = inner[used[2 * inner + 1] | used[2 * inner + 2]]
    return {"nodes": nodes.tolist(), "weight": _floats(tree.weight[nodes]), "bias": _floats(tree.bias[nodes])}


def _model(estimator: Any, task: str) -> Record | None:
    """What it takes to predict; None if the page cannot."""
    tree = estimator.tree_
    if tree.weight is None:
        return None
    elu = type(estimator.model_.tree.split).__name__ == "ELUSplit"
    record: Record = {"elu": elu, "mass": _floats(tree.mass), "constant": "", "slope": "", "shared": "", "output": ""}
    if task == "clusters":
        return record | {"position": {}}
    nodes = np.flatnonzero(tree.mass > 0)
    head = linear_terms(estimator.model_)
    if head is None or (head.slope is not None and head.slope[nodes].size > MAX_WEIGHTS):
        return None
    return record | {
        "position": {int(t): i for i, t in enumerate(nodes)},
        "constant": _floats(head.constant[nodes]),
        "slope": "" if head.slope is None else _floats(head.slope[nodes]),
        "shared": "" if head.shared is None else _floats(head.shared),
        "output": _floats(head.output),
    }


def _samples(estimator: Any, task: str, X: Any, y: Any) -> list[Record]:  # noqa: N803
    """Some rows: values as in the table, what is known of them, and what is predicted."""
    table = read_table(X)
    n, features = table.shape
    few = max(1, min(n, MAX_ROWS, MAX_CELLS // features))
    rows = np.unique(np.linspace(0, n - 1, few).astype(int)) if n else np.arange(0)
    if not len(rows):
        return []
    values = [_values(estimator, table, feature)[rows] for feature in range(features)]
    known = [None] * n if y is None else list(np.asarray(y).tolist())
    outputs = _outputs(estimator, task, X)
    ends = estimator.apply(X)
    return [
        {
            "row": int(i),
            "y": _known(known[i]),
            "values": [_plain(column[k]) for column in values],
            "outputs": [_rounded(value) for value in outputs[i]],
            "end": int(ends[i]),
        }
        for k, i in enumerate(rows)
    ]


def _outputs(estimator: Any, task: str, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
    if task == "clusters":
        return np.zeros((len(estimator.apply(X)), 0))
    predicted = estimator.predict_proba(X) if task == "classes" else estimator.predict(X)
    return np.asarray(predicted, dtype=np.float64).reshape(len(predicted), -1)


def _values(estimator: Any, table: Any, feature: int) -> npt.NDArray[np.object_]:
    """A column of a table: numbers, seconds or texts; None for what is missing."""
    columns = [column for column in estimator.encoder_.columns_ if column.feature == feature]
    if any(column.kind in ("category", "infrequent") for column in columns):
        labels = read_labels(table.column(feature), columns[0].name)
        levels: npt.NDArray[np.object_] = np.array([*labels.levels, None], dtype=object)
        return cast(npt.NDArray[np.object_], levels[labels.codes])
    numbers = read_numbers(table.column(feature), cast(NumberKind, columns[0].kind), columns[0].name)
    values = np.asarray(numbers, dtype=np.float64).astype(object)
    values[np.isnan(np.asarray(numbers, dtype=np.float64))] = None
    return values


def _add_scores(estimator: Any, nodes: dict[int, Record], X: Any) -> None:  # noqa: N803
    """Histograms of the scores of the rows that pass each split."""
    tree = estimator.tree_
    if tree.weight is None:
        return
    x = estimator._encode(X)
    step = -(-len(x) // COUNTED) or 1
    passing = estimator.decision_path(X)[::step].tocsc()
    for t, node in nodes.items():
        rows = passing.indices[passing.indptr[t] : passing.indptr[t + 1]]
        if node["leaf"] or not len(rows):
            continue
        scores = x[::step][rows] @ tree.weight[t] + tree.bias[t]
        reach = float(max(1.0, np.quantile(np.abs(scores), 0.99)))
        counts, _ = np.histogram(np.clip(scores, -reach, reach), BINS, (-reach, reach))
        node["scores"] = {"low": _rounded(-reach), "high": _rounded(reach), "counts": counts.tolist()}


def _add_values(estimator: Any, nodes: dict[int, Record], X: Any, y: npt.NDArray[np.float64]) -> Record:  # noqa: N803
    """Histograms of the first output of the rows that pass each node, all over the same range."""
    low, high = map(float, np.quantile(y[:, 0], [0.005, 0.995]))
    passing = estimator.decision_path(X).tocsc()
    for t, node in nodes.items():
        inside = np.clip(y[passing.indices[passing.indptr[t] : passing.indptr[t + 1]], 0], low, high)
        node["values"] = np.histogram(inside, BINS, (low, high if high > low else low + 1))[0].tolist()
    return {"low": _rounded(low), "high": _rounded(high if high > low else low + 1)}


def _floats(values: Any) -> str:
    return b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()


def _rounded(value: float) -> float:
    """Digits that are seen."""
    return float(f"{float(value):.6g}")


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else float(value)


def _known(value: Any) -> Any:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(f"{part:.6g}" for part in value)
    is_plain = value is None or (isinstance(value, (int, float, str)) and not isinstance(value, bool))
    return value if is_plain else str(value)
