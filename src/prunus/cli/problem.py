"""A table prepared for learning: its features, its target, and the rows that are held out."""

import argparse
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from prunus.cli.columns import Dropped, drop_useless
from prunus.cli.command import quoted, repeated, table_argument, value
from prunus.cli.description import Scores, mean_scores, scores
from prunus.cli.errors import CliError
from prunus.cli.models import is_forest, is_readable
from prunus.cli.reading import InputTable, add_data_option, check_finite, frame_of, open_data, read_input, shown
from prunus.cli.targets import TASKS, Target, read_target

if TYPE_CHECKING:
    from prunus.data import FileTable

__all__ = [
    "FileProblem",
    "Problem",
    "add_column_options",
    "add_problem_options",
    "features",
    "hold_out",
    "read_file_problem",
    "read_problem",
]

VALIDATION_FRACTION = 0.15
SMALL = 300
"""With fewer rows than this, `prunus fit` holds out none: the limit of the estimators, whose import takes seconds."""


@dataclass(frozen=True)
class Problem:
    """The data of a supervised task."""

    source: InputTable
    target: Target
    dropped: list[Dropped]
    X: Any
    """Features of the rows that have a target."""
    weight: Any
    train: npt.NDArray[np.int64]
    valid: npt.NDArray[np.int64]
    """The rows that are held out; empty if there are none, or if the estimator chooses them."""
    holds_out_itself: bool = False
    """Whether the estimator chooses the rows to hold out, as it does in Python."""

    @property
    def y(self) -> Any:
        """Targets."""
        return self.target.values

    @property
    def n_rows(self) -> int:
        """Number of rows to learn from."""
        return len(self.train)

    @property
    def trains_on_all(self) -> bool:
        """Whether no rows are held out."""
        return not len(self.valid) and not self.holds_out_itself

    @property
    def date_orders(self) -> dict[str, str]:
        """The order of day and month in features that were read from text as dates."""
        return self.source.orders_of(self.X.columns)

    def fit(self, estimator: Any) -> None:
        """Fit an estimator."""
        X, y = self.part(self.train)  # noqa: N806
        weight = None if self.weight is None else self.weight[self.train]
        if is_readable(estimator):  # it judges what it finds on training rows, which it holds out in turn
            estimator.fit(X, y, weight)
        else:
            estimator.fit(X, y, weight, eval_set=self.part(self.valid) if len(self.valid) else None)

    def held_out(self, estimator: Any) -> tuple[int, Scores | None]:
        """How many rows were held out, by the command or by the estimator, and the scores of these rows.

        Each row of a forest is predicted by the trees that have not trained on it.
        """
        rows = self.valid
        if is_readable(estimator):
            return len(rows), scores(estimator, *self.part(rows)) if len(rows) else None
        if self.holds_out_itself and is_forest(estimator):
            predictions = estimator.out_of_bag(self.X, self.y, self.weight)
            rows = np.flatnonzero(~np.isnan(predictions[:, 0]))
            return len(rows), mean_scores(estimator, predictions[rows], self.y[rows]) if len(rows) else None
        if self.holds_out_itself and estimator.validation_rows_ is not None:
            rows = estimator.validation_rows_
        return len(rows), scores(estimator, *self.part(rows)) if len(rows) else None

    def part(self, rows: npt.NDArray[np.int64]) -> tuple[Any, Any]:
        """Features and targets of some rows."""
        return self.X.iloc[rows], self.y[rows]

    def record(self) -> dict[str, Any]:
        """A description of the data, for programs."""
        notes = [*self.source.notes, *self.target.notes]
        found = table_record(self.source.name, self.source.frame.shape, self.X.columns, self.dropped, notes)
        return found | {"target": self.target.name, "task": self.target.task}

    def lines(self) -> list[tuple[str, Any]]:
        """A description of the data, for people."""
        return table_lines(self.record(), ("target", self.target.description), _task_line(self.target))


def table_record(
    name: str, shape: tuple[int, int], features: Collection[str], dropped: Sequence[Dropped], notes: list[str]
) -> dict[str, Any]:
    """A description of a table and of its features, for programs."""
    return {
        "data": name,
        "rows": shape[0],
        "columns": shape[1],
        "features": list(features),
        "dropped": [entry._asdict() for entry in dropped],
        "notes": notes,
    }


