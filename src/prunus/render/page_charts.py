"""The charts in the boxes of the interactive page: which of the given rows arrive, and where a split divides them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data.columns import Labels
from prunus.describe.columns import TableValues
from prunus.describe.numbers import exact_number, short_number
from prunus.describe.record import ColumnSplit, NodeSummary
from prunus.describe.rows import Rows, SearchedRows
from prunus.describe.words import point_text
from prunus.search.predict import split_sums
from prunus.search.questions import Question, comparisons, sum_words, switch_words
from prunus.search.record import Split

__all__ = ["BINS", "Coloring", "add_charts", "read_coloring"]

Record = dict[str, Any]
Doubles = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

BINS = 24
"""Number of bins of a histogram; one more if the threshold is not at an end of a bin otherwise."""
MOST_LEAVES = 16
"""Largest number of leaves of a tree whose boxes have charts."""
MOST_GROUPS = 10
"""Largest number of classes or clusters with a color of their own; all others are drawn together."""
MOST_LEVELS = 5
"""Number of levels of a category that are drawn one by one; others of the same side are drawn together."""
_LARGEST = 1e300
"""Numbers beyond it are drawn as if they were this large, so that ranges do not overflow."""
_write = partial(short_number, digits=3)


@dataclass(frozen=True)
class Coloring:
    """What the colors of rows mean: the group of each row, or its value."""

    by: str
    """"y" for what was given, "prediction" or "cluster"."""
    groups: tuple[tuple[str, int | None], ...] = ()
    """Name and number of each group, which has the color of this number; None for all others together."""
    codes: npt.NDArray[np.int64] | None = None
    """The position of each row's group, (n,)."""
    values: Doubles | None = None
    """The value of each row, (n,)."""
    ends: tuple[float, float] = (0.0, 1.0)
    """The range in which values are counted."""

    def record(self) -> Record:
        """The same as plain types, without the rows."""
        groups = [{"name": name, "color": color} for name, color in self.groups]
        return {"by": self.by, "groups": groups, "low": self.ends[0], "high": self.ends[1]}

    def counted(self, rows: Positions, bins: Positions, n: int) -> Record:
        """How many of these rows are in each of n bins: for each group, or in all and with the mean of their values."""
        if self.codes is not None:
            k = len(self.groups)
            counts = np.bincount(self.codes[rows] * n + bins, minlength=k * n).reshape(k, n)
            return {"counts": counts.tolist()}
        if self.values is None:
            raise ValueError("a coloring needs codes or values")
        counts = np.bincount(bins, minlength=n)
        sums = np.bincount(bins, np.clip(self.values[rows] / max(len(rows), 1), -_LARGEST, _LARGEST), minlength=n)
        shares = counts / max(len(rows), 1)
        means = [float(f"{sums[i] / shares[i]:.6g}") if counts[i] else None for i in range(n)]
        return {"counts": counts.tolist(), "means": means}


def read_coloring(rows: Rows, truth: npt.NDArray[Any] | None) -> Coloring:
    """The colors of rows: of their classes, values or clusters; of predictions if it is not known what they are."""
    tree, by = rows.tree, "prediction" if truth is None else "y"
    if tree.clusters:
        return _grouped("cluster", [f"cluster {k}" for k in range(1 + rows.answers.max())], rows.answers)
    if tree.classes is not None:
        names = list(tree.outputs)
        if truth is None:
            return _grouped(by, names, rows.predictions.argmax(1))
        positions = {name: k for k, name in enumerate(names)}
        return _grouped(by, names, np.array([positions.get(str(label), -1) for label in truth.tolist()]))
    values = (rows.predictions if truth is None else truth)[:, 0].astype(np.float64)
    return Coloring(by, values=values, ends=_widened(*_trimmed(values)))


