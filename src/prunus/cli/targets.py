"""The column to predict: its values for the estimators, and whether they are classes or numbers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prunus.cli.columns import INT64, whole_or_text
from prunus.cli.command import shortened
from prunus.cli.delimited import MOSTLY_NUMBERS
from prunus.cli.errors import CliError, require
from prunus.cli.reading import InputTable

__all__ = ["TASKS", "Target", "read_classes", "read_target"]

TASKS = ("classification", "regression")
MAX_CLASSES = 20
"""Whole numbers with more distinct values than this are not taken for classes."""
MIN_ROWS_PER_CLASS = 5
"""Whole numbers with fewer rows per distinct value, on average, are not taken for classes."""


@dataclass(frozen=True)
class Target:
    """The column to predict.

    Parameters
    ----------
    name : str
        Name of the column.
    values : array of shape (number of rows with a target,)
        The targets that are not missing.
    given : bool array of shape (n,)
        Which rows have a target.
    task : {"classification", "regression"}
    why : str
        Why this task was chosen, for the user.
    notes : list of str
        What was found out about the column, for the user.
    """

    name: str
    values: Any
    given: Any
    task: str
    why: str
    notes: list[str] = field(default_factory=list)

    @property
    def is_classes(self) -> bool:
        """Whether classes are predicted, and not numbers."""
        return self.task == "classification"

    @property
    def description(self) -> str:
        """A short description for people."""
        if not self.is_classes:
            low, high = np.min(self.values), np.max(self.values)
            return f"{self.name}: numbers from {low:.4g} to {high:.4g}"
        classes = np.unique(self.values).tolist()
        return f"{self.name}: {len(classes)} classes, {shortened(classes)}"


def read_target(source: InputTable, name: str, task: str = "auto", *, varied: bool = True) -> Target:
    """Read the column to predict.

    Classes of delimited text are the texts of the fields, without spaces around them; if all of them are whole numbers
    that print as they are written, they are these numbers.

    Parameters
    ----------
    source : InputTable
    name : str
        Name of the column.
    task : {"auto", "classification", "regression"}
    varied : bool
        Whether the column must have different values, as it must for learning.

    Returns
    -------
    Target
    """
    column = source.column(name, "--target")
    types = require("pandas", "tables").api.types
    given = _given(source, column)
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        raise CliError(f"{source.name}: the target column {name!r} holds dates; make them numbers, such as days, first")
    notes = [] if given.all() else [f"{int((~given).sum())} rows without a target are left out"]
    present = column[given]
    numeric = types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
    if task == "auto" and not numeric:
        _check_not_numbers(source, column)
    labels: Any = None if task == "regression" or (numeric and not _whole(present)) else _labels(source, present)
    chosen, why = (task, "--task") if task != "auto" else _guess(present, labels, numeric=numeric)
    if chosen == "classification" and labels is None:
        raise _not_whole(source, present)
    if varied and (present if labels is None else labels).nunique() == 1:
        raise CliError(
            f"{source.name}: the target column {name!r} is always {str(present.iloc[0])!r}; there is nothing to learn"
        )
    values = _numbers(source, column) if chosen == "regression" else labels.to_numpy()
    if varied and chosen == "classification":
        _check_classes(source, name, values)
    return Target(name, values, given, chosen, why, notes)


def read_classes(source: InputTable, name: str) -> tuple[Any, Any]:
    """Read a column of classes that clusters are compared with: which rows have one, and the texts of those.

    The texts are those of the classes that `read_target` reads, but there may be any number of them, and numbers that
    are not whole.
    """
    column = source.column(name, "--target")
    given = _given(source, column)
    present = column[given]
    numeric = require("pandas", "tables").api.types.is_numeric_dtype(present)
    labels = present if numeric and source.written is None and not _whole(present) else _labels(source, present)
    return given, labels.map(str).to_numpy(dtype=object)


def _whole(numbers: Any) -> bool:
    return bool((numbers == numbers.round()).all())


def _given(source: InputTable, column: Any) -> Any:
    """Return which rows have a target; raise an error if none has, or if it has parts."""
    _check_single(source, column)
    given = column.notna().to_numpy()
    if not given.any():
        raise CliError(f"{source.name}: the target column {column.name!r} is empty; name another one")
    return given


def _check_single(source: InputTable, column: Any) -> None:
    """Raise an error for lists and other values that have parts."""
    if column.dtype != object:
        return
    parts = column.map(lambda value: isinstance(value, (list, tuple, dict, set, np.ndarray))).to_numpy(dtype=bool)
    if parts.any():
        row = int(parts.argmax())
        raise CliError(
            f"{source.name}, {source.place(row)}: the target column {column.name!r} must contain single values, got "
            f"a {type(column.iloc[row]).__name__}; name another column"
        )


def _labels(source: InputTable, values: Any) -> Any:
    """Return the classes of the values, which are not missing, as a Series of whole numbers, booleans or texts."""
    types = require("pandas", "tables").api.types
    if source.written is not None:
        return whole_or_text(source.written(values.name)[values.index].str.strip())
    if types.is_bool_dtype(values):
        return values.astype(bool)
    if types.is_numeric_dtype(values) and _fit_64_bits(values):
        return values.astype(np.int64)
    from prunus.data.columns import label  # here: it comes with scikit-learn, which help does without

    return values.map(label).astype(object)


def _fit_64_bits(numbers: Any) -> bool:
    low, high = numbers.min(), numbers.max()
    return bool(low >= INT64.min and (high <= INT64.max if isinstance(high, (int, np.integer)) else high < 2.0**63))


def _guess(values: Any, labels: Any, *, numeric: bool) -> tuple[str, str]:
    """Choose the task; the labels are None if the values are numbers that are not whole."""
    if not numeric:
        return "classification", "the target is not a number"
    distinct = 0 if labels is None else labels.nunique()
    if distinct == 2 or 0 < distinct <= min(MAX_CLASSES, len(values) / MIN_ROWS_PER_CLASS):
        return "classification", f"the target has {distinct} different whole numbers; else use --task regression"
    return "regression", f"the target has {values.nunique()} different numbers"


def _check_not_numbers(source: InputTable, column: Any) -> None:
    """Raise an error for text among numbers, which is probably a mistake and not a class."""
    numbers = require("pandas", "tables").to_numeric(column, errors="coerce")[column.notna()]
    if numbers.notna().mean() > MOSTLY_NUMBERS and numbers.nunique() > 2 and numbers.isna().any():
        raise _not_a_number(source, column, "as most of them are", "correct it, or use --task classification")


def _not_a_number(source: InputTable, column: Any, why: str, cure: str) -> CliError:
    numbers = require("pandas", "tables").to_numeric(column, errors="coerce")
    row = int((column.notna() & numbers.isna()).to_numpy().argmax())
    return CliError(
        f"{source.name}, {source.place(row)}: the target {column.name!r} must be a number, {why}, got "
        f"{str(column.iloc[row])!r}; {cure}"
    )


def _numbers(source: InputTable, column: Any) -> Any:
    types = require("pandas", "tables").api.types
    if not types.is_numeric_dtype(column):
        raise _not_a_number(source, column, "for regression", "correct it, or name another column or task")
    values = column.dropna().to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        row = int(np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan)).argmax())
        raise CliError(f"{source.name}, {source.place(row)}: the target {column.name!r} must be finite; correct it")
    return values


def _not_whole(source: InputTable, values: Any) -> CliError:
    return CliError(
        f"{source.name}: the target {values.name!r} must have classes for classification, got numbers such as "
        f"{values[values != values.round()].iloc[0]}; use --task regression"
    )


def _check_classes(source: InputTable, name: str, values: Any) -> None:
    distinct = len(np.unique(values))
    if distinct > max(MIN_ROWS_PER_CLASS, 0.5 * len(values)):
        raise CliError(
            f"{source.name}: the target {name!r} has {distinct} different values in {len(values)} rows, too many for "
            "classes; name another column"
        )
