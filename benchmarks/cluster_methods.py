"""The methods of clustering that are compared: how each is fitted, without classes and without the test part."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.cluster_tables import Clusters
from benchmarks.methods import source_digest, versions

__all__ = [
    "METHODS",
    "PAPER",
    "PRUNUS",
    "RIVALS",
    "Task",
    "Tree",
    "cluster_versions",
    "does",
    "fit_tree",
    "n_trials",
    "reached_most",
]

DEPTH = 6
PRUNUS, PAPER = "prunus", "prunus paper"
RIVALS = {"HKMeans": "HKMeans", "BIRCH": "BirchTree", "gHHC": "GHHC"}
"""Name to class in `experiments.clustering`."""
METHODS = [*RIVALS, PRUNUS, PAPER]

SCHEMES: dict[str, dict[str, Any]] = {
    "glass": {"targets": ["RI", "Na"], "batch_size": 8, "max_epochs": 300},
    "covtype": {"targets": [3, 4], "batch_size": 512, "max_epochs": 20},  # the two distances to hydrology
}
"""What the paper regresses on the other columns; on other sets there is no such scheme."""
DEPTHS = [2, 3, 4, 5, 6]
STRENGTHS = (1e-3, 1e3)


@dataclass(frozen=True)
class Task:
    """What a method is given."""

    set: str
    data: Clusters
    seed: int
    trials: int


@dataclass(frozen=True)
class Tree:
    """A fitted hierarchy."""

    apply: Callable[[Any], npt.NDArray[Any]]
    """From rows, as the set has them, to nodes in heap order."""
    fit_seconds: float
    """Time of the fit that was chosen."""
    valid_error: float | None = None
    """Reconstruction error on the validation part, where it chose."""
    configuration: dict[str, Any] | None = None
    """Options that were chosen."""


def does(method: str, set_name: str) -> bool:
    """Whether a method is defined on a set."""
    return method != PAPER or set_name in SCHEMES


def n_trials(method: str, trials: int) -> int:
    """Configurations that a method tries where the paper's scheme tries so many."""
    return trials if method == PAPER else 1


def cluster_versions(method: str) -> str:
    """What the method's scores depend on."""
    if method in RIVALS:
        module = "torch" if method == "gHHC" else "sklearn"
        return f"{module} {import_module(module).__version__} source {source_digest('experiments.clustering')}"
    return versions(method)


def fit_tree(method: str, task: Task) -> Tree:
    """Fit one of METHODS."""
    if method in RIVALS:
        return _fit_rival(RIVALS[method], task)
    return _fit_prunus(task) if method == PRUNUS else _fit_paper(task)


def _fit_rival(kind: str, task: Task) -> Tree:
    """On columns scaled to mean 0 and variance 1 by the training part; those that are constant there are 0."""
    tree: Any = getattr(import_module("experiments.clustering"), kind)(DEPTH, random_state=task.seed)
    train = np.asarray(task.data.part(task.data.train), dtype=np.float64)
    mean, std = train.mean(axis=0), train.std(axis=0)
    is_constant = (train == train[0]).all(axis=0)

    def scaled(x: Any) -> npt.NDArray[np.float64]:
        return np.where(is_constant, 0.0, (np.asarray(x, dtype=np.float64) - mean) / np.where(is_constant, 1.0, std))

    start = time.perf_counter()
    tree.fit(scaled(train))
    return Tree(lambda x: np.asarray(tree.apply(scaled(x))), time.perf_counter() - start)


def _fit_prunus(task: Task) -> Tree:
    """The estimator of this library with its defaults, on the table as it is."""
    start = time.perf_counter()
    tree = _clusterer(random_state=task.seed).fit(task.data.part(task.data.train))
    return Tree(tree.apply, time.perf_counter() - start)


def _fit_paper(task: Task) -> Tree:
    """As the paper did it: a few trees regress two columns on the others, and the error on validation chooses."""
    train, valid = task.data.part(task.data.train), task.data.part(task.data.valid)
    found = []
    for drawn in _draws(task):
        start = time.perf_counter()
        tree = _clusterer(
            **SCHEMES[task.set],
            **drawn,
            optimizer="qhadam",
            learning_rate=1e-3,
            schedule="plateau",
            weight_decay=0.0,
            early_stopping_rounds=20,
            random_state=task.seed,
        ).fit(train)
        seconds = time.perf_counter() - start
        found.append(Tree(partial(reached_most, tree), seconds, float(tree.reconstruction_error(valid)), drawn))
    return min(found, key=lambda tree: np.inf if tree.valid_error is None else tree.valid_error)


def reached_most(tree: Any, x: Any) -> npt.NDArray[np.int64]:
    """The leaf of the whole tree that most of each row reaches: how the authors' code places rows."""
    z = tree.transform(x)
    first = z.shape[1] // 2
    nodes: npt.NDArray[np.int64] = first + z[:, first:].argmax(axis=1)
    return nodes


def _clusterer(**options: Any) -> Any:
    estimators: Any = import_module("prunus.estimators")  # here: the rivals run without it
    return estimators.ArgminTreeClusterer(**options)


def _draws(task: Task) -> list[dict[str, Any]]:
    """Depths and strengths, fixed by set and seed; more trials add to those of fewer."""
    random = Random(f"{task.set}/{task.seed}/{PAPER}")
    low, high = STRENGTHS
    return [
        {
            "depth": random.choice(DEPTHS),
            "pruning_strength": float(f"{low * (high / low) ** random.random():.3g}"),
        }
        for _ in range(task.trials)
    ]