def _grouped(by: str, names: list[str], codes: npt.NDArray[Any]) -> Coloring:
    """A coloring by groups; those with most rows have colors of their own, in the order of their numbers."""
    often = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(names)), kind="stable")
    shown = sorted(often[:MOST_GROUPS].tolist())
    groups: list[tuple[str, int | None]] = [(names[k], k) for k in shown]
    position = np.full(len(names) + 1, len(shown))  # the last one is that of classes that were not in training
    position[shown] = np.arange(len(shown))
    found = position[codes]
    if (found == len(shown)).any():
        groups.append(("others", None))
    return Coloring(by, tuple(groups), found)


def add_charts(
    nodes: dict[int, Record],
    rows: Rows,
    columns: TableValues,
    coloring: Coloring,
) -> None:
    """Add a chart to each node that rows arrive at, unless the tree has many leaves."""
    if rows.tree.n_leaves > MOST_LEAVES:
        return
    for node in rows.tree.nodes:
        here = rows.at(node.node)
        if len(here) and node.is_leaf:
            nodes[node.node]["chart"] = _leaf_chart(here, coloring)
        elif len(here) and node.threshold is not None:
            nodes[node.node]["chart"] = _split_chart(node, rows, here, columns, coloring)


def _leaf_chart(here: Positions, coloring: Coloring) -> Record:
    if coloring.values is None:
        counts = coloring.counted(here, np.zeros(len(here), np.int64), 1)["counts"]
        return {"kind": "groups", "counts": [count for (count,) in counts]}
    edges = np.linspace(*coloring.ends, BINS + 1)
    return {"kind": "values", **coloring.counted(here, _bins(coloring.values[here], edges), BINS)}


def _split_chart(node: NodeSummary, rows: Rows, here: Positions, columns: TableValues, coloring: Coloring) -> Record:
    """The column of a split, its weighted sum in the units of the table, or the cases of its groups of levels."""
    assert node.threshold is not None
    left, column = rows.goes_left(node.node, here), node.column
    if column is None and not np.isfinite(node.threshold):  # it only asks whether one of two numbers is missing
        codes = np.where(np.isnan(rows.sums(node, here)), -1, 0)
        return {"kind": "levels", "name": "missing", "bars": list(_bars(["not missing"], codes, here, left, coloring))}
    if column is None and node.question is not None and not comparisons(node.question):
        return _case_chart(node.question, rows, here, left, coloring)
    if column is None:
        name = "weighted sum" if node.question is None else sum_words(node.question, exact_number)
        number = ColumnSplit(name, "number", (node.threshold,))
        return _with_missing(number, rows.sums(node, here), here, left, coloring)
    feature = node.split[0].feature
    if column.thresholds:
        return _with_missing(column, columns.numbers(feature)[here], here, left, coloring)
    if not (column.left or column.right):  # it only asks whether the value is missing
        labels = Labels(np.where(np.isnan(columns.numbers(feature)), -1, 0), ["not missing"])
    else:
        labels = columns.levels(feature, column.unit)
    return {
        "kind": "levels",
        "name": column.title,
        "bars": list(_bars(labels.levels, labels.codes[here], here, left, coloring)),
    }


def _case_chart(
    question: Question, rows: Rows, here: Positions, left: npt.NDArray[np.bool_], coloring: Coloring
) -> Record:
    """How many rows are in each case of a split of two groups of levels."""
    assert isinstance(rows, SearchedRows)
    on = [split_sums(Split((term,), 0.0), rows.columns, here) / term.weight for term in question.split.terms]
    absent = np.isnan(np.sum(on, axis=0))  # a boolean is missing
    codes = np.where(absent, -1, sum(np.where(values > 0, 1, 0) << i for i, values in enumerate(on)))
    names = [
        ", ".join(switch_words(question, i, on=bool(case >> i & 1)) for i in range(len(on)))
        for case in range(1 << len(on))
    ]
    return {"kind": "levels", "name": "case", "bars": list(_bars(names, codes, here, left, coloring))}


