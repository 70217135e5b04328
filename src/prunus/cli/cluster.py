"""``prunus cluster``: a hierarchy of clusters."""

import argparse
import time
from typing import Any

import numpy as np

import prunus
from prunus.cli.command import Outcome, flag, pairs, quoted, say, table_argument, value
from prunus.cli.description import cluster_scores, model_lines, model_record
from prunus.cli.errors import CliError, require
from prunus.cli.fit import check_file
from prunus.cli.models import check_outputs, check_table_name, finish_model
from prunus.cli.problem import add_column_options, features, table_lines, table_record
from prunus.cli.reading import InputTable, add_reading_options, read_input
from prunus.cli.targets import read_classes
from prunus.cli.tree_options import add_tree_options, chosen_options
from prunus.cli.writing import write_table

__all__ = ["add_arguments", "run"]

EPILOG = "Example: prunus cluster customers.csv --out customers.prunus --n-clusters 5 --labels clusters.csv"
OPTIONS = (
    "depth",
    "pruning_strength",
    "routing",
    "split",
    "max_split_features",
    "max_epochs",
    "batch_size",
    "learning_rate",
    "device",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``cluster``."""
    table_argument(parser)
    value(parser, "--out", "MODEL", "the file to write, such as customers.prunus", required=True)
    flag(parser, "--force", "replace files if they exist")
    value(parser, "--n-clusters", "K", "number of flat clusters (default: the leaves of the tree)", type=int)
    parser.add_argument(
        "--max-leaf-nodes",
        "--max-leaves",
        type=int,
        metavar="K",
        help="largest number of clusters at the bottom of the hierarchy (default: 64)",
    )
    value(parser, "--labels", "FILE", "write the cluster of each row to FILE: .csv, .tsv, .parquet or .feather")
    value(
        parser,
        "--target",
        "COLUMN",
        "a column with known classes: not used for clustering, only compared with the clusters",
    )
    add_column_options(parser)
    add_reading_options(parser)
    add_tree_options(parser, *OPTIONS)


def run(options: argparse.Namespace) -> Outcome:
    """Read the table, cluster it and save the model."""
    files = check_outputs({"--out": options.out, "--labels": options.labels}, options, [options.data])
    path, labels = files["--out"], files.get("--labels")
    if labels is not None:
        check_table_name(labels, "--labels")
    check_file(options)
    source = read_input(options.data, options)
    classes = None if options.target is None else _classes(source, options.target)
    X, dropped = features(source, options, options.target)  # noqa: N806
    say(options, f"clustering {len(X)} rows")
    from prunus.fitting.training_options import nested  # scikit-learn takes a second to import

    own = {} if options.n_clusters is None else {"n_clusters": options.n_clusters}
    estimator = prunus.ArgminTreeClusterer(**own, verbose=not options.quiet)
    estimator.set_params(**nested(chosen_options(options)))
    start = time.perf_counter()
    estimator.fit(X)
    seconds = time.perf_counter() - start
    options.group.leave()
    if not options.group.is_first:
        return Outcome({}, "")
    finish_model(estimator, source.orders_of(X.columns))
    prunus.save(estimator, path)
    if labels is not None:
        write_table(require("pandas", "tables").DataFrame({"cluster": estimator.labels_}), str(labels))
    record = table_record(source.name, source.frame.shape, X.columns, dropped, source.notes) | {
        "model": model_record(estimator),
        "clusters": np.bincount(estimator.labels_).tolist(),
        "seconds": seconds,
        "scores": cluster_scores(estimator, X, classes),
        "out": str(path),
        "labels": None if labels is None else str(labels),
    }
    return Outcome(record, pairs(_lines(record)))


def _classes(source: InputTable, name: str) -> Any:
    given, classes = read_classes(source, name)
    if not given.all():
        row = int(given.argmin())
        raise CliError(f"{source.name}, {source.place(row)}: the class in column {quoted(name)} is missing; fill it in")
    return classes


def _lines(record: dict[str, Any]) -> list[tuple[str, Any]]:
    sizes = sorted(record["clusters"], reverse=True)
    shown = ", ".join(map(str, sizes[:10])) + (" ..." if len(sizes) > 10 else "")
    return [
        *table_lines(record),
        *model_lines(record["model"], record["seconds"]),
        ("clusters", f"{len(sizes)}, of {shown} rows"),
        *((name.replace("_", " "), value) for name, value in record["scores"].items()),
        ("saved", record["out"]),
        *([("labels", record["labels"])] if record["labels"] else []),
    ]
