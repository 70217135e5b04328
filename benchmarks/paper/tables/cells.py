"""One cell: a method tuned on a set with one seed, then scored on the test part, once."""

import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna

from benchmarks.harness.cells import Cell
from benchmarks.harness.fitting import Fit, fit_limited
from benchmarks.harness.limits import OK
from benchmarks.harness.machine import this_machine
from benchmarks.harness.methods import find_method
from benchmarks.harness.methods.interface import Task
from benchmarks.harness.sets.loading import SplitSet, load_scaled
from benchmarks.harness.spaces import suggest
from benchmarks.paper.tables.tuning import TUNINGS

__all__ = ["Budget", "TableRow", "measure", "tune"]


class Budget(NamedTuple):
    """What a method is given, the same for all."""

    trials: int
    seconds: float
    """For a fit."""
    megabytes: float
    tuning_seconds: float = math.inf
    """For the fits of all trials together: when they are spent, no further trial begins."""


@dataclass(frozen=True)
class TableRow:
    """A measured cell."""

    set: str
    seed: int
    method: str
    status: str
    """ok; OOT or OOM, if no trial stayed within its limits; or failed, with the error."""
    trials: int
    limit_seconds: float
    tuning_seconds: float = math.inf
    test_error: float | None = None
    valid_error: float | None = None
    seconds: float | None = None
    """Of the fit that was chosen."""
    n_parameters: int | None = None
    finished: int = 0
    """Trials that stayed within their limits."""
    options: str = ""
    """Those that were chosen, as JSON."""
    machine: str = ""

    @property
    def cell(self) -> Cell:
        """What was measured."""
        return Cell(self.set, self.seed, self.method)


class Tuned(NamedTuple):
    """What tuning found."""

    valid_error: float
    options: dict[str, Any]
    fit: Fit
    """With these options, with what it predicts for the test part."""

    @property
    def rank(self) -> tuple[float, float]:
        """Less is better: of equal errors, the one that is surer of the right classes, if that is known of it."""
        return self.valid_error, math.inf if self.fit.valid_loss is None else self.fit.valid_loss


class Trials(NamedTuple):
    """The trials of a cell."""

    best: Tuned | None
    """None if no trial stayed within its limits."""
    finished: int
    failures: Counter[str]


def measure(cell: Cell, folder: Path | None, budget: Budget) -> TableRow:
    """Tune on the validation part, and score the best trial, alone, on the test part."""
    data = load_scaled(cell.set, folder, seed=cell.seed)
    best, finished, failures = tune(cell, data, budget)
    machine = this_machine()
    row = TableRow(
        *cell,
        status=OK,
        trials=budget.trials,
        limit_seconds=budget.seconds,
        tuning_seconds=budget.tuning_seconds,
        finished=finished,
        machine=f"{machine.cpu}, {machine.cores} cores",
    )
    if best is None:
        return replace(row, status=failures.most_common(1)[0][0])
    return replace(
        row,
        test_error=_error(data.task, best.fit.predictions["test"], data.test.y),
        valid_error=best.valid_error,
        seconds=best.fit.seconds,
        n_parameters=best.fit.n_parameters,
        options=json.dumps(best.options),
    )


def tune(cell: Cell, data: SplitSet, budget: Budget) -> Trials:
    """Try the method's own starting points, then what Optuna draws.

    The best has the least error on validation rows; of several such, the least log-loss there, if it has one.
    Each trial predicts for the test part as well, so that the best need not be fitted again; `measure` scores only it.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=cell.seed))
    tuning = TUNINGS[cell.method]
    starts = tuning.starts_for(data.task)
    best, finished, spent = None, 0, 0.0
    failures: Counter[str] = Counter()
    for number in range(budget.trials):
        if spent >= budget.tuning_seconds:
            break
        trial = study.ask() if number >= len(starts) else None
        options = dict(starts[number]) if trial is None else suggest(tuning.space, trial)
        fit = _fit(cell, data, options, budget)
        spent += fit.seconds
        error = None
        if fit.status == OK:
            finished += 1
            error = _error(data.task, fit.predictions["valid"], data.valid.y)
            found = Tuned(error, options, fit)
            best = found if best is None or found.rank < best.rank else best
        else:
            failures[fit.status] += 1
        if trial is not None:
            study.tell(trial, error, state=None if error is not None else optuna.trial.TrialState.FAIL)
    return Trials(best, finished, failures)


def _fit(cell: Cell, data: SplitSet, options: dict[str, Any], budget: Budget) -> Fit:
    method = TUNINGS[cell.method].method
    limit = {"time_limit": budget.seconds / 2} if find_method(method).stops_itself else {}
    return fit_limited(
        method,
        data.task,
        options | limit,
        (data.train.x, data.train.y),
        (data.valid.x, data.valid.y),
        rows={"valid": data.valid.x, "test": data.test.x},
        random_state=cell.seed % 2**31,
        seconds=budget.seconds,
        megabytes=budget.megabytes,
    )


def _error(task: Task, predicted: Any, known: Any) -> float:
    """Share of wrong classes, or mean squared error."""
    if task == "classes":
        return float(np.mean(predicted != known))
    return float(np.mean((predicted - known) ** 2))
