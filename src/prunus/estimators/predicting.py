"""Predictions of many rows: tables are encoded and predicted in parts, and those in files are scored in chunks."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from prunus.data import FileTable
from prunus.data.file_chunks import Chunk
from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.device_rows import Write
from prunus.fitting.rows import check_width
from prunus.fitting.scanned import checked_target

__all__ = ["by_chunks", "count_rows", "encode", "of_files", "parts_of", "rows_to_write", "score"]

Doubles = npt.NDArray[np.float64]

ROWS, GPU_ROWS = 16_384, 1 << 20
"""Number of rows that are predicted at once, on the CPU and on a GPU."""
CPU = torch.device("cpu")


def parts_of(chunk: Chunk, device: torch.device = CPU) -> Iterator[Any]:
    """The table of a chunk in parts that fit in the cache, or keep a GPU busy."""
    X, rows = chunk.X, ROWS if device.type == "cpu" else GPU_ROWS  # noqa: N806
    return (X.slice(begin, rows) for begin in range(0, chunk.n_rows, rows))


def by_chunks(
    table: FileTable, of_rows: Callable[[Any], npt.NDArray[Any]], device: torch.device = CPU
) -> npt.NDArray[Any]:
    """What a function returns for the rows of a table, with an entry for each row, computed part by part."""
    result: npt.NDArray[Any] | None = None
    begin = 0
    for chunk in table.batches():
        with chunk.errors():
            for part in parts_of(chunk, device):
                found = of_rows(part)
                if result is None:
                    result = np.empty((len(table), *found.shape[1:]), found.dtype)
                result[begin : begin + len(found)] = found
                begin += len(found)
    assert result is not None
    return result


def of_files(predict: Callable[..., Any]) -> Callable[..., Any]:
    """A method that predicts rows, for tables in files as well: these are predicted in parts."""

    @functools.wraps(predict)
    def by_parts(self: Any, X: Any, **options: Any) -> Any:  # noqa: N803
        if isinstance(X, FileTable):
            return by_chunks(X, lambda rows: predict(self, rows, **options))
        return predict(self, X, **options)

    return by_parts


def score(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: N803
    """The accuracy of a classifier, or R^2 of a regressor.

    Parameters
    ----------
    X : table of shape (n, n_features_in_), or prunus.data.FileTable
        A table in files has y and the weights as columns.
    y : array-like of shape (n,) or (n, n_outputs)
        The classes or values that are true.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    float
    """
    check_is_fitted(self)
    counts = self.target_.task == "classes"
    if not isinstance(X, FileTable):
        return float((accuracy_score if counts else r2_score)(y, self.predict(X), sample_weight=sample_weight))
    if y is not None or sample_weight is not None:
        raise InputTypeError("y and sample_weight must be None if X is a FileTable, which has them as columns")
    if X.target is None:
        raise InputValueError("X must be a FileTable with a target, got none. Use FileTable(..., target=...)")
    sums: Any
    if counts:
        sums = sum(_right(*_compared(self, chunk)) for chunk in X.batches())
        return float(sums[1] / sums[0])
    sums = sum(_errors(*_compared(self, chunk), self.target_.mean[0]) for chunk in X.batches())
    weight, first, second, errors = sums
    spread = second - first**2 / weight
    if spread <= 0:
        return 1.0 if errors == 0 else 0.0
    return float(1 - errors / spread)


def _right(
    predicted: npt.NDArray[Any], y: npt.NDArray[Any], weight: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The weights of all rows, and of those whose class is predicted."""
    return np.array([weight.sum(), weight @ (predicted == y)])


def _errors(
    predicted: npt.NDArray[Any], y: npt.NDArray[Any], weight: npt.NDArray[np.float64], center: float
) -> npt.NDArray[np.float64]:
    """Sums of weights, of values, of their squares, and of squared errors; values relative to this center."""
    true, found = y.astype(np.float64) - center, predicted.reshape(len(y)) - center
    return np.array([weight.sum(), weight @ true, weight @ true**2, weight @ (true - found) ** 2])


def _compared(estimator: Any, chunk: Chunk) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]:
    """What is predicted of the rows of a chunk, what is true, and weights."""
    with chunk.errors():
        predicted = np.concatenate([estimator.predict(part) for part in parts_of(checked_target(chunk))])
    y, weight = chunk.y, chunk.weight
    assert y is not None
    return predicted, y, np.ones(chunk.n_rows) if weight is None else weight


def encode(
    estimator: Any,
    X: Any,  # noqa: N803
    out: npt.NDArray[np.float32] | None = None,
) -> npt.NDArray[np.float32]:
    """The rows of a table, encoded by the encoder of a fitted estimator, in a new array or in this one."""
    check_width(estimator.encoder_, X, type(estimator).__name__)
    x: npt.NDArray[np.float32] = estimator.encoder_.transform(X, out=out)
    if not type(X).__module__.startswith("pyarrow"):  # the encoder has compared names, which scikit-learn does not find
        _check_feature_names(estimator, X, reset=False)
    return x


def rows_to_write(estimator: Any, X: Any) -> tuple[Write, tuple[int, int]]:  # noqa: N803
    """A function that writes encoded rows of a table, see `through_device`, and the shape of all of them.

    An array is encoded when its rows are written, which takes no longer than to copy them; other tables at once.
    """
    if isinstance(X, np.ndarray) and X.ndim == 2:

        def write(rows: slice, out: npt.NDArray[np.float32]) -> None:
            encode(estimator, X[rows], out)

        return write, (len(X), len(estimator.encoder_.columns_))
    x = torch.from_numpy(encode(estimator, X))

    def copy(rows: slice, out: npt.NDArray[np.float32]) -> None:
        torch.from_numpy(out).copy_(x[rows])  # by several threads

    return copy, (x.shape[0], x.shape[1])


def count_rows(X: Any) -> int:  # noqa: N803
    """Number of rows of a table; 0 if it does not tell."""
    try:
        return int(X.shape[0]) if hasattr(X, "shape") else len(X)
    except (TypeError, IndexError):
        return 0
