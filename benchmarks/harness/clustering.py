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

from benchmarks.harness.sets.loading import SplitSet
from benchmarks.harness.spaces import Choice, Decimals, Space, draw
from benchmarks.harness.versions import versions_of_prunus, with_source

__all__ = [
    "METHODS",
    "PAPER",
    "PRUNUS",
    "Tree",
    "does",
    "fit_paper_tree",
    "fit_tree",
    "leaf_reached_most",
    "n_trials",
    "versions",
]

DEPTH = 6
PRUNUS, PAPER = "prunus", "prunus paper"
CLUSTERERS = {"HKMeans": "HKMeans", "BIRCH": "BirchTree", "gHHC": "GHHC"}
"""Name to class in `benchmarks.harness.clusterers`."""
METHODS = (*CLUSTERERS, PRUNUS, PAPER)

SCHEMES: dict[str, dict[str, Any]] = {
    "glass": {"targets": ["RI", "Na"], "batch_size": 8, "max_epochs": 300},
    "covtype": {"targets": [3, 4], "batch_size": 512, "max_epochs": 20},  # the two distances to hydrology
}
"""What the paper regresses on the other columns; on other sets there is no such scheme."""
SPACE: Space = {"depth": Choice((2, 3, 4, 5, 6)), "pruning_strength": Decimals(1e-3, 1e3, log=True)}
"""What the paper tunes."""


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
    """Configurations that a method tries where the paper's scheme tries this many."""
    return trials if method == PAPER else 1


def versions(method: str) -> str:
    """What the method's scores depend on."""
    if method in CLUSTERERS:
        return with_source("torch" if method == "gHHC" else "sklearn", "benchmarks.harness.clusterers")
    return versions_of_prunus()


def fit_tree(method: str, set_name: str, data: SplitSet, seed: int, trials: int) -> Tree:
    """Fit one of METHODS to the training part."""
    if method in CLUSTERERS:
        return _fit_clusterer(CLUSTERERS[method], data, seed)
    return _fit_prunus(data, seed) if method == PRUNUS else _fit_paper(set_name, data, seed, trials)


def fit_paper_tree(x: Any, set_name: str, *, seed: int, **options: Any) -> Any:
    """A tree as the paper learned it: two columns are regressed on the others. Options override its scheme."""
    scheme = SCHEMES[set_name] | {
        "optimizer": "qhadam",
        "learning_rate": 1e-3,
        "schedule": "plateau",
        "weight_decay": 0.0,
        "early_stopping_rounds": 20,
    }
    return _clusterer(random_state=seed, **(scheme | options)).fit(x)


def leaf_reached_most(tree: Any, x: Any) -> npt.NDArray[np.int64]:
    """The leaf of the whole tree that most of each row reaches: how the authors' code places rows."""
    z = tree.transform(x)
    first = z.shape[1] // 2
    nodes: npt.NDArray[np.int64] = first + z[:, first:].argmax(axis=1)
    return nodes


def _fit_clusterer(kind: str, data: SplitSet, seed: int) -> Tree:
    """On columns scaled to mean 0 and variance 1 by the training part; those that are constant there are 0."""
    tree: Any = getattr(import_module("benchmarks.harness.clusterers"), kind)(DEPTH, random_state=seed)
    train = np.asarray(data.train.x, dtype=np.float64)
    mean, std = train.mean(axis=0), train.std(axis=0)
    is_constant = (train == train[0]).all(axis=0)

    def scaled(x: Any) -> npt.NDArray[np.float64]:
        return np.where(is_constant, 0.0, (np.asarray(x, dtype=np.float64) - mean) / np.where(is_constant, 1.0, std))

    start = time.perf_counter()
    tree.fit(scaled(train))
    return Tree(lambda x: np.asarray(tree.apply(scaled(x))), time.perf_counter() - start)


def _fit_prunus(data: SplitSet, seed: int) -> Tree:
    """The estimator of this library with its defaults, on the table as it is."""
    start = time.perf_counter()
    tree = _clusterer(random_state=seed).fit(data.train.x)
    return Tree(tree.apply, time.perf_counter() - start)


def _fit_paper(set_name: str, data: SplitSet, seed: int, trials: int) -> Tree:
    """A few trees of the paper's scheme, of which the error on validation chooses; more trials add to fewer."""
    random = Random(f"{set_name}/{seed}/{PAPER}")
    found = []
    for _ in range(trials):
        drawn = draw(SPACE, random)
        start = time.perf_counter()
        tree = fit_paper_tree(data.train.x, set_name, seed=seed, **drawn)
        seconds = time.perf_counter() - start
        error = float(tree.reconstruction_error(data.valid.x))
        found.append(Tree(partial(leaf_reached_most, tree), seconds, error, drawn))
    return min(found, key=lambda tree: np.inf if tree.valid_error is None else tree.valid_error)


def _clusterer(**options: Any) -> Any:
    estimators: Any = import_module("prunus.estimators")  # here: the others run without it
    names: Any = import_module("prunus.fitting.training_options")
    nested: dict[str, Any] = names.nested(options)
    return estimators.ArgminTreeClusterer(**import_module("prunus.estimators.options").with_training(None, nested))
