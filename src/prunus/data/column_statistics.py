"""Statistics of a column that arrives in chunks, whatever it holds."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data.blocks import infinity
from prunus.data.columns import Column, Labels, NumberKind, Numbers, read
from prunus.data.number_statistics import NumberStatistics
from prunus.data.outputs import OutputColumn, category_outputs
from prunus.data.sketch import LevelCounts
from prunus.errors import InputValueError

__all__ = ["ColumnStatistics"]

Floats = npt.NDArray[np.float64]


class ColumnStatistics:
    """What the encoder needs to know of a column: it holds numbers of some kind, or levels, or nothing so far.

    Chunks in which all values are missing say nothing about the kind; booleans in one chunk and numbers in another are
    numbers. Other mixtures are errors, because what was summarized cannot be read as text any more.

    Parameters
    ----------
    name : str
        Name of the column.
    exact_rows : int
        Number of rows up to which all numbers are kept.
    levels : int
        Number of levels that are counted.

    Examples
    --------
    >>> column = ColumnStatistics("size", exact_rows=100, levels=100)
    >>> column.add(np.array([None, None], dtype=object), None, None)
    >>> column.add(np.array([1, 3]), None, None)
    >>> [output.label for outputs in column.describe(0, 32, 5.0, 0) for output in outputs]
    ['size', 'size is missing']
    """

    def __init__(self, name: str, exact_rows: int, levels: int) -> None:
        self.name = name
        self.kind: NumberKind | None = None
        self.kind_of_missing: NumberKind = "number"
        self.max_levels = levels
        self.numbers = NumberStatistics(exact_rows)
        self.levels: LevelCounts | None = None

    def add(self, column: Column, kept: npt.NDArray[np.bool_] | None, weight: Floats | None) -> None:
        """Add the rows of a chunk that are kept (None are all), with their weights (None are ones)."""
        found = read(column, self.name)
        if isinstance(found, Labels):
            codes = found.codes if kept is None else found.codes[kept]
            if (codes >= 0).any():
                self._as_levels().add(codes, found.levels, weight)
                return
            found = Numbers("number", np.full(found.codes.size, np.nan))
        values = found.values
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(values.sum(dtype=np.float64)) and np.isinf(values).any():
                raise infinity(self.name)
        self._add_numbers(found.kind, values if kept is None else values[kept], weight)

    def merge(self, other: "ColumnStatistics") -> None:
        """Add the rows of other statistics of the same column."""
        if other.levels is not None:
            self._as_levels().merge(other.levels)
            return
        if other.kind is not None:
            self._set_kind(other.kind)
        elif other.numbers.rows:
            self._note_missing(other.kind_of_missing)
        if self.levels is not None:
            self.levels.missing += other.numbers.missing_weight()
        else:
            self.numbers.merge(other.numbers)

    def describe(
        self, feature: int, max_categories: int, clip: float, pieces: int
    ) -> tuple[list[OutputColumn], list[OutputColumn]]:
        """Return the columns of the matrix, and the one that marks missing numbers, if any."""
        counts = self.levels
        if counts is None:
            kind = self.kind or self.kind_of_missing
            return self.numbers.columns(feature, self.name, kind, clip=clip, pieces=pieces)
        levels = Labels(np.arange(-1, len(counts.weights)), list(counts.weights))
        weight = np.array([counts.missing, *counts.weights.values()])
        return category_outputs(feature, self.name, levels, weight, max_categories, counts.others), []

    def _add_numbers(self, kind: NumberKind, values: npt.NDArray[Any], weight: Floats | None) -> None:
        if np.isnan(values[:1]).all() and np.isnan(values).all():
            self._note_missing(kind)
            if self.levels is not None:
                self.levels.add(np.full(values.size, -1), [], weight)
                return
        else:
            self._set_kind(kind)
        self.numbers.add(values, weight)

    def _note_missing(self, kind: NumberKind) -> None:
        """Note the kind of a chunk without values; it counts only if no chunk has any."""
        if self.kind_of_missing == "number":
            self.kind_of_missing = kind

    def _set_kind(self, kind: NumberKind) -> None:
        if self.levels is not None:
            raise self._mixture("text", kind)
        if self.kind in (None, kind):
            self.kind = kind
            if kind == "datetime":
                self.numbers.count_dates()
        elif {self.kind, kind} == {"number", "boolean"}:
            self.kind = "number"
        else:
            raise self._mixture(str(self.kind), kind)

    def _as_levels(self) -> LevelCounts:
        if self.kind is not None:
            raise self._mixture(self.kind, "text")
        if self.levels is None:
            self.levels = LevelCounts(self.max_levels)
            self.levels.missing = self.numbers.missing_weight()
        return self.levels

    def _mixture(self, earlier: str, later: str) -> InputValueError:
        return InputValueError(
            f"Column {self.name!r} must hold one kind of values, got {later} after {earlier}. Make it text everywhere, "
            "or leave it out"
        )
