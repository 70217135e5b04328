"""Effects of levels: shrunken means of the target, for categories with more levels than get columns of their own.

Everything is made from sums for each level and each fold of rows, so that tables can also be read in parts: sums of
parts are added up before columns are made from them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10

import numpy as np
import numpy.typing as npt

from prunus.data.calendar import Unit, calendar_labels
from prunus.data.columns import Labels, read_labels, read_numbers
from prunus.data.outputs import OutputColumn
from prunus.data.tables import Table
from prunus.errors import InputValueError

__all__ = [
    "FOLDS",
    "EffectTargets",
    "LevelSums",
    "TargetUnits",
    "calendar_units",
    "folds_of",
    "many_levels",
    "read_effects",
    "units_that_matter",
]

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer]

FOLDS = 5
"""The effect that a training row gets is computed without its fold, which is about a fifth of all rows."""
BEYOND_CHANCE = 3.0
"""Levels must differ by this many standard deviations more than chance would explain; else they have no effects."""
MOST_LEVELS = 10_000
"""The most frequent levels have effects, at most this many: each is stored, and is written by exports."""
_DIGITS = 6
"""Number of digits of an effect, compared with the scale of its column, so that files are small."""


@dataclass(frozen=True)
class TargetUnits:
    """Numbers near the mean and the standard deviation of each column of the target, so that sums keep their digits.

    Examples
    --------
    >>> units = TargetUnits.of(np.array([[1.0], [3.0]]), None)
    >>> units.standard(np.array([[5.0]]))
    array([[3.]])
    """

    shift: Doubles
    """What is subtracted from each column, (k,)."""
    scale: Doubles
    """What each column is then divided by, (k,)."""

    @classmethod
    def of(cls, targets: Doubles, weight: Doubles | None) -> "TargetUnits":
        """The units of targets, (n, k), with these weights, (n,)."""
        largest = np.maximum(np.abs(targets).max(0), np.finfo(np.float64).tiny)  # squares must not overflow
        part = targets / largest
        mean = np.average(part, axis=0, weights=weight)
        part -= mean
        deviation = np.sqrt(np.average(np.square(part, out=part), axis=0, weights=weight))
        is_constant = deviation <= 1e-12
        return cls(mean * largest, np.where(is_constant, 1.0, deviation * largest))

    def standard(self, targets: Doubles) -> Doubles:
        """The targets, (n, k), in these units."""
        return targets / self.scale - self.shift / self.scale  # in this order it does not overflow


@dataclass(frozen=True)
class LevelSums:
    """Weights and sums of the target for each level of a category and each fold of rows.

    Examples
    --------
    >>> labels = Labels(np.array([0, 1, 0]), ["red", "blue"])
    >>> sums = LevelSums.of(labels, np.array([[1.0], [2.0], [4.0]]), None, np.array([0, 0, 1]))
    >>> both = sums + LevelSums.of(Labels(np.array([0]), ["blue"]), np.array([[3.0]]), None, np.array([2]))
    >>> both.levels, both.count.sum(1).tolist(), both.total.sum(1)[:, 0].tolist()
    (['red', 'blue'], [2.0, 2.0, 0.0], [5.0, 5.0, 0.0])
    """

    levels: list[str]
    count: Doubles
    """Sums of the weights, (number of levels + 1, FOLDS); the last row is that of missing values."""
    total: Doubles
    """Weighted sums of the targets, (number of levels + 1, FOLDS, k)."""
    squares: Doubles
    """Weighted sums of the squared targets, (k,)."""
    rows: int
    """Number of rows."""

    @classmethod
    def of(cls, labels: Labels, targets: Doubles, weight: Doubles | None, folds: Integers) -> "LevelSums":
        """The sums of some rows.

        Parameters
        ----------
        labels : Labels
            The levels of n rows.
        targets : float array of shape (n, k)
            What is to be predicted, in the units of `TargetUnits`.
        weight : float array of shape (n,) or None
            Positive weights.
        folds : int array of shape (n,)
            The fold of each row, see `folds_of`.
        """
        n_levels, k = len(labels.levels) + 1, targets.shape[1]
        cells = cells_of(labels, folds)
        weighted = targets if weight is None else targets * weight[:, None]

        def summed(values: Doubles | None) -> Doubles:
            found = np.bincount(cells, values, minlength=n_levels * FOLDS).astype(np.float64)
            return found.reshape(n_levels, FOLDS)

        total = [summed(weighted[:, j]) for j in range(k)]
        squares = np.einsum("nk,nk->k", weighted, targets)
        return cls(list(labels.levels), summed(weight), np.stack(total, axis=2), squares, len(cells))

    def __add__(self, other: "LevelSums") -> "LevelSums":
        """The sums of the rows of both."""
        places = {level: i for i, level in enumerate(self.levels)}
        at = [places.setdefault(level, len(places)) for level in other.levels]
        n = len(places)
        count, total = np.zeros((n + 1, FOLDS)), np.zeros((n + 1, *self.total.shape[1:]))
        for sums, to in ((self, list(range(len(self.levels)))), (other, at)):
            count[[*to, n]] += sums.count
            total[[*to, n]] += sums.total
        return LevelSums(list(places), count, total, self.squares + other.squares, self.rows + other.rows)

    def prior_weight(self) -> Doubles:
        """The weight of the overall mean beside the rows of a level, (k,); infinite without effects.

        The best weight is that of this many rows: the variance of the target within levels, divided by the variance of
        the means of levels. Both are estimated as in an analysis of variance.
        """
        count, total = self.count.sum(1), self.total.sum(1)
        used = count > 0
        n, n_levels = float(self.rows), int(np.count_nonzero(used))
        if n_levels < 2 or self.rows <= n_levels:
            return np.full(total.shape[1], np.inf)
        unit = n / count.sum()  # weights are 1 on average: only their ratios matter
        count, total, squares = unit * count[used, None], unit * total[used], unit * self.squares
        mean = total.sum(0) / n
        of_levels = np.square(total) / count
        within = np.maximum(squares - of_levels.sum(0), 0.0) / (n - n_levels)
        between = (of_levels.sum(0) - n * np.square(mean)) / (n_levels - 1)
        chance = 1 + BEYOND_CHANCE * np.sqrt(2 / (n_levels - 1) + 2 / (n - n_levels))
        per_level = (n - np.square(count).sum() / n) / (n_levels - 1)
        differs = (between > chance * within) & (between > 1e-12)
        variance = np.where(differs, (between - within) / per_level, 1.0)
        return np.where(differs, within / variance / unit, np.inf)


def folds_of(n: int, start: int = 0) -> npt.NDArray[np.int64]:
    """The folds of n rows that follow `start` others, (n,): they look random, but depend on the row's number alone.

    Examples
    --------
    >>> folds_of(8).tolist() == [*folds_of(3), *folds_of(5, start=3)]
    True
    """
    mixed = np.arange(start, start + n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed >> np.uint64(33)) % np.uint64(FOLDS)).astype(np.int64)


def cells_of(labels: Labels, folds: Integers) -> npt.NDArray[np.int64]:
    """The positions, (n,), of the levels and folds of n rows in a flat table of all levels and folds."""
    rows_of_levels = np.arange(len(labels.levels) + 1) * FOLDS  # missing, -1, is the last
    cells: npt.NDArray[np.int64] = rows_of_levels[labels.codes]
    cells += folds
    return cells


def effect_outputs(
    feature: int, name: str, sums: LevelSums, units: TargetUnits, clip: float, words: Sequence[str]
) -> list[OutputColumn]:
    """The columns of the effects of levels, one for each column of the target whose mean depends on the level.

    Parameters
    ----------
    feature, name : int and str
        The source column.
    sums : LevelSums
        Sums over all rows.
    units : TargetUnits
        The units of the targets in these sums.
    clip : float
        Scaled effects are limited to the range from ``-clip`` to ``clip``.
    words : sequence of k str
        What the mean of each column of the target is, such as "mean of the target" or "share of yes".
    """
    outputs = []
    for j, prior in enumerate(sums.prior_weight().tolist()):
        if not np.isfinite(prior):
            continue
        mean, count = _overall(sums, j), sums.count.sum(1)
        stored, order = _stored(sums), _by_count(sums)
        effects = units.shift[j] + units.scale[j] * _shrunken(sums.total[:, :, j].sum(1), count, mean, prior)
        center = float(units.shift[j] + units.scale[j] * mean)
        apart = np.where(stored[:, None], _without_fold(sums, j, mean, prior) - mean, 0.0)
        scale = float(units.scale[j] * np.sqrt(np.average(np.square(apart), weights=sums.count)))
        if scale > 0:
            known = {sums.levels[i]: _rounded(effects[i], scale) for i in order if stored[i]}
            missing = _rounded(effects[-1], scale) if count[-1] > 0 else None
            outputs.append(
                OutputColumn(
                    feature, name, "effect", words[j], center, scale, -clip, clip, effects=known, missing=missing
                )
            )
    return outputs


def out_of_fold(output: OutputColumn, sums: LevelSums, units: TargetUnits, j: int) -> npt.NDArray[np.float32]:
    """The encoded effects for rows of each level and fold, without the rows of that fold, (levels + 1, FOLDS).

    Parameters
    ----------
    output : OutputColumn
        The column of the effects.
    sums : LevelSums
        Sums over the training rows.
    units : TargetUnits
        The units of the targets in these sums.
    j : int
        The position of the effect's target among these targets.
    """
    mean = (output.center - units.shift[j]) / units.scale[j]
    values = _without_fold(sums, j, mean, float(sums.prior_weight()[j]))
    values[~_stored(sums)] = mean
    scaled = (units.shift[j] + units.scale[j] * values - output.center) / output.scale
    encoded: npt.NDArray[np.float32] = np.clip(scaled, output.low, output.high).astype(np.float32)
    return encoded


def _overall(sums: LevelSums, j: int) -> float:
    return float(sums.total[:, :, j].sum() / sums.count.sum())


def _without_fold(sums: LevelSums, j: int, mean: float, prior: float) -> Doubles:
    """The effect of each level without the rows of each fold, (levels + 1, FOLDS).

    The overall mean is that of all rows: it is the same for every row, so it leaks nothing about any single row.
    """
    others = sums.count.sum(1, keepdims=True) - sums.count
    totals = sums.total[:, :, j].sum(1, keepdims=True) - sums.total[:, :, j]
    own = np.where(others > 1e-9 * sums.count, others, 0.0)  # what is left of a single row is rounding
    return _shrunken(np.where(own > 0, totals, 0.0), own, mean, prior)


def _shrunken(total: Doubles, count: Doubles, mean: float, prior: float) -> Doubles:
    """Means of levels, drawn to the overall mean as if there were this many more rows that have it."""
    if not np.isfinite(prior):
        return np.full(total.shape, mean)
    weight = np.maximum(count + prior, np.finfo(np.float64).tiny)
    return mean + (total - count * mean) / weight


def _stored(sums: LevelSums) -> npt.NDArray[np.bool_]:
    """The levels that have effects, and the place of missing values: the most frequent ones, (levels + 1,)."""
    count = sums.count.sum(1)
    stored: npt.NDArray[np.bool_] = count > 0
    if np.count_nonzero(stored[:-1]) > MOST_LEVELS:
        stored[_by_count(sums)[MOST_LEVELS:]] = False
    return stored


def _by_count(sums: LevelSums) -> list[int]:
    """The positions of the levels, the most frequent one first."""
    count = sums.count.sum(1)
    return sorted(range(len(sums.levels)), key=lambda i: (-count[i], sums.levels[i]))


def _rounded(value: float, scale: float) -> float:
    return round(float(value), _DIGITS - floor(log10(scale)))


@dataclass(frozen=True)
class EffectTargets:
    """What effects are means of: numbers for each row.

    Parameters
    ----------
    values : float array of shape (n, k)
        Values of the target; of a class, 1 for its rows and 0 for others.
    words : sequence of k str
        What the mean of each column is, such as "mean of the target" or "share of yes".
    """

    values: Doubles
    words: Sequence[str] = ("mean of the target",)

    def __post_init__(self) -> None:
        values = self.values
        if values.ndim != 2 or values.shape[1] != len(self.words) or len(set(self.words)) != len(self.words):
            raise InputValueError(
                f"values must be of shape (n, {len(self.words)}), with different words for its columns, got "
                f"values.shape={values.shape} and {list(self.words)!r:.200}"
            )
        if not np.isfinite(values).all():
            raise InputValueError("values must be finite, got NaN or infinity")


@dataclass(frozen=True)
class TrainingEffects:
    """The levels of one category in a table of training rows, and the sums of the target for them."""

    feature: int
    name: str
    labels: Labels
    """The levels of all rows."""
    folds: npt.NDArray[np.int64]
    """The fold of each row, (n,); -1 for a row of weight 0, which takes no part."""
    sums: LevelSums
    units: TargetUnits
    words: Sequence[str]

    def outputs(self, clip: float) -> list[OutputColumn]:
        """The columns of the effects; none if levels do not differ more than by chance."""
        return effect_outputs(self.feature, self.name, self.sums, self.units, clip, self.words)

    def write(self, columns: Sequence[OutputColumn], out: npt.NDArray[np.float32]) -> None:
        """Replace the effects of these rows, in their columns of the matrix, by those of the rows of other folds."""
        rows = slice(None) if (self.folds >= 0).all() else self.folds >= 0
        cells = cells_of(self.labels, self.folds)[rows]
        for i, output in enumerate(columns):
            if output.kind == "effect" and output.feature == self.feature:
                table = out_of_fold(output, self.sums, self.units, list(self.words).index(str(output.category)))
                out[rows, i] = table.ravel()[cells]


def many_levels(columns: Sequence[OutputColumn]) -> dict[int, str]:
    """The categories of which not all levels have columns of their own: names of source columns by their positions."""
    return {column.feature: column.name for column in columns if column.kind == "infrequent"}


def read_effects(
    table: Table,
    features: dict[int, str],
    targets: EffectTargets,
    kept: npt.NDArray[np.bool_] | None,
    weight: Doubles | None,
) -> Iterator[TrainingEffects]:
    """The effects of each of these categories, from the kept rows of a table with these weights (None means 1)."""
    rows = _Rows(table, targets, kept, weight)
    for feature, name in features.items():
        labels = read_labels(table.column(feature), name)
        yield TrainingEffects(feature, name, labels, rows.folds, rows.sums(labels), rows.units, targets.words)


def calendar_units(columns: Sequence[OutputColumn]) -> dict[tuple[int, Unit], str]:
    """The units of dates that have columns: names of source columns by their positions and units."""
    return {(column.feature, column.unit): column.name for column in columns if column.unit is not None}


def units_that_matter(
    table: Table,
    units: dict[tuple[int, Unit], str],
    targets: EffectTargets,
    kept: npt.NDArray[np.bool_] | None,
    weight: Doubles | None,
) -> set[tuple[int, Unit]]:
    """Those of the units of dates on whose levels a mean of the target depends by more than chance would explain.

    Missing dates have a column of their own, and do not count as a level.
    """
    if not units:
        return set()
    rows, found = _Rows(table, targets, kept, weight), set()
    for (feature, unit), name in units.items():
        labels = calendar_labels(read_numbers(table.column(feature), "datetime", name), unit)
        if np.isfinite(rows.sums(labels, with_missing=False).prior_weight()).any():
            found.add((feature, unit))
    return found


class _Rows:
    """The targets of the kept rows of a table in standard units, with their weights and folds."""

    def __init__(
        self, table: Table, targets: EffectTargets, kept: npt.NDArray[np.bool_] | None, weight: Doubles | None
    ) -> None:
        n = table.shape[0]
        if len(targets.values) != n:
            raise InputValueError(
                f"values must have {n} rows, as the table has, got values.shape={targets.values.shape}"
            )
        self.folds = np.full(n, -1)
        self.some = slice(None) if kept is None else kept
        self.folds[self.some] = folds_of(n if kept is None else int(np.count_nonzero(kept)))
        self.weight = weight
        self.units = TargetUnits.of(targets.values[self.some], weight)
        self.standard = self.units.standard(targets.values[self.some])

    def sums(self, labels: Labels, *, with_missing: bool = True) -> LevelSums:
        """The sums for the levels of all rows, or of those in which the level is not missing."""
        codes, folds, standard, weight = labels.codes[self.some], self.folds[self.some], self.standard, self.weight
        if not with_missing and (codes < 0).any():
            present = codes >= 0
            codes, folds, standard = codes[present], folds[present], standard[present]
            weight = None if weight is None else weight[present]
        return LevelSums.of(Labels(codes, labels.levels), standard, weight, folds)
