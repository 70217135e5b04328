"""The rows that can be picked in the interactive page, and what the page needs to follow rows."""

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data.checks import reading
from prunus.data.tables import read_table
from prunus.describe.columns import TableValues, table_columns
from prunus.describe.functions import UNNAMED
from prunus.describe.record import TreeDescription
from prunus.describe.rows import LearnedRows, Rows, largest_routes, score_paths
from prunus.errors import InputValueError
from prunus.targets import Target

__all__ = [
    "GivenRows",
    "class_positions",
    "features",
    "forest_lists",
    "given_rows",
    "n_picked",
    "outcomes",
    "read_truth",
    "row_lists",
]

Positions = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

MAX_LEAVES = 32
"""With at most this many leaves there are rows of each leaf."""
MAX_ROUTES = 1 << 22
"""Largest number of routes that are looked at to find the rows that are divided most."""
DIVIDED = 0.01
"""A row is divided if at least this share of it does not follow its largest route."""


def row_lists(rows: Rows, truth: npt.NDArray[Any] | None, few: int) -> tuple[Positions, dict[str, list[int]]]:
    """At most `few` rows, without repetition, and lists of positions among them.

    The lists are "steps", rows at equal steps, which come first; "worst", those of the largest errors; "uncertain",
    those of the smallest margin between two classes, or that are divided most among the routes of a soft tree. A list
    that would be empty, or that makes no sense, is left out. Beside them some rows of each leaf are chosen.
    """
    target, predicted = rows.tree.target, rows.predictions
    uncertain = _divided(rows) if not target.is_classes else _closest(predicted)
    lists = {"worst": _worst(target, predicted, truth), "uncertain": uncertain}
    return _listed(len(rows.ends), lists, _of_leaves(rows, 4 * max(1, few // 10)), few)


def forest_lists(
    target: Target, mean: Doubles, spread: Doubles, truth: npt.NDArray[Any] | None, few: int
) -> tuple[Positions, dict[str, list[int]]]:
    """The same for a forest, by the means of what its trees predict, (n, k), and their standard deviations, (n, k).

    Its "uncertain" rows of numbers are those about which the trees differ most.
    """
    if target.is_classes:
        uncertain = _closest(mean)
    else:
        differs = (spread / np.maximum(mean.std(0), np.finfo(np.float64).tiny)).max(1)
        uncertain = _largest(differs)[: np.count_nonzero(differs)]
    lists = {"worst": _worst(target, mean, truth), "uncertain": uncertain}
    return _listed(len(mean), lists, np.zeros(0, dtype=np.int64), few)


def _listed(n: int, lists: dict[str, Positions], also: Positions, few: int) -> tuple[Positions, dict[str, list[int]]]:
    """At most `few` of n rows: some at equal steps, the first ones of each list, and those that are chosen also."""
    found = {name: rows[: max(1, few // 10)] for name, rows in lists.items()}
    others = np.concatenate([*found.values(), also])
    steps = _steps(n, few if n <= few else max(1, few - len(np.unique(others))))
    rows = np.array(list(dict.fromkeys([*steps.tolist(), *others.tolist()])), dtype=np.int64)[:few]
    position = {row: i for i, row in enumerate(rows.tolist())}
    kept = {"steps": list(range(len(steps)))}
    for name, some in found.items():
        known = [position[row] for row in some.tolist() if row in position]
        if known:
            kept[name] = known
    return rows, kept


def _steps(n: int, few: int) -> Positions:
    """At most `few` of n rows, at equal steps."""
    return np.unique(np.linspace(0, n - 1, few).astype(np.int64))


def _worst(target: Target, predicted: Doubles, truth: npt.NDArray[Any] | None) -> Positions:
    """The rows by the size of their errors, largest first: distances, or how improbable their class was."""
    if truth is None or target.is_clusters:
        return np.zeros(0, dtype=np.int64)
    if not target.is_classes:
        scale = np.maximum(predicted.std(0) + truth.std(0), np.finfo(np.float64).tiny)
        return _largest((np.abs(predicted - truth) / scale).max(1))
    classes = class_positions(target, truth)
    known = predicted[np.arange(len(classes)), classes]
    return _largest(np.where(classes < 0, 1.0, 1.0 - known))


def class_positions(target: Target, truth: npt.NDArray[Any]) -> Positions:
    """The position of each row's class among the classes of training, (n,); -1 if it is none of them."""
    position = {label: k for k, label in enumerate(target.classes or ())}
    return np.array([position.get(label, -1) for label in truth.tolist()], dtype=np.int64)


def _closest(predicted: Doubles) -> Positions:
    """The rows by the margin between their two most probable classes, smallest first."""
    shares = np.sort(predicted, axis=1)
    return _largest(shares[:, -2] - shares[:, -1]) if shares.shape[1] > 1 else np.zeros(0, dtype=np.int64)


def _divided(passed: Rows) -> Positions:
    """The rows that are divided among routes, most divided first."""
    if not isinstance(passed, LearnedRows) or passed.tree.model.is_hard:
        return np.zeros(0, dtype=np.int64)
    n = len(passed.x)
    rows = _steps(n, max(1, min(n, MAX_ROUTES // passed.tree.n_nodes)))
    divided = 1.0 - largest_routes(passed, rows)
    order = _largest(divided)
    return rows[order[divided[order] > DIVIDED]]


def _of_leaves(passed: Rows, most: int) -> Positions:
    """Some rows of each leaf, at most this many in all; none if there are too many leaves."""
    leaves = [node.node for node in passed.tree.nodes if node.is_leaf]
    each = most // len(leaves)
    if len(leaves) > MAX_LEAVES or each == 0:
        return np.zeros(0, dtype=np.int64)
    own = [passed.at(t) for t in leaves]
    return np.concatenate([rows[_steps(len(rows), min(each, len(rows)))] for rows in own if len(rows)])


def _largest(values: Doubles) -> Positions:
    """The positions of the values, largest first."""
    return np.argsort(-values, kind="stable").astype(np.int64)


Record = dict[str, Any]

MAX_ROWS, MAX_CELLS = 200, 8_000
"""Largest number of rows that can be picked, and of their values."""


def read_truth(target: Target, y: Any, n: int) -> npt.NDArray[Any]:
    """The values of the rows, (n, k), or their classes, (n,); what cannot be a class is text."""
    with reading("y", "an array of the classes or values of the rows of X"):
        array = np.asarray(y)
    if array.ndim == 0 or len(array) != n:
        got = "a single value" if array.ndim == 0 else len(array)
        raise InputValueError(f"y must have a value for each of the {n} rows of X, got {got}")
    if not target.is_classes and not target.is_clusters:
        return target.read(y, np.empty((n, 0), dtype=np.float32))
    if array.size != n:
        raise InputValueError(f"y must have one class for each row of X, got y.shape={array.shape}")
    classes = array.flatten()
    if classes.dtype == object:
        known = (str, int, float, np.generic, type(None))
        classes[:] = [value if isinstance(value, known) else str(value) for value in classes]
    return classes


def features(tree: TreeDescription, importance: npt.NDArray[np.float64] | None = None) -> list[Record]:
    """The columns of the table, each with its kind, its levels, its typical value, and how much it matters.

    A category of two levels has the name of the less frequent one alone; its typical value then has no name.
    """
    importance = tree.importances if importance is None else importance
    return [
        {
            "name": column.name,
            "kind": column.kind,
            "levels": column.levels,
            "typical": None if column.typical == UNNAMED else column.typical,
            "importance": float(f"{importance[column.feature]:.6g}"),
        }
        | ({"unnamed": True} if column.typical == UNNAMED else {})
        for column in table_columns(tree)
    ]


@dataclass(frozen=True)
class GivenRows:
    """The rows that were given for the page, and those of them that can be picked."""

    n: int
    columns: TableValues
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
    tree: TreeDescription,
    X: Any,  # noqa: N803
    truth: npt.NDArray[Any] | None,
    picked: npt.NDArray[np.int64],
    lists: dict[str, list[int]],
) -> GivenRows:
    """The rows of a table, of which these can be picked."""
    columns = table_columns(tree)
    table = TableValues(X, columns)
    values = [table.values(column.feature)[picked] for column in columns]
    labels = _labels(X, picked)
    names = dict(zip(tree.classes or (), tree.outputs, strict=False))
    records = [
        {
            "row": int(i),
            "y": None if truth is None else _known(truth[[i]].tolist()[0], names),
            "values": [_plain(column[k]) for column in values],
        }
        | ({} if labels is None else {"label": labels[k]})
        for k, i in enumerate(picked)
    ]
    return GivenRows(read_table(X).shape[0], table, truth, picked, lists, records)


def outcomes(rows: Rows, picked: npt.NDArray[np.int64], digits: int = 6) -> list[Record]:
    """What a tree does with the rows that can be picked: its predictions, and where it sends them."""
    outputs = rows.predictions[picked]
    scores = score_paths(rows, picked) if isinstance(rows, LearnedRows) else None
    return [
        {"outputs": [float(f"{value:.{digits}g}") for value in outputs[k]], "end": int(rows.ends[i])}
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
