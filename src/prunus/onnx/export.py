"""Estimators as ONNX files, which other programs read without prunus."""

import json
import os
from collections.abc import Callable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.forest import ArgminForest
from prunus.estimators.readable import ReadableTree
from prunus.estimators.tree import ArgminTree
from prunus.onnx.encoding import free_names, has_categories
from prunus.onnx.graph import TEXT, Graph, newest_opset, to_proto, write
from prunus.onnx.predictor import predictor_graph
from prunus.search.columns import KnownColumn
from prunus.search.predict import class_scores
from prunus.search.record import Leaf, LeafFormula, ReadableRecord, Split, Term

__all__ = ["export_onnx"]

Array = npt.NDArray[Any]
Value = str | Array
"""The name of a value of each row, (n, k), or the same for all rows, (1, k)."""
OUTPUTS = {"classes": ("label", "probabilities"), "numbers": ("variable",)}
OPSET = 19
"""The first version of the operators that compares text; runtimes since 2023 support it."""
OPSET_OF_NUMBERS = 13


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
    if target.is_classes:
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


def export_onnx(estimator: Any, path: str | os.PathLike[str], *, hard: bool = False, opset: int | None = None) -> Path:
    """Write a fitted estimator to an ONNX file, which predicts the rows of a table in any language, without prunus.

    The file contains the encoder and the tree, or all trees of a forest, made of ONNX's standard operators. Its
    predictions are those of `predict` up to rounding. It predicts any number of rows, n, at a time. A readable tree is
    computed in double precision with the numbers that are printed, so that every row ends in its leaf.

    Inputs: if all columns of the table are numbers, booleans or times, there is one input, "X", of shape
    (n, n_features_in_), in double precision. If some columns are categories, each column is an input of shape (n, 1)
    with the name of the column (and an underscore if that is empty or the name of an output). Categories are strings,
    all other columns are in double precision.

    - Booleans are 0 and 1, datetimes are seconds since 1970 in UTC, durations are seconds.
    - A missing number is NaN. A missing category is the empty string, unless that is a category itself. Categories
      that are not strings are given by their text: "1" for 1 and for 1.0.
    - Infinities, which `predict` refuses, count as very large numbers.

    Outputs: a classifier has "label", (n,), of the type of the classes, and "probabilities", (n, n_classes), in single
    precision, but in double precision if it is a readable tree. A regressor has "variable", (n,) or (n, n_outputs), in
    double precision. A clusterer has "label", (n,), the result of `predict`, and "routes", (n, n_nodes), the result of
    `transform`.

    Parameters
    ----------
    estimator : estimator of prunus
        The fitted tree, of any kind, or forest. It cannot have a split of your own.
    path : str or path
        The file, which is replaced if it exists.
    hard : bool, default=False
        Whether rows follow one path through the kept tree, as in ``predict(X, hard=True)``. The labels of a clusterer
        always do; with this option its routes follow the same path. A hard tree has no other predictions.
    opset : int, optional
        Version of ONNX's operators: 13 or newer, or 19 or newer if there are categories. By default it is 19.

    Returns
    -------
    Path
        The path of the file.

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, max_epochs=1, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from onnxruntime import InferenceSession
    >>> with TemporaryDirectory() as folder:
    ...     session = InferenceSession(export_onnx(tree, f"{folder}/tree.onnx"))
    >>> (values,) = session.run(["variable"], {"X": np.array([[0.5], [1.5]])})
    >>> bool(np.allclose(values, tree.predict([[0.5], [1.5]])))
    True
    """
    if not isinstance(estimator, (ArgminTree, ArgminForest, ReadableTree)):
        raise InputTypeError(f"estimator must be one of prunus, got {type(estimator).__name__}")
    check_is_fitted(estimator)
    if isinstance(estimator, ReadableTree):
        version = _check_opset(opset, newest_opset(), texts=has_texts(estimator.columns_))
        return _write(path, estimator, readable_graph(estimator), version, hard=True)
    version = _check_opset(opset, newest_opset(), texts=has_categories(estimator.encoder_))
    trees = estimator.estimators_ if isinstance(estimator, ArgminForest) else [estimator]
    hard = hard or all(tree.tree_.is_hard for tree in trees)
    return _write(path, estimator, predictor_graph(trees, hard=hard), version, hard=hard)


def _write(path: str | os.PathLike[str], estimator: Any, graph: Graph, opset: int, *, hard: bool) -> Path:
    kind = type(estimator).__name__
    model = to_proto(
        graph,
        opset=opset,
        name=kind,
        doc=f"{kind} of prunus; predictions along {'one path' if hard else 'all routes'}",
        metadata=_metadata(estimator, hard=hard),
    )
    return write(path, model.SerializeToString())


def _check_opset(opset: Any, newest: int, *, texts: bool) -> int:
    least = OPSET if texts else OPSET_OF_NUMBERS
    if opset is None:
        return OPSET
    if isinstance(opset, bool) or not isinstance(opset, Integral) or not least <= int(opset) <= newest:
        because = " (categories are compared as text)" if texts else ""
        raise InputValueError(f"opset must be an integer from {least}{because} to {newest}, got {opset!r}")
    return int(opset)


def _metadata(estimator: Any, *, hard: bool) -> dict[str, str]:
    """A description of the estimator that the file contains; lists are in JSON."""
    if isinstance(estimator, ReadableTree):
        listed = [column.name for column in estimator.columns_]
    else:
        names = {column.feature: column.name for column in estimator.encoder_.columns_}
        listed = [name for _, name in sorted(names.items())]
    record = {
        "kind": type(estimator).__name__,
        "hard": json.dumps(bool(hard)),
        "feature_names": json.dumps(listed, ensure_ascii=False),
    }
    if estimator.target_.is_classes:
        record["classes"] = json.dumps(estimator.target_.labels.tolist(), ensure_ascii=False, default=str)
    return record
