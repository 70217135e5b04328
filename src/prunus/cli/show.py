"""``prunus show``: a learned tree as text, as a web page or as a picture."""

import argparse
import dataclasses
import io
from pathlib import Path
from typing import Any

import prunus
from prunus.cli.command import Outcome, flag, model_argument, say, value
from prunus.cli.errors import CliError, require
from prunus.cli.models import (
    check_ending,
    check_outputs,
    columns_as_text,
    date_orders,
    is_forest,
    load_estimator,
    needed_columns,
    read_truth,
    trees_of,
)
from prunus.cli.reading import add_reading_options, read_input
from prunus.files import write_bytes

__all__ = ["add_arguments", "run"]

PICTURES = (".png", ".svg", ".pdf")
DEEPEST = 10
"""The deepest level of the text, by default."""
LARGEST = 400
"""The largest width and height of a picture, in inches; larger ones have more pixels than matplotlib can draw."""
EPILOG = "Example: prunus show houses.prunus --html houses.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``show``."""
    model_argument(parser)
    flag(parser, "--text", "print the tree as text; this is the default if no file is given")
    value(parser, "--html", "FILE", "write a web page that needs no network")
    value(parser, "--plot", "FILE", "write a picture of the tree: .png, .svg or .pdf")
    value(parser, "--curves", "FILE", "write a picture of the curves of additive leaves: .png, .svg or .pdf")
    value(
        parser,
        "--tree",
        "K",
        "the tree of a forest to show, counted from 0 (default: 0; the web page then contains all trees)",
        type=int,
    )
    value(
        parser,
        "--max-depth",
        "N",
        "deepest level of the text (default: 10) and of the picture (default: all levels that are legible)",
        type=int,
    )
    value(parser, "--figure-size", "W,H", "width and height of pictures in inches (default: what they need)")
    value(
        parser,
        "--data",
        "DATA",
        "a table with rows for the web page and for the curves, and to compare hard with soft predictions",
    )
    value(parser, "--target", "COLUMN", "the column of DATA with the true values, for the web page")
    flag(parser, "--force", "replace files if they exist")
    add_reading_options(parser)


def run(options: argparse.Namespace) -> Outcome:
    """Load the model and show its tree."""
    names = {f"--{name}": getattr(options, name) for name in ("html", "plot", "curves")}
    files, size = check_outputs(names, options, [options.model, options.data]), _figure_size(options)
    for option in sorted({"--plot", "--curves"} & set(files)):
        check_ending(files[option], option, PICTURES)
    if options.max_depth is not None and options.max_depth < 0:
        raise CliError(f"--max-depth must be at least 0, got {options.max_depth}")
    model = load_estimator(options.model)
    X, y = _rows(model, options)  # noqa: N806
    tree = _chosen(model, options)
    if options.curves is not None:
        _plot_curves(tree, X, Path(options.curves), size)
    if options.html is not None:
        prunus.export_html(model if options.tree is None else tree, options.html, X, y)
    if options.plot is not None:
        _plot_tree(tree, options.max_depth, Path(options.plot), size)
    for file in files.values():
        say(options, f"wrote {file}")
    record = dataclasses.asdict(prunus.tree_summary(tree, X)) | {"files": list(map(str, files.values()))}
    depth = DEEPEST if options.max_depth is None else options.max_depth
    return Outcome(record, prunus.export_text(tree, max_depth=depth) if options.text or not files else "")


def _figure_size(options: argparse.Namespace) -> tuple[float, float] | None:
    given = options.figure_size
    if given is None:
        return None
    if options.plot is None and options.curves is None:
        raise CliError("--plot or --curves must be given with --figure-size, which is the size of a picture")
    try:
        width, height = map(float, given.split(","))
    except ValueError:
        width = height = 0.0
    if not (1 <= width <= LARGEST and 1 <= height <= LARGEST):
        raise CliError(
            f"--figure-size must be a width and a height from 1 to {LARGEST} inches, as in 12,8, got {given}"
        )
    return width, height


def _chosen(model: Any, options: argparse.Namespace) -> Any:
    """The tree of a forest that was asked for, or the model itself if it is a tree."""
    trees = trees_of(model)
    if options.tree is not None and not is_forest(model):
        raise CliError(f"--tree must be left out for {options.model}, which has only one tree")
    number = options.tree or 0
    if not 0 <= number < len(trees):
        raise CliError(f"--tree must be from 0 to {len(trees) - 1} for {options.model}, got {number}")
    return trees[number]


def _rows(model: Any, options: argparse.Namespace) -> tuple[Any, Any]:
    if options.data is None:
        if options.target is not None:
            raise CliError("--data must be given with --target, which names a column of it")
        return None, None
    source = read_input(options.data, options, columns_as_text(model, options.target), date_orders(model))
    given, y = read_truth(model, source, options)
    return needed_columns(model, source, options)[given], y


def _plot_tree(model: Any, max_depth: int | None, path: Path, size: tuple[float, float] | None) -> None:
    figures = _pyplot()
    ax = None if size is None else figures.figure(figsize=size).add_axes((0.01, 0.01, 0.98, 0.98))
    prunus.plot_tree(model, max_depth=max_depth, filled=True, rounded=True, ax=ax)
    _save(figures, path)


def _plot_curves(model: Any, X: Any, path: Path, size: tuple[float, float] | None) -> None:  # noqa: N803
    figures = _pyplot()
    if not prunus.plot_curves(model, X=X):
        raise CliError("the model for --curves must have a column that adds something, got none; there is no curve")
    if size is not None:
        figures.gcf().set_size_inches(size)
    _save(figures, path)


def _pyplot() -> Any:
    require("matplotlib", "plot").use("Agg")  # it works without a screen
    return require("matplotlib.pyplot", "plot")


def _save(figures: Any, path: Path) -> None:
    """Write the current figure, and close it."""
    figure = figures.gcf()
    try:
        picture = io.BytesIO()
        figure.savefig(picture, format=path.suffix[1:].lower(), dpi=150)
        write_bytes(path, picture.getvalue())
    finally:
        figures.close(figure)
