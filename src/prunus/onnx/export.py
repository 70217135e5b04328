"""Fitted estimators written as ONNX files."""

import json
import os
from numbers import Integral
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.forest import ArgminForest
from prunus.estimators.readable import ReadableTree
from prunus.estimators.tree import ArgminTree
from prunus.onnx.encoding import has_categories
from prunus.onnx.files import newest_opset, to_proto, write
from prunus.onnx.graph import Graph
from prunus.onnx.predictor import predictor_graph
from prunus.onnx.readable import has_texts, readable_graph

__all__ = ["export_onnx"]

OPSET = 19
"""The first version of the operators that compares text; runtimes since 2023 support it."""
OPSET_OF_NUMBERS = 13


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
    if estimator.target_.task == "classes":
        record["classes"] = json.dumps(estimator.target_.labels.tolist(), ensure_ascii=False, default=str)
    return record