def table_lines(record: dict[str, Any], *of_target: tuple[str, Any]) -> list[tuple[str, Any]]:
    """The same for people, with lines about the target."""
    return [
        ("data", f"{record['data']}: {record['rows']} rows, {record['columns']} columns"),
        *(("noticed", note) for note in record["notes"]),
        *(("dropped", f"{entry['column']}: {entry['why']}") for entry in record["dropped"]),
        *of_target,
        ("features", len(record["features"])),
    ]


def _task_line(target: Target) -> tuple[str, str]:
    return "task", f"{target.task} ({target.why})"


def add_column_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the features."""
    repeated(parser, "--drop", "COLUMN", "leave out a column; can be repeated")
    repeated(parser, "--keep", "COLUMN", "keep a column that would be left out as useless; can be repeated")


def add_problem_options(parser: argparse.ArgumentParser, *, files: bool = False) -> None:
    """Add the options that name the data, which may be several files, and the target."""
    if files:
        add_data_option(parser)
    else:
        table_argument(parser)
    value(parser, "--target", "COLUMN", "the column to predict", required=True)
    parser.add_argument(
        "--task",
        choices=["auto", *TASKS],
        default="auto",
        help="the kind of prediction; auto decides by the values of the target (default)",
    )
    value(parser, "--weights", "COLUMN", "the column with the weights of the rows")
    value(
        parser,
        "--validation-fraction",
        "X",
        f"share of the rows that are held out (default: {VALIDATION_FRACTION}; `prunus fit` holds out none "
        f"of fewer than {SMALL} rows, and none for a readable tree, which is judged by cross-validation)",
        type=float,
    )
    add_column_options(parser)


def features(
    source: InputTable, options: argparse.Namespace, *without: str | None, given: Any = None
) -> tuple[Any, list[Dropped]]:
    """The columns to learn from, and the columns that are left out; `given` says which rows have a target."""
    for name in (*options.drop, *options.keep):
        source.column(name, "--drop" if name in options.drop else "--keep")
        if name in options.drop and name in options.keep:
            raise CliError(f"--keep must name other columns than --drop, got {name!r} for both; leave out one of them")
    left_out = {*options.drop, *without}
    candidates = source.frame[[name for name in source.frame.columns if name not in left_out]]
    useless = drop_useless(candidates, options.keep)
    if given is not None:
        useless += _empty_in(candidates.drop(columns=[entry.column for entry in useless])[given], options.keep)
    found = candidates.drop(columns=[entry.column for entry in useless])
    dropped = [*(Dropped(name, "--drop") for name in options.drop), *useless]
    if not found.shape[1]:
        reasons = "; ".join(f"{entry.column}: {entry.why}" for entry in dropped) or "there are no others"
        raise CliError(f"{source.name} has no columns to learn from ({reasons}); use --keep to keep a column")
    check_finite(source, found)
    return found, dropped


def _empty_in(rows: Any, keep: Collection[str]) -> list[Dropped]:
    """The columns that have values only in rows without a target: nothing can be learned from them."""
    empty = (name for name in rows.columns if name not in keep and rows[name].isna().all())
    return [Dropped(name, "empty in all rows with a target") for name in empty]


def read_problem(
    options: argparse.Namespace, *, always_hold_out: bool = False, source: InputTable | None = None
) -> Problem:
    """Read the data that the options name, unless they were read already."""
    source = read_input(options.data, options) if source is None else source
    target = read_target(source, options.target, options.task)
    table, dropped = features(source, options, target.name, options.weights, given=target.given)
    weight = None if options.weights is None else _weights(source, options.weights)[target.given]
    fraction = options.validation_fraction
    if fraction is not None and not 0 <= fraction < 1:
        raise CliError(f"--validation-fraction must be at least 0 and below 1, got {fraction}")
    n = len(target.values)
    by_estimator = fraction is None and not always_hold_out
    if fraction is None:
        fraction = VALIDATION_FRACTION if always_hold_out else 0.0
    classes = target.values if target.is_classes else None
    train, valid = hold_out(n, fraction, options.seed, classes)
    return Problem(source, target, dropped, table[target.given], weight, train, valid, by_estimator)


def hold_out(n: int, fraction: float, seed: int, classes: Any = None) -> tuple[Any, Any]:
    """Rows to train on and rows to hold out, both sorted. Classes are in proportion, and each has training rows.

    >>> train, valid = hold_out(10, 0.3, seed=0)
    >>> len(train), len(valid)
    (7, 3)
    """
    random = np.random.default_rng(seed)
    groups = [np.arange(n)] if classes is None else [np.flatnonzero(classes == label) for label in np.unique(classes)]
    valid = [random.permutation(group)[: min(len(group) - 1, round(fraction * len(group)))] for group in groups]
    held_out = np.sort(np.concatenate(valid))
    return np.setdiff1d(np.arange(n), held_out), held_out


def _weights(source: InputTable, name: str) -> Any:
    from pandas import to_numeric
    from pandas.api.types import is_numeric_dtype

    column = source.column(name, "--weights")
    numbers = column if is_numeric_dtype(column) else to_numeric(column.astype(object), errors="coerce")
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        got = "none" if column.isna().iloc[row] else quoted(column.iloc[row])
        raise CliError(
            f"{source.name}, {source.place(row)}: the weight in column {name!r} must be a finite number of at least 0, "
            f"got {got}; correct it, or name another column"
        )
    return values


@dataclass(frozen=True)
class FileProblem:
    """The data of a supervised task in files that are read in parts. It is used as `prunus.cli.problem.Problem` is."""

    table: "FileTable"
    target: Target
    """That of the first rows."""
    dropped: list[str]
    validation_fraction: float | None

    @property
    def n_rows(self) -> int:
        """Number of rows to learn from."""
        return len(self.table)

    @property
    def trains_on_all(self) -> bool:
        """Whether no rows are held out."""
        return self.validation_fraction == 0

    @property
    def date_orders(self) -> dict[str, str]:
        """None: text in large files is read as dates only if they are written as 2025-12-31."""
        return {}

    def fit(self, estimator: Any) -> None:
        """Fit an estimator."""
        if self.validation_fraction:
            estimator.set_params(training__validation_fraction=self.validation_fraction)
        estimator.fit(self.table)

    def held_out(self, estimator: Any) -> tuple[int, Scores | None]:
        """How many rows were held out, and their scores; trees of a forest hold out rows of their own."""
        from prunus.data.source import held_out_by_hash

        rows = None
        if "valid_loss" in getattr(estimator, "history_", {}):
            rows = self.table.collect(held_out_by_hash(self.table, estimator.training_options.validation_fraction).mask)
        return (0, None) if rows is None else (rows.n_rows, scores(estimator, frame_of(rows.X), rows.y))

    def record(self) -> dict[str, Any]:
        """A description of the data, for programs."""
        columns = len(self.table.columns) + 1 + (self.table.weight is not None) + len(self.dropped)
        dropped = [Dropped(name, "--drop") for name in self.dropped]
        shape, notes = (len(self.table), columns), ["the table is read in parts"]
        found = table_record(shown(self.table.paths), shape, self.table.columns, dropped, notes)
        return found | {"files": len(self.table.paths), "target": self.target.name, "task": self.target.task}

    def lines(self) -> list[tuple[str, Any]]:
        """A description of the data, for people."""
        return table_lines(self.record(), ("target", self.target.name), _task_line(self.target))


def read_file_problem(everything: "FileTable", options: argparse.Namespace) -> FileProblem:
    """Read the names of the columns, and from the first rows what is to be predicted."""
    fraction = options.validation_fraction
    if fraction is not None and not 0 <= fraction < 1:
        raise CliError(f"--validation-fraction must be at least 0 and below 1, got {fraction}")
    left_out = {*options.drop, options.target, options.weights}
    columns = [name for name in everything.columns if name not in left_out]
    for name in (*options.drop, *options.keep):
        if name not in everything.columns:
            raise CliError(f"{shown(everything.paths)} has no column {name!r} for --drop or --keep")
    table = open_data(options, columns, target=options.target, weight=options.weights)
    assert not isinstance(table, str)
    first = next(iter(table.batches(ahead=0)))
    source = InputTable(first.path, frame_of(first.batch))
    source.before_dates = source.frame
    target = read_target(source, options.target, options.task, varied=False)
    return FileProblem(table, target, list(options.drop), fraction)
