"""Splits that searches find for the leaves of a tree, and the order in which splits are taken away again."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from prunus.hardening.leaf_models import Doubles, Floats
from prunus.hardening.sketch import Sketch
from prunus.search.engine import EngineTable, Job, Splits, read_table, search_trees
from prunus.search.problem import Number, Problem
from prunus.search.record import Split
from prunus.search.sizes import moved
from prunus.tree.paths import Nodes, passing

__all__ = ["SearchRows", "place_splits", "split_leaves", "weakest_first"]


@dataclass(frozen=True)
class SearchRows:
    """Rows that splits are searched for, in bins."""

    x: Floats
    table: EngineTable

    @classmethod
    def read(cls, x: Floats, weight: Doubles) -> "SearchRows":
        """Rows, (n, d), with positive weights, (n,)."""
        columns = [Number(column.astype(np.float64)) for column in x.T]
        return cls(x, read_table(Problem(columns, np.zeros((len(x), 1)), weight)))

    def with_targets(self, values: Doubles) -> "SearchRows":
        """The same rows; splits are to tell these values, (n, k), apart."""
        weight = self.table.weight
        return replace(self, table=self.table.with_targets(values - weight @ values / weight.sum()))


def split_leaves(sketch: Sketch, rows: SearchRows, leaves: Sequence[tuple[int, Nodes]], job: Job, threads: int) -> None:
    """Split leaves, each by a search among its rows, until the depth of the sketch."""
    ready = [(leaf, here) for leaf, here in leaves if leaf < len(sketch.bias)]
    found = search_trees(rows.table, [replace(job, rows=here) for _, here in ready], threads)
    for (leaf, here), splits in zip(ready, found, strict=True):
        place_splits(sketch, splits, rows.x, leaf, here)


def place_splits(sketch: Sketch, splits: Splits, x: Floats, leaf: int, rows: Nodes) -> None:
    """Give a leaf, in which some of the rows end, the splits of another tree, as far as there is room for levels."""
    waiting = [(0, rows)]
    while waiting:
        t, here = waiting.pop()
        node = moved(t, leaf)
        if t not in splits or node >= len(sketch.bias):
            continue
        columns, weight, bias = _rounded(splits[t], x[here])
        complete = np.zeros(sketch.weight.shape[1])
        complete[columns] = weight
        sketch.split(node, complete, bias)
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


def weakest_first(sketch: Sketch, ends: Nodes, values: Doubles, weight: Doubles) -> list[int]:
    """The splits of a tree in the order in which they are taken away, that above the leaves which is worth least first.

    Parameters
    ----------
    sketch : Sketch
    ends : array of shape (n,)
        The leaf of each row.
    values : array of shape (n, k)
        What splits tell apart. A split is worth as much as it lowers the sum of squared distances from their means.
    weight : array of shape (n,)
    """
    nodes = len(sketch.kept)
    total = passing(ends, weight, nodes)
    worth = sum(np.square(passing(ends, weight * column, nodes)) for column in values.T) / np.maximum(total, 1e-300)
    gain = worth[1::2] + worth[2::2] - worth[: nodes // 2]
    inner = set(np.flatnonzero(sketch.kept[1::2]).tolist())

    def is_last(t: int) -> bool:
        return t in inner and 2 * t + 1 not in inner and 2 * t + 2 not in inner

    heap = [(float(gain[t]), t) for t in inner if is_last(t)]
    heapq.heapify(heap)
    order = []
    while heap:
        t = heapq.heappop(heap)[1]
        inner.discard(t)
        order.append(t)
        if is_last((t - 1) // 2):
            heapq.heappush(heap, (float(gain[(t - 1) // 2]), (t - 1) // 2))
    return order
