"""Cells of the accuracy benchmark, each in a process of its own: one method tuned on one split of one set."""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sklearn.metrics import accuracy_score, r2_score

from benchmarks.accuracy_lists import CONTENDERS, LIKE_CART, Configuration, Contender, configurations, n_trials
from benchmarks.harness.cells import Cell, TableCell, known_of
from benchmarks.harness.limits import run_limited
from benchmarks.harness.methods import find_method
from benchmarks.harness.sets.indexed import IndexEntry, read_index
from benchmarks.harness.sets.loading import Part, SplitSet, load_table
from benchmarks.harness.versions import version_of, versions_of_prunus
from benchmarks.harness.worker import Answer, Job
from prunus.fitting.options import SOFT_TREES
from prunus.fitting.recipe import default_recipe

__all__ = ["AccuracyRow", "Budget", "run_cell", "tune"]

ROUNDS, ROUNDS_OF_MANY_CLASSES = 1000, 300
MANY_CLASSES = 10
"""More classes than this: each round of boosting fits as many trees."""


@dataclass(frozen=True)
class Budget:
    """What a cell may use."""

    data: Path
    trials: int
    limit_s: float
    max_epochs: int | None = None
    """Bound for prunus, and for the rounds of EBM; None leaves it to the libraries."""


@dataclass(frozen=True)
class AccuracyRow(TableCell):
    """A cell's result; the fields after `trials` are empty unless the status is ok."""

    status: str
    """ok, OOT (out of time) or failed, with the error."""
    trials: int
    valid: float | None = None
    """R^2 or accuracy on the validation part, in %."""
    test: float | None = None
    fit_seconds: float | None = None
    """Time of the fit that was chosen."""
    tuning_seconds: float | None = None
    """Time of all fits and their validation."""
    leaves: int | None = None
    """Leaves of the tree, after pruning; of all trees together in an ensemble. EBM has none."""
    parameters: int | None = None
    """Numbers that were learned: of CART two a split and one (or one a class) a leaf. None for ensembles."""
    configuration: str = ""
    """The one that was best on validation, as JSON."""
    versions: str = ""


@dataclass(frozen=True)
class Trial:
    """A fitted configuration."""

    configuration: Configuration
    model: Any
    valid: float
    seconds: float


def run_cell(cell: Cell, entry: IndexEntry, budget: Budget) -> AccuracyRow:
    """Tune a cell in a process of its own, with one thread."""
    arguments = cell._asdict() | {"trials": budget.trials, "max_epochs": budget.max_epochs}
    arguments |= {"data": str(budget.data.resolve())}
    outcome = run_limited("benchmarks.accuracy_cells:run", arguments, seconds=budget.limit_s)
    known = known_of(cell, entry)
    return AccuracyRow(*(*known, outcome.verdict, n_trials(cell.method, budget.trials)), **outcome.values)


def run(job: Job) -> Answer:
    """What `run_cell` runs in the process."""
    name, seed, method = (job.arguments[key] for key in Cell._fields)
    folder = Path(job.arguments["data"])
    data = load_table(folder, read_index(folder)[name], seed)
    candidates = configurations(method, name, seed, job.arguments["trials"], rows=len(data.rows.train))
    return tune(method, data, candidates, seed, job.arguments["max_epochs"])


def tune(
    method: str, data: SplitSet, candidates: list[Configuration], seed: int, max_epochs: int | None = None
) -> Answer:
    """Fit all candidates, choose on validation, the first of equals; then, once, score on the test part."""
    contender = CONTENDERS[method]
    state = version_of(contender.versions) if contender.versions else versions_of_prunus()  # before its source changes
    start = time.perf_counter()
    if contender.fixed.get("max_leaf_nodes") == LIKE_CART:
        contender = replace(contender, fixed=contender.fixed | {"max_leaf_nodes": _leaves_of_cart(data, seed)})
    best: Trial | None = None
    for candidate in candidates:
        trial = _try(contender, candidate, data, seed, max_epochs)
        if best is None or trial.valid > best.valid:
            best = trial
    assert best is not None
    return {
        "valid": best.valid,
        "test": _score(best.model, data.test),
        "fit_seconds": best.seconds,
        "tuning_seconds": time.perf_counter() - start,
        "leaves": best.model.n_leaves,
        "parameters": None if contender.is_ensemble else _parameters(best.model, contender),
        "configuration": json.dumps(best.configuration),
        "versions": state,
    }


def _leaves_of_cart(data: SplitSet, seed: int) -> int:
    """The number of leaves of the CART that is best on the validation part."""
    cart = CONTENDERS["CART"]
    trials = [_try(cart, found, data, seed, None) for found in configurations("CART", data.name, seed, 1)]
    return int(max(trials, key=lambda trial: trial.valid).model.n_leaves)


def _try(contender: Contender, candidate: Configuration, data: SplitSet, seed: int, max_epochs: int | None) -> Trial:
    options = contender.fixed | _options(contender, candidate, data, max_epochs)
    start = time.perf_counter()
    model = find_method(contender.method)(data.task, random_state=seed, **options)
    model.fit(data.train.x, data.train.y, data.valid.x, data.valid.y)
    seconds = time.perf_counter() - start
    return Trial(candidate, model, _score(model, data.valid), seconds)


def _options(contender: Contender, candidate: Configuration, data: SplitSet, max_epochs: int | None) -> Configuration:
    """Options of the method; those of prunus that are factors are multiplied by its defaults."""
    bound = {} if max_epochs is None else {"max_epochs": max_epochs}
    if contender.method.startswith("prunus") and not contender.space:  # nothing is tuned
        return candidate | bound
    if contender.is_ensemble:
        rounds = ROUNDS_OF_MANY_CLASSES if data.n_classes > MANY_CLASSES else ROUNDS
        return {"n_estimators": rounds, **candidate}
    if contender.method == "EBM":
        return candidate if max_epochs is None else candidate | {"max_rounds": max_epochs}
    if contender.method != "prunus":
        return candidate
    leaf = contender.fixed["leaf"]
    if contender.fixed.get("routing") == "hard":  # the defaults are those of the soft tree that is imitated
        leaf = SOFT_TREES[leaf].leaf
    return _without_factors(candidate, leaf, data) | bound


def _without_factors(candidate: Configuration, leaf: str, data: SplitSet) -> Configuration:
    """Factors become products with the default; a factor of 1 leaves the option to the library."""
    defaults = default_recipe(len(data.rows.train), leaf, classes=data.n_classes > 0)
    options = {}
    for name, value in candidate.items():
        option, is_factor, _ = name.partition("_factor")
        if not is_factor:
            options[name] = value
        elif value != 1.0:
            options[option] = value * getattr(defaults, option)
    return options


def _score(model: Any, part: Part) -> float:
    metric: Any = accuracy_score if model.task == "classes" else r2_score
    return 100.0 * float(metric(part.y, model.predict(part.x)))


def _parameters(model: Any, contender: Contender) -> int:
    """Numbers that a readable model has learned; greedy trees have one for each class in a leaf here."""
    is_greedy = contender.method in ("CART", "obliquetree")
    more = model.n_leaves * (max(1, model.n_classes_) - 1) if is_greedy else 0
    return int(model.n_parameters + more)
