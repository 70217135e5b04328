"""From a user's table to the columns of a search, when a tree is fitted and when it predicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prunus.data.checks import infinity
from prunus.data.columns import Coded, Labels, NumberKind, read, read_labels, read_numbers
from prunus.data.tables import Table, read_table
from prunus.search.problem import Category, Doubles, Number

__all__ = ["KnownColumn", "as_columns", "as_matrix", "learn_columns", "read_columns"]

MOST_LEVELS = 254
"""A category with more levels than this keeps the most frequent ones, one less than this: the others share a bin."""
Column = Number | Category


@dataclass(frozen=True)
class KnownColumn:
    """What a tree knows of a column of the table.

    Examples
    --------
    >>> (size,), _ = learn_columns([[1.0], [2.0], [6.0], [None]])
    >>> size.kind, size.typical, size.missing
    ('number', 2.0, 0.25)
    """

    name: str
    kind: str
    """"number", "boolean", "datetime", "duration" or "category"."""
    typical: float | str | None
    """The median of numbers, 0 for a boolean, the most frequent level of a category; None if it is missing."""
    scale: float = 1.0
    """The standard deviation of numbers; 1 if it is 0."""
    missing: float = 0.0
    """Share of the training rows in which the value is missing."""
    levels: tuple[str, ...] = ()
    """The levels of a category, sorted by name, or in their order if they have one."""
    shares: tuple[float, ...] = ()
    """Share of the training rows with each level."""
    ordered: bool = False
    """Whether the levels have an order."""


def learn_columns(X: Any, weight: Doubles | None = None) -> tuple[tuple[KnownColumn, ...], list[Column]]:  # noqa: N803
    """What is known of the columns of a table, and their values.

    Parameters
    ----------
    X : array-like, pandas or polars DataFrame of shape (n, n_features)
    weight : array of shape (n,), optional
        Weights of the rows; those of weight 0 are read, but nothing is learned from them.
    """
    table = read_table(X)
    found = [_learn(table, feature, weight) for feature in range(table.shape[1])]
    return tuple(known for known, _ in found), [column for _, column in found]


def read_columns(known: Sequence[KnownColumn], X: Any) -> list[Column]:  # noqa: N803
    """The columns of another table as a fitted tree reads them.

    The code of a level that the tree does not know is the number of those that it knows.

    Examples
    --------
    >>> known, _ = learn_columns(np.array([["red"], ["blue"]]))
    >>> read_columns(known, np.array([["red"], ["green"], [None]], dtype=object))[0].codes.tolist()
    [1, 2, -1]
    """
    table = read_table(X)
    return [_read(table, feature, column) for feature, column in enumerate(known)]


def as_matrix(columns: Sequence[Column]) -> Doubles:
    """The columns side by side, (n, p): numbers as they are, and the codes of levels, with NaN for missing values."""
    return np.stack([_as_numbers(column) for column in columns], axis=1)


def as_columns(known: Sequence[KnownColumn], matrix: Doubles) -> list[Column]:
    """The columns of such a matrix."""
    return [
        Category(np.where(np.isnan(own), -1, own).astype(np.int64), column.levels, column.ordered)
        if column.kind == "category"
        else Number(np.ascontiguousarray(own), column.kind)
        for column, own in zip(known, matrix.T, strict=True)
    ]


def _as_numbers(column: Column) -> Doubles:
    if isinstance(column, Number):
        return column.values
    return np.where(column.codes < 0, np.nan, column.codes.astype(np.float64))


def _learn(table: Table, feature: int, weight: Doubles | None) -> tuple[KnownColumn, Column]:
    name = table.names[feature] if table.names is not None else f"x{feature}"
    values = table.column(feature)
    found = read(values, name)
    if isinstance(found, Labels):
        if (found.codes >= 0).any():
            return _learn_category(name, found, weight, ordered=_order(table, feature, values))
        return KnownColumn(name, "number", 0.0, missing=1.0), Number(np.full(len(found.codes), np.nan))
    numbers = np.ascontiguousarray(found.values, dtype=np.float64)
    if np.isinf(numbers).any():
        raise infinity(name)
    return _known_number(name, found.kind, numbers, weight), Number(numbers, found.kind)


def _known_number(name: str, kind: str, values: Doubles, weight: Doubles | None) -> KnownColumn:
    present = ~np.isnan(values)
    if weight is not None:
        present &= weight > 0
    inside, own = values[present], None if weight is None else weight[present]
    share = float(np.average(np.isnan(values), weights=weight))
    if not len(inside):
        return KnownColumn(name, kind, 0.0, missing=1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = float(np.average((inside - np.average(inside, weights=own)) ** 2, weights=own) ** 0.5)
    usable = np.isfinite(scale) and scale > 0
    typical = 0.0 if kind == "boolean" else _median(inside, own)
    return KnownColumn(name, kind, typical, scale if usable else 1.0, share)


def _median(values: Doubles, weight: Doubles | None) -> float:
    if weight is None:
        return float(np.median(values))
    order = values.argsort(kind="stable")
    passed = weight[order].cumsum()
    return float(values[order[np.searchsorted(passed, 0.5 * passed[-1])]])


def _order(table: Table, feature: int, values: Any) -> list[str] | None:
    """The levels of an ordered category of pandas, in their order; None for others."""
    frame = table.data
    if not isinstance(values, Coded) or not hasattr(frame, "iloc"):
        return None
    dtype = cast(Any, frame).dtypes.iloc[feature]
    return read_labels(values, "").levels if getattr(dtype, "ordered", False) else None


def _learn_category(
    name: str, labels: Labels, weight: Doubles | None, *, ordered: list[str] | None
) -> tuple[KnownColumn, Column]:
    counts = np.bincount(labels.codes.astype(np.int64) + 1, weights=weight, minlength=len(labels.levels) + 1)
    shares = dict(zip(labels.levels, (counts[1:] / counts.sum()).tolist(), strict=True))
    often = sorted((level for level in shares if shares[level] > 0), key=lambda level: (-shares[level], level))
    kept = set(often if len(often) <= MOST_LEVELS else often[: MOST_LEVELS - 1])
    levels = tuple(level for level in ordered if level in kept) if ordered is not None else tuple(sorted(kept))
    missing = float(counts[0] / counts.sum())
    typical = None if not often or missing > shares[often[0]] else often[0]
    known = KnownColumn(
        name, "category", typical, 1.0, missing, levels, tuple(shares[level] for level in levels), ordered is not None
    )
    return known, _coded(known, labels)


def _read(table: Table, feature: int, known: KnownColumn) -> Column:
    values = table.column(feature)
    if known.kind == "category":
        return _coded(known, read_labels(values, known.name))
    numbers = np.ascontiguousarray(read_numbers(values, cast(NumberKind, known.kind), known.name), dtype=np.float64)
    if np.isinf(numbers).any():
        raise infinity(known.name)
    return Number(numbers, known.kind)


def _coded(known: KnownColumn, labels: Labels) -> Category:
    """The positions of labels among the known levels."""
    place = {level: i for i, level in enumerate(known.levels)}
    lookup = np.array([*(place.get(level, len(place)) for level in labels.levels), -1], dtype=np.int64)
    codes: npt.NDArray[np.integer] = lookup[labels.codes]
    return Category(codes, known.levels, known.ordered)
