"""The encoder, which learns how to scale each column of a table and turns tables into matrices."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from math import inf
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from torch import get_num_threads

from prunus.data.checks import check_features, check_weight, infinity
from prunus.data.columns import Labels, Numbers, read
from prunus.data.effects import (
    EffectTargets,
    calendar_units,
    many_levels,
    read_effects,
    units_that_matter,
)
from prunus.data.outputs import OutputColumn, category_outputs, number_columns
from prunus.data.plan import Plan
from prunus.data.spread import measure
from prunus.data.tables import Table, read_table
from prunus.errors import InputValueError

__all__ = ["CLIP", "TableEncoder"]

CLIP = 5.0
"""Scaled numbers are limited to the range from -5 to 5, unless other limits are asked for."""
_MANY_VALUES = 1_000_000
"""A table with fewer values than this is described by one thread."""
_FORMAT = 1
"""The format of states."""


class TableEncoder:
    """Encodes tables of numbers, categories, booleans, dates and missing values as float32 matrices.

    A number becomes one column, centered at its median and scaled by a robust estimate of its standard deviation; so
    do dates and durations, in seconds. A boolean becomes one column. A category becomes one column for each level, but
    only one column if there are two levels. A missing number is encoded like the median, and if numbers were missing in
    fit, a further column marks the rows where they are. Missing values of a category are a level of it. The attribute
    ``columns_`` says which columns come from where, and in which units.

    Dates also get columns for the calendar where it can mean something: one for each weekday if they fall on many days
    of at least three weeks, one for each month if they fall in many months of one and a half years, and one for each
    hour of the day if they fall in many hours of three days (see `prunus.data.calendar.meaningful_units`); what comes
    back less often is just a stretch of time. Only levels that occur have columns, and only if at least two do. Times
    are taken as they are stored, those with a time zone in UTC.
    `fit_effects` leaves out weekdays, months or hours on which the target does not depend.

    If a category has more levels than ``max_categories``, most of them share one column. `fit_effects` adds what
    distinguishes them: the effect of the level, which is the mean of the target over rows of that level, drawn to the
    mean over all rows, the more so the fewer rows the level has. The estimators of prunus do that.

    Parameters
    ----------
    max_categories : int, default=32
        Largest number of levels of a category that get a column each; the less frequent ones share one column.
    clip : float, default=5.0
        Scaled numbers are limited to the range from ``-clip`` to ``clip``.
    pieces : int, default=0
        The range of each number is cut into about this many pieces that hold equally many rows. Each piece gets a
        further column: 0 below the piece, 1 above it, linear within. With 0, or where a number has too few different
        values for two pieces, there are no such columns.

    Attributes
    ----------
    columns_ : list of OutputColumn
        One record for each column of the matrix: first the columns of the features in the order of the table, then
        those that mark missing numbers.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of the table; it exists only if all of them have names that are strings.

    Examples
    --------
    >>> table = np.array([[1.5, "red"], [2.5, "blue"], [None, "red"]], dtype=object)
    >>> encoder = TableEncoder().fit(table)
    >>> [column.label for column in encoder.columns_]
    ['x0', 'x1 = blue', 'x0 is missing']
    >>> encoder.transform(table).round(1)
    array([[-0.7,  0. ,  0. ],
           [ 0.7,  1.7,  0. ],
           [ 0. ,  0. ,  1.7]], dtype=float32)
    """

    columns_: list[OutputColumn]
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]

    def __init__(self, *, max_categories: int = 32, clip: float = CLIP, pieces: int = 0) -> None:
        self.max_categories = max_categories
        self.clip = clip
        self.pieces = pieces

    def fit(self, X: Any, y: object = None, sample_weight: Any = None) -> Self:  # noqa: N803, ARG002
        """Learn the levels, centers and scales of the columns.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features)
            The table. NaN, None, NaT, NA and null are missing values; infinities are errors.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A row of weight 2 counts as two rows, and a row of weight 0 is ignored.

        Returns
        -------
        TableEncoder
            The encoder itself.
        """
        self._check_options()
        table = read_table(X)
        kept, weight = check_weight(sample_weight, table.shape[0])
        outputs: list[OutputColumn] = []
        missing_outputs: list[OutputColumn] = []
        for of_feature, of_missing in self._describe_all(table, kept, weight):
            outputs += of_feature
            missing_outputs += of_missing
        self._set(outputs + missing_outputs, table.shape[1], table.names)
        return self

    def fit_effects(
        self,
        X: Any,  # noqa: N803
        targets: EffectTargets,
        sample_weight: Any = None,
    ) -> npt.NDArray[np.float32]:
        """Add the effects of levels to an encoder that was fitted to these rows, and encode the rows for training.

        Only categories with more levels than ``max_categories`` get effects, and only if the target depends on the
        level by more than chance would explain: one column for each column of the targets. The effects that the rows
        get here are computed without them, see `transform_training`. Likewise, weekdays, months and hours of dates lose
        their columns if the target does not depend on them by more than chance would explain. Without such categories
        and dates nothing changes.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features_in_)
            The table that was given to `fit`.
        targets : prunus.data.effects.EffectTargets
            What is to be predicted, as numbers.
        sample_weight : array-like of shape (n,), optional
            The weights that were given to `fit`.

        Returns
        -------
        float32 array of shape (n, len(columns_)), C-contiguous

        Examples
        --------
        >>> towns = np.array([["A"], ["B"], ["C"]] * 20, dtype=object)
        >>> encoder = TableEncoder(max_categories=1).fit(towns)
        >>> x = encoder.fit_effects(towns, EffectTargets(np.array([[1.0], [2.0], [6.0]] * 20)))
        >>> encoder.columns_[-1].label, encoder.columns_[-1].effects
        ('mean of the target for x0', {'A': 1.0, 'B': 2.0, 'C': 6.0})
        """
        table = self._read_fitted(X)
        weights = check_weight(sample_weight, table.shape[0])
        found = list(read_effects(table, many_levels(self.columns_), targets, *weights))
        units = units_that_matter(table, calendar_units(self.columns_), targets, *weights)
        added = {effects.feature: effects.outputs(float(self.clip)) for effects in found}
        columns: list[OutputColumn] = []
        for column in self.columns_:
            if column.kind != "effect" and (column.unit is None or (column.feature, column.unit) in units):
                columns += [column] + (added[column.feature] if column.kind == "infrequent" else [])
        self._set(columns, self.n_features_in_, getattr(self, "feature_names_in_", None))
        out = self.transform(X)
        for effects in found:
            effects.write(self.columns_, out)
        return out

    def drop_calendar(self) -> None:
        """Leave out the columns for the weekdays, months and hours of dates.

        Without a target there is no way to know which of them matter. Where the columns of the matrix are themselves
        what is to be predicted, they would outweigh the dates and all else.
        """
        columns = [column for column in self.columns_ if column.kind != "calendar"]
        self._set(columns, self.n_features_in_, getattr(self, "feature_names_in_", None))

    def transform_training(
        self,
        X: Any,  # noqa: N803
        targets: EffectTargets,
        sample_weight: Any = None,
    ) -> npt.NDArray[np.float32]:
        """Encode training rows such that the effect of a row's level does not depend on the target of the row itself.

        The rows belong to five folds, by their numbers. The effect that a row gets is computed from the rows of all
        other folds. Everything else is as in `transform`.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features_in_)
            The training rows.
        targets : prunus.data.effects.EffectTargets
            What is to be predicted, as numbers; its words must be those of all effects.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        float32 array of shape (n, len(columns_)), C-contiguous
        """
        table, out = self._read_fitted(X), self.transform(X)
        features = {column.feature: column.name for column in self.columns_ if column.kind == "effect"}
        for effects in read_effects(table, features, targets, *check_weight(sample_weight, len(out))):
            effects.write(self.columns_, out)
        return out

    def transform(self, X: Any, out: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:  # noqa: N803
        """Encode a table. Each row is encoded independently of the others.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features_in_)
            The table; its type may differ from the one in fit.
        out : float32 array of shape (n, len(columns_)), optional
            The C-contiguous array to write to; by default a new one.

        Returns
        -------
        float32 array of shape (n, len(columns_)), C-contiguous
        """
        table = self._read_fitted(X)
        shape = (table.shape[0], len(self.columns_))
        if out is None:
            out = np.empty(shape, dtype=np.float32)
        elif out.shape != shape or out.dtype != np.float32 or not out.flags.c_contiguous or not out.flags.writeable:
            raise InputValueError(
                f"out must be a writeable C-contiguous float32 array of shape {shape}, "
                f"got out.shape={out.shape}, out.dtype={out.dtype}"
            )
        self._plan.write(table, out)
        return out

    def scaling_of(self, X: Any) -> npt.NDArray[np.float64] | None:  # noqa: N803
        """Return how to encode an array, if encoding it only takes scaling and clipping its columns.

        Parameters
        ----------
        X : array-like or DataFrame
            A table as for `transform`. It is not checked for infinite and missing values.

        Returns
        -------
        float array of shape (4, n_features_in_) or None
            Rows of centers, scales, lower and upper limits, if X is a C-contiguous array of floating point numbers and
            all columns of the matrix are plain numbers; None otherwise.
        """
        if not isinstance(X, np.ndarray) or X.ndim != 2:
            return None
        check_features(self, Table.of_array(X))
        return self._plan.scaling if self._plan.only_scales(X) else None

    def get_state(self) -> dict[str, Any]:
        """Return everything that was learned as a dict of plain types, which survives json exactly.

        Examples
        --------
        >>> encoder = TableEncoder().fit([[1.0], [2.0]])
        >>> TableEncoder.from_state(encoder.get_state()).columns_ == encoder.columns_
        True
        """
        names = getattr(self, "feature_names_in_", None)
        return {
            "format": _FORMAT,
            "max_categories": int(self.max_categories),
            "clip": float(self.clip),
            "pieces": int(self.pieces),
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else names.tolist(),
            "columns": [_column_state(column) for column in self.columns_],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Make an encoder from what ``get_state`` returned.

        Parameters
        ----------
        state : dict

        Returns
        -------
        TableEncoder
            A fitted encoder.
        """
        if state.get("format") != _FORMAT:
            raise InputValueError(
                f"The state of an encoder must have the format {_FORMAT}, got {state.get('format')!r}. "
                "It may be from a newer version of prunus"
            )
        encoder = cls(max_categories=state["max_categories"], clip=state["clip"], pieces=state["pieces"])
        columns = [OutputColumn(**column) for column in state["columns"]]
        encoder._set(columns, state["n_features_in"], state["feature_names_in"])
        return encoder

    def _set(self, columns: list[OutputColumn], n_features: int, names: Sequence[str] | None) -> None:
        self.columns_ = columns
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._plan = Plan(columns)

    def _describe_all(
        self, table: Table, kept: npt.NDArray[np.bool_] | None, weight: npt.NDArray[np.float64] | None
    ) -> list[tuple[list[OutputColumn], list[OutputColumn]]]:
        """What `_describe` returns for each feature; those of a large table are described by several threads."""
        features, threads = range(table.shape[1]), min(get_num_threads(), table.shape[1])
        if threads < 2 or table.shape[0] * table.shape[1] < _MANY_VALUES:
            return [self._describe(table, feature, kept, weight) for feature in features]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda feature: self._describe(table, feature, kept, weight), features))

    def _describe(
        self, table: Table, feature: int, kept: npt.NDArray[np.bool_] | None, weight: npt.NDArray[np.float64] | None
    ) -> tuple[list[OutputColumn], list[OutputColumn]]:
        """Columns of the matrix for a feature, and the one that marks its missing numbers, if any."""
        name = table.names[feature] if table.names is not None else f"x{feature}"
        column = read(table.column(feature), name)
        if isinstance(column, Labels):
            labels = column if kept is None else Labels(column.codes[kept], column.levels)
            if (labels.codes >= 0).any():
                return category_outputs(feature, name, labels, weight, self.max_categories), []
            column = Numbers("number", np.full(column.codes.size, np.nan))
        values = np.ascontiguousarray(column.values, dtype=np.float64)
        if np.isinf(values).any():
            raise infinity(name)
        values = values if kept is None else values[kept]
        spread = measure(values, weight)
        return number_columns(
            feature, name, column.kind, spread, values, weight, clip=float(self.clip), pieces=int(self.pieces)
        )

    def _read_fitted(self, X: Any) -> Table:  # noqa: N803
        """A table whose columns are those of fit."""
        if not hasattr(self, "columns_"):
            raise NotFittedError("This TableEncoder instance is not fitted yet. Call 'fit' before using 'transform'.")
        table = read_table(X)
        check_features(self, table)
        return table

    def _check_options(self) -> None:
        levels: object = self.max_categories
        if not isinstance(levels, Integral) or int(levels) < 1:
            raise InputValueError(f"max_categories must be an integer of at least 1, got {levels!r}")
        clip: object = self.clip
        if not isinstance(clip, Real) or not 0 < float(clip) < inf:
            raise InputValueError(f"clip must be a positive number, got {clip!r}")
        pieces: object = self.pieces
        if not isinstance(pieces, Integral) or int(pieces) < 0:
            raise InputValueError(f"pieces must be an integer of at least 0, got {pieces!r}")


def _column_state(column: OutputColumn) -> dict[str, Any]:
    """The column as a dict, without what only some columns have."""
    return {k: v for k, v in asdict(column).items() if v is not None or k not in ("effects", "missing", "unit")}
