"""CART and the readable trees of prunus, as the benchmark of small trees fits them; how others are found."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.small_lists import CLASSES, Contender

__all__ = ["RIVALS_FOLDER", "Learned", "Problem", "find", "fit_cart", "fit_readable", "is_installed"]

RIVALS_FOLDER = Path(__file__).parents[1] / "build" / "rivals"
"""Where `make rivals` installs the methods that the virtual environment does without."""
LEAST_ROWS = 5
"""Rows of a leaf of CART, at least."""


@dataclass(frozen=True)
class Problem:
    """What a method is given."""

    task: str
    x: Any
    y: npt.NDArray[Any]
    leaves: int
    seed: int
    limit_s: float
    """Time after which a method that stops itself should take the best found so far."""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def has_classes(self) -> bool:
        """Whether classes are predicted."""
        return self.task == CLASSES

    @property
    def depth(self) -> int:
        """That of the full tree with as many leaves."""
        return (self.leaves - 1).bit_length()


@dataclass(frozen=True)
class Learned:
    """What came of it."""

    predict: Callable[[Any], npt.NDArray[Any]]
    leaves: int | None
    """Leaves or rules of the model."""


def fit_cart(problem: Problem) -> Learned:
    """scikit-learn's greedy tree."""
    kind = DecisionTreeClassifier if problem.has_classes else DecisionTreeRegressor
    tree = kind(max_leaf_nodes=problem.leaves, min_samples_leaf=LEAST_ROWS, random_state=0)
    tree.fit(problem.x, problem.y)
    return Learned(tree.predict, int(tree.get_n_leaves()))


def fit_readable(problem: Problem) -> Learned:
    """`ReadableTreeClassifier` or `ReadableTreeRegressor` with one thread."""
    prunus: Any = importlib.import_module("prunus")
    kind = prunus.ReadableTreeClassifier if problem.has_classes else prunus.ReadableTreeRegressor
    tree = kind(max_leaf_nodes=problem.leaves, n_jobs=1, random_state=problem.seed, **problem.options)
    tree.fit(problem.x, problem.y)
    return Learned(tree.predict, int(tree.get_n_leaves()))


def find(module: str) -> Any:
    """Import a module that may be in the folder of rivals; what is installed elsewhere comes first."""
    _look_at_rivals()
    return importlib.import_module(module)


def is_installed(contender: Contender) -> bool:
    """Whether its module is there, and of prunus the estimators."""
    _look_at_rivals()
    if importlib.util.find_spec(contender.module) is None:
        return False
    is_ours = contender.module == "prunus"
    return not is_ours or hasattr(importlib.import_module("prunus"), "ReadableTreeClassifier")


def _look_at_rivals() -> None:
    if RIVALS_FOLDER.is_dir() and str(RIVALS_FOLDER) not in sys.path:
        sys.path.append(str(RIVALS_FOLDER))
