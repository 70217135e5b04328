"""Trees with constant leaves whose splits are single columns: greedy trees, guided by the soft tree."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from prunus.hardening.growing import Guide, grow_by_columns, set_constants
from prunus.hardening.leaf_models import Doubles, Floats, LeafModels
from prunus.hardening.sketch import Sketch, deepened

__all__ = ["grow_single_columns"]

ADVICE = (0.0, 0.5, 1.0)
"""How much splits listen to the soft tree; the rest is what the rows say themselves, as in a usual greedy tree."""
FEWEST_ROWS = (2, 5, 20)
"""How many rows a leaf must have, as tried on validation rows."""
PRIOR_ROWS = (0.0, 5.0, 20.0, np.inf)
"""As how many rows the soft tree counts in the value of a leaf."""
MAX_TRIED = 50_000
"""Choices are made on at most so many rows."""
USUAL = (0.5, 5, 5.0)
"""The choices if there are no validation rows."""


@dataclass(frozen=True)
class Table:
    """Rows to grow a tree from."""

    x: Floats
    prior: Doubles
    """What the soft tree predicts, (n, k): outputs, or probabilities of classes."""
    wanted: Doubles
    """What should be predicted, (n, k)."""
    weight: Doubles
    is_share: bool

    def __getitem__(self, rows: npt.NDArray[np.bool_]) -> "Table":
        return replace(
            self, x=self.x[rows], prior=self.prior[rows], wanted=self.wanted[rows], weight=self.weight[rows]
        )

    def guide(self, advice: float) -> Guide:
        return Guide(advice * self.prior + (1 - advice) * self.wanted, self.weight, self.is_share)


def grow_single_columns(
    table: Table, held_out: npt.NDArray[np.bool_], fitted: npt.NDArray[np.bool_], depth: int, max_leaves: int | None
) -> Sketch:
    """A tree grown from the root, from the fitted rows with the choices that are best on held-out ones.

    A tree that ignores the soft one is among those that are tried, so that the result is seldom worse than it.
    """
    advice, fewest, prior = _choose(table, held_out, depth, max_leaves) if held_out.any() else USUAL
    table = table[fitted]
    sketch = _grown(table, advice, fewest, depth, max_leaves)
    set_constants(sketch, sketch.ends(table.x), table.prior, table.wanted, table.guide(advice), prior)
    return sketch


def _choose(
    table: Table, held_out: npt.NDArray[np.bool_], depth: int, max_leaves: int | None
) -> tuple[float, int, float]:
    training, checking = table[~held_out], table[held_out]
    if len(training.x) > MAX_TRIED:
        training = training[np.arange(len(training.x)) % (len(training.x) // MAX_TRIED + 1) == 0]
    losses = dict(_losses(training, checking, depth, max_leaves))
    return min(losses, key=lambda choice: losses[choice])


def _losses(
    training: Table, checking: Table, depth: int, max_leaves: int | None
) -> Iterator[tuple[tuple[float, int, float], float]]:
    """The loss on the rows to check, for each of the choices."""
    for advice in ADVICE:
        for fewest in FEWEST_ROWS:
            sketch = _grown(training, advice, fewest, depth, max_leaves)
            ends, to_check = sketch.ends(training.x), sketch.ends(checking.x)
            for prior in PRIOR_ROWS:
                set_constants(sketch, ends, training.prior, training.wanted, training.guide(advice), prior)
                outputs = sketch.models.constant[to_check]
                yield (advice, fewest, prior), _loss(outputs, checking)


def _loss(outputs: Doubles, table: Table) -> float:
    if table.is_share:  # outputs are logarithms of shares
        shares = np.exp(outputs)
        shares /= shares.sum(1, keepdims=True)
        return float(table.weight @ np.square(shares - table.wanted).sum(1))
    return float(table.weight @ np.square(outputs - table.wanted).sum(1))


def _grown(table: Table, advice: float, fewest: int, depth: int, max_leaves: int | None) -> Sketch:
    d, k = table.x.shape[1], table.wanted.shape[1]
    root = LeafModels(np.zeros((1, k)), np.zeros((1, k, d)))
    sketch = deepened(np.zeros((0, d)), np.zeros(0), root, depth)
    start = np.zeros(len(table.x), dtype=np.int64)
    grow_by_columns(sketch, table.x, start, table.guide(advice), fewest_rows=fewest, max_leaves=max_leaves)
    return sketch
