"""Trees with constant leaves whose splits are single columns: greedy trees, guided by the soft tree."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from prunus.hardening.growing import Guide, grow_by_columns, set_constants
from prunus.hardening.leaf_models import Doubles, Floats, LeafModels
from prunus.hardening.sketch import Sketch, complete_sketch, deepened
from prunus.targets.links import IDENTITY, Link
from prunus.training.losses import Loss
from prunus.tree.paths import Nodes

__all__ = ["grow_single_columns"]

ADVICE = (0.0, 0.5, 1.0)
"""How much splits listen to the soft tree; the rest is what the rows say themselves, as in a usual greedy tree."""
SIZES = ((1, 0.0), (2, 0.0), (5, 1e-4), (5, 3e-4), (5, 1e-3), (20, 1e-4))
"""How many rows a leaf must have, and by how much a split must lower the mean squared error of all rows."""
PRIOR_ROWS = (0.0, 5.0, 20.0, np.inf)
"""As how many rows the soft tree counts in the value of a leaf."""
MAX_TRIED = 50_000
"""Choices are made on at most so many rows."""


class Choice(NamedTuple):
    """The choices of which those are taken that are best on held-out rows."""

    advice: float
    fewest_rows: int
    price: float
    prior_rows: float


USUAL = Choice(0.5, 5, 1e-4, 5.0)
"""The choices if there are no validation rows."""


class Trial(NamedTuple):
    """A tree with some choices, on held-out rows."""

    choice: Choice
    n_leaves: int
    losses: Doubles
    """The loss of each row, (n,), times its weight."""


@dataclass(frozen=True)
class Table:
    """Rows to grow a tree from."""

    x: Floats
    prior: Doubles
    """What the soft tree predicts, (n, k): means of values, or probabilities of classes."""
    wanted: Doubles
    """What should be predicted, (n, k)."""
    weight: Doubles
    link: Link = IDENTITY
    """What makes outputs from means."""
    loss: Loss | None = None
    """The loss of outputs by which choices are made; None is the squared difference of means."""

    def __getitem__(self, rows: npt.NDArray[np.bool_]) -> "Table":
        return replace(self, x=self.x[rows], prior=self.prior[rows], wanted=self.wanted[rows], weight=self.weight[rows])

    def guide(self, advice: float) -> Guide:
        return Guide(advice * self.prior + (1 - advice) * self.wanted, self.weight, self.link)


def grow_single_columns(
    table: Table, held_out: npt.NDArray[np.bool_], fitted: npt.NDArray[np.bool_], depth: int, max_leaves: int | None
) -> Sketch:
    """A tree grown from the root, from the fitted rows with the choices that are best on held-out ones.

    A tree that ignores the soft one is among those that are tried, so that the result is seldom worse than it.
    """
    choice = _choose(table, held_out, depth, max_leaves) if held_out.any() else USUAL
    table = table[fitted]
    sketch = _grown(table, choice, depth, max_leaves)
    _set(sketch, table, sketch.ends(table.x), choice)
    return sketch


def _choose(table: Table, held_out: npt.NDArray[np.bool_], depth: int, max_leaves: int | None) -> Choice:
    """The tree with the fewest leaves among those within one standard error of the best, as is usual for such trees."""
    training, checking = table[~held_out], table[held_out]
    if len(training.x) > MAX_TRIED:
        training = training[np.arange(len(training.x)) % (len(training.x) // MAX_TRIED + 1) == 0]
    trials = list(_trials(training, checking, depth, max_leaves))
    best = min(trials, key=lambda trial: trial.losses.mean())

    def is_as_good(trial: Trial) -> bool:
        worse = trial.losses - best.losses
        return bool(worse.mean() <= worse.std() / np.sqrt(len(worse)))

    return min(filter(is_as_good, trials), key=lambda trial: (trial.n_leaves, trial.losses.mean())).choice


def _trials(training: Table, checking: Table, depth: int, max_leaves: int | None) -> Iterator[Trial]:
    for advice, (fewest, price) in product(ADVICE, SIZES):
        first = Choice(advice, fewest, price, 0.0)
        sketch = _grown(training, first, depth, max_leaves)
        ends, to_check = sketch.ends(training.x), sketch.ends(checking.x)
        for prior in PRIOR_ROWS:
            choice = first._replace(prior_rows=prior)
            _set(sketch, training, ends, choice)
            yield Trial(choice, len(sketch.leaves), _losses(sketch.models.constant[to_check], checking))


def _losses(outputs: Doubles, table: Table) -> Doubles:
    if table.loss is not None:
        losses: Doubles = table.loss(torch.from_numpy(outputs), torch.from_numpy(table.wanted)).numpy()
    else:
        losses = np.square(table.link.means(outputs) - table.wanted).sum(1)
    return table.weight * losses


def _grown(table: Table, choice: Choice, depth: int, max_leaves: int | None) -> Sketch:
    d, k = table.x.shape[1], table.wanted.shape[1]
    root = LeafModels(np.zeros((1, k)), np.zeros((1, k, d)))
    sketch = deepened(complete_sketch(np.zeros((0, d)), np.zeros(0), root), depth)
    start = np.zeros(len(table.x), dtype=np.int64)
    grow_by_columns(
        sketch,
        table.x,
        start,
        table.guide(choice.advice),
        fewest_rows=choice.fewest_rows,
        price=choice.price,
        max_leaves=max_leaves,
    )
    return sketch


def _set(sketch: Sketch, table: Table, ends: Nodes, choice: Choice) -> None:
    set_constants(sketch, ends, table.prior, table.wanted, table.guide(choice.advice), choice.prior_rows)