def _with_missing(
    column: ColumnSplit, values: Doubles, here: Positions, left: npt.NDArray[np.bool_], coloring: Coloring
) -> Record:
    """The chart of numbers, with a bar for missing ones."""
    absent = np.isnan(values)
    chart = _number_chart(column, values[~absent], here[~absent], coloring)
    if absent.any():
        chart["missing"] = _bar("missing", here[absent], bool(left[absent][0]), coloring)
    return chart


def _number_chart(column: ColumnSplit, values: Doubles, here: Positions, coloring: Coloring) -> Record:
    """Counts in bins of equal width, with the first threshold between two of them."""
    edges = _edges(values, column.thresholds)
    low, high = float(edges[0]), float(edges[-1])
    return {
        "kind": "number",
        "name": column.name,
        "low": low,
        "high": high,
        "ends": [point_text(column, end, _write) for end in _trimmed(np.array([low]) if not len(values) else values)],
        "thresholds": [min(max(threshold, low), high) for threshold in column.thresholds],
        "lowLeft": column.low_left,
        **coloring.counted(here, _bins(values, edges), len(edges) - 1),
    }


def _edges(values: Doubles, thresholds: tuple[float, ...]) -> Doubles:
    """The ends of bins, such that the first threshold is one of them; whole numbers of a small range are not mixed."""
    first = min(max(thresholds[0], -_LARGEST), _LARGEST)
    low, high = _trimmed(values) if len(values) else (first, first)
    low, high = _widened(min(low, first), max(high, first))
    is_whole = high - low <= BINS and np.array_equal(values, np.round(values))
    step = 1.0 if is_whole else (high - low) / BINS
    before, after = (int(np.ceil(room / step - 1e-9)) for room in (first - low, high - first))
    return np.array([first + step * i for i in range(-before, max(after, 1 - before) + 1)])


def _trimmed(values: Doubles) -> tuple[float, float]:
    """The smallest and the largest value, without what lies far out."""
    values = np.clip(values, -_LARGEST, _LARGEST)
    low, high = map(float, np.quantile(values, [0.01, 0.99]))
    room = 0.5 * (high - low)
    return max(float(values.min()), low - room), min(float(values.max()), high + room)


def _widened(low: float, high: float) -> tuple[float, float]:
    """The range, or a wider one if floating-point numbers cannot divide it into bins."""
    least = 4 * BINS * float(np.spacing(max(abs(low), abs(high))))
    return (low, high) if high - low > least else (low, low + max(1.0, least))


def _bins(values: Doubles, edges: Doubles) -> Positions:
    """The bin of each value; what lies beyond the ends is in the first or the last one."""
    found: Positions = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return found


def _bars(
    levels: Sequence[str],
    codes: npt.NDArray[np.integer],
    here: Positions,
    left: npt.NDArray[np.bool_],
    coloring: Coloring,
) -> Iterator[Record]:
    """The most frequent levels, those that go left first; all rows of a level go the same way."""
    names = [*levels, "missing"]
    for side in (True, False):
        own = codes[left == side]
        found, counts = np.unique(own, return_counts=True)
        order = found[np.argsort(-counts, kind="stable")]
        most = MOST_LEVELS if len(order) <= MOST_LEVELS else MOST_LEVELS - 1
        for code in order[:most]:
            yield _bar(names[code], here[codes == code], side, coloring)
        if len(order) > most:
            yield _bar(f"{len(order) - most} more", here[np.isin(codes, order[most:])], side, coloring)


def _bar(name: str, rows: Positions, left: bool, coloring: Coloring) -> Record:
    counted = coloring.counted(rows, np.zeros(len(rows), np.int64), 1)
    if coloring.codes is not None:
        return {"name": name, "left": left, "counts": [count for (count,) in counted["counts"]]}
    return {"name": name, "left": left, "counts": counted["counts"], "mean": counted["means"][0]}
