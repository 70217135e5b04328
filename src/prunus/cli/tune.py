"""``prunus tune``: search for the best options."""

import argparse
import functools
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, NamedTuple

import prunus
from prunus.cli.command import Outcome, flag, number, pairs, say, value
from prunus.cli.description import leaves_text, main_score, model_lines, model_record, model_warning, note_lines, scores
from prunus.cli.errors import CliError, Interrupted, ProcessFailure, describe, exit_code, require
from prunus.cli.models import check_output, finish_model
from prunus.cli.problem import Problem, add_problem_options, read_problem
from prunus.cli.reading import add_reading_options
from prunus.cli.study import FIRST, SPACES, best_trial, count_done, open_study, suggest, work
from prunus.cli.tree_options import (
    OPTIONS,
    add_kind_option,
    add_tree_options,
    check_loss,
    check_task,
    chosen_options,
    kinds_of,
    new_estimator,
    option_text,
)

__all__ = ["add_arguments", "run"]

EPILOG = (
    "Example: prunus tune houses.csv --target price --trials 50 --jobs 4 --out houses.prunus. The same command "
    "continues the study later, or helps with it while the first one is still running."
)
NO_SPLITS = "No trial whose tree has splits predicts the held-out rows as well."


@dataclass
class Search:
    """A search, which each of its processes gets a copy of."""

    problem: Problem
    study: Path
    space: str
    trials: int
    fixed: dict[str, Any]
    """Options of the estimators that were given, and are not searched."""
    options: argparse.Namespace

    @property
    def noise(self) -> float:
        """How far the scores of two models may differ by chance: about a standard error of an accuracy."""
        return float(0.5 / len(self.problem.valid) ** 0.5)

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """A description of everything that must not change within a study."""
        hashes = require("pandas.util", "tables").hash_pandas_object(self.problem.X, index=False)
        return {
            "target": self.problem.target.name,
            "task": self.problem.target.task,
            "features": list(self.problem.X.columns),
            "rows": len(self.problem.X),
            "data": f"checksum {int(hashes.sum()):x}",
            "rows held out": len(self.problem.valid),
            "space": self.space,
            "options": {name: str(value) for name, value in self.fixed.items()},
        }


class Failure(NamedTuple):
    """The error of a process, described in one line, and its exit code."""

    text: str
    code: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``tune``."""
    add_problem_options(parser)
    value(parser, "--out", "MODEL", "the file to write the best model to", required=True)
    flag(parser, "--force", "replace MODEL if it exists")
    value(parser, "--study", "FILE", "SQLite database of the trials (default: MODEL.study.db)")
    value(parser, "--trials", "N", "number of trials of the whole study (default: 20)", type=int, default=20)
    value(parser, "--jobs", "N", "number of processes to start (default: 1)", type=int, default=1)
    parser.add_argument(
        "--space",
        choices=SPACES,
        default="all",
        help="paper: depth, pruning, linear or ELU splits, layers and dropout of a network in the leaves; all: also "
        "other leaves, pieces and learning rates (default); an option that is given, such as --leaf, is not searched",
    )
    add_reading_options(parser)
    add_kind_option(parser, "soft", "hard")
    add_tree_options(parser, *(name for name in OPTIONS if "soft" in kinds_of(name)))


def run(options: argparse.Namespace) -> Outcome:
    """Read the table, search, learn a tree with the best options and save the model."""
    check_loss(options)
    study = Path(options.study or f"{options.out}.study.db")
    path = check_output(options.out, force=options.force, inputs=[options.data, study])
    for name in ("trials", "jobs"):
        if getattr(options, name) < 1:
            raise CliError(f"--{name} must be at least 1, got {getattr(options, name)}")
    if options.kind == "hard" and options.space == "paper" and options.leaf is None:
        raise CliError("--leaf must be given for --space paper with --kind hard: the leaves of the paper are networks")
    require("optuna", "tune")
    check_output(study, force=True)
    problem = read_problem(options, always_hold_out=True)
    if len(problem.valid) < 2:
        raise CliError(f"{problem.source.name} has too few rows for this --validation-fraction; use a larger one")
    check_task(options.loss, problem.target)
    search = Search(problem, study, options.space, options.trials, chosen_options(options), options)
    is_new = not study.exists()
    try:
        _search(search)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; trials so far are in {study}; continue with: {options.command_line}") from None
    except Exception:
        if is_new and study.exists() and not count_done(_open(search)):
            study.unlink()  # so that the command can be corrected: a study is bound to its options
        raise
    best = best_trial(_open(search), search.noise)
    if best is None:
        raise CliError(f"no trial of {study} succeeded; try another --max-epochs or more --trials")
    return _conclude(search, best, path)


def _open(search: Search) -> Any:
    return open_study(search.study, search.identity, FIRST[search.space], search.options.seed)


def _search(search: Search) -> None:
    study = _open(search)
    done = count_done(study)
    say(search.options, f"study {search.study}: {done} of {search.trials} trials are done")
    if done >= search.trials:
        return
    if search.options.jobs == 1:
        _work(search)
        return
    failures = _run_workers(search)
    different = list(dict.fromkeys(failures))
    if len(failures) == search.options.jobs:
        raise ProcessFailure("; ".join(failure.text for failure in different), max(one.code for one in different))
    for failure in different:
        sys.stderr.write(f"prunus tune: a process failed, others went on: {failure.text}\n")


def _run_workers(search: Search) -> list[Failure]:
    """Start processes, wait until the last one has ended, and return the errors of those that failed."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(search.options.jobs)]
    workers = [context.Process(target=_worker, args=(search, sender)) for _, sender in pipes]
    try:
        _start(workers)
        for _, sender in pipes:
            sender.close()  # here: the end of a process thus closes its pipe
        return [failure for worker, (pipe, _) in zip(workers, pipes, strict=True) if (failure := _wait(worker, pipe))]
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()


