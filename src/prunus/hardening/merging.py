"""Fewer leaves: pairs of leaves whose predictions differ least are merged."""

import heapq
from collections.abc import Callable

import numpy as np

from prunus.hardening.leaf_models import Doubles, Floats
from prunus.hardening.sketch import Sketch
from prunus.tree.paths import Nodes, passing

__all__ = ["merge_leaves"]


def merge_leaves(
    sketch: Sketch,
    x: Floats,
    ends: Nodes,
    weight: Doubles,
    *,
    max_leaves: int | None = None,
    fewest: float = 0.0,
    compared: Callable[[Doubles], Doubles] = lambda outputs: outputs,
) -> None:
    """Merge pairs of leaves, those first whose predictions of their rows change least.

    Parameters
    ----------
    sketch : Sketch
    x : array of shape (n, d)
    ends : array of shape (n,)
        The leaf of each row.
    weight : array of shape (n,)
    max_leaves : int, optional
        Merging ends when there are no more leaves than this.
    fewest : float
        Before that, leaves with a smaller total weight are merged with their siblings.
    compared : callable
        Turns outputs, (n, k), into what is compared: probabilities, for classes.
    """
    total = passing(ends, weight, len(sketch.kept))
    rows = {node: np.flatnonzero(ends == node) for node in sketch.leaves.tolist()}

    def cost(node: int) -> float:
        children = (2 * node + 1, 2 * node + 2)
        share = total[children[0]] / max(total[node], 1e-30)
        models, change = sketch.models, 0.0
        slope, constant = (share * part[children[0]] + (1 - share) * part[children[1]] for part in (
            models.slope, models.constant))  # fmt: skip
        for child in children:
            here = rows[child]
            before = x[here] @ models.slope[child].T + models.constant[child]
            difference = compared(x[here] @ slope.T + constant) - compared(before)
            change += float(weight[here] @ np.square(difference).sum(1))
        return change

    def candidate(node: int) -> tuple[bool, float, int]:
        is_large = min(total[2 * node + 1], total[2 * node + 2]) >= fewest
        return is_large, cost(node), node

    parents = {(node - 1) // 2 for node in rows if node}
    heap = [candidate(node) for node in parents if {2 * node + 1, 2 * node + 2} <= rows.keys()]
    heapq.heapify(heap)
    while heap:
        is_large, _, node = heapq.heappop(heap)
        if is_large and (max_leaves is None or len(rows) <= max_leaves):
            break
        left, right = 2 * node + 1, 2 * node + 2
        sketch.merge(node, float(total[left] / max(total[node], 1e-30)))
        rows[node] = np.concatenate((rows.pop(left), rows.pop(right)))
        parent = (node - 1) // 2
        if node and {2 * parent + 1, 2 * parent + 2} <= rows.keys():
            heapq.heappush(heap, candidate(parent))
