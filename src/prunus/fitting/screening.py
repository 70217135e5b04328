"""Tables with more columns than rows: uninformative columns are left out.

A thousand columns that are pure noise agree with a thousand targets by chance wherever one looks, and a split or a leaf
that may use them all learns little else. Tests of single columns find those that matter, as long as they are few.
"""

import copy
import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc

from prunus.data import TableEncoder
from prunus.fitting.rows import Rows
from prunus.targets import Target

__all__ = ["narrowed", "noise_columns", "without_inputs"]

Doubles = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]

FALSE_DISCOVERIES = 0.05
"""Expected share of noise among the columns that are kept."""
BEYOND_CHANCE = 3.0
"""If all others together tell more of the target than chance would explain, by this many standard deviations, many
columns matter a little, and none are left out."""
TESTED_ROWS = 4_096
"""Columns are tested with about this many rows at most."""


def noise_columns(train: Rows, target: Target, encoder: TableEncoder) -> Marks | None:
    """Which inputs to leave out since their columns of the table are uninformative; None if none are.

    It happens only if there are more inputs than rows, not counting pieces of numbers: a linear function of them fits
    any targets. With fewer, weak columns that tests miss are often worth more than what noise costs. Each column is
    tested by itself (the F test of `sklearn.feature_selection.f_classif` and `f_regression`), and those are kept that
    pass at a false discovery rate of 5 % (Benjamini and Hochberg). The others are left out, unless together they
    explain some of what a linear function of the kept ones does not. Nothing is left out for clusters, or if no column
    passes.

    Parameters
    ----------
    train : Rows
        Encoded training rows.
    target : Target
        What is to be predicted.
    encoder : TableEncoder
        The encoder of the rows. All inputs of a column of the table are kept, or none.

    Returns
    -------
    bool array of shape (d,), or None
    """
    counts = np.array([not column.piece for column in encoder.columns_])
    n = len(train)
    if target.is_clusters or np.count_nonzero(counts) <= n:
        return None
    every = slice(None, None, -(-n // TESTED_ROWS))
    x = train.x[every]
    varies = np.ptp(x, axis=0) > 0
    if np.count_nonzero(varies & counts) <= n:
        return None
    weight = np.ones(len(x))
    if train.weight is not None:
        weight = (train.weight / train.weight.mean())[every].astype(np.float32).astype(np.float64)
    wanted = target.wanted(target.for_loss(train.y[every]))
    owner = np.array([column.feature for column in encoder.columns_])
    return _untold(_unit(x, weight), _directions(wanted, weight), _n_equal(weight), varies, owner)


def narrowed(train: Rows, valid: Rows, target: Target, encoder: TableEncoder) -> tuple[Rows, Rows, TableEncoder]:
    """The rows, and a description of their inputs, without inputs that are left out: training takes less time."""
    left_out = noise_columns(train, target, encoder)
    if left_out is None:
        return train, valid, encoder
    narrow = copy.copy(encoder)
    narrow.columns_ = [column for column, out in zip(encoder.columns_, left_out, strict=True) if not out]
    return replace(train, x=train.x[:, ~left_out]), replace(valid, x=valid.x[:, ~left_out]), narrow


def without_inputs(rows: Rows, left_out: Marks) -> Rows:
    """The rows with zeros in the inputs that are left out, which models take as inputs that do not vary."""
    return replace(rows, x=np.where(left_out, np.float32(0), rows.x)) if left_out.any() else rows


def _untold(
    inputs: Doubles, targets: Doubles, n_rows: float, varies: Marks, owner: npt.NDArray[np.int64]
) -> Marks | None:
    """Which inputs to leave out, (d,); None if none are."""
    if not targets.size or n_rows < 2 * targets.shape[1] + 2:
        return None
    kept = varies & _tells(_chances(inputs, targets, n_rows), varies, owner)
    rest = varies & ~kept
    if not kept.any() or not rest.any() or 2 * np.count_nonzero(kept) >= n_rows:
        return None
    return None if _excess(inputs[:, kept], inputs[:, rest], targets, n_rows) > BEYOND_CHANCE else ~kept


def _n_equal(weight: Doubles) -> float:
    """The number of rows of equal weight that would tell as much."""
    return float(weight.sum() ** 2 / np.square(weight).sum())


def _unit(values: npt.NDArray[np.float32], weight: Doubles) -> Doubles:
    """Columns with mean 0 and length 1, whose products are correlations; a constant column becomes 0."""
    centered: Doubles = values - np.average(values.astype(np.float64), axis=0, weights=weight)
    centered *= np.sqrt(weight)[:, None]
    length = np.linalg.norm(centered, axis=0)
    unit: Doubles = np.divide(centered, length, out=np.zeros_like(centered), where=length > 1e-9)
    return unit


def _directions(wanted: npt.NDArray[np.float32], weight: Doubles) -> Doubles:
    """Orthogonal columns of length 1 of which what is wanted is made: one less than classes, for instance."""
    left, lengths, _ = np.linalg.svd(_unit(wanted, weight), full_matrices=False)
    directions: Doubles = left[:, lengths > 1e-6]
    return directions


def _chances(inputs: Doubles, targets: Doubles, n_rows: float) -> Doubles:
    """For each input the chance that noise would be as much related to the targets (the p-value of the F test)."""
    k = targets.shape[1]
    explained = np.square(inputs.T @ targets).sum(1).clip(0, 1 - 1e-12)
    chances: Doubles = fdtrc(k, n_rows - k - 1, explained / (1 - explained) * (n_rows - k - 1) / k)
    return chances


def _tells(chances: Doubles, varies: Marks, owner: npt.NDArray[np.int64]) -> Marks:
    """Which inputs belong to a column of the table that passes the test, (d,)."""
    _, column = np.unique(owner, return_inverse=True)
    of_column = np.bincount(column, weights=varies)  # the number of its inputs that vary
    least = np.ones(len(of_column))
    np.minimum.at(least, column[varies], chances[varies])
    least = np.minimum(1.0, least * of_column)[of_column > 0]
    order = np.sort(least)
    passing = np.flatnonzero(order <= FALSE_DISCOVERIES * np.arange(1, len(order) + 1) / len(order))
    passes = np.zeros(len(of_column), dtype=bool)
    if len(passing):
        passes[of_column > 0] = least <= order[passing[-1]]
    tells: Marks = passes[column]
    return tells


def _excess(kept: Doubles, rest: Doubles, targets: Doubles, n_rows: float) -> float:
    """How much more than by chance the rest explains of what the kept inputs leave, in standard deviations.

    What is summed up are squared correlations. If the rest is noise, each has the mean 1 / n, and the variance of the
    sum depends on how strongly inputs of the rest correlate with each other.
    """
    base, lengths, _ = np.linalg.svd(kept, full_matrices=False)
    base = base[:, lengths > 1e-6]
    free = n_rows - base.shape[1] - 1
    remaining, lengths, _ = np.linalg.svd(targets - base @ (base.T @ targets), full_matrices=False)
    remaining = remaining[:, lengths > 1e-6]
    rest = rest - base @ (base.T @ rest)
    length = np.linalg.norm(rest, axis=0)
    rest = rest[:, length > 1e-3] / length[length > 1e-3]
    (n, d), k = rest.shape, remaining.shape[1]
    if not d or not k:
        return 0.0
    products = rest.T @ rest if d < n else rest @ rest.T
    correlated = max(float(d), float(np.square(products).sum() - d**2 / free))  # sum of squared correlations
    found = float(np.square(rest.T @ remaining).sum()) - k * d / free
    excess: float = found * free / math.sqrt(2 * k * correlated)
    return excess
