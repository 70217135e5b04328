"""How the rows of a table are distributed over the range, or over the levels, that a curve shows."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prunus.data.calendar import calendar_labels
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


def count_rows(estimator: Any, X: Any, curves: tuple[Curve, ...]) -> list[tuple[Curve, ColumnCounts]]:  # noqa: N803
    """The curves, shown where there are rows, and the numbers of rows; an error if X is not as in training."""
    estimator.encoder_.transform(X)
    table = read_table(X)
    return [_counted(curve, table.column(curve.feature)) for curve in curves]


def _counted(curve: Curve, column: Any) -> tuple[Curve, ColumnCounts]:
    if curve.kind == "category":
        if curve.unit is None:
            labels = read_labels(column, curve.name)
        else:
            labels = calendar_labels(read_numbers(column, "datetime", curve.name), curve.unit)
        known = labels.codes[labels.codes >= 0]
        found = dict(zip(labels.levels, np.bincount(known, minlength=len(labels.levels)).tolist(), strict=True))
        named = [found.get(str(level), 0) for level in curve.points]
        others = len(known) - sum(named)
        return curve, ColumnCounts(np.array([*named, others], dtype=np.float64), len(labels.codes) - len(known))
    numbers = np.asarray(read_numbers(column, cast(NumberKind, curve.kind), curve.name), dtype=np.float64)
    present = numbers[~np.isnan(numbers)]
    missing = len(numbers) - len(present)
    if curve.shown is None:  # false and true
        return curve, ColumnCounts(np.array([(present == 0).sum(), (present != 0).sum()], dtype=np.float64), missing)
    low, high = curve.shown
    inside = present[(low <= present) & (present <= high)]
    if len(inside) and inside.min() < inside.max():
        curve = replace(curve, shown=(float(inside.min()), float(inside.max())))
    counts = np.histogram(inside, BINS, curve.shown)[0] if low < high else np.zeros(BINS)
    return curve, ColumnCounts(counts.astype(np.float64), missing)
