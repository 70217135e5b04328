"""What the interactive page needs to follow rows: columns, weights, and rows that can be picked."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.data.checks import reading
from prunus.data.tables import read_table
from prunus.errors import InputValueError
from prunus.explain.curves import UNNAMED
from prunus.explain.page_charts import TableColumns
from prunus.explain.readable_rows import ReadableRows
from prunus.explain.rows import RowsInTree, score_paths
from prunus.explain.summary_record import TreeSummary
from prunus.explain.values import TableColumn, table_values
from prunus.targets import Target
from prunus.tree import Tree

__all__ = [
    "MAX_WEIGHTS",
    "GivenRows",
    "add_split_columns",
    "column_record",
    "features",
    "given_rows",
    "model_record",
    "n_picked",
    "n_weights",
    "outcomes",
    "read_truth",
    "splits",
]

Record = dict[str, Any]

MAX_WEIGHTS = 60_000
"""Largest number of weights in the linear models of nodes; with more, the page only shows predictions of given rows."""
MAX_ROWS, MAX_CELLS = 200, 8_000
"""Largest number of rows that can be picked, and of their values."""


def read_truth(target: Target, y: Any, n: int) -> npt.NDArray[Any]:
    """The values of the rows, (n, k), or their classes, (n,); what cannot be a class is text."""
    with reading("y", "an array of the classes or values of the rows of X"):
        array = np.asarray(y)
    if array.ndim == 0 or len(array) != n:
        got = "a single value" if array.ndim == 0 else len(array)
        raise InputValueError(f"y must have a value for each of the {n} rows of X, got {got}")
    if target.task == "numbers":
        return target.read(y, np.empty((n, 0), dtype=np.float32))
    if array.size != n:
        raise InputValueError(f"y must have one class for each row of X, got y.shape={array.shape}")
    classes = array.flatten()
    if classes.dtype == object:
        known = (str, int, float, np.generic, type(None))
        classes[:] = [value if isinstance(value, known) else str(value) for value in classes]
    return classes


def column_record(column: OutputColumn) -> Record:
    """An encoded column: how a value of the table becomes a number."""
    record = {name: getattr(column, name) for name in ("feature", "label", "kind", "center", "scale", "low", "high")}
    return (
        record
        | ({"category": column.category} if column.category is not None else {})
        | ({"piece": True} if column.piece else {})
        | ({"effects": column.effects} if column.effects is not None else {})
        | ({"missing": column.missing} if column.missing is not None else {})
        | ({"unit": column.unit} if column.unit is not None else {})
    )


def features(columns: Sequence[TableColumn], importance: npt.NDArray[np.float64]) -> list[Record]:
    """The columns of the table, each with its kind, its levels, and its typical value.

    A category of two levels has the name of the less frequent one alone; its typical value then has no name.
    """
    return [
        {
            "name": column.name,
            "kind": column.kind,
            "levels": column.levels,
            "typical": None if column.typical == UNNAMED else column.typical,
            "importance": float(f"{importance[column.feature]:.6g}"),
        }
        | ({"unnamed": True} if column.typical == UNNAMED else {})
        for column in columns
    ]


def splits(tree: Tree) -> Record:
    """Weights of the splits that are kept, or that have a positive mass."""
    if tree.weight is None or tree.bias is None:
        return {"nodes": [], "weight": "", "bias": ""}
    used = tree.kept | (tree.mass > 0)
    nodes = np.flatnonzero(used[1:].reshape(-1, 2).any(1))
    return {"nodes": nodes.tolist(), "weight": _floats(tree.weight[nodes]), "bias": _floats(tree.bias[nodes])}


def n_weights(tree: Tree) -> int:
    """Number of weights in the linear models of the nodes that take part in predictions."""
    return 0 if tree.leaves.slope is None else int(tree.leaves.slope[tree.mass > 0].size)


def model_record(tree: Tree) -> Record | None:
    """The arrays that the page needs to predict; None if it cannot predict."""
    if tree.weight is None:
        return None
    record: Record = {"elu": tree.splits.bounded, "mass": _floats(tree.mass)}
    record |= dict.fromkeys(("constant", "slope", "shared", "output"), "")
    if tree.cluster is not None:
        return record | {"position": {}}
    nodes, leaves = np.flatnonzero(tree.mass > 0), tree.leaves
    if leaves.constant is None or n_weights(tree) > MAX_WEIGHTS:
        return None
    if tree.limits is not None:
        record["limits"] = _floats(tree.limits[:, nodes])
    if tree.correction.any():
        record["correction"] = _floats(tree.correction[tree.kept])
    return record | {
        "position": {int(t): i for i, t in enumerate(nodes)},
        "constant": _floats(leaves.constant[nodes]),
        "slope": "" if leaves.slope is None else _floats(leaves.slope[nodes]),
        "shared": "" if leaves.shared is None else _floats(leaves.shared),
        "output": _floats(leaves.bias),
    }


def add_split_columns(nodes: dict[int, Record], summary: TreeSummary) -> None:
    """Add to each node what its split is as a function of one column."""
    for node in summary.nodes:
        record = nodes[node.node]
        if node.column is not None:
            record["column"] = {
                "feature": node.split[0].feature,
                "thresholds": list(node.column.thresholds),
                "low_left": node.column.low_left,
                "missing_left": node.column.missing_left,
            } | ({} if node.column.unit is None else {"unit": node.column.unit})


@dataclass(frozen=True)
class GivenRows:
    """The rows that were given for the page, and those of them that can be picked."""

    n: int
    columns: TableColumns
    truth: npt.NDArray[Any] | None
    """Classes or values of the rows, see `read_truth`."""
    picked: npt.NDArray[np.int64]
    """The rows that can be picked."""
    lists: dict[str, list[int]]
    """Lists of positions among them, see `row_lists`."""
    records: list[Record]
    """These rows as the page has them: values in the table, and the class or value in y."""


def n_picked(X: Any) -> int:  # noqa: N803
    """The largest number of rows of this table that can be picked."""
    n, width = read_table(X).shape
    return max(1, min(n, MAX_ROWS, MAX_CELLS // width))


def given_rows(
    estimator: Any,
    columns: Sequence[TableColumn],
    X: Any,  # noqa: N803
    truth: npt.NDArray[Any] | None,
    picked: npt.NDArray[np.int64],
    lists: dict[str, list[int]],
) -> GivenRows:
    """The rows of a table, of which these can be picked."""
    target = estimator.target_
    values = [column[picked] for column in table_values(columns, X)]
    labels = _labels(X, picked)
    names: dict[Any, str] = {}
    if target.task == "classes":
        names = dict(zip(target.labels.tolist(), target.output_names(None), strict=True))
    records = [
        {
            "row": int(i),
            "y": None if truth is None else _known(truth[[i]].tolist()[0], names),
            "values": [_plain(column[k]) for column in values],
        }
        | ({} if labels is None else {"label": labels[k]})
        for k, i in enumerate(picked)
    ]
    return GivenRows(read_table(X).shape[0], TableColumns(X, columns), truth, picked, lists, records)


def outcomes(
    target: Target, passed: RowsInTree | ReadableRows, picked: npt.NDArray[np.int64], digits: int = 6
) -> list[Record]:
    """What a tree does with the rows that can be picked: its predictions, and where it sends them."""
    outputs = passed.predicted(target)[picked]
    scores = None if isinstance(passed, ReadableRows) else score_paths(passed, picked)
    return [
        {"outputs": [float(f"{value:.{digits}g}") for value in outputs[k]], "end": int(passed.ends[i])}
        | ({} if scores is None else {"scores": scores[k]})
        for k, i in enumerate(picked)
    ]


def _labels(X: Any, rows: npt.NDArray[np.int64]) -> list[str] | None:  # noqa: N803
    """The names of these rows in the index of a DataFrame; None if they are numbered, or have none."""
    index = X.index if hasattr(X, "iloc") else None
    if index is None:
        return None
    labels = [str(index[i]) for i in rows.tolist()]
    return None if labels == [str(i) for i in rows.tolist()] else labels


def _floats(values: Any) -> str:
    return b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else float(value)


def _known(value: Any, names: dict[Any, str]) -> Any:
    """A class by its name, or the values of a row, as JSON can represent them."""
    if isinstance(value, list):
        return value[0] if len(value) == 1 else ", ".join(f"{part:.6g}" for part in value)
    if value in names:
        return names[value]
    is_plain = isinstance(value, (int, str)) and not isinstance(value, bool)
    is_plain = is_plain or (isinstance(value, float) and isfinite(value))
    return value if value is None or is_plain else str(value)
