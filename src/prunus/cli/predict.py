"""``prunus predict``: predictions for the rows of a table."""

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np

from prunus.cli.command import Outcome, flag, model_argument, repeated, say, value
from prunus.cli.errors import CliError, require
from prunus.cli.models import (
    check_output,
    check_table_name,
    date_orders,
    is_classifier,
    is_clusterer,
    is_hard,
    is_readable,
    load_estimator,
    needed_columns,
    text_columns,
)
from prunus.cli.reading import (
    add_data_option,
    add_memory_option,
    add_reading_options,
    frame_of,
    input_files,
    open_data,
    read_data,
    shown,
)
from prunus.cli.writing import csv_text, write_predictions, write_table

__all__ = ["add_arguments", "run"]

BINARY = (".parquet", ".pq", ".feather", ".arrow")
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?")
REASONS = 3
"""Number of reasons that are written for each row."""
CHUNK = 10_000
"""Number of rows that are explained at a time."""
EPILOG = "Example: prunus predict houses.prunus new.csv > prices.csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``predict``."""
    model_argument(parser)
    add_data_option(parser)
    add_memory_option(parser)
    value(parser, "--out", "FILE", "write to FILE, .csv, .tsv, .parquet or .feather, instead of CSV on stdout")
    flag(parser, "--force", "replace FILE if it exists")
    flag(parser, "--proba", "also write the probabilities of the classes")
    flag(parser, "--hard", "let rows follow one path through the tree, as a person would")
    value(
        parser,
        "--device",
        "NAME",
        "where to compute: cpu, cuda, ... (default: a GPU if there is one, the tree has a network, and the table "
        "has many rows)",
    )
    flag(
        parser,
        "--explain",
        "also write the three strongest reasons for each prediction: columns, their values, and how much they "
        "moved the prediction, or the probability of the class, compared with a row of typical values",
    )
    repeated(parser, "--copy", "COLUMN", "copy a column of DATA, such as an id, as it is written there; repeatable")
    flag(
        parser,
        "--guard-formulas",
        "in CSV, write an apostrophe before text that spreadsheets would take for a formula: text that begins "
        "with =, +, -, @, a tab or a carriage return, and is not a number",
    )
    add_reading_options(parser)


def run(options: argparse.Namespace) -> Outcome:
    """Load the model, read the table, and write predictions."""
    inputs = [options.model, *input_files(options.data)]
    path = None if options.out is None else check_output(options.out, force=options.force, inputs=inputs)
    if path is not None:
        check_table_name(path, "--out")
    model = load_estimator(options.model)
    _check_options(model, options)
    data = open_data(options)
    if not isinstance(data, str) and not data.fits_into_memory:
        return _predict_files(model, data, path, options)
    source = read_data(data, options, text_columns(model), date_orders(model))
    copied = {name: source.copied(name) for name in options.copy}
    predicted = _predictions(model, needed_columns(model, source, options), options)
    table = require("pandas", "tables").DataFrame(copied | predicted)
    if options.guard_formulas:
        table = guarded(table)
    if path is None:
        record = {"rows": len(table), **{name: table[name].tolist() for name in table.columns}}
        return Outcome(record, "" if options.json else csv_text(table))
    write_table(table, str(path))
    say(options, f"{len(table)} predictions were written to {path}")
    return Outcome({"rows": len(table), "out": str(path)}, "")


