"""The kinds of trees that compete: one column or two, greedy or searched, with small leaves or large ones only."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from prunus.search.engine import Job
from prunus.search.outcome import Outcome
from prunus.search.problem import Limits

__all__ = ["QUICK", "THOROUGH", "Candidate", "Effort", "Fold", "candidates", "folds"]

Rows = npt.NDArray[np.int64]

SMALL_LEAF, LARGE_LEAF = 5, 20
"""Smallest numbers of rows in a leaf that compete: many rows guard against outliers, few fit tables without noise."""
ROWS_OF_FOLDS = 4000
"""With more rows, one part of them is held out; with fewer, parts are held out in turn, so that about as many count."""
ACCURACY = 0.5
"""How much the accuracy of classes counts in a search beside Gini's impurity. Few leaves say little but a class."""


MOST_SLOPES, MOST_SUMS = 4, 64
"""Columns from which all leaves predict linearly, and numbers that a search adds up for each leaf, at most."""


@dataclass(frozen=True)
class Effort:
    """How long a search goes on."""

    rounds: int
    """Changes of large neighbourhoods."""
    polish: int
    """Changes of single splits that leave everything below."""
    anneal: int
    """Steps of gradients."""


QUICK, THOROUGH = Effort(100, 300, 60), Effort(150, 500, 60)
"""To compare kinds of trees, and to find the tree of the best kind."""


@dataclass(frozen=True)
class Candidate:
    """A kind of tree."""

    stage: str
    """"greedy" or "search"."""
    terms: int
    """Largest number of columns in a split."""
    least: float
    """Smallest weight of the rows of a leaf."""
    accuracy: float = 0.0
    """How much accuracy counts in a search, from 0 to 1."""
    slopes: int = 0
    """Number of columns from which leaves predict linearly while the tree is searched, the same in all leaves."""

    @property
    def constant(self) -> "Candidate":
        """The same kind with constant predictions in leaves."""
        return replace(self, slopes=0)

    def job(self, rows: Rows, leaves: int, seed: int, effort: Effort) -> Job:
        """The search for such a tree, without its slopes."""
        if self.stage == "greedy":
            return Job(rows, leaves, self.terms, self.least)
        accuracy = 0.0 if self.slopes else self.accuracy
        return Job(rows, leaves, self.terms, self.least, accuracy=accuracy, seed=seed, **vars(effort))

    @property
    def name(self) -> str:
        """Stage, columns and rows of a leaf in words."""
        columns = "1 column" if self.terms == 1 else f"{self.terms} columns"
        linear = f", linear in {self.slopes}" if self.slopes else ""
        return f"{self.stage}{linear}, {columns}, {self.least:g} rows a leaf"

    def name_with(self, leaf_terms: int) -> str:
        """The same with the length of the formulas in leaves."""
        if not leaf_terms:
            return self.name
        return f"{self.name}, {leaf_terms} {'term' if leaf_terms == 1 else 'terms'} a leaf"


@dataclass(frozen=True)
class Fold:
    """Rows that learn, and rows that judge."""

    learned: Rows
    held_out: Rows


def candidates(limits: Limits, columns: int, outputs: int, *, is_classes: bool) -> list[Candidate]:
    """The kinds of trees that compete, the simplest first.

    If leaves may have formulas, trees that are searched with linear predictions in their leaves compete, too.
    """
    accuracy = ACCURACY if is_classes else 0.0
    least = [LARGE_LEAF, SMALL_LEAF] if limits.min_samples_leaf == "auto" else [limits.min_samples_leaf]
    terms = range(1, min(limits.max_split_features, columns, 2) + 1)
    kinds = [("greedy", 1), *(("search", k) for k in terms)]
    found = [Candidate(stage, k, float(n), accuracy) for stage, k in kinds for n in least]
    slopes = _slopes(limits.max_leaf_features, columns, outputs)
    return found + [Candidate("search", k, float(least[0]), accuracy, slopes) for k in terms if slopes]


def _slopes(wanted: int, columns: int, outputs: int) -> int:
    """So many slopes that the sums of a leaf stay few."""
    found = min(wanted, columns, MOST_SLOPES)
    while found and 1 + outputs + found * (found + 3) // 2 + found * outputs > MOST_SUMS:
        found -= 1
    return found


def folds(outcome: Outcome, rows: Rows, seed: int) -> list[Fold]:
    """How rows are divided: classes in equal shares."""
    n = len(rows)
    if n < 4:
        return []
    parts = 3 if n > 2000 else 5 if n > 500 else min(10, n)
    wanted = max(1, min(parts, round(ROWS_OF_FOLDS / n * parts / (parts - 1))))
    order = np.random.default_rng(seed).permutation(n)
    if outcome.labels is not None:
        order = order[outcome.labels[rows][order].argsort(kind="stable")]
    part = np.empty(n, dtype=np.int64)
    part[order] = np.arange(n) % parts
    return [Fold(rows[part != i], rows[part == i]) for i in range(wanted)]
