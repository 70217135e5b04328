"""``prunus predict``: predictions for the rows of a table."""

import argparse
import io
from typing import Any

import numpy as np

from prunus.cli.command import Outcome, say
from prunus.cli.extras import require
from prunus.cli.mistakes import Mistake
from prunus.cli.models import check_table, is_classifier, is_clusterer, load_estimator, needed_columns, text_columns
from prunus.cli.reading import add_reading_options, read_source
from prunus.files import write_bytes

__all__ = ["add_arguments", "run", "write_table"]

EPILOG = "Example: prunus predict houses.prunus new.csv > prices.csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``predict``."""
    parser.add_argument("model", metavar="MODEL", help="a file that `prunus fit` or `prunus cluster` wrote")
    parser.add_argument(
        "data", metavar="DATA", nargs="?", default="-", help="a table: CSV, Parquet or Feather; - is stdin"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write to FILE, .csv, .tsv, .parquet or .feather, instead of CSV on stdout"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--proba", action="store_true", help="also write the probabilities of the classes")
    parser.add_argument(
        "--hard", action="store_true", help="let rows follow one path through the tree, as a person would"
    )
    parser.add_argument(
        "--copy", action="append", default=[], metavar="COLUMN", help="copy a column of DATA, such as an id; repeatable"
    )
    add_reading_options(parser)


def run(options: argparse.Namespace) -> Outcome:
    """Load the model, read the table, and write predictions."""
    path = None if options.out is None else check_table(options.out, "--out", force=options.force)
    model = load_estimator(options.model)
    _check_options(model, options)
    source = read_source(options.data, options, text_columns(model))
    copied = {name: source.column(name, "--copy") for name in options.copy}
    predicted = _predictions(model, needed_columns(model, source, options.model), options)
    table = require("pandas", "tables").DataFrame(copied | predicted)
    if path is None:
        record = {"rows": len(table), **{name: table[name].tolist() for name in table.columns}}
        return Outcome(record, "" if options.json else table.to_csv(index=False))
    write_table(table, str(path))
    say(options, f"{len(table)} predictions were written to {path}")
    return Outcome({"rows": len(table), "out": str(path)}, "")


def write_table(table: Any, path: str) -> None:
    """Write a DataFrame in the format that belongs to the name of the file, one of `TABLES` or a pipe."""
    name = path.lower()
    content = io.BytesIO()
    if name.endswith(".parquet"):
        table.to_parquet(content, index=False)
    elif name.endswith(".feather"):
        table.to_feather(content)
    else:
        compression = "gzip" if name.endswith(".gz") else None
        separator = "\t" if name.removesuffix(".gz").endswith(".tsv") else ","
        table.to_csv(content, index=False, sep=separator, compression=compression)
    write_bytes(path, content.getvalue())


def _check_options(model: Any, options: argparse.Namespace) -> None:
    if options.proba and not is_classifier(model):
        raise Mistake(f"the model must be a classifier for --proba, got an {type(model).__name__}; leave out --proba")
    if options.hard and is_clusterer(model):
        raise Mistake("--hard must be left out for clusters: their rows always follow one path")


def _predictions(model: Any, X: Any, options: argparse.Namespace) -> dict[str, Any]:  # noqa: N803
    if is_clusterer(model):
        return {"cluster": model.predict(X)}
    if is_classifier(model):
        columns = {"prediction": model.predict(X, hard=options.hard)}
        if options.proba:
            probability = model.predict_proba(X, hard=options.hard)
            columns |= {f"probability {label}": probability[:, i] for i, label in enumerate(model.classes_)}
        return columns
    values = np.asarray(model.predict(X, hard=options.hard))
    if values.ndim == 1:
        return {"prediction": values}
    return {f"prediction {i}": values[:, i] for i in range(values.shape[1])}
