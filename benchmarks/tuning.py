"""One cell of the accuracy benchmark, run in a process of its own: one method tuned on one split of one set.

Run as ``python -m benchmarks.tuning SET SEED METHOD --data FOLDER``; prints a JSON object.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

from sklearn.metrics import accuracy_score, r2_score

from benchmarks.methods import FIT, Model, Problem, versions
from benchmarks.spaces import METHODS, Configuration, configurations
from benchmarks.tables import Part, Split, read_index, read_split

__all__ = ["Tuned", "tune"]


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The configuration that was best on validation."""

    valid: float
    """R^2 or accuracy, in %."""
    test: float
    fit_seconds: float
    """Time of the fit that was chosen."""
    tuning_seconds: float
    """Time of all fits and their validation."""
    leaves: int
    parameters: int | None
    configuration: str
    """As JSON."""
    versions: str


@dataclasses.dataclass(frozen=True)
class Trial:
    """A fitted configuration."""

    configuration: Configuration
    model: Model
    valid: float
    seconds: float


def tune(method: str, split: Split, candidates: list[Configuration], seed: int, max_epochs: int | None = None) -> Tuned:
    """Fit all candidates, choose on validation, the first of equals; then, once, score on the test part."""
    state = versions(method)  # before the fits: the source may change while they run
    start = time.perf_counter()
    problem = Problem(split.train, split.valid, split.n_classes, seed, max_epochs)
    best: Trial | None = None
    for candidate in candidates:
        trial = _try(method, candidate, problem)
        if best is None or trial.valid > best.valid:
            best = trial
    assert best is not None
    return Tuned(
        valid=best.valid,
        test=_score(best.model, split.test, split.n_classes),
        fit_seconds=best.seconds,
        tuning_seconds=time.perf_counter() - start,
        leaves=best.model.leaves,
        parameters=best.model.parameters,
        configuration=json.dumps(best.configuration),
        versions=state,
    )


def _try(method: str, candidate: Configuration, problem: Problem) -> Trial:
    start = time.perf_counter()
    model = FIT[method](candidate, problem)
    seconds = time.perf_counter() - start
    return Trial(candidate, model, _score(model, problem.valid, problem.n_classes), seconds)


def _score(model: Model, part: Part, n_classes: int) -> float:
    metric: Any = accuracy_score if n_classes else r2_score
    return 100.0 * float(metric(part.y, model.predict(part.x)))


def main() -> None:
    """Tune the cell named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set")
    parser.add_argument("seed", type=int)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--max-epochs", type=int)
    options = parser.parse_args()
    if options.method.startswith("prunus"):
        import torch  # not at the top: the others start without it

        torch.set_num_threads(1)
    split = read_split(options.data, read_index(options.data)[options.set], options.seed)
    candidates = configurations(options.method, options.set, options.seed, options.trials, rows=len(split.train.y))
    tuned = tune(options.method, split, candidates, options.seed, options.max_epochs)
    print(json.dumps(dataclasses.asdict(tuned)))


if __name__ == "__main__":
    main()
