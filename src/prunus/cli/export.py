"""``prunus export``: write a learned tree for other programs."""

import argparse

import prunus
from prunus.cli.command import Outcome
from prunus.cli.extras import require
from prunus.cli.models import check_output, load_estimator, trees_of
from prunus.cli.rendering import pairs

__all__ = ["add_arguments", "run"]

EPILOG = "Example: prunus export houses.prunus --onnx houses.onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``export``."""
    parser.add_argument("model", metavar="MODEL", help="a file that `prunus fit` or `prunus cluster` wrote")
    parser.add_argument("--onnx", required=True, metavar="FILE", help="the ONNX file to write")
    parser.add_argument("--hard", action="store_true", help="let rows follow one path through the tree")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")


def run(options: argparse.Namespace) -> Outcome:
    """Load the model and write the file."""
    path = check_output(options.onnx, force=options.force, inputs=[options.model])
    require("onnx", "onnx")
    model = load_estimator(options.model)
    prunus.export_onnx(model, str(path), hard=options.hard)
    hard = options.hard or all(tree.tree_.is_hard for tree in trees_of(model))
    record = {"onnx": str(path), "hard": hard, "bytes": path.stat().st_size}
    return Outcome(record, pairs(record.items()))
