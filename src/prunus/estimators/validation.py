"""The rows that a fit has held out for validation, and predictions of rows that trees of a forest have not seen."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import FileTable
from prunus.data.chunks import Chunk
from prunus.estimators.preparation import Rows, encode_training, held_out_rows, read_weight
from prunus.estimators.scanned import held_out_by_hash

__all__ = ["out_of_bag", "validation_chunk", "validation_rows"]


def validation_rows(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> npt.NDArray[np.int64]:  # noqa: N803
    """The numbers of the rows that the fit of an estimator to these data has held out; empty if it held out none.

    The estimator must have an integer as `random_state`, and must have been fitted without `eval_set`.
    """
    if "valid_loss" not in estimator.history_:
        return np.empty(0, dtype=np.int64)
    x = encode_training(estimator, X, y, sample_weight, estimator.target_)
    targets = estimator.target_.read(y, x)
    rows = Rows(x, targets, estimator.target_.weigh(targets, read_weight(sample_weight, x)))
    return held_out_rows(rows, estimator.validation_fraction, seed=estimator._seed())


def validation_chunk(estimator: Any, table: FileTable) -> Chunk | None:
    """The rows that the fit of a tree to a table beyond memory has held out, in memory; None if it held out none.

    The estimator must have been fitted without `eval_set`; trees of a forest hold out rows of their own.
    """
    if "valid_loss" not in getattr(estimator, "history_", {}):
        return None
    return table.collect(held_out_by_hash(table, float(estimator.validation_fraction)).mask)


def out_of_bag(forest: Any, X: Any, y: Any, sample_weight: Any = None) -> npt.NDArray[np.float64]:  # noqa: N803
    """Mean predictions, (n, k), of the data of a forest's fit by the trees that have not trained on each row.

    A row that all trees have trained on has NaN. The forest must have been fitted without `eval_set`.
    """
    predictions: npt.NDArray[np.float64] = forest._out_of_bag(X, y, sample_weight)[0]
    return predictions
