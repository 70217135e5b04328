"""Columns as a search sees them: each value in one of at most 255 bins, and numbers in standard units."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prunus.search.problem import Category, Number

__all__ = ["MISSING", "MOST_BINS", "BinnedColumns", "bin_columns"]

Doubles = npt.NDArray[np.float64]

MISSING = 255
"""The bin of missing values."""
MOST_BINS = 254
"""The most bins of a column."""
LARGEST = 1e30
"""Numbers farther away than this many standard units count as this, which single precision can hold."""


@dataclass(frozen=True)
class BinnedColumns:
    """The columns of a table, d of them, with n rows."""

    bins: npt.NDArray[np.uint8]
    """The bin of each value, (d, n); for categories the position of the level, and one more for other levels."""
    bin_count: npt.NDArray[np.int32]
    """The number of bins of each column, (d,)."""
    is_category: npt.NDArray[np.uint8]
    """Whether the levels of a column have no order, (d,)."""
    values: npt.NDArray[np.float32]
    """Numbers in standard units, (d, n); NaN if missing, 0 for categories."""
    edges: npt.NDArray[np.float32]
    """A number is in bin b if it is below edge b, and not below edge b - 1, (d, 256)."""
    center: Doubles
    """What a number has in the table if it is 0 in standard units, (d,)."""
    scale: Doubles
    """The size of a standard unit, (d,)."""


def bin_columns(columns: Sequence[Number | Category]) -> BinnedColumns:
    """Divide each column into bins that hold equally many rows, and scale its numbers.

    Examples
    --------
    >>> binned = bin_columns([Number(np.array([1.0, 2.0, 4.0, np.nan]))])
    >>> binned.bins.tolist(), (binned.edges[0, :2] * binned.scale[0] + binned.center[0]).round(3).tolist()
    ([[0, 1, 2, 255]], [1.5, 3.0])
    """
    n = len(columns[0].codes if isinstance(columns[0], Category) else columns[0].values)
    d = len(columns)
    binned = BinnedColumns(
        bins=np.empty((d, n), dtype=np.uint8),
        bin_count=np.ones(d, dtype=np.int32),
        is_category=np.zeros(d, dtype=np.uint8),
        values=np.zeros((d, n), dtype=np.float32),
        edges=np.zeros((d, 256), dtype=np.float32),
        center=np.zeros(d),
        scale=np.ones(d),
    )
    for j, column in enumerate(columns):
        if isinstance(column, Number):
            _bin_numbers(binned, j, column.values)
        elif column.ordered:
            _bin_numbers(binned, j, np.where(column.codes < 0, np.nan, column.codes.astype(np.float64)))
        else:
            _bin_levels(binned, j, column)
    return binned


def _bin_numbers(binned: BinnedColumns, j: int, values: Doubles) -> None:
    present = values[~np.isnan(values)]
    if len(present):
        low, center, high = np.quantile(present, [0.05, 0.5, 0.95])
        scale = (high - low) / 3.3 or float(present.std()) or 1.0  # the standard deviation of a normal distribution
        binned.center[j], binned.scale[j] = center, scale
    binned.values[j] = np.clip((values - binned.center[j]) / binned.scale[j], -LARGEST, LARGEST)
    scaled = binned.values[j]
    edges = _edges(np.sort(scaled[~np.isnan(scaled)]))
    binned.edges[j, : len(edges)] = edges
    binned.bin_count[j] = len(edges) + 1
    binned.bins[j] = np.where(np.isnan(scaled), MISSING, np.searchsorted(edges, scaled, side="right"))


def _edges(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The places between sorted numbers where bins end: between all different ones if they are few."""
    ends = np.flatnonzero(values[1:] > values[:-1])
    if len(ends) >= MOST_BINS:
        wanted = np.linspace(0, len(values), MOST_BINS + 1)[1:-1]
        ends = np.unique(ends[np.minimum(np.searchsorted(ends, wanted), len(ends) - 1)])
    below, above = values[ends], values[ends + 1]
    middle = below + (above - below) / 2
    edges: npt.NDArray[np.float32] = np.where(middle > below, middle, above)
    return edges


def _bin_levels(binned: BinnedColumns, j: int, column: Category) -> None:
    codes = np.asarray(column.codes)
    binned.is_category[j] = 1
    binned.bin_count[j] = max(1, len(column.levels) + bool((codes == len(column.levels)).any()))
    binned.bins[j] = np.where(codes < 0, MISSING, codes)
