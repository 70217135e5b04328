"""What a record predicts: the leaf of each row, and its outputs, in double precision and exactly as printed."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prunus.search.engine import Splits
from prunus.search.problem import Category, Doubles, Number
from prunus.search.record import Leaf, LeafFormula, ReadableRecord, Split, Term

__all__ = [
    "class_scores",
    "find_leaves",
    "goes_left",
    "has_scores",
    "leaf_outputs",
    "leaves_of",
    "node_rows",
    "outputs_of",
    "route",
    "some_rows",
    "split_sums",
    "term_values",
]

Nodes = npt.NDArray[np.int64]
Columns = Sequence[Number | Category]

LEAST = 1e-300
"""A probability of 0 has the logarithm of this number, so that scores stay finite."""


def find_leaves(record: ReadableRecord, columns: Columns) -> Nodes:
    """The leaf of each row, by its number in heap order, (n,).

    Examples
    --------
    >>> tree = ReadableRecord({0: Split((Term(0, 1.0),), 2.5)}, {t: Leaf((LeafFormula(float(t)),)) for t in (1, 2)})
    >>> find_leaves(tree, [Number(np.array([1.0, 2.5, np.nan]))]).tolist()
    [1, 2, 2]
    """
    return route(record.splits, columns)


def goes_left(split: Split, columns: Columns, rows: Nodes) -> npt.NDArray[np.bool_]:
    """Which of these rows go left at a split, (len(rows),)."""
    total = split_sums(split, columns, rows)
    return np.where(np.isnan(total), split.missing_left, total < split.threshold).astype(bool)


def split_sums(split: Split, columns: Columns, rows: Nodes) -> Doubles:
    """The sum of the terms of a split for these rows, (len(rows),); NaN if a number of it is missing."""
    total = np.zeros(len(rows))
    with np.errstate(over="ignore", invalid="ignore"):
        for i, term in enumerate(split.terms):
            own = term_values(term, columns[term.feature], rows, keep_missing=True)
            total = own if i == 0 else total + own
    return total


def leaf_outputs(record: ReadableRecord, columns: Columns, leaves: Nodes, width: int) -> Doubles:
    """The outputs of rows that end in these leaves, (n, width).

    A leaf whose formulas are fewer than that fills the first of the outputs, and the others are NaN: two classes have
    one score or two probabilities.
    """
    outputs = np.full((len(leaves), width), np.nan)
    for t in np.unique(leaves).tolist():
        rows = np.flatnonzero(leaves == t)
        for j, formula in enumerate(record.leaves[t].outputs):
            outputs[rows, j] = outputs_of(formula, columns, rows)
    return outputs


def outputs_of(formula: LeafFormula, columns: Columns, rows: Nodes) -> Doubles:
    """What a formula gives for these rows, (len(rows),)."""
    total = np.full(len(rows), formula.constant)
    with np.errstate(over="ignore"):
        for term in formula.terms:
            total = total + term_values(term, columns[term.feature], rows, keep_missing=False)
    if formula.low is not None:
        total = np.maximum(total, formula.low)
    return total if formula.high is None else np.minimum(total, formula.high)


def has_scores(leaf: Leaf, n_classes: int) -> bool:
    """Whether the outputs of a leaf are scores of the classes, not their probabilities."""
    return any(formula.terms for formula in leaf.outputs) or (n_classes == 2 and len(leaf.outputs) == 1)


def class_scores(record: ReadableRecord, columns: Columns, leaves: Nodes, n_classes: int) -> tuple[Doubles, Doubles]:
    """The score of each class before softmax, and its probability, (n, n_classes) each.

    The probabilities of leaves without terms are the numbers of the record.
    """
    outputs = leaf_outputs(record, columns, leaves, n_classes)
    scores, shares = np.empty_like(outputs), outputs.copy()
    scored = np.isin(leaves, [t for t, leaf in record.leaves.items() if has_scores(leaf, n_classes)])
    scores[~scored] = np.log(np.maximum(outputs[~scored], LEAST))
    own = outputs[scored]
    if n_classes == 2:  # one output, the log odds of the second class, or two scores
        own = np.where(np.isnan(own[:, 1:]), np.stack((np.zeros(len(own)), own[:, 0]), 1), own)
    scores[scored] = own
    weights = np.exp(own - own.max(1, initial=-np.inf, keepdims=True))
    shares[scored] = weights / weights.sum(1, keepdims=True)
    return scores, shares


def n_rows(columns: Columns) -> int:
    """Number of rows of a table."""
    first = columns[0]
    return len(first.values) if isinstance(first, Number) else len(first.codes)


def term_values(term: Term, column: Number | Category, rows: Nodes, *, keep_missing: bool) -> Doubles:
    """The weighted values of a term for these rows; missing numbers stay NaN, or count as the term says."""
    if isinstance(column, Number):
        values = column.values[rows]
        if not keep_missing:
            values = np.where(np.isnan(values), term.missing, values)
        return values if term.weight == 1 else term.weight * values
    chosen = set(term.levels or ())
    counts = np.array([*(float(level in chosen) for level in column.levels), 0.0, float(term.missing)])
    codes = column.codes[rows].astype(np.int64)  # -1 takes the last entry, that of missing values
    found: Doubles = term.weight * counts[np.minimum(codes, len(column.levels))]
    return found


def leaves_of(splits: Splits, root: int = 0) -> list[int]:
    """The leaves below a node from left to right, in heap order.

    Examples
    --------
    >>> from prunus.search.record import Split
    >>> leaves_of({0: Split((), 0.0), 2: Split((), 0.0)})
    [1, 5, 6]
    """
    if root not in splits:
        return [root]
    return leaves_of(splits, 2 * root + 1) + leaves_of(splits, 2 * root + 2)


def route(splits: Splits, columns: Columns, rows: Nodes | None = None, root: int = 0) -> Nodes:
    """The leaf of each of some rows that are sent down from a node, (len(rows),)."""
    rows = np.arange(n_rows(columns)) if rows is None else rows
    found = np.full(len(rows), root, dtype=np.int64)
    waiting = [(root, np.arange(len(rows)))]
    while waiting:
        t, own = waiting.pop()
        if t not in splits:
            found[own] = t
            continue
        left = goes_left(splits[t], columns, rows[own])
        waiting += [(2 * t + 1, own[left]), (2 * t + 2, own[~left])]
    return found


def node_rows(splits: Splits, leaf: Nodes) -> dict[int, Nodes]:
    """The rows that pass each node, where `leaf` is the leaf of each row.

    Examples
    --------
    >>> from prunus.search.record import Split
    >>> {t: rows.tolist() for t, rows in node_rows({0: Split((), 0.0)}, np.array([2, 1, 2])).items()}
    {1: [1], 2: [0, 2], 0: [0, 1, 2]}
    """
    nodes = {t: np.flatnonzero(leaf == t) for t in leaves_of(splits)}
    for t in sorted(splits, reverse=True):
        nodes[t] = np.sort(np.concatenate((nodes[2 * t + 1], nodes[2 * t + 2])))
    return nodes


def some_rows(columns: Columns, rows: Nodes) -> list[Number | Category]:
    """The columns of some rows."""
    return [
        Number(column.values[rows], column.kind)
        if isinstance(column, Number)
        else Category(column.codes[rows], column.levels, column.ordered)
        for column in columns
    ]
