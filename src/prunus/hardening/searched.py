"""Trees with constant leaves and few columns in each split: searched as a whole, guided by the soft tree."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from prunus.hardening.growing import leaf_rows, node_means, set_constants
from prunus.hardening.leaf_models import Doubles, Floats, LeafModels
from prunus.hardening.sketch import Sketch, complete_sketch, deepened
from prunus.hardening.splitting import SearchRows, place_splits, split_leaves, weakest_first
from prunus.search.engine import Job, search_trees
from prunus.targets.links import IDENTITY, Link
from prunus.training.losses import Loss
from prunus.tree.paths import Nodes, last_kept

__all__ = ["MOST_LEAVES", "Choice", "Kind", "Size", "Table", "make_tree", "search_tree"]

ADVICE = (0.0, 0.5, 1.0)
"""How much splits listen to the soft tree; the rest is what the rows say themselves, as in a usual greedy tree."""
LEAST = (1.0, 5.0, 20.0)
"""What the rows of a leaf must weigh."""
PRIOR_ROWS = (0.0, 5.0, 20.0, np.inf)
"""As how many rows the soft tree counts in the value of a leaf."""
SMALLER = 1.2
"""Numbers of leaves are tried that differ by about this factor."""
MAX_TRIED, MAX_SEARCHED = {1: 50_000, 2: 15_000}, {1: 500_000, 2: 50_000}
"""For each number of columns in a split: choices are made on at most this many rows, and splits found for this many."""
MOST_LEAVES = 4096
"""A search makes at most this many leaves."""
PRICE = 1e-4
"""Without held-out rows, a split must lower the mean squared error of all rows by this."""


class Kind(NamedTuple):
    """A way to find a tree."""

    advice: float
    terms: int
    """Largest number of columns in a split."""
    is_searched: bool
    """Whether the greedy tree is improved as a whole."""
    least: float


class Choice(NamedTuple):
    """What is chosen by held-out rows."""

    kind: Kind
    n_leaves: int
    prior_rows: float


class Trial(NamedTuple):
    """A choice, and the loss on held-out rows."""

    loss: float
    choice: Choice


@dataclass(frozen=True)
class Size:
    """How large a tree may be."""

    terms: int
    """Largest number of columns in a split, 1 or 2."""
    depth: int
    max_leaves: int | None = None

    @property
    def leaves(self) -> int:
        """Largest number of leaves."""
        return min(int(2**self.depth), MOST_LEAVES, self.max_leaves or MOST_LEAVES)


@dataclass(frozen=True)
class Table:
    """Rows to find a tree for."""

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

    def thinned(self, most: int) -> "Table":
        """Every so many-th row, so that there are not more than these."""
        n = len(self.x)
        return self if n <= most else self[np.arange(n) % (n // most + 1) == 0]

    def mixed(self, advice: float) -> Doubles:
        """What splits are to tell apart, (n, k)."""
        return advice * self.prior + (1 - advice) * self.wanted


def search_tree(
    table: Table,
    held_out: npt.NDArray[np.bool_],
    fitted: npt.NDArray[np.bool_],
    size: Size,
    *,
    threads: int = 1,
    seed: int = 0,
) -> Sketch:
    """The tree of the fitted rows with the choices that are best on held-out ones.

    Greedy trees and trees that ignore the soft one are among those that are tried, so that the result is seldom worse.
    """
    counts = table.weight > 0
    training, checking, table = table[~held_out & counts], table[held_out & counts], table[fitted & counts]
    if len(training.x) and len(checking.x):
        choice, price = _choose(training, checking, size, threads, seed), 0.0
    else:
        choice, price = Choice(Kind(0.5, size.terms, True, 5.0), size.leaves, 5.0), PRICE
    return make_tree(table, choice, size, price=price, threads=threads, seed=seed)


def make_tree(
    table: Table, choice: Choice, size: Size, *, price: float = 0.0, threads: int = 1, seed: int = 0
) -> Sketch:
    """The tree of rows of positive weight with these choices; it is found a little larger, and pruned."""
    larger = replace(size, max_leaves=min(size.leaves, int(SMALLER * choice.n_leaves)))
    some = table.thinned(MAX_SEARCHED[choice.kind.terms])
    ((_, sketch),) = _found(some, [choice.kind], larger, threads, seed, price)
    order = weakest_first(sketch, sketch.ends(some.x), some.mixed(choice.kind.advice), some.weight)
    for t in order[: max(0, len(order) + 1 - choice.n_leaves)]:
        sketch.merge(t, 0.5)
    sketch = deepened(_with_slopes(sketch), size.depth)
    set_constants(
        sketch, sketch.ends(table.x), table.prior, table.wanted, table.weight, choice.prior_rows, link=table.link
    )
    return sketch


def _choose(training: Table, checking: Table, size: Size, threads: int, seed: int) -> Choice:
    one_column = [Kind(advice, 1, *way) for advice, way in product(ADVICE, product((False, True), LEAST))]
    trials = _trials(one_column, training.thinned(MAX_TRIED[1]), checking, size, threads, seed)
    best = min(trials, key=lambda trial: trial.loss)
    if size.terms > 1:  # the longest searches, so that the advice of the best tree of single columns must do
        more = [Kind(best.choice.kind.advice, size.terms, True, least) for least in LEAST]
        trials = _trials(more, training.thinned(MAX_TRIED[size.terms]), checking, size, threads, seed)
        best = min([best, *trials], key=lambda trial: trial.loss)
    return best.choice


def _trials(kinds: list[Kind], training: Table, checking: Table, size: Size, threads: int, seed: int) -> list[Trial]:
    found = _found(training, kinds, size, threads, seed)
    return [trial for kind, sketch in found for trial in _trials_of(kind, sketch, training, checking, size)]


def _found(
    table: Table, kinds: list[Kind], size: Size, threads: int, seed: int, price: float = 0.0
) -> Iterator[tuple[Kind, Sketch]]:
    """Trees of some kinds, without values, one after another: all of them may need much memory."""
    binned, everything = SearchRows.read(table.x, table.weight), np.arange(len(table.x))
    for advice, group in groupby(kinds, key=lambda kind: kind.advice):
        rows, same = binned.with_targets(table.mixed(advice)), list(group)
        jobs = [_job(kind, everything, size, price * float(table.weight.sum()), seed) for kind in same]
        for kind, job, splits in zip(same, jobs, search_trees(rows.table, jobs, threads), strict=True):
            sketch = _root(table, size.depth)
            place_splits(sketch, splits, table.x, 0, everything)
            if len(sketch.leaves) < size.leaves:  # a search does not know the depth
                greedy = replace(job, leaves=MOST_LEAVES, terms=1, rounds=0, polish=0, anneal=0)
                split_leaves(sketch, rows, leaf_rows(sketch.ends(table.x)), greedy, threads)
            yield kind, sketch


def _job(kind: Kind, rows: Nodes, size: Size, price: float, seed: int) -> Job:
    job = Job(rows, size.leaves, kind.terms, kind.least, price=price, seed=seed)
    return replace(job, rounds=300, polish=1000, anneal=100) if kind.is_searched else job


def _root(table: Table, depth: int) -> Sketch:
    """A tree without splits; its models have no slopes, which would be large."""
    d, k = table.x.shape[1], table.wanted.shape[1]
    root = LeafModels(np.zeros((1, k)), np.zeros((1, k, 0)))
    return deepened(complete_sketch(np.zeros((0, d)), np.zeros(0), root), depth)


def _with_slopes(sketch: Sketch) -> Sketch:
    slope = np.zeros((*sketch.models.constant.shape, sketch.weight.shape[1]))
    return replace(sketch, models=LeafModels(sketch.models.constant, slope))


def _trials_of(kind: Kind, sketch: Sketch, training: Table, checking: Table, size: Size) -> Iterator[Trial]:
    """The losses on held-out rows of trees of several sizes, each contained in the next larger one."""
    ends, to_check, kept = sketch.ends(training.x), sketch.ends(checking.x), sketch.kept.copy()
    order = weakest_first(sketch, ends, training.mixed(kind.advice), training.weight)
    means = {
        rows: node_means(ends, training.prior, training.wanted, training.weight, rows, len(kept)) for rows in PRIOR_ROWS
    }
    n_leaves, wanted = len(order) + 1, size.leaves
    while wanted >= 1:
        for t in order[len(order) + 1 - n_leaves : max(0, len(order) + 1 - wanted)]:
            kept[2 * t + 1] = kept[2 * t + 2] = False
        n_leaves = min(n_leaves, wanted)
        last = last_kept(kept)[to_check]
        for rows, mean in means.items():
            yield Trial(_loss(mean[last], checking), Choice(kind, n_leaves, rows))
        wanted = min(n_leaves - 1, round(n_leaves / SMALLER))


def _loss(means: Doubles, table: Table) -> float:
    if table.loss is None:
        return float(table.weight @ np.square(means - table.wanted).sum(1))
    losses = table.loss(torch.from_numpy(table.link.outputs(means)), torch.from_numpy(table.wanted)).numpy()
    return float(table.weight @ losses)
