"""Predictions of many rows: tables are encoded and predicted in parts, and those in files are scored in chunks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from prunus.data.source import Rows, open_source
from prunus.estimators.device_rows import Write
from prunus.fitting.rows import check_width

__all__ = ["encode", "map_rows", "rows_to_write", "score"]

ROWS, GPU_ROWS = 16_384, 1 << 20
"""Number of rows of files that are predicted at once, on the CPU and on a GPU."""


def map_rows(
    X: Any,  # noqa: N803
    of_rows: Callable[[Any], npt.NDArray[Any]],
    device: torch.device | None = None,
) -> npt.NDArray[Any]:
    """What a function returns for the rows of a table, with an entry for each row; files are read part by part.

    >>> map_rows(np.arange(6.0).reshape(3, 2), lambda rows: rows.sum(1)).tolist()
    [1.0, 5.0, 9.0]
    """
    on_cpu = device is None or device.type == "cpu"
    return open_source(X).map(of_rows, ROWS if on_cpu else GPU_ROWS)


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
    counts = self.target_.is_classes
    source = open_source(X, y, sample_weight, needs_target=True)
    if source.large is None:
        rows = source.loaded()
        measure = accuracy_score if counts else r2_score
        return float(measure(rows.y, self.predict(rows.X), sample_weight=rows.weight))
    center = None if counts else self.target_.mean[0]
    weight, right, first, second, errors = sum(_sums(self, chunk, center) for chunk in source.chunks(ROWS))
    if counts:
        return float(right / weight)
    spread = second - first**2 / weight
    if spread <= 0:
        return 1.0 if errors == 0 else 0.0
    return float(1 - errors / spread)


def _sums(estimator: Any, chunk: Rows, center: float | None) -> Any:
    """Sums of weights, of those of rows that are predicted right, and, for numbers, of values, squares and squared
    errors; values are relative to the center.
    """
    with chunk.errors():
        predicted = estimator.predict(chunk.X)
    weight = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
    if center is None:
        return np.array([weight.sum(), weight @ (predicted == chunk.y), 0.0, 0.0, 0.0])
    true, found = chunk.y.astype(np.float64) - center, predicted.reshape(chunk.n_rows) - center
    return np.array([weight.sum(), 0.0, weight @ true, weight @ true**2, weight @ (true - found) ** 2])


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
