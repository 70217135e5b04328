"""A study of Optuna in an SQLite file, on which several processes may work at once, and its search spaces."""

import time
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from prunus.cli.command import quoted
from prunus.cli.errors import CliError, require, was_interrupted
from prunus.errors import TrainingError

__all__ = ["FIRST", "SPACES", "best_trial", "count_done", "open_study", "suggest", "work"]

Options = dict[str, Any]

SPACES = ("all", "paper")
FIRST: dict[str, Options] = {
    "all": {
        "depth": 4,
        "pruning_strength": 1.0,
        "split": "linear",
        "leaf": "constant",
        "pieces": 0,
        "learning_rate": 0.03,
    },
    "paper": {"depth": 4, "pruning_strength": 1.0, "split": "linear", "layers": 3, "dropout": 0.0},
}
"""The options of the first trial: the defaults."""
WIDTH = 256
"""Number of units in a hidden layer."""
SPLITS = {"all": ["linear", "elu", "sparse_mlp"], "paper": ["linear", "elu"]}
LEAVES = {"soft": ["constant", "linear", "mlp"], "hard": ["constant", "linear", "additive"]}

DRAWN: dict[str, Callable[[Any, str], Any]] = {
    "depth": lambda trial, _: trial.suggest_int("depth", 2, 6),
    "pruning_strength": lambda trial, _: trial.suggest_float("pruning_strength", 1e-3, 1e3, log=True),
    "split": lambda trial, space: trial.suggest_categorical("split", SPLITS[space]),
    "leaf": lambda trial, space: trial.suggest_categorical("leaf", LEAVES["soft"]) if space == "all" else "mlp",
    "pieces": lambda trial, _: trial.suggest_categorical("pieces", [0, 8]),
    "learning_rate": lambda trial, _: trial.suggest_float("learning_rate", 1e-3, 0.1, log=True),
}
"""How each option is drawn, given the space."""
NETWORK: dict[str, Callable[[Any], Any]] = {
    "hidden_layer_sizes": lambda trial: (WIDTH,) * (trial.suggest_int("layers", 2, 5) - 1),  # without the output layer
    "dropout": lambda trial: trial.suggest_float("dropout", 0.0, 0.5),
}
"""How the options of networks in the leaves are drawn."""
NAMES = {"all": tuple(DRAWN), "paper": ("depth", "pruning_strength", "split", "leaf")}
NAME = "prunus"
LOCK_SECONDS = 60
"""Seconds to wait for other processes that write to the file."""
HEARTBEAT_SECONDS = 5
"""Seconds between the heartbeats that a running trial writes to the file."""
GRACE_SECONDS = 30
"""A trial without a heartbeat for this many seconds has failed."""
ATTEMPTS = 20
"""How often opening a study is tried."""


def suggest(trial: Any, space: str, fixed: Options | None = None) -> Options:
    """Draw options of an estimator from a trial of Optuna; those that are fixed keep their values."""
    fixed = fixed or {}
    options: Options = {name: value for name, value in fixed.items() if name in {*DRAWN, *NETWORK}}
    is_hard = fixed.get("routing") == "hard"
    if is_hard or "max_split_features" in fixed:
        options.setdefault("split", "linear")
    if "max_leaf_features" in fixed:
        options = {"leaf": "linear", "pieces": 0} | options
    if is_hard and "leaf" not in options:
        options["leaf"] = trial.suggest_categorical("leaf", LEAVES["hard"])
    _draw(options, NAMES[space], lambda name: DRAWN[name](trial, space))
    if options["leaf"] == "mlp":
        _draw(options, NETWORK, lambda name: NETWORK[name](trial))
    return options


def _draw(options: Options, names: Collection[str], draw: Callable[[str], Any]) -> None:
    for name in names:
        if name not in options:
            options[name] = draw(name)


class _EnoughTrials(Exception):  # noqa: N818
    """Other processes have started the last trials in the meantime."""


