"""Effects of levels in a table of training rows: which categories have them, and what each training row gets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prunus.data.calendar import Unit, calendar_labels
from prunus.data.columns import Labels, read_labels, read_numbers
from prunus.data.effects import LevelSums, TargetUnits, cells_of, effect_outputs, folds_of, out_of_fold
from prunus.data.outputs import OutputColumn
from prunus.data.tables import Table
from prunus.errors import InputValueError

__all__ = ["EffectTargets", "TrainingEffects", "calendar_units", "many_levels", "read_effects", "units_that_matter"]

Doubles = npt.NDArray[np.float64]


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
