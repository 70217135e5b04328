"""How the rows of a table are distributed over the range, or over the levels, that a curve shows."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prunus.data.columns import NumberKind, read_labels, read_numbers
from prunus.data.tables import read_table
from prunus.explain.curves import Curve

__all__ = ["BINS", "ColumnCounts", "count_rows"]

BINS = 30


@dataclass(frozen=True)
class ColumnCounts:
    """Numbers of rows with certain values of a column."""

    counts: npt.NDArray[np.float64]
    """Rows in each of `BINS` equal parts of the range that the curve shows; or of each level of a category, and then of
    all other levels if the curve has a value for them."""
    missing: int


def count_rows(estimator: Any, X: Any, curves: tuple[Curve, ...]) -> list[ColumnCounts]:  # noqa: N803
    """Count the rows of a table along each of these curves; an error if they are not as in training."""
    estimator.encoder_.transform(X)
    table = read_table(X)
    return [_counts(curve, table.column(curve.feature)) for curve in curves]


def _counts(curve: Curve, column: Any) -> ColumnCounts:
    if curve.kind == "category":
        labels = read_labels(column, curve.name)
        known = labels.codes[labels.codes >= 0]
        found = dict(zip(labels.levels, np.bincount(known, minlength=len(labels.levels)).tolist(), strict=True))
        named = [found.get(str(level), 0) for level in curve.points]
        others = len(known) - sum(named)
        return ColumnCounts(np.array([*named, others], dtype=np.float64), len(labels.codes) - len(known))
    numbers = np.asarray(read_numbers(column, cast(NumberKind, curve.kind), curve.name), dtype=np.float64)
    present = numbers[~np.isnan(numbers)]
    missing = len(numbers) - len(present)
    if curve.shown is None:  # false and true
        return ColumnCounts(np.array([(present == 0).sum(), (present != 0).sum()], dtype=np.float64), missing)
    low, high = curve.shown
    counts = np.histogram(present, BINS, (low, high))[0] if low < high else np.zeros(BINS)
    return ColumnCounts(counts.astype(np.float64), missing)
