"""``prunus show``: a learned tree as text, as a web page or as a picture."""

import argparse
import dataclasses
import io
from pathlib import Path
from typing import Any

import prunus
from prunus.cli.command import Outcome, say
from prunus.cli.extras import require
from prunus.cli.mistakes import Mistake
from prunus.cli.models import (
    check_ending,
    check_output,
    date_orders,
    is_forest,
    load_estimator,
    needed_columns,
    trees_of,
)
from prunus.cli.reading import add_reading_options, read_source
from prunus.cli.truth import columns_as_text, read_truth
from prunus.files import is_same_file, is_special, write_bytes

__all__ = ["add_arguments", "run"]

PICTURES = (".png", ".svg", ".pdf")
EPILOG = "Example: prunus show houses.prunus --html houses.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``show``."""
    parser.add_argument("model", metavar="MODEL", help="a file that `prunus fit` or `prunus cluster` wrote")
    parser.add_argument(
        "--text", action="store_true", help="print the tree as text; this is the default if no file is given"
    )
    parser.add_argument("--html", metavar="FILE", help="write a web page that needs no network")
    parser.add_argument("--plot", metavar="FILE", help="write a picture: .png, .svg or .pdf")
    parser.add_argument(
        "--max-depth", type=int, default=10, metavar="N", help="deepest level of the text (default: 10)"
    )
    parser.add_argument(
        "--tree", type=int, metavar="K", help="the tree of a forest to show, counted from 0 (default: 0)"
    )
    parser.add_argument(
        "--data", metavar="DATA", help="a table with rows for the web page, and to compare hard with soft predictions"
    )
    parser.add_argument("--target", metavar="COLUMN", help="the column of DATA with the true values, for the web page")
    parser.add_argument("--force", action="store_true", help="replace files if they exist")
    add_reading_options(parser)


def run(options: argparse.Namespace) -> Outcome:
    """Load the model and show its tree."""
    inputs = [options.model, options.data]
    wanted = [path for path in (options.html, options.plot) if path is not None]
    files = [check_output(path, force=options.force, inputs=inputs) for path in wanted]
    if options.plot is not None:
        check_ending(options.plot, "--plot", PICTURES)
    if len(files) == 2 and not is_special(files[0]) and is_same_file(*files):
        raise Mistake(f"--plot must name another file than --html, got {options.plot}")
    if options.max_depth < 0:
        raise Mistake(f"--max-depth must be at least 0, got {options.max_depth}")
    model = load_estimator(options.model)
    X, y = _rows(model, options)  # noqa: N806
    model = _chosen(model, options)
    if options.html is not None:
        prunus.export_html(model, options.html, X, y)
    if options.plot is not None:
        _plot(model, Path(options.plot))
    for file in files:
        say(options, f"wrote {file}")
    record = dataclasses.asdict(prunus.tree_summary(model, X)) | {"files": list(map(str, files))}
    text = prunus.export_text(model, max_depth=options.max_depth) if options.text or not files else ""
    return Outcome(record, text)


def _chosen(model: Any, options: argparse.Namespace) -> Any:
    """The tree of a forest that was asked for, or the model itself if it is a tree."""
    trees = trees_of(model)
    if options.tree is not None and not is_forest(model):
        raise Mistake(f"--tree must be left out for {options.model}, which has only one tree")
    number = options.tree or 0
    if not 0 <= number < len(trees):
        raise Mistake(f"--tree must be from 0 to {len(trees) - 1} for {options.model}, got {number}")
    return trees[number]


def _rows(model: Any, options: argparse.Namespace) -> tuple[Any, Any]:
    if options.data is None:
        if options.target is not None:
            raise Mistake("--data must be given with --target, which names a column of it")
        return None, None
    source = read_source(options.data, options, columns_as_text(model, options.target), date_orders(model))
    given, y = read_truth(model, source, options)
    return needed_columns(model, source, options)[given], y


def _plot(model: Any, path: Path) -> None:
    require("matplotlib", "plot").use("Agg")  # it works without a screen
    figures = require("matplotlib.pyplot", "plot")
    axes = prunus.plot_tree(model)
    figure = axes.figure if hasattr(axes, "figure") else figures.gcf()
    try:
        picture = io.BytesIO()
        figure.savefig(picture, format=path.suffix[1:].lower(), bbox_inches="tight", dpi=150)
        write_bytes(path, picture.getvalue())
    finally:
        figures.close(figure)
