"""Predictions for tables in files, and their scores: rows are read in chunks, and only results stay in memory."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.data import FileTable
from prunus.data.chunks import Chunk
from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.scanned import checked_target

__all__ = ["ScoredFiles", "by_chunks", "parts_of"]

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


class ScoredFiles:
    """A mixin for classifiers and regressors: `score` also takes a table in files, which has a target."""

    target_: Any
    predict: Callable[..., npt.NDArray[Any]]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: N803
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
        if not isinstance(X, FileTable):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        if y is not None or sample_weight is not None:
            raise InputTypeError("y and sample_weight must be None if X is a FileTable, which has them as columns")
        if X.target is None:
            raise InputValueError("X must be a FileTable with a target, got none. Use FileTable(..., target=...)")
        right = self._right if self.target_.task == "classes" else self._errors
        sums: Any = sum(right(chunk) for chunk in X.batches())
        if self.target_.task == "classes":
            return float(sums[1] / sums[0])
        weight, first, second, errors = sums
        spread = second - first**2 / weight
        if spread <= 0:
            return 1.0 if errors == 0 else 0.0
        return float(1 - errors / spread)

    def _right(self, chunk: Chunk) -> npt.NDArray[np.float64]:
        """The weights of all rows of a chunk, and of those whose class is predicted."""
        predicted, y, weight = self._compared(chunk)
        return np.array([weight.sum(), weight @ (predicted == y)])

    def _errors(self, chunk: Chunk) -> npt.NDArray[np.float64]:
        """Sums of weights, of values, of their squares, and of squared errors; values relative to the mean of fit."""
        predicted, y, weight = self._compared(chunk)
        center = self.target_.mean[0]
        true, found = y.astype(np.float64) - center, predicted.reshape(len(y)) - center
        return np.array([weight.sum(), weight @ true, weight @ true**2, weight @ (true - found) ** 2])

    def _compared(self, chunk: Chunk) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]:
        """What is predicted of the rows of a chunk, what is true, and weights."""
        with chunk.errors():
            predicted = np.concatenate([self.predict(part) for part in parts_of(checked_target(chunk))])
        y, weight = chunk.y, chunk.weight
        assert y is not None
        return predicted, y, np.ones(chunk.n_rows) if weight is None else weight
