"""``prunus evaluate``: compare predictions with the truth."""

import argparse
from typing import Any

from prunus.cli.command import Outcome, model_argument, pairs, table_argument, value
from prunus.cli.description import cluster_scores, scores
from prunus.cli.errors import CliError
from prunus.cli.models import columns_as_text, date_orders, is_clusterer, load_estimator, needed_columns, read_truth
from prunus.cli.reading import add_reading_options, read_input

__all__ = ["add_arguments", "run"]

EPILOG = "Example: prunus evaluate houses.prunus test.csv --target price"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``evaluate``."""
    model_argument(parser)
    table_argument(parser)
    value(
        parser,
        "--target",
        "COLUMN",
        "the column with the true values (default: the one that was learned); for clusters, known classes",
    )
    add_reading_options(parser)


def run(options: argparse.Namespace) -> Outcome:
    """Load the model, read the table and compare."""
    model = load_estimator(options.model)
    if options.target is None and not is_clusterer(model):
        options.target = getattr(model, "target_name_", None)
        if options.target is None:
            raise CliError(f"--target must name the column with the truth: {options.model} does not know its name")
    source = read_input(options.data, options, columns_as_text(model, options.target), date_orders(model))
    X = needed_columns(model, source, options)  # noqa: N806
    given, y = read_truth(model, source, options)
    X = X[given]  # noqa: N806
    found = cluster_scores(model, X, y) if is_clusterer(model) else scores(model, X, y)
    record: dict[str, Any] = {"model": options.model, "data": source.name, "rows": int(given.sum()), **found}
    skipped = int((~given).sum())
    if skipped:
        record["rows_without_target"] = skipped
    return Outcome(record, pairs((name.replace("_", " "), value) for name, value in record.items()))
