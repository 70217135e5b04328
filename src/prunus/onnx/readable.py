"""Readable trees as a graph, from the columns of a table to predictions, with the numbers of the record in doubles."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.onnx.encoding import free_names
from prunus.onnx.graph import TEXT, Graph
from prunus.search.columns import KnownColumn
from prunus.search.predict import class_scores
from prunus.search.record import Leaf, LeafFormula, ReadableRecord, Split, Term

__all__ = ["has_texts", "readable_graph"]

Array = npt.NDArray[Any]
Value = str | Array
"""The name of a value of each row, (n, k), or the same for all rows, (1, k)."""
OUTPUTS = {"classes": ("label", "probabilities"), "numbers": ("variable",)}


def has_texts(columns: Sequence[KnownColumn]) -> bool:
    """Whether the table has categories; each column then needs a separate input, since ONNX does not mix types."""
    return any(column.kind == "category" for column in columns)


def readable_graph(estimator: Any) -> Graph:
    """The graph of a readable tree, from the columns of a table to all outputs."""
    target, known = estimator.target_, estimator.columns_
    outputs = OUTPUTS[target.task]
    names = free_names([column.name for column in known], outputs) if has_texts(known) else ["X"]
    graph = Graph((*names, *outputs))
    if has_texts(known):
        kinds = [TEXT if column.kind == "category" else np.float64 for column in known]
        inputs = [graph.add_input(name, kind, 1) for name, kind in zip(names, kinds, strict=True)]
    else:
        table = graph.add_input(names[0], np.float64, len(known))
        inputs = [graph.add("Gather", table, np.array([i]), axis=1) for i in range(len(known))]
    tree = _Tree(graph, estimator.record_, known, inputs)
    if target.task == "classes":
        _add_classes(tree, target.labels)
    else:
        values = tree.of_leaves(tree.outputs)
        one = target.one_dimensional
        graph.add_output(
            "variable", graph.reshape(values, -1) if one else values, np.float64, None if one else target.n_outputs
        )
    return graph


class _Tree:
    """A readable tree in a graph."""

    def __init__(
        self, graph: Graph, record: ReadableRecord, columns: Sequence[KnownColumn], inputs: Sequence[str]
    ) -> None:
        self.graph, self.record, self.columns, self.inputs = graph, record, columns, inputs
        self.sides = {t: self._goes_left(split) for t, split in record.splits.items()}

    def of_leaves(self, value: Callable[[Leaf], Value]) -> str:
        """The value of the leaf that each row ends in, (n, k)."""
        found = self._below(0, {t: value(leaf) for t, leaf in self.record.leaves.items()})
        return found if isinstance(found, str) else self.graph.repeat(found[0], self.inputs[0])

    def _below(self, t: int, values: dict[int, Value]) -> Value:
        if t in values:
            return values[t]
        return self.graph.add("Where", self.sides[t], self._below(2 * t + 1, values), self._below(2 * t + 2, values))

    def outputs(self, leaf: Leaf) -> Value:
        """The outputs of a leaf, (n, k)."""
        if not _has_terms(leaf):
            return np.array([[_limited(formula) for formula in leaf.outputs]], dtype=np.float64)
        return self.graph.add("Concat", *self.formulas(leaf), axis=1)

    def formulas(self, leaf: Leaf) -> list[str]:
        """What each formula of a leaf gives, (n, 1)."""
        return [self._output(formula) for formula in leaf.outputs]

    def _output(self, formula: LeafFormula) -> str:
        graph = self.graph
        total = graph.repeat(np.array([formula.constant], dtype=np.float64), self.inputs[0])
        for term in formula.terms:
            total = graph.add("Add", total, self._term(term, fill=True))
        for op, limit in (("Max", formula.low), ("Min", formula.high)):
            if limit is not None:
                total = graph.add(op, total, _number(limit))
        return total

    def _goes_left(self, split: Split) -> str:
        """Whether each row goes left, (n, 1): its sum is below the threshold, or a number is missing."""
        graph, total = self.graph, ""
        for term in split.terms:
            own = self._term(term, fill=False)
            total = graph.add("Add", total, own) if total else own
        below, absent = graph.add("Less", total, _number(split.threshold)), graph.add("IsNaN", total)
        if split.missing_left:
            return graph.add("Or", below, absent)
        return graph.add("And", below, graph.add("Not", absent))

    def _term(self, term: Term, *, fill: bool) -> str:
        """The weighted values of a term, (n, 1), whose missing numbers stay NaN or count as the term says."""
        graph, column = self.graph, self.inputs[term.feature]
        if self.columns[term.feature].kind == "category":
            return self._group(term, column)
        if fill:
            column = graph.add("Where", graph.add("IsNaN", column), _number(term.missing), column)
        return column if term.weight == 1 else graph.add("Mul", column, _number(term.weight))

    def _group(self, term: Term, text: str) -> str:
        """The weight of a term where the text is one of its levels; the empty text is missing unless it is a level."""
        graph, known = self.graph, self.columns[term.feature].levels
        levels = [level for level in dict.fromkeys(term.levels or ()) if level in known]
        found: Value = _number(0.0)
        if levels:
            hit = graph.cast(graph.add("Equal", text, np.array([levels], dtype=object)), np.float64)
            found = graph.add("Mul", graph.add("ReduceSum", hit, np.array([1]), keepdims=1), _number(term.weight))
        if "" in known:
            return found if isinstance(found, str) else graph.repeat(found[0], text)
        empty = graph.add("Equal", text, np.array([[""]], dtype=object))
        return graph.add("Where", empty, _number(term.weight * term.missing), found)


def _add_classes(tree: _Tree, labels: npt.NDArray[Any]) -> None:
    """The label and the probabilities of each row; those of leaves without terms are known."""
    graph, k = tree.graph, len(labels)
    scores = {id(leaf): _scores(tree, leaf) for leaf in tree.record.leaves.values() if _has_terms(leaf)}
    largest = {leaf: graph.add("ArgMax", own, axis=1, keepdims=1) for leaf, own in scores.items()}

    def best(leaf: Leaf) -> Value:
        known = largest.get(id(leaf))
        return _of_constants(leaf, k)[0].argmax(1)[:, None].astype(np.int64) if known is None else known

    def shares(leaf: Leaf) -> Value:
        own = scores.get(id(leaf))
        if own is None:
            return _of_constants(leaf, k)[1]
        most = graph.add("GatherElements", own, largest[id(leaf)], axis=1)
        weights = graph.add("Exp", graph.add("Sub", own, most))
        return graph.add("Div", weights, graph.add("ReduceSum", weights, np.array([1]), keepdims=1))

    names = np.array(labels.tolist())
    if names.dtype.kind not in "biuf":
        names = names.astype(str).astype(object)
    label = graph.add("Gather", names, graph.reshape(tree.of_leaves(best), -1))
    graph.add_output("label", label, names.dtype, None)
    graph.add_output("probabilities", tree.of_leaves(shares), np.float64, k)


def _scores(tree: _Tree, leaf: Leaf) -> str:
    """The score of each class, (n, k); a leaf with one formula has the log odds of the second of two classes."""
    found = tree.graph.add("Concat", *tree.formulas(leaf), axis=1)
    if len(leaf.outputs) > 1:
        return found
    return tree.graph.add("Concat", tree.graph.add("Sub", found, found), found, axis=1)


def _has_terms(leaf: Leaf) -> bool:
    return any(formula.terms for formula in leaf.outputs)


def _of_constants(leaf: Leaf, k: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Scores and probabilities of a leaf without terms, (1, k) each."""
    return class_scores(ReadableRecord({}, {0: leaf}), (), np.zeros(1, dtype=np.int64), k)


def _limited(formula: LeafFormula) -> float:
    """A constant within its limits."""
    low = formula.constant if formula.low is None else max(formula.constant, formula.low)
    return low if formula.high is None else min(low, formula.high)


def _number(value: float) -> npt.NDArray[np.float64]:
    return np.array([[value]], dtype=np.float64)
