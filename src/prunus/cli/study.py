"""A study of Optuna in an SQLite file, on which several processes may work at once."""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prunus.cli.extras import require
from prunus.cli.mistakes import Mistake
from prunus.errors import TrainingError

__all__ = ["best_trial", "count_done", "open_study", "work"]

NAME = "prunus"
LOCK_SECONDS = 60
"""How long to wait for other processes that write."""
HEARTBEAT, GRACE = 5, 30
"""Seconds between signs of life of a trial, and without one until it is given up."""
ATTEMPTS = 20


class _Enough(Exception):  # noqa: N818
    """Others have begun the last trials meanwhile."""


def open_study(path: Path, problem: dict[str, Any], first: dict[str, Any], seed: int) -> Any:
    """Open or make a study; it must be of the same problem."""
    optuna = require("optuna", "tune")
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    for attempt in range(ATTEMPTS):
        try:
            study = _open(optuna, path, first, seed)
            break
        except Exception as error:  # two processes make the file's tables at once; or it is no database at all
            if "not a database" in str(error):
                raise Mistake(f"{path} is not an SQLite database; name another file with --study") from error
            if attempt == ATTEMPTS - 1:
                raise Mistake(f"{path} cannot be used as a study: {error}; name another file with --study") from error
            time.sleep(0.25)
    found = study.user_attrs.get("problem")
    if found is None:
        study.set_user_attr("problem", problem)
    elif found != problem:
        different = next(name for name in problem if found.get(name) != problem[name])
        raise Mistake(
            f"{path} is a study of another problem ({different}: {found.get(different)} there, {problem[different]} "
            "here); use the same data and options, or name another file with --study"
        )
    return study


def _open(optuna: Any, path: Path, first: dict[str, Any], seed: int) -> Any:
    from prunus.cli.sampler import NumberedSampler  # needs optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        storage = optuna.storages.RDBStorage(
            f"sqlite:///{path}",
            engine_kwargs={"connect_args": {"timeout": LOCK_SECONDS}},
            heartbeat_interval=HEARTBEAT,
            grace_period=GRACE,
        )
    return optuna.create_study(
        storage=storage,
        sampler=NumberedSampler(first, seed),
        study_name=NAME,
        direction="maximize",
        load_if_exists=True,
    )


def _states(study: Any) -> list[str]:
    return [trial.state.name for trial in study.get_trials(deepcopy=False)]


def count_done(study: Any) -> int:
    """Trials that count: those that ended, be it in a loss that is no number."""
    states = _states(study)
    return states.count("COMPLETE") + states.count("PRUNED")


def best_trial(study: Any) -> Any:
    """The best trial so far; None if there is none."""
    complete = [trial for trial in study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]
    return max(complete, key=lambda trial: trial.value) if complete else None


def work(study: Any, evaluate: Callable[[Any], float], trials: int, report: Callable[[Any], None]) -> None:
    """Try until the study has so many trials, its own and those of other processes, and none is running."""
    optuna = require("optuna", "tune")

    def objective(trial: Any) -> float:
        earlier = study.get_trials(deepcopy=False)[: trial.number]
        if sum(other.state.name in ("COMPLETE", "PRUNED", "RUNNING") for other in earlier) >= trials:
            raise _Enough
        try:
            return evaluate(trial)
        except TrainingError as error:
            raise optuna.TrialPruned from error

    def told(_: Any, trial: Any) -> None:
        if trial.state.name in ("COMPLETE", "PRUNED"):
            report(trial)

    while (done := count_done(study)) < trials:
        if done + _states(study).count("RUNNING") < trials:
            try:
                study.optimize(objective, n_trials=1, catch=(_Enough,), callbacks=[told])
            except Exception as error:
                if _was_interrupted(error):
                    raise KeyboardInterrupt from error
                raise
        else:
            _give_up_dead(optuna, study)
            time.sleep(0.2)


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C led to the error: optuna may stumble over it."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or _was_interrupted(error.__context__))


def _give_up_dead(optuna: Any, study: Any) -> None:
    """End the trials of processes that were killed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)
