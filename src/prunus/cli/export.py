"""``prunus export``: write a learned tree for other programs."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import prunus
from prunus.cli.command import Outcome, flag, model_argument, pairs, repeated, say, value
from prunus.cli.errors import CliError, require
from prunus.cli.models import check_outputs, is_classifier, is_clusterer, is_forest, is_hard, load_estimator
from prunus.files import write_bytes

__all__ = ["add_arguments", "run"]

FORMATS = ("onnx", "sql", "python", "rules")
EPILOG = "Example: prunus export houses.prunus --sql houses.sql --table houses --copy id"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``export``."""
    model_argument(parser)
    flag(parser, "--force", "replace files if they exist")
    flag(
        parser,
        "--hard",
        "let rows follow one path through the tree; --sql and --python need it unless the tree was learned with "
        "--kind readable or --kind hard",
    )
    files = parser.add_argument_group("files to write, at least one of them; - is stdout, but not for ONNX")
    value(files, "--onnx", "FILE", "an ONNX file, which predicts in any language")
    value(files, "--sql", "FILE", "a SELECT statement, which predicts the rows of a table")
    value(files, "--python", "FILE", "a Python function that needs no imports")
    value(files, "--rules", "FILE", "a rule for each leaf, as text")
    code = parser.add_argument_group("options of --sql and --python")
    value(code, "--table", "NAME", "the table of --sql, such as houses or sales.houses")
    repeated(
        code,
        "--copy",
        "COLUMN",
        "a column of the table, such as a key, that is part of the result of --sql; repeatable",
    )
    flag(code, "--proba", "also the probabilities of the classes")


def run(options: argparse.Namespace) -> Outcome:
    """Load the model and write the files."""
    wanted = {name: getattr(options, name) for name in FORMATS if getattr(options, name) is not None}
    _check_options(options, wanted)
    files = {f"--{name}": path for name, path in wanted.items() if path != "-"}
    paths = {option[2:]: path for option, path in check_outputs(files, options, [options.model]).items()}
    if "onnx" in wanted:
        require("onnx", "onnx")
    model = load_estimator(options.model)
    _check_model(model, options, wanted)
    texts = {name: _TEXTS[name](model, options) for name in wanted if name in _TEXTS}
    for name, path in paths.items():
        if name == "onnx":
            prunus.export_onnx(model, str(path), hard=options.hard)
        else:
            write_bytes(path, texts[name].encode())
    return _outcome(model, options, paths, {name: text for name, text in texts.items() if name not in paths})


def _check_options(options: argparse.Namespace, wanted: dict[str, str]) -> None:
    """Raise an error if options do not go together."""
    if not wanted:
        raise CliError("a file to write must be given: --onnx, --sql, --python or --rules")
    if wanted.get("onnx") == "-":
        raise CliError("--onnx must name a file, got -; ONNX files are not text")
    if [*wanted.values()].count("-") > 1:
        raise CliError("- must be given only once: stdout takes one text")
    if "sql" in wanted and not options.table:
        raise CliError("--table must be given with --sql: the name of the table whose rows are predicted")
    for option, given in (("--table", options.table), ("--copy", options.copy)):
        if given and "sql" not in wanted:
            raise CliError(f"{option} must be left out without --sql")
    if options.proba and not {"sql", "python"} & set(wanted):
        raise CliError("--proba must be left out without --sql or --python")


def _check_model(model: Any, options: argparse.Namespace, wanted: dict[str, str]) -> None:
    """Raise an error if a model does not have the predictions that are asked for."""
    if is_forest(model) and set(wanted) != {"onnx"}:
        raise CliError(f"only --onnx must be given for a forest, which {options.model} contains")
    if options.proba and not is_classifier(model):
        raise CliError(f"the model must be a classifier for --proba, got {type(model).__name__}; leave out --proba")
    one_path = options.hard or is_hard(model) or is_clusterer(model)
    if not one_path and {"sql", "python"} & set(wanted):
        raise CliError(
            "--hard must be given for --sql and --python, since this tree predicts along all routes; or learn it with "
            "--kind readable or --kind hard"
        )


def _outcome(model: Any, options: argparse.Namespace, paths: dict[str, Path], printed: dict[str, str]) -> Outcome:
    """Which files were written, and the text for stdout."""
    record: dict[str, Any] = {name: str(path) for name, path in paths.items()}
    record["hard"] = options.hard or is_hard(model)
    record["bytes"] = sum(path.stat().st_size for path in paths.values())
    if printed:
        for path in paths.values():
            say(options, f"wrote {path}")
        return Outcome(record | printed, "".join(printed.values()))
    return Outcome(record, pairs(record.items()))


def _sql(model: Any, options: argparse.Namespace) -> str:
    return prunus.export_sql(model, options.table, copy=options.copy, hard=options.hard, proba=options.proba)


def _python(model: Any, options: argparse.Namespace) -> str:
    return prunus.export_python(model, hard=options.hard, proba=options.proba)


def _rules(model: Any, options: argparse.Namespace) -> str:  # noqa: ARG001
    return prunus.export_rules(model)


_TEXTS: dict[str, Callable[[Any, argparse.Namespace], str]] = {"sql": _sql, "python": _python, "rules": _rules}
"""How the formats that are text are made."""