def open_study(path: Path, problem: dict[str, Any], first: dict[str, Any], seed: int) -> Any:
    """Open a study, or make it if the file does not exist.

    Parameters
    ----------
    path : Path
        The SQLite file.
    problem : dict
        Describes the data and the options that must be the same for all trials; a study of another problem raises
        `CliError`.
    first : dict
        The options of the first trial.
    seed : int

    Returns
    -------
    optuna.Study
    """
    optuna = require("optuna", "tune")
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    for attempt in range(ATTEMPTS):
        try:
            study = _open(optuna, path, first, seed)
            break
        except Exception as error:  # two processes make the tables at once, or the file is no database
            if "not a database" in str(error):
                raise CliError(f"{path} is not an SQLite database; name another file with --study") from error
            if attempt == ATTEMPTS - 1:
                raise CliError(f"{path} cannot be used as a study: {error}; name another file with --study") from error
            time.sleep(0.25)
    found = study.user_attrs.get("problem")
    if found is None:
        study.set_user_attr("problem", problem)
    elif found != problem:
        different = next(name for name in problem if found.get(name) != problem[name])
        raise CliError(
            f"{path} is a study of another problem ({different}: {quoted(found.get(different))} there, "
            f"{quoted(problem[different])} here); use the same data and options, or name another file with --study"
        )
    return study


def _open(optuna: Any, path: Path, first: dict[str, Any], seed: int) -> Any:
    from prunus.cli.sampler import NumberedSampler  # needs optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        storage = optuna.storages.RDBStorage(
            f"sqlite:///{path}",
            engine_kwargs={"connect_args": {"timeout": LOCK_SECONDS}},
            heartbeat_interval=HEARTBEAT_SECONDS,
            grace_period=GRACE_SECONDS,
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
    """Count the trials that have ended, also those whose loss became NaN or infinite."""
    states = _states(study)
    return states.count("COMPLETE") + states.count("PRUNED")


def best_trial(study: Any, noise: float = 0.0) -> Any:
    """Return the best trial so far, or None if no trial is complete.

    A tree without splits, which shows nothing, is the best only if no tree with splits is as good, up to `noise`.
    """
    complete = [trial for trial in study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]
    return max(complete, key=lambda trial: _rank(trial, noise)) if complete else None


def _rank(trial: Any, noise: float) -> tuple[float, bool]:
    has_splits = trial.user_attrs.get("leaves") != 1
    return (trial.value + noise if has_splits else trial.value, has_splits)


def work(study: Any, evaluate: Callable[[Any], float], trials: int, report: Callable[[Any], None]) -> None:
    """Run trials until the study has enough of them, those of other processes included.

    Parameters
    ----------
    study : optuna.Study
    evaluate : callable
        ``evaluate(trial)`` returns the score of a trial, which is maximized.
    trials : int
        Number of trials of the whole study.
    report : callable
        ``report(trial)`` is called after each trial of this process.
    """
    optuna = require("optuna", "tune")

    def objective(trial: Any) -> float:
        earlier = study.get_trials(deepcopy=False)[: trial.number]
        if sum(other.state.name in ("COMPLETE", "PRUNED", "RUNNING") for other in earlier) >= trials:
            raise _EnoughTrials
        try:
            return evaluate(trial)
        except TrainingError as error:
            raise optuna.TrialPruned from error

    def on_trial_end(_: Any, trial: Any) -> None:
        if trial.state.name in ("COMPLETE", "PRUNED"):
            report(trial)

    while (done := count_done(study)) < trials:
        if done + _states(study).count("RUNNING") < trials:
            try:
                study.optimize(objective, n_trials=1, catch=(_EnoughTrials,), callbacks=[on_trial_end])
            except Exception as error:
                if was_interrupted(error):
                    raise KeyboardInterrupt from error
                raise
        else:
            _fail_stale_trials(optuna, study)
            time.sleep(0.2)


def _fail_stale_trials(optuna: Any, study: Any) -> None:
    """Mark the trials of processes that were killed as failed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)
