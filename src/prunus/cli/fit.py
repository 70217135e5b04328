"""``prunus fit``: learn a readable tree, a tree of the paper, or a forest, that predicts a column."""

import argparse
import time
from pathlib import Path
from typing import Any

import prunus
from prunus.cli.command import Outcome, flag, number, pairs, say, value
from prunus.cli.description import compare, compared_text, model_lines, model_record, model_warning, note_lines
from prunus.cli.errors import CliError, Interrupted, describe
from prunus.cli.models import check_other, check_output, finish_model, is_readable
from prunus.cli.problem import FileProblem, Problem, add_problem_options, read_file_problem, read_problem
from prunus.cli.reading import add_memory_option, add_reading_options, draw_data, input_files, open_data, read_data
from prunus.cli.tree_options import (
    KINDS,
    OF_KINDS,
    READABLE,
    add_kind_option,
    add_tree_options,
    check_auto,
    check_kind,
    check_loss,
    check_task,
    chosen_options,
    new_estimator,
)
from prunus.files import is_special

__all__ = ["add_arguments", "check_file", "run"]

EPILOG = "Example: prunus fit houses.csv --target price --out houses.prunus"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fit``."""
    add_problem_options(parser, files=True)
    add_memory_option(parser)
    value(parser, "--out", "MODEL", "the file to write, such as houses.prunus", required=True)
    flag(parser, "--force", "replace MODEL if it exists, and discard an interrupted run")
    flag(parser, "--resume", "continue a run that was interrupted; not with --kind readable")
    add_kind_option(parser, *KINDS)
    value(parser, "--forest", "N", "learn a forest of N trees (default: 16)", type=int)
    parser.add_argument("--class-weight", choices=["balanced"], help="give all classes the same total weight")
    add_reading_options(parser)
    add_tree_options(parser, auto=True)


def run(options: argparse.Namespace) -> Outcome:
    """Read the table, learn a tree and save the model."""
    check_kind(options, (*OF_KINDS, "forest", "resume"))
    check_loss(options)
    check_auto(options)
    if options.forest is not None and options.forest < 1:
        raise CliError(f"--forest must be at least 1, got {options.forest}")
    path = check_output(options.out, force=options.force, inputs=input_files(options.data))
    checkpoint = _checkpoint(path, options)
    options.group.wait_for_all()  # nobody takes files of this run for those of an earlier one
    check_file(options)
    problem = _read(options)
    check_task(options.loss, problem.target)
    say(options, pairs(problem.lines()) if options.json else f"learning from {problem.n_rows} rows")
    given = chosen_options(options) | _class_weight(problem, options)
    estimator = new_estimator(problem, options.kind, given, options.forest)
    estimator.set_params(verbose=int(not options.quiet))
    if not is_readable(estimator):
        estimator.keeps_checkpoint = True
        estimator.set_params(training__checkpoint=checkpoint)
    start = time.perf_counter()
    _fit(estimator, problem, checkpoint, options)
    seconds = time.perf_counter() - start
    options.group.leave()
    if not options.group.is_first:
        return Outcome({}, "")
    finish_model(estimator, problem.date_orders, problem.target.name)
    _save(estimator, path, checkpoint, options)
    held_out, validation = problem.held_out(estimator)
    record = problem.record() | {
        "chosen": getattr(estimator, "chosen_", None),
        "model": model_record(estimator),
        "seconds": seconds,
        "hold_out": None if validation is None else {"rows": held_out} | validation,
        "compared": compare(estimator, problem) if is_readable(estimator) and isinstance(problem, Problem) else None,
        "warning": model_warning(estimator, validation),
        "out": str(path),
    }
    return Outcome(record, pairs(_lines(problem, record)))


def check_file(options: argparse.Namespace) -> None:
    """Raise an error if several processes cannot learn together: from one stdin, or a readable tree."""
    files = [options.data] if isinstance(options.data, str) else options.data
    if options.group.learns and getattr(options, "kind", None) == READABLE:
        raise CliError("--kind must be soft, hard or forest if several processes learn together, got readable")
    if options.group.learns and "-" in files:
        raise CliError("DATA must be a file if several processes learn from it, got stdin")


def _lines(problem: Problem | FileProblem, record: dict[str, Any]) -> list[tuple[str, Any]]:
    chosen = [("chosen", _choice(record["chosen"]))] if "candidates" in (record["chosen"] or {}) else []
    lines = [*problem.lines(), *chosen, *model_lines(record["model"], record["seconds"])]
    if record["hold_out"] is None:
        lines.append(("held out", "no rows: training used all of them"))
    else:
        shown = ", ".join(f"{name} {number(value)}" for name, value in record["hold_out"].items() if name != "rows")
        lines.append(("held out", f"{record['hold_out']['rows']} rows: {shown}"))
    if record["compared"] is not None:
        lines.append(("compared", compared_text(record["compared"])))
    return [*lines, *note_lines(record["warning"]), ("saved", record["out"])]


def _choice(chosen: dict[str, Any]) -> str:
    """What was chosen for options that are "auto", in words."""
    pieces = f"{chosen['pieces']} pieces" if chosen["pieces"] else "no pieces"
    n = len(chosen["candidates"])
    of_all = f"best of {n} candidates" if n > 1 else "the only candidate"
    options = f"{chosen['leaf']} leaves, depth {chosen['depth']}, {pieces}"
    return f"{options}, weight decay {number(chosen['weight_decay'])} ({of_all})"


def _class_weight(problem: Problem | FileProblem, options: argparse.Namespace) -> dict[str, Any]:
    if options.class_weight is None:
        return {}
    if not problem.target.is_classes:
        raise CliError("--class-weight must be left out for regression, got it with a target of numbers")
    return {"class_weight": options.class_weight}


def _checkpoint(path: Path, options: argparse.Namespace) -> Path | None:
    """The file with the state of training, which exists only after a run was interrupted.

    None beside a pipe, and for a readable tree, whose search takes seconds.

    A forest has one for each of its trees, with the number of the tree at the end of the name. A hard tree that
    imitates a soft one has a second file, see `_files`.
    """
    if options.kind == READABLE:
        return None
    if is_special(path):
        if options.resume:
            raise CliError(f"--resume must be left out for {path}, which is a pipe or a device")
        return None
    checkpoint = path.with_name(path.name + ".checkpoint")
    files = _files(checkpoint, options)
    for file in files:
        check_other(file, [*input_files(options.data), path])
    found = [file for file in files if file.exists()]
    if options.resume and not found:
        raise CliError(f"there is no interrupted run to resume: {files[0]} does not exist; leave out --resume")
    if found and not options.resume:
        if not options.force:
            raise CliError(
                f"{found[0]} belongs to a run that was interrupted; add --resume to continue it, or --force to start "
                "again"
            )
        _remove(files)
    return checkpoint


def _files(checkpoint: Path, options: argparse.Namespace) -> list[Path]:
    """The files with the state of training of one run."""
    from prunus.fitting.options import checkpoint_files, forest_checkpoints  # torch takes seconds to import

    of_trees = [checkpoint] if options.forest is None else forest_checkpoints(checkpoint, options.forest)
    return [file for of_tree in of_trees for file in checkpoint_files(of_tree)]


def _written(checkpoint: Path | None, options: argparse.Namespace) -> Path | None:
    """The first file with the state of training that exists, if there is one."""
    files = [] if checkpoint is None else _files(checkpoint, options)
    return next((file for file in files if file.exists()), None)


def _remove(files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _save(estimator: Any, path: Path, checkpoint: Path | None, options: argparse.Namespace) -> None:
    """Save the model, then remove the checkpoints: a training that has ended is not lost if the disk is full."""
    try:
        prunus.save(estimator, path)
    except (OSError, KeyboardInterrupt) as error:
        written = _written(checkpoint, options)
        if written is None:
            raise
        kind = Interrupted if isinstance(error, KeyboardInterrupt) else CliError
        raise kind(
            f"{describe(error)}; the state of training is in {written}; continue with: {_again(options)}"
        ) from error
    if checkpoint is not None:
        _remove(_files(checkpoint, options))


def _again(options: argparse.Namespace) -> str:
    """The command that continues this run."""
    command: str = options.command_line
    return command if options.resume else f"{command} --resume"


def _fit(estimator: Any, problem: Problem | FileProblem, checkpoint: Path | None, options: argparse.Namespace) -> None:
    try:
        problem.fit(estimator)
    except KeyboardInterrupt:
        written = _written(checkpoint, options)
        if written is None:
            before = "" if checkpoint is None else " before the first checkpoint"
            raise Interrupted(f"interrupted{before}; nothing was written") from None
        raise Interrupted(
            f"interrupted; the state of training is in {written}; continue with: {_again(options)}"
        ) from None


def _read(options: argparse.Namespace) -> Problem | FileProblem:
    """The table, which is read into memory if it is not too large."""
    data = open_data(options)
    if not isinstance(data, str) and not data.fits_into_memory:
        if options.kind == READABLE:
            return read_problem(options, source=draw_data(data, options))
        problem = read_file_problem(data, options)
        if not problem.table.fits_into_memory:  # it may have fewer columns
            return problem
    return read_problem(options, source=read_data(data, options))