def _start(workers: list[Any]) -> None:
    """Start processes that Ctrl-C does not reach, not even while they import modules: this process stops them."""
    resource_tracker.ensure_running()  # it would lift the block
    with _blocked():
        for worker in workers:
            worker.start()


def _wait(worker: Any, pipe: Any) -> Failure | None:
    """Wait for the end of a process; return what went wrong there, if anything did."""
    try:
        failure = Failure(*pipe.recv())
    except EOFError:
        failure = None
    worker.join()
    if failure is None and worker.exitcode:
        return Failure(f"a process ended with exit code {worker.exitcode}; try fewer --jobs", 1)
    return failure


@contextmanager
def _blocked() -> Iterator[None]:
    """Let Ctrl-C wait; processes that are started meanwhile never get it."""
    if sys.platform == "win32":
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _worker(search: Search, pipe: Any) -> None:
    """Run trials in a new process; an error is sent to the first process, which reports it once."""
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // search.options.jobs))
    try:
        _work(search)
    except Exception as error:
        if search.options.traceback:
            traceback.print_exc()
            sys.stderr.flush()
        with suppress(OSError):  # the first process may have ended
            pipe.send((describe(error), exit_code(error)))
        os._exit(exit_code(error))


def _work(search: Search) -> None:
    study = _open(search)

    def evaluate(trial: Any) -> float:
        start = time.perf_counter()
        estimator = _fit(search, suggest(trial, search.space, search.fixed))
        name, score = main_score(estimator, *search.problem.part(search.problem.valid))
        trial.set_user_attr("score", name)
        trial.set_user_attr("leaves", estimator.get_n_leaves())
        trial.set_user_attr("seconds", time.perf_counter() - start)
        return score

    def report(trial: Any) -> None:
        best = best_trial(study, search.noise)
        if best is not None and trial.value is not None:
            name, seconds = trial.user_attrs["score"], trial.user_attrs["seconds"]
            say(
                search.options,
                f"trial {trial.number + 1}: {name} {trial.value:.4f}, {leaves_text(trial.user_attrs['leaves'])}, "
                f"{seconds:.1f} s; best so far {best.value:.4f} (trial {best.number + 1})",
            )

    work(study, evaluate, search.trials, report)


def _fit(search: Search, tried: dict[str, Any]) -> Any:
    problem = search.problem
    X, y = problem.part(problem.train)  # noqa: N806
    weight = None if problem.weight is None else problem.weight[problem.train]
    estimator = new_estimator(problem, "soft", search.fixed | tried)
    return estimator.fit(X, y, weight, eval_set=problem.part(problem.valid))


def _conclude(search: Search, best: Any, path: Path) -> Outcome:
    """Learn again with the best options; the same seed gives the same tree."""
    start = time.perf_counter()
    optuna = require("optuna", "tune")
    options = suggest(optuna.trial.FixedTrial(best.params), search.space, search.fixed)
    estimator = _fit(search, options)
    seconds = time.perf_counter() - start
    finish_model(estimator, search.problem.date_orders, search.problem.target.name)
    prunus.save(estimator, path)
    validation = scores(estimator, *search.problem.part(search.problem.valid))
    record = search.problem.record() | {
        "study": str(search.study),
        "trials": count_done(_open(search)),
        "best_trial": best.number + 1,
        "best_options": options,
        "model": model_record(estimator),
        "seconds": seconds,
        "hold_out": {"rows": len(search.problem.valid)} | validation,
        "warning": model_warning(estimator, validation),
        "out": str(path),
    }
    return Outcome(record, pairs(_lines(search.problem, record)))


def _lines(problem: Problem, record: dict[str, Any]) -> list[tuple[str, Any]]:
    chosen = ", ".join(f"{name} {option_text(value)}" for name, value in record["best_options"].items())
    shown = ", ".join(f"{name} {number(value)}" for name, value in record["hold_out"].items() if name != "rows")
    return [
        *problem.lines(),
        ("study", f"{record['study']}: {record['trials']} trials"),
        ("best", f"trial {record['best_trial']}: {chosen}"),
        *model_lines(record["model"], record["seconds"]),
        ("held out", f"{record['hold_out']['rows']} rows, which chose the options: {shown}"),
        *note_lines(record["warning"]),
        *([("note", NO_SPLITS)] if record["model"]["leaves"] == 1 else []),
        ("saved", record["out"]),
    ]
