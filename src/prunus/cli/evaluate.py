"""``prunus evaluate``: compare predictions with the truth."""

import argparse
from typing import Any

import numpy as np

from prunus.cli.command import Outcome
from prunus.cli.mistakes import Mistake
from prunus.cli.models import is_classifier, is_clusterer, load_estimator, needed_columns, text_columns
from prunus.cli.reading import Source, add_reading_options, read_source, read_target
from prunus.cli.rendering import pairs, shortened
from prunus.cli.scores import cluster_scores, scores

__all__ = ["add_arguments", "run"]

EPILOG = "Example: prunus evaluate houses.prunus test.csv --target price"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``evaluate``."""
    parser.add_argument("model", metavar="MODEL", help="a file that `prunus fit` or `prunus cluster` wrote")
    parser.add_argument(
        "data", metavar="DATA", nargs="?", default="-", help="a table: CSV, Parquet or Feather; - is stdin"
    )
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="the column with the true values (default: the one that was learned); for clusters, known classes",
    )
    add_reading_options(parser)


def run(options: argparse.Namespace) -> Outcome:
    """Load the model, read the table and compare."""
    model = load_estimator(options.model)
    if options.target is None and not is_clusterer(model):
        options.target = getattr(model, "target_name_", None)
        if options.target is None:
            raise Mistake(f"--target must name the column with the truth: {options.model} does not know its name")
    source = read_source(options.data, options, _as_text(model, options.target))
    X = needed_columns(model, source, options.model)  # noqa: N806
    given, y = _truth(model, source, options)
    X = X[given]  # noqa: N806
    found = cluster_scores(model, X, y) if is_clusterer(model) else scores(model, X, y)
    record: dict[str, Any] = {"model": options.model, "data": source.name, "rows": int(given.sum()), **found}
    skipped = int((~given).sum())
    if skipped:
        record["rows_without_target"] = skipped
    return Outcome(record, pairs((name.replace("_", " "), value) for name, value in record.items()))


def _as_text(model: Any, target: str | None) -> set[str]:
    """Columns to read as text: those that were text in training, and the target if the classes are text."""
    columns = text_columns(model)
    if target is not None and is_classifier(model) and isinstance(model.classes_[0], str):
        columns.add(target)
    return columns


def _truth(model: Any, source: Source, options: argparse.Namespace) -> tuple[Any, Any]:
    """The rows that have a target, and their targets."""
    if options.target is None:
        return np.ones(len(source.frame), dtype=bool), None
    column = source.column(options.target, "--target")
    if is_clusterer(model):
        given = column.notna().to_numpy()
        return given, column[given].astype(str).to_numpy(dtype=object)
    if not is_classifier(model):
        target = read_target(source, options.target, "regression", varied=False)
        return target.given, target.values
    target = read_target(source, options.target, "classification", varied=False)
    unknown = sorted(set(target.values.tolist()) - set(model.classes_.tolist()), key=str)
    if unknown:
        raise Mistake(
            f"{source.name}: the target {options.target!r} must contain the classes of {options.model}, "
            f"{shortened(model.classes_.tolist())}, got {shortened(unknown, 3)}"
        )
    return target.given, target.values
