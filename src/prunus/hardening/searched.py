"""Trees with constant leaves and few columns in each split: searched as a whole, guided by the soft tree."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from prunus.hardening.builder import HardTree, TreeBuilder, complete_tree, deepened, weakest_first
from prunus.hardening.growing import leaf_rows, node_means, set_constants
from prunus.hardening.leaf_models import Doubles, Floats, LeafModels
from prunus.search.engine import EngineTable, Job, read_table, search_trees
from prunus.search.problem import Number, Problem
from prunus.search.record import Split
from prunus.search.sizes import moved
from prunus.targets.links import IDENTITY, Link
from prunus.training.losses import Loss
from prunus.tree import Leaves
from prunus.tree.paths import Nodes, last_kept

__all__ = ["MOST_LEAVES", "BinnedRows", "SearchData", "TreeSize", "search_clusters", "search_tree", "split_leaves"]

GUIDANCE = (0.0, 0.5, 1.0)
"""How much the soft tree guides the choice of splits; the rest is what the rows themselves say, as in a greedy tree."""
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
MOST_ROWS, MOST_OUTPUTS = 30_000, 64
"""A tree is searched from at most this many rows, and distinguishes at most this many principal components."""


@dataclass(frozen=True)
class BinnedRows:
    """Rows that splits are searched for, in bins."""

    x: Floats
    table: EngineTable

    @classmethod
    def read(cls, x: Floats, weight: Doubles) -> "BinnedRows":
        """Rows, (n, d), with positive weights, (n,)."""
        columns = [Number(column.astype(np.float64)) for column in x.T]
        return cls(x, read_table(Problem(columns, np.zeros((len(x), 1)), weight)))

    def with_targets(self, values: Doubles) -> "BinnedRows":
        """The same rows, whose splits are to separate these values, (n, k)."""
        weight = self.table.weight
        return replace(self, table=self.table.with_targets(values - weight @ values / weight.sum()))


def split_leaves(
    builder: TreeBuilder, rows: BinnedRows, leaves: Sequence[tuple[int, Nodes]], job: Job, threads: int
) -> None:
    """Split leaves, each by a search among its rows, until the depth of the builder."""
    ready = [(leaf, here) for leaf, here in leaves if leaf < len(builder.bias)]
    found = search_trees(rows.table, [replace(job, rows=here) for _, here in ready], threads)
    for (leaf, here), splits in zip(ready, found, strict=True):
        place_splits(builder, splits, rows.x, leaf, here)


def place_splits(builder: TreeBuilder, splits: Mapping[int, Split], x: Floats, leaf: int, rows: Nodes) -> None:
    """Give a leaf, in which some of the rows end, the splits of another tree, as far as there is room for levels."""
    waiting = [(0, rows)]
    while waiting:
        t, here = waiting.pop()
        node = moved(t, leaf)
        if t not in splits or node >= len(builder.bias):
            continue
        columns, weight, bias = _rounded(splits[t], x[here])
        complete = np.zeros(builder.weight.shape[1])
        complete[columns] = weight
        builder.split(node, complete, bias)
        is_right = x[here][:, columns] @ weight + bias >= 0
        waiting += [(2 * t + 1, here[~is_right]), (2 * t + 2, here[is_right])]


def _rounded(split: Split, x: Floats) -> tuple[list[int], Doubles, float]:
    """Columns, weights and bias in single precision, which trees have, with the threshold in the middle between rows.

    The threshold of one column is rounded so that no row changes its side.
    """
    columns = [term.feature for term in split.terms]
    weight = np.array([term.weight for term in split.terms], dtype=np.float32).astype(np.float64)
    scores = x[:, columns] @ weight
    is_left = scores < split.threshold
    if is_left.all() or not is_left.any():
        return columns, weight, float(np.float32(-split.threshold))
    below, above = float(scores[is_left].max()), float(scores[~is_left].min())
    middle = float(np.float32((below + above) / 2))
    return columns, weight, -middle if middle > below else -above


class Kind(NamedTuple):
    """A way to find a tree."""

    guidance: float
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
class TreeSize:
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
class SearchData:
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

    def __getitem__(self, rows: npt.NDArray[np.bool_]) -> "SearchData":
        return replace(self, x=self.x[rows], prior=self.prior[rows], wanted=self.wanted[rows], weight=self.weight[rows])

    def thinned(self, most: int) -> "SearchData":
        """Every k-th row, with the smallest k that leaves at most this many."""
        n = len(self.x)
        return self if n <= most else self[np.arange(n) % (n // most + 1) == 0]

    def mixed(self, guidance: float) -> Doubles:
        """What splits are to separate, (n, k)."""
        return guidance * self.prior + (1 - guidance) * self.wanted


def search_tree(
    table: SearchData,
    held_out: npt.NDArray[np.bool_],
    fitted: npt.NDArray[np.bool_],
    size: TreeSize,
    *,
    threads: int = 1,
    seed: int = 0,
) -> TreeBuilder:
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
    table: SearchData, choice: Choice, size: TreeSize, *, price: float = 0.0, threads: int = 1, seed: int = 0
) -> TreeBuilder:
    """The tree of rows of positive weight with these choices; it is found a little larger, and pruned."""
    larger = replace(size, max_leaves=min(size.leaves, int(SMALLER * choice.n_leaves)))
    some = table.thinned(MAX_SEARCHED[choice.kind.terms])
    ((_, builder),) = _found(some, [choice.kind], larger, threads, seed, price)
    order = weakest_first(builder, builder.ends(some.x), some.mixed(choice.kind.guidance), some.weight)
    for t in order[: max(0, len(order) + 1 - choice.n_leaves)]:
        builder.merge(t, 0.5)
    builder = deepened(_with_slopes(builder), size.depth)
    set_constants(
        builder, builder.ends(table.x), table.prior, table.wanted, table.weight, choice.prior_rows, link=table.link
    )
    return builder


def _choose(training: SearchData, checking: SearchData, size: TreeSize, threads: int, seed: int) -> Choice:
    one_column = [Kind(guidance, 1, *way) for guidance, way in product(GUIDANCE, product((False, True), LEAST))]
    trials = _trials(one_column, training.thinned(MAX_TRIED[1]), checking, size, threads, seed)
    best = min(trials, key=lambda trial: trial.loss)
    if size.terms > 1:  # the longest searches, so that the guidance of the best tree of single columns must do
        more = [Kind(best.choice.kind.guidance, size.terms, True, least) for least in LEAST]
        trials = _trials(more, training.thinned(MAX_TRIED[size.terms]), checking, size, threads, seed)
        best = min([best, *trials], key=lambda trial: trial.loss)
    return best.choice


def _trials(
    kinds: list[Kind], training: SearchData, checking: SearchData, size: TreeSize, threads: int, seed: int
) -> list[Trial]:
    found = _found(training, kinds, size, threads, seed)
    return [trial for kind, builder in found for trial in _trials_of(kind, builder, training, checking, size)]


def _found(
    table: SearchData, kinds: list[Kind], size: TreeSize, threads: int, seed: int, price: float = 0.0
) -> Iterator[tuple[Kind, TreeBuilder]]:
    """Trees of some kinds, without values, one after another: all of them may need much memory."""
    binned, everything = BinnedRows.read(table.x, table.weight), np.arange(len(table.x))
    for guidance, group in groupby(kinds, key=lambda kind: kind.guidance):
        rows, same = binned.with_targets(table.mixed(guidance)), list(group)
        jobs = [_job(kind, everything, size, price * float(table.weight.sum()), seed) for kind in same]
        for kind, job, splits in zip(same, jobs, search_trees(rows.table, jobs, threads), strict=True):
            builder = _root(table, size.depth)
            place_splits(builder, splits, table.x, 0, everything)
            if len(builder.leaves) < size.leaves:  # a search does not know the depth
                greedy = replace(job, leaves=MOST_LEAVES, terms=1, rounds=0, polish=0, anneal=0)
                split_leaves(builder, rows, leaf_rows(builder.ends(table.x)), greedy, threads)
            yield kind, builder


def _job(kind: Kind, rows: Nodes, size: TreeSize, price: float, seed: int) -> Job:
    job = Job(rows, size.leaves, kind.terms, kind.least, price=price, seed=seed)
    return replace(job, rounds=300, polish=1000, anneal=100) if kind.is_searched else job


def _root(table: SearchData, depth: int) -> TreeBuilder:
    """A tree without splits; its models have no slopes, which would be large."""
    d, k = table.x.shape[1], table.wanted.shape[1]
    root = LeafModels(np.zeros((1, k)), np.zeros((1, k, 0)))
    return deepened(complete_tree(np.zeros((0, d)), np.zeros(0), root), depth)


def _with_slopes(builder: TreeBuilder) -> TreeBuilder:
    slope = np.zeros((*builder.models.constant.shape, builder.weight.shape[1]))
    return replace(builder, models=LeafModels(builder.models.constant, slope))


def _trials_of(
    kind: Kind, builder: TreeBuilder, training: SearchData, checking: SearchData, size: TreeSize
) -> Iterator[Trial]:
    """The losses on held-out rows of trees of several sizes, each contained in the next larger one."""
    ends, to_check, kept = builder.ends(training.x), builder.ends(checking.x), builder.kept.copy()
    order = weakest_first(builder, ends, training.mixed(kind.guidance), training.weight)
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


def _loss(means: Doubles, table: SearchData) -> float:
    if table.loss is None:
        return float(table.weight @ np.square(means - table.wanted).sum(1))
    losses = table.loss(torch.from_numpy(table.link.outputs(means)), torch.from_numpy(table.wanted)).numpy()
    return float(table.weight @ losses)


def search_clusters(
    x: Floats,
    columns: Nodes,
    wanted: Doubles,
    weight: Doubles,
    size: TreeSize,
    *,
    least: float,
    threads: int,
    seed: int,
) -> HardTree:
    """The tree whose leaves have the means nearest to their rows, as the centers of k-means have.

    Parameters
    ----------
    x : array of shape (n, d)
        Encoded rows.
    columns : array
        Those of their columns that splits may use.
    wanted : array of shape (n, k)
        The columns that splits separate, of unit variance.
    weight : array of shape (n,)
    size : TreeSize
    least : float
        What the rows of a cluster must weigh.
    threads : int
    seed : int
    """
    counts = weight > 0
    told_apart = _principal(wanted[counts], weight[counts])
    table = SearchData(x[counts][:, columns], told_apart, told_apart, weight[counts]).thinned(MOST_ROWS)
    choice = Choice(Kind(0.0, size.terms, True, least), size.leaves, 0.0)
    builder = make_tree(table, choice, size, threads=threads, seed=seed)
    nodes = len(builder.kept)
    means = node_means(builder.ends(x[:, columns]), wanted, wanted, weight, 0.0, nodes)
    builder = replace(builder, models=LeafModels(means, np.zeros((nodes, wanted.shape[1], 0))))
    return builder.finished(columns, x.shape[1], "constant", Leaves(np.zeros(wanted.shape[1], dtype=np.float32)))


def _principal(wanted: Doubles, weight: Doubles) -> Doubles:
    """The principal components of values, (n, k), whose squared distances are nearly those of the values."""
    if wanted.shape[1] <= MOST_OUTPUTS:
        return wanted
    spread = wanted - weight @ wanted / weight.sum()
    directions = np.linalg.eigh((spread.T * weight) @ spread)[1]
    found: Doubles = spread @ directions[:, -MOST_OUTPUTS:]
    return found
