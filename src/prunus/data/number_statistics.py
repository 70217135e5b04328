"""Statistics of a column of numbers that arrives in chunks: exact while it is short, a sketch afterwards."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data.calendar import CalendarCounts
from prunus.data.columns import NumberKind
from prunus.data.number_columns import number_columns
from prunus.data.outputs import OutputColumn
from prunus.data.sketch import QuantileSketch, Weighted, joined
from prunus.data.spread import Spread, measure, spread_of

__all__ = ["NumberStatistics"]

Floats = npt.NDArray[np.float64]


class NumberStatistics:
    """What the encoder needs to know of a column of numbers.

    Parameters
    ----------
    exact_rows : int
        Number of rows up to which all numbers are kept.

    Examples
    --------
    >>> statistics = NumberStatistics(exact_rows=100)
    >>> statistics.add(np.array([1.0, 2.0, np.nan]), None)
    >>> statistics.add(np.array([6.0]), None)
    >>> statistics.spread().center, statistics.spread().missing
    (2.0, 0.25)
    """

    def __init__(self, exact_rows: int) -> None:
        self.exact_rows = exact_rows
        self.rows = 0
        self.exact: list[Weighted] | None = []
        self.sketch = QuantileSketch()
        self.calendar: CalendarCounts | None = None  # counts of the numbers in the sketch, if these are dates
        self.low, self.high = np.inf, -np.inf
        self.total = self.present = self.missing = 0.0  # sum of the numbers, weights of those present and missing

    def count_dates(self) -> None:
        """Note that all numbers are dates, whose weekdays, months and hours are counted; all before are missing."""
        if self.calendar is None:
            self.calendar = CalendarCounts()

    def add(self, x: npt.NDArray[Any], weight: Floats | None) -> None:
        """Add finite or missing numbers of shape (n,) with their weights."""
        x = np.array(x, dtype=np.float32 if x.dtype in (np.float16, np.float32) else np.float64)
        self.rows += x.size
        if self.exact is None:
            self._summarize(x, weight)
        else:
            self.exact.append((x, weight))
            if self.rows > self.exact_rows:
                self.compress()

    def merge(self, other: "NumberStatistics") -> None:
        """Add all rows of other statistics."""
        if other.exact is not None:
            for x, weight in other.exact:
                self.add(x, weight)
            return
        self.compress()
        self.rows += other.rows
        self.sketch.merge(other.sketch)
        if self.calendar is not None and other.calendar is not None:
            self.calendar.merge(other.calendar)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.total += other.total
        self.present += other.present
        self.missing += other.missing

    def compress(self) -> None:
        """Replace the rows that were kept by a sketch of them."""
        rows, self.exact = self.exact or [], None
        for x, weight in rows:
            self._summarize(x, weight)

    def missing_weight(self) -> float:
        """Return the weight of the rows in which the number is missing."""
        if self.exact is None:
            return self.missing
        x, weight = self.values() if self.exact else (np.empty(0), None)
        return float(np.count_nonzero(np.isnan(x)) if weight is None else weight[np.isnan(x)].sum())

    def spread(self) -> Spread:
        """Return center, scale and share of missing numbers, as `prunus.data.spread.measure` would."""
        if self.exact is not None:
            return measure(*self.values())
        share = self.missing / (self.present + self.missing)
        if not self.present:
            return Spread(0.0, 1.0, 0.0, share, constant=True)
        mean, sample = self.total / self.present, self.sketch.sample()
        return spread_of(sample, None, low=self.low, high=self.high, mean=mean, missing=share)

    def values(self) -> tuple[Floats, Floats | None]:
        """Return all numbers with their weights, or a sample of equal weight that stands for those present."""
        if self.exact is None:
            return self.sketch.sample(), None
        x, weight = joined(self.exact)
        return x.astype(np.float64), weight

    def columns(
        self, feature: int, name: str, kind: NumberKind, *, clip: float, pieces: int
    ) -> tuple[list[OutputColumn], list[OutputColumn]]:
        """Return the columns of the matrix, and the one that marks missing numbers, if any."""
        counts = self.calendar if self.exact is None else None
        options: dict[str, Any] = {"clip": clip, "pieces": pieces, "counts": counts}
        return number_columns(feature, name, kind, self.spread(), *self.values(), **options)

    def _summarize(self, x: npt.NDArray[Any], weight: Floats | None) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            total = x.sum(dtype=np.float64)
        if np.isnan(total):
            missing = np.isnan(x)
            self.missing += float(np.count_nonzero(missing) if weight is None else weight[missing].sum())
            x, weight = x[~missing], None if weight is None else weight[~missing]
        if not x.size:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            self.total += float(x.sum(dtype=np.float64) if weight is None else x @ weight)
        self.present += float(x.size if weight is None else weight.sum())
        self.low, self.high = min(self.low, float(x.min())), max(self.high, float(x.max()))
        self.sketch.add(x, weight)
        if self.calendar is not None:
            self.calendar.add(x, weight)
