"""An encoder that is learned from a table in chunks, by one or several processes, in bounded memory."""

from copy import copy
from dataclasses import asdict
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from prunus.data.calendar import CalendarCounts
from prunus.data.checks import chunk_weight, infinity
from prunus.data.columns import Column, Labels, NumberKind, Numbers, read
from prunus.data.encoder import TableEncoder
from prunus.data.outputs import OutputColumn, category_outputs, number_columns
from prunus.data.sketch import LevelCounts, QuantileSketch, Weighted, joined
from prunus.data.spread import Spread, measure, spread_of
from prunus.data.tables import read_table
from prunus.errors import InputValueError

__all__ = ["TableStatistics"]

Floats = npt.NDArray[np.float64]
_EXACT_ROWS = 100_000
_EXACT_VALUES = 10_000_000
"""Tables of this many rows, or values if they are wide, are kept, so that they are encoded as if they came at once."""
_FEWEST_LEVELS = 100_000


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


class TableStatistics:
    """What an encoder learns of a table that arrives in chunks.

    Tables of up to 100,000 rows (fewer if there are more than 100 columns) give the same encoder as `TableEncoder.fit`.
    Beyond that, quantiles come from a sketch (see `prunus.data.sketch`): the share of rows below a center, a quartile
    or an edge of a piece is wrong by less than 0.5 %. Of a category, the 100,000 most frequent levels are counted.
    Statistics can be pickled, and those of several processes can be merged.

    Parameters
    ----------
    encoder : TableEncoder, optional
        Its options are those of the encoder to be learned; it is not changed.

    Examples
    --------
    >>> table = [[1.5, "red"], [2.5, "blue"], [None, "red"]]
    >>> statistics = TableStatistics().add(table[:2]).merge(TableStatistics().add(table[2:]))
    >>> statistics.encoder().columns_ == TableEncoder().fit(table).columns_
    True
    """

    def __init__(self, encoder: TableEncoder | None = None) -> None:
        self.blank = copy(encoder if encoder is not None else TableEncoder()).fit([[0.0]])  # fit checks the options
        self.names: list[str] | None = None
        self.columns: list[ColumnStatistics] = []
        self.rows = 0  # those of positive weight

    def add(self, X: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn from further rows.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame, pyarrow Table or RecordBatch of shape (n, n_features)
            Some rows of the table.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; rows of weight 0 are ignored.

        Returns
        -------
        TableStatistics
            The statistics themselves.
        """
        table = read_table(X)
        if not self.columns:
            self._start(table.names, table.shape[1])
        self._check_columns(table.names, table.shape[1])
        weight = chunk_weight(sample_weight, table.shape[0])
        kept = None if weight is None or (weight > 0).all() else weight > 0
        if weight is not None and kept is not None:
            weight = weight[kept]
        self.rows += table.shape[0] if weight is None else weight.size
        for feature, column in enumerate(self.columns):
            column.add(table.column(feature), kept, weight)
        return self

    def merge(self, other: "TableStatistics") -> Self:
        """Add all that other statistics have learned, for example those of another process.

        Parameters
        ----------
        other : TableStatistics
            Statistics of other rows of the same table, with the same options; they are not changed.

        Returns
        -------
        TableStatistics
            The statistics themselves.
        """
        if other.columns and not self.columns:
            self._start(other.names, len(other.columns))
        if other.columns:
            self._check_columns(other.names, len(other.columns))
        for column, of_other in zip(self.columns, other.columns, strict=bool(other.columns)):
            column.merge(of_other)
        self.rows += other.rows
        return self

    def encoder(self) -> TableEncoder:
        """Return an encoder that has learned from all rows so far."""
        if not self.rows:
            raise InputValueError("A table must have rows of positive weight, got none")
        options = self.blank.get_state()
        outputs: list[OutputColumn] = []
        flags: list[OutputColumn] = []
        for feature, column in enumerate(self.columns):
            of_feature, of_missing = column.describe(
                feature, options["max_categories"], options["clip"], options["pieces"]
            )
            outputs += of_feature
            flags += of_missing
        learned = {
            "n_features_in": len(self.columns),
            "feature_names_in": self.names,
            "columns": [asdict(output) for output in outputs + flags],
        }
        return TableEncoder.from_state(options | learned)

    def _start(self, names: list[str] | None, count: int) -> None:
        self.names = names
        exact_rows = min(_EXACT_ROWS, _EXACT_VALUES // count)
        levels = max(_FEWEST_LEVELS, 2 * int(self.blank.max_categories))
        labels = names if names is not None else [f"x{i}" for i in range(count)]
        self.columns = [ColumnStatistics(name, exact_rows, levels) for name in labels]

    def _check_columns(self, names: list[str] | None, count: int) -> None:
        if count != len(self.columns) or names != self.names:
            raise InputValueError(
                f"All chunks must have the same columns, got {names or count} after {self.names or len(self.columns)}"
            )
