"""One cell: a method tuned on a set with one seed, then scored on the test part, once."""

import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna

from harness.machine import this_machine
from harness.sets import PaperSet, load
from harness.methods import RIVALS
from harness.limits import OK, Outcome, run_limited

__all__ = ["Budget", "Cell", "TableRow", "measure", "tune"]


class Budget(NamedTuple):
    """What a method is given, the same for all."""

    trials: int
    seconds: float
    """For a fit."""
    megabytes: float
    tuning_seconds: float = math.inf
    """For the fits of all trials together: when they are spent, no further trial begins."""


class Cell(NamedTuple):
    """What is measured."""

    set: str
    seed: int
    method: str


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
    outcome: Outcome
    """Of the fit with these options, with what it predicts for the test part."""

    @property
    def rank(self) -> tuple[float, float]:
        """Less is better: of equal errors, the one that is surer of the right classes, if that is known of it."""
        loss = self.outcome.valid_loss
        return self.valid_error, math.inf if loss is None else loss


class Trials(NamedTuple):
    """The trials of a cell."""

    best: Tuned | None
    """None if no trial stayed within its limits."""
    finished: int
    failures: Counter[str]


def measure(cell: Cell, folder: Path | None, budget: Budget) -> TableRow:
    """Tune on the validation part, and score the best trial, alone, on the test part."""
    data = load(cell.set, folder, seed=cell.seed)
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
        test_error=_error(data, best.outcome.predictions["test"], data.y_test),
        valid_error=best.valid_error,
        seconds=best.outcome.seconds,
        n_parameters=best.outcome.n_parameters,
        options=json.dumps(best.options),
    )


def tune(cell: Cell, data: PaperSet, budget: Budget) -> Trials:
    """Try the method's own starting points, then what Optuna draws.

    The best has the least error on validation rows; of several such, the least log-loss there, if it has one.
    Each trial predicts for the test part as well, so that the best need not be fitted again; `measure` scores only it.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=cell.seed))
    method = RIVALS[cell.method]
    starts = method.starts_for(data.task)
    best, finished, spent = None, 0, 0.0
    failures: Counter[str] = Counter()
    for number in range(budget.trials):
        if spent >= budget.tuning_seconds:
            break
        trial = study.ask() if number >= len(starts) else None
        options = method.space(trial) if trial is not None else dict(starts[number])
        outcome = _fit(cell, data, options, budget)
        spent += outcome.seconds
        if outcome.status != OK:
            failures[_status(outcome)] += 1
            if trial is not None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        error = _error(data, outcome.predictions["valid"], data.y_valid)
        finished += 1
        found = Tuned(error, options, outcome)
        if best is None or found.rank < best.rank:
            best = found
        if trial is not None:
            study.tell(trial, error)
    return Trials(best, finished, failures)


def _fit(cell: Cell, data: PaperSet, options: dict[str, Any], budget: Budget) -> Outcome:
    limit = {"time_limit": budget.seconds / 2} if RIVALS[cell.method].stops_itself else {}
    return run_limited(
        cell.method,
        data.task,
        options | limit,
        (data.x_train, data.y_train),
        (data.x_valid, data.y_valid),
        rows={"valid": data.x_valid, "test": data.x_test},
        random_state=cell.seed % 2**31,
        seconds=budget.seconds,
        megabytes=budget.megabytes,
    )


def _status(outcome: Outcome) -> str:
    return outcome.status if not outcome.message else f"{outcome.status}: {outcome.message.splitlines()[-1][:150]}"


def _error(data: PaperSet, predicted: Any, known: Any) -> float:
    """Share of wrong classes, or mean squared error."""
    if data.task == "classes":
        return float(np.mean(predicted != known))
    return float(np.mean((predicted - known) ** 2))
