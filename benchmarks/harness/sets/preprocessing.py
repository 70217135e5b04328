"""From a table to matrices; all that is learned for this is learned from the training rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import QuantileTransformer

from benchmarks.harness.sets.raw import RawTable
from benchmarks.harness.splits import RowNumbers

__all__ = ["leave_one_out", "preprocess", "to_normal", "to_z_scores"]

Matrix = npt.NDArray[np.float32]

_NOISE = 1e-3
_SAMPLE = 100_000


def preprocess(table: RawTable, train: RowNumbers, *, quantile: bool, seed: int) -> tuple[Matrix, list[str]]:
    """All rows of a table as a matrix, and the names of its columns.

    Numbers come first, then keys, both scaled, then flags as they are.

    Parameters
    ----------
    table : RawTable
    train : int64 array
        The training rows.
    quantile : bool
        Scale to a normal distribution instead of to z-scores.
    seed : int
        Of what is random in that.

    Returns
    -------
    x : float32 array of shape (n, d)
    names : list of str of length d
    """
    keys = [leave_one_out(table.keys[name], table.y, train).astype(np.float32) for name in table.keys]
    x = np.column_stack([table.numbers.to_numpy(np.float32), *keys])
    if x.shape[1]:
        x = to_normal(x, train, seed) if quantile else to_z_scores(x, train)
    flags = table.flags.to_numpy(np.float32).reshape(len(x), -1)
    names = [str(name) for part in (table.numbers, table.keys, table.flags) for name in part]
    return np.ascontiguousarray(np.column_stack([x, flags])), names


def to_z_scores(x: Matrix, train: RowNumbers) -> Matrix:
    """Mean 0 and variance 1 on the training rows. A missing value is 0; so is a column that is constant there.

    Examples
    --------
    >>> to_z_scores(np.array([[1, 5], [3, 5], [np.nan, 5], [4, 6]], dtype=np.float32), np.array([0, 1, 2])).tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]
    """
    mean, std = _moments(x[train])
    return np.nan_to_num((x - mean) * _inverse(std)).astype(np.float32)


def to_normal(x: Matrix, train: RowNumbers, seed: int) -> Matrix:
    """Each column to a normal distribution, by its quantiles on the training rows.

    The quantiles are those of the column plus noise, so that a value that many rows share falls in the middle of its
    quantiles; the data themselves get none. The noise is 0.001 of the standard deviation, or of the quartiles' distance
    if there is one and it is smaller: else it would blur columns with a long tail. A missing value, or a constant
    column, is 0.
    """
    _, std = _moments(x[train])
    rng = np.random.default_rng(seed)
    sample = x[train] if len(train) <= _SAMPLE else x[rng.choice(train, _SAMPLE, replace=False)]
    sample = sample + (_NOISE * _spread(sample, std)).astype(np.float32) * rng.normal(size=sample.shape).astype(
        np.float32
    )
    transformer = QuantileTransformer(
        n_quantiles=min(1000, len(sample)), output_distribution="normal", subsample=None, random_state=seed
    )
    normal = transformer.fit(sample).transform(x)
    return np.where(std > 0, np.nan_to_num(normal), 0).astype(np.float32)


def leave_one_out(keys: Any, y: npt.NDArray[Any], train: RowNumbers) -> npt.NDArray[np.float64]:
    """The mean of y over the training rows with the same key; a training row itself does not count.

    Where no row counts, the mean over all training rows. Beware: of two training rows with the same key, the one with
    the larger y has the smaller code, which flexible methods learn and which new rows do not have. The code of NODE, on
    which the paper relies, lets a training row count itself, unless it is alone with its key; that misleads more.

    Parameters
    ----------
    keys : Series of length n
    y : array of shape (n,)
    train : int64 array
        The training rows.

    Returns
    -------
    float64 array of shape (n,)

    Examples
    --------
    >>> import pandas as pd
    >>> leave_one_out(pd.Series(["a", "a", "b", "a", "c"]), np.array([1, 0, 1, 1, 0]), np.array([0, 1, 2])).round(2)
    array([0.  , 1.  , 0.67, 0.5 , 0.67])
    """
    codes = keys.factorize(use_na_sentinel=False)[0]
    total = np.bincount(codes[train], weights=y[train], minlength=codes.max() + 1)[codes]
    count = np.bincount(codes[train], minlength=codes.max() + 1)[codes]
    total[train] -= y[train]
    count[train] -= 1
    mean: npt.NDArray[np.float64] = np.where(count > 0, total / np.maximum(count, 1), y[train].mean())
    return mean


def _moments(x: Matrix) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Means and standard deviations of the columns without their missing values, of which not all are missing."""
    mean = np.asarray(np.nanmean(x, axis=0, dtype=np.float64))
    return mean, np.where(np.nanmin(x, axis=0) < np.nanmax(x, axis=0), np.nanstd(x, axis=0, dtype=np.float64), 0.0)


def _spread(x: Matrix, std: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    low, high = np.nanquantile(x, [0.25, 0.75], axis=0)
    return np.where(high > low, np.minimum(high - low, std), std)


def _inverse(std: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.divide(1.0, std, out=np.zeros_like(std), where=std > 0)
