"""One cell: a method tuned on a set with one seed, then scored on the test part, once."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna

from experiments.data import PaperSet, load
from experiments.rivals import RIVALS
from experiments.rivals.limits import OK, Outcome, run_limited

__all__ = ["Budget", "Cell", "TableRow", "measure", "tune"]


class Budget(NamedTuple):
    """What a method is given, the same for all."""

    trials: int
    seconds: float
    """For a fit."""
    megabytes: float


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
    test_error: float | None = None
    valid_error: float | None = None
    seconds: float | None = None
    """Of the fit that was chosen."""
    n_parameters: int | None = None
    finished: int = 0
    """Trials that stayed within their limits."""
    options: str = ""
    """Those that were chosen, as JSON."""

    @property
    def cell(self) -> Cell:
        """What was measured."""
        return Cell(self.set, self.seed, self.method)


class Tuned(NamedTuple):
    """What tuning found."""

    options: dict[str, Any]
    valid_error: float
    finished: int
    failures: Counter[str]


def measure(cell: Cell, folder: Path | None, budget: Budget) -> TableRow:
    """Tune on the validation part, fit the best again, and score it on the test part."""
    data = load(cell.set, folder, seed=cell.seed)
    tuned = tune(cell, data, budget)
    row = {"trials": budget.trials, "limit_seconds": budget.seconds, "finished": tuned.finished}
    if not tuned.finished:
        return TableRow(*cell, tuned.failures.most_common(1)[0][0], **row)  # type: ignore[arg-type]
    outcome = _fit(cell, data, tuned.options, budget, {"test": data.x_test})
    if outcome.status != OK:
        return TableRow(*cell, _status(outcome), **row)  # type: ignore[arg-type]
    return TableRow(
        *cell,
        OK,
        **row,  # type: ignore[arg-type]
        test_error=_error(data, outcome.predictions["test"], data.y_test),
        valid_error=tuned.valid_error,
        seconds=outcome.seconds,
        n_parameters=outcome.n_parameters,
        options=json.dumps(tuned.options),
    )


def tune(cell: Cell, data: PaperSet, budget: Budget) -> Tuned:
    """The options with the least error on the validation part: the method's defaults, then those that Optuna draws."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=cell.seed))
    found: list[tuple[float, dict[str, Any]]] = []
    failures: Counter[str] = Counter()
    for number in range(budget.trials):
        trial = study.ask() if number else None
        options = RIVALS[cell.method].space(trial) if trial is not None else {}
        outcome = _fit(cell, data, options, budget, {"valid": data.x_valid})
        if outcome.status != OK:
            failures[_status(outcome)] += 1
            if trial is not None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        error = _error(data, outcome.predictions["valid"], data.y_valid)
        found.append((error, options))
        if trial is not None:
            study.tell(trial, error)
    best = min(found, key=lambda pair: pair[0], default=(np.inf, {}))
    return Tuned(best[1], float(best[0]), len(found), failures)


def _fit(cell: Cell, data: PaperSet, options: dict[str, Any], budget: Budget, rows: dict[str, Any]) -> Outcome:
    return run_limited(
        cell.method,
        data.task,
        options,
        (data.x_train, data.y_train),
        (data.x_valid, data.y_valid),
        rows=rows,
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
