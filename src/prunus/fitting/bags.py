"""What each tree of a forest sees: its training rows, its validation rows, and its columns of the table."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.fitting.rows import Rows

__all__ = ["Bag", "Bags"]

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Bag:
    """What one tree sees."""

    seed: int
    """The tree's own seed."""
    train: Numbers | None
    """The numbers of the training rows, sorted; None if it trains on all rows."""
    count: Numbers | None
    """How often each of them was drawn; None if each counts once."""
    valid: Numbers | None
    """The numbers of the validation rows, sorted; None if there are none."""
    features: Numbers
    """The columns of the table that the tree sees, sorted."""

    def of(self, rows: Rows) -> Rows:
        """The training rows among all rows; one that was drawn twice has twice the weight."""
        if self.train is None:
            return rows
        found = rows[self.train]
        if self.count is None:
            return found
        drawn = self.count.astype(np.float64)
        return replace(found, weight=drawn if found.weight is None else drawn * found.weight)


@dataclass(frozen=True)
class Bags:
    """The rows and columns that each tree of a forest sees, which depend on its number and not on other trees.

    Without drawing, the validation rows of consecutive trees are consecutive parts of a random order of all rows, so
    that every row is held out by some tree if there are enough trees. Each part has the classes in proportion.

    Examples
    --------
    >>> bags = Bags(np.zeros(10), 3, seed=0, held_out=0.3)
    >>> len(set(np.concatenate([bags.of(k).valid for k in range(4)])))
    10
    """

    y: npt.NDArray[Any]
    """Class numbers, (n,), or values, (n, k)."""
    n_features: int
    """Number of columns of the table."""
    seed: int
    held_out: float | None
    """The share of the rows that a tree validates on; None if it does not validate."""
    bootstrap: bool = False
    """Whether a tree's training rows are drawn with replacement."""
    max_features: float = 1.0
    """Share or number of the columns of the table that a tree sees."""

    @property
    def leaves_rows_out(self) -> bool:
        """Whether trees do not train on all rows."""
        return self.bootstrap or self.held_out is not None

    def of(self, k: int) -> Bag:
        """What tree number k sees."""
        random, n = np.random.default_rng([self.seed, 1, k]), len(self.y)
        seed = int(random.integers(np.iinfo(np.int32).max))
        features = np.sort(random.permutation(self.n_features)[: self._features_a_tree()])
        if not self.leaves_rows_out:
            return Bag(seed, None, None, None, features)
        count = np.bincount(random.integers(n, size=n), minlength=n) if self.bootstrap else np.ones(n, dtype=np.int64)
        held_out = self._held_out(k, count)
        if not self.bootstrap:
            count[held_out] = 0
        train = np.flatnonzero(count)
        return Bag(
            seed,
            train,
            count[train] if self.bootstrap else None,
            held_out if len(held_out) else None,
            features,
        )

    def train_rows(self, k: int) -> Numbers:
        """The numbers of the rows that tree number k trains on, sorted."""
        train = self.of(k).train
        return np.arange(len(self.y)) if train is None else train

    def _features_a_tree(self) -> int:
        wanted: Any = self.max_features
        if isinstance(wanted, Integral):
            return min(int(wanted), self.n_features)
        return max(1, round(self.max_features * self.n_features))

    def _held_out(self, k: int, count: Numbers) -> Numbers:
        """The validation rows of tree number k: with drawing, some of the rows that were not drawn."""
        if self.held_out is None:
            return np.empty(0, dtype=np.int64)
        n = len(self.y)
        size = min(n - 1, math.ceil(self.held_out * n))
        order = np.roll(self._order, -k * size)
        free = order[count[order] == 0] if self.bootstrap else order
        return np.sort(free[:size])

    @cached_property
    def _order(self) -> Numbers:
        """A random order of all rows, over which those of each class are spread evenly."""
        random, n = np.random.default_rng([self.seed, 0]), len(self.y)
        classes = self.y if self.y.ndim == 1 else np.zeros(n, dtype=np.int64)
        order = random.permutation(n)
        order = order[np.argsort(classes[order], kind="stable")]
        _, begins, sizes = np.unique(classes[order], return_index=True, return_counts=True)
        places = np.empty(n)
        offsets = random.random(len(sizes))
        for begin, size, offset in zip(begins.tolist(), sizes.tolist(), offsets.tolist(), strict=True):
            places[order[begin : begin + size]] = (np.arange(size) + offset) / size
        return np.argsort(places, kind="stable")