def _predict_files(model: Any, everything: Any, path: Path | None, options: argparse.Namespace) -> Outcome:
    """Predict a table beyond memory, part by part."""
    from prunus.data.chunks import plain_text

    if path is None:
        raise CliError(f"--out must name a file for a table that is read in parts, {shown(everything.paths)}, got none")
    names = list(getattr(model, "feature_names_in_", everything.columns))
    table = open_data(options, list(dict.fromkeys([*names, *options.copy])))
    assert not isinstance(table, str)
    if len(names) != model.n_features_in_:
        raise CliError(
            f"{shown(table.paths)} must have {model.n_features_in_} columns, as in training, got {len(names)}; leave "
            "out the others"
        )

    def predict(batch: Any) -> dict[str, Any]:
        copied = plain_text(batch.select(options.copy))
        return dict(zip(options.copy, copied.columns, strict=True)) | _predictions(model, batch.select(names), options)

    rows = write_predictions(table, predict, path, options)
    say(options, f"{rows} predictions were written to {path}")
    return Outcome({"rows": rows, "out": str(path)}, "")


def guarded(table: Any) -> Any:
    """Return a table with an apostrophe before names and texts that spreadsheets would take for formulas.

    Examples
    --------
    >>> import pandas
    >>> guarded(pandas.DataFrame({"note": ["=1+1", "-1.5", "fine"]}))["note"].tolist()
    ["'=1+1", '-1.5', 'fine']
    """
    return table.map(_guarded).rename(columns=_guarded)


def _guarded(cell: Any) -> Any:
    risky = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if risky else cell


def _check_options(model: Any, options: argparse.Namespace) -> None:
    if options.proba and not is_classifier(model):
        raise CliError(f"the model must be a classifier for --proba, got {type(model).__name__}; leave out --proba")
    if options.hard and is_clusterer(model):
        raise CliError("--hard must be left out for clusters: their rows always follow one path")
    if options.explain and is_clusterer(model):
        raise CliError("--explain must be left out for clusters: they predict nothing that columns could move")
    if options.explain and options.hard and not is_hard(model):
        raise CliError("--explain must be left out with --hard: reasons are those of predictions along all routes")
    if options.device is not None and is_readable(model):
        raise CliError("--device must be left out for readable trees: they predict on the CPU")
    if options.guard_formulas and (options.json or str(options.out or "").endswith(BINARY)):
        raise CliError("--guard-formulas must be left out unless CSV is written: other formats have no formulas")
    for name in options.copy:
        if name in _names(model, options):
            raise CliError(
                f"--copy must name columns other than those with the predictions, got {name!r}; rename the column in "
                f"{shown(options.data)}"
            )


def _names(model: Any, options: argparse.Namespace) -> list[str]:
    """The names of the columns with predictions and reasons."""
    if is_clusterer(model):
        return ["cluster"]
    reasons = [f"reason {i}" for i in range(1, REASONS + 1) if options.explain]
    if is_classifier(model):
        return ["prediction", *(f"probability {label}" for label in model.classes_ if options.proba), *reasons]
    n = model.target_.n_outputs
    return [*(["prediction"] if n == 1 else [f"prediction {i}" for i in range(n)]), *reasons]


def _predictions(model: Any, X: Any, options: argparse.Namespace) -> dict[str, Any]:  # noqa: N803
    how = {} if is_readable(model) else {"device": options.device}
    if not is_readable(model) and not is_clusterer(model):
        how["hard"] = options.hard
    if is_clusterer(model) or is_classifier(model):
        columns = [model.predict(X, **how)]
        if options.proba:
            columns += list(model.predict_proba(X, **how).T)
    else:
        values = np.asarray(model.predict(X, **how))
        columns = list(values.reshape(len(values), -1).T)
    if options.explain:
        columns += list(_reasons(model, frame_of(X) if hasattr(X, "schema") else X).T)
    return dict(zip(_names(model, options), columns, strict=True))


def _reasons(model: Any, X: Any) -> Any:  # noqa: N803
    """The strongest reasons for each prediction, (n, REASONS); empty texts where there are fewer."""
    from prunus.describe.explain import top_reasons

    found = [row for begin in range(0, len(X), CHUNK) for row in top_reasons(model, X[begin : begin + CHUNK], REASONS)]
    return np.array([row + [""] * (REASONS - len(row)) for row in found], dtype=object).reshape(len(X), REASONS)
