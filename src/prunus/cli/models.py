"""Model files on the command line: reading them, and matching their columns and targets with those of tables."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import prunus
from prunus.cli.columns import ORDERS, first_wrong
from prunus.cli.command import quoted, shortened
from prunus.cli.errors import CliError
from prunus.cli.reading import InputTable, check_finite, similar
from prunus.cli.targets import read_classes, read_target
from prunus.files import is_same_file, is_special

__all__ = [
    "check_ending",
    "check_other",
    "check_output",
    "check_outputs",
    "check_table_name",
    "columns_as_text",
    "date_orders",
    "finish_model",
    "is_classifier",
    "is_clusterer",
    "is_forest",
    "is_hard",
    "is_readable",
    "load_estimator",
    "needed_columns",
    "read_truth",
    "text_columns",
    "trees_of",
]

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".feather")
"""How the names of tables that are written end."""
_NUMERIC = ("number", "boolean", "datetime", "duration")


def check_output(path: str | Path, *, force: bool, inputs: Sequence[str | Path | None] = ()) -> Path:
    """The path of a file to write; an error if it exists and must not be replaced, or its folder cannot be used.

    Parameters
    ----------
    path : str or path
    force : bool
        Whether it may replace a file.
    inputs : sequence of str, path or None
        The files that are read, which it must not replace in any case; "-" is stdin, and None is no file.

    Returns
    -------
    Path
    """
    file = Path(path)
    if not str(path):
        raise CliError("the file to write must have a name, got ''")
    if file.is_dir():
        raise CliError(f"{path} is a folder; name a file in it")
    if is_special(file):
        return file
    check_other(file, inputs)
    if file.exists() and not force:
        raise CliError(f"{path} exists; add --force to replace it, or name another file")
    folder = Path(os.path.realpath(file)).parent if file.is_symlink() else file.parent
    if not folder.is_dir():
        raise CliError(f"there is no folder {folder}; create it first")
    if not os.access(folder, os.W_OK):
        raise CliError(f"{path}: you may not write to the folder {folder}; name a file in another one")
    return file


def check_outputs(
    paths: Mapping[str, str | None], options: argparse.Namespace, inputs: Sequence[str | Path | None]
) -> dict[str, Path]:
    """The paths of files to write, by the options that name them; an error also if two of them are one file."""
    found: dict[str, Path] = {}
    for option, path in paths.items():
        if path is None:
            continue
        file = check_output(path, force=options.force, inputs=inputs)
        for other, taken in found.items():
            if not is_special(file) and is_same_file(file, taken):
                raise CliError(f"{option} must name another file than {other}, got {path}")
        found[option] = file
    return found


def check_other(path: Path, inputs: Sequence[str | Path | None]) -> None:
    """Raise an error if a file to write, or to remove, is one of those that are read."""
    for file in inputs:
        if file is not None and (_is_stdin(path) if str(file) == "-" else is_same_file(path, file)):
            read = "stdin" if str(file) == "-" else file
            raise CliError(f"the file to write must differ from {read}, which is read, got {path}")


def _is_stdin(path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), path.stat())
    except (OSError, ValueError, AttributeError):  # there is no such file, or stdin is none
        return False


def check_table_name(file: Path, option: str) -> None:
    """Raise an error if the name of a table to write does not say its format; a pipe gets CSV, whatever its name."""
    if not is_special(file):
        check_ending(file, option, TABLES)


def check_ending(path: Path, option: str, known: Sequence[str]) -> None:
    """Raise an error if the name of a file does not end with one of these."""
    if not str(path).lower().endswith(tuple(known)):
        raise CliError(f"{option} must name a file that ends in {', '.join(known[:-1])} or {known[-1]}, got {path}")


def load_estimator(path: str) -> Any:
    """The estimator in a file."""
    model = prunus.load(path)
    if isinstance(model, prunus.nn.TreeModel):
        raise CliError(
            f"{path} must be a model that `prunus fit` or `prunus cluster` wrote, got a {type(model).__name__}, which "
            "is a torch module and does not take tables"
        )
    return model


def finish_model(model: Any, date_orders: Mapping[str, str], target_name: str | None = None) -> None:
    """Note what a model must know about its table, and reset the options that belong to this run alone."""
    model.set_params(verbose=0)
    if not is_readable(model):
        model.set_params(training__checkpoint=None)
    if target_name is not None:
        model.target_name_ = target_name
    model.date_orders_ = date_orders


def is_classifier(model: Any) -> bool:
    """Whether a model predicts classes."""
    from sklearn import base  # it takes a second to import

    return bool(base.is_classifier(model))


def is_clusterer(model: Any) -> bool:
    """Whether a model finds clusters."""
    return isinstance(model, prunus.ArgminTreeClusterer)


def is_forest(model: Any) -> bool:
    """Whether a model consists of several trees."""
    return isinstance(model, (prunus.ArgminForestClassifier, prunus.ArgminForestRegressor))


def is_readable(model: Any) -> bool:
    """Whether a model is a readable tree."""
    return isinstance(model, (prunus.ReadableTreeClassifier, prunus.ReadableTreeRegressor))


def is_hard(model: Any) -> bool:
    """Whether each row follows one path, in all trees of a model."""
    return is_readable(model) or all(tree.tree_.is_hard for tree in trees_of(model))


def trees_of(model: Any) -> list[Any]:
    """The trees of a forest, or the model itself if it is a tree."""
    return list(model.estimators_) if is_forest(model) else [model]


def _columns_of(model: Any) -> Sequence[Any]:
    """What a model knows of the columns of its table: their names and kinds, among others."""
    columns: Sequence[Any] = model.columns_ if is_readable(model) else model.encoder_.columns_
    return columns


def text_columns(model: Any) -> set[str]:
    """The columns that were text in training, and must be read as text again."""
    columns = _columns_of(model)
    numeric = {column.name for column in columns if column.kind in _NUMERIC}
    return {column.name for column in columns} - numeric


def date_orders(model: Any) -> dict[str, str]:
    """The order of day and month in columns of text that were read as dates in training."""
    orders: dict[str, str] = getattr(model, "date_orders_", {})
    return orders


def needed_columns(model: Any, source: InputTable, options: argparse.Namespace) -> Any:
    """The columns of a table that a model was trained on, in its order; all others are ignored."""
    names, frame = getattr(model, "feature_names_in_", None), source.frame
    if names is None:  # it was trained on an array
        if frame.shape[1] != model.n_features_in_:
            raise CliError(
                f"{source.name} must have {model.n_features_in_} columns, as the table without names that "
                f"{options.model} was "
                f"trained on, got {frame.shape[1]}; leave out the others"
            )
        return frame.to_numpy()
    missing = [name for name in names if name not in frame.columns]
    if missing:
        others = [name for name in frame.columns if name not in set(names)]
        plural = "s" if len(missing) > 1 else ""
        raise CliError(
            f"{source.name} lacks the column{plural} {shortened(missing)}, which {options.model} needs; "
            f"{similar(missing[0], others or list(frame.columns))}"
        )
    found = frame[list(names)]
    _check_kinds(model, source, found, options.dates)
    return found


def _check_kinds(model: Any, source: InputTable, frame: Any, order: str | None) -> None:
    """Raise an error that names the line if a column of numbers or dates contains text."""
    from pandas import to_numeric
    from pandas.api.types import is_numeric_dtype, is_string_dtype

    check_finite(source, frame)
    for column in _columns_of(model):
        values = frame[column.name]
        if column.kind == "datetime" and is_string_dtype(values) and values.notna().any():
            raise _no_date(source, values, order, date_orders(model).get(column.name))
        if column.kind in ("number", "boolean") and not is_numeric_dtype(values):
            wrong = (values.notna() & to_numeric(values, errors="coerce").isna()).to_numpy()
            if wrong.any():
                row = int(np.argmax(wrong))
                raise CliError(
                    f"{source.name}, {source.place(row)}: column {quoted(column.name)} must contain numbers, as in "
                    f"training, got {quoted(values.iloc[row])}; correct it, or leave the field empty"
                )


def _no_date(source: InputTable, values: Any, asked: str | None, known: str | None) -> CliError:
    """The error for a column of dates that contains text, or dates in another order than asked for or known."""
    row = first_wrong(values, asked or known)
    if asked is not None:
        wanted, cure = f"dates that are {asked}, as --dates says", "correct it, or leave the field empty"
    elif known is not None:
        other = next(order for order in ORDERS if order != known)
        wanted, cure = f"dates that are {known}, as in training", f"correct it, or use --dates {other}"
    else:
        wanted, cure = "dates, as in training", "write them as 2025-12-31, or use --dates day-first or month-first"
    return CliError(
        f"{source.name}, {source.place(row)}: column {quoted(values.name)} must contain {wanted}, got "
        f"{quoted(values.iloc[row])}; {cure}"
    )


def columns_as_text(model: Any, target: str | None) -> set[str]:
    """Columns to read as text: those that were text in training, and the target if the classes are text."""
    columns = text_columns(model)
    if target is not None and is_classifier(model) and isinstance(model.classes_[0], str):
        columns.add(target)
    return columns


def read_truth(model: Any, source: InputTable, options: argparse.Namespace) -> tuple[Any, Any]:
    """The rows that have a target, and their targets; None if the options name no target."""
    if options.target is None:
        return np.ones(len(source.frame), dtype=bool), None
    if is_clusterer(model):
        return read_classes(source, options.target)
    if not is_classifier(model):
        target = read_target(source, options.target, "regression", varied=False)
        return target.given, target.values
    target = read_target(source, options.target, "classification", varied=False)
    column = source.column(options.target, "--target")
    return target.given, _as_classes(target.values.tolist(), column[target.given].tolist(), model, source, options)


def _as_classes(labels: list[Any], read: list[Any], model: Any, source: InputTable, options: argparse.Namespace) -> Any:
    """Find the classes of a model by their text; else by value, where it learned 1 from 1.0 or True from true."""
    classes = model.classes_.tolist()
    by_text, by_value = {str(known): known for known in classes}, {known: known for known in classes}
    if all(str(label) in by_text for label in labels):
        found = [by_text[str(label)] for label in labels]
    elif all(value in by_value for value in read):
        found = [by_value[value] for value in read]
    else:
        unknown = sorted({str(label) for label in labels} - set(by_text))
        raise CliError(
            f"{source.name}: the target {options.target!r} must contain the classes of {options.model}, "
            f"{shortened(classes)}, got {shortened(unknown, 3)}"
        )
    return np.array(found, dtype=model.classes_.dtype)
