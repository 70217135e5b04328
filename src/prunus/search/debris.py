"""Splits that say nothing: without rows on one side, or between leaves that predict the same within noise."""

from collections.abc import Sequence

from prunus.search.engine import Splits
from prunus.search.outcome import Outcome
from prunus.search.problem import Category, Number
from prunus.search.routes import route
from prunus.search.sizes import LEAST_GAIN, gain, moved, node_cells, noise

__all__ = ["without_debris"]


def without_debris(splits: Splits, columns: Sequence[Number | Category], outcome: Outcome) -> Splits:
    """The tree without splits that send no row to one side, and without leaves beside each other that agree."""
    found = dict(splits)
    while True:
        cells = node_cells(found, route(found, columns), outcome)
        empty = [t for t in found if min(cells[2 * t + 1][0], cells[2 * t + 2][0]) <= 0]
        if empty:
            t = min(empty)
            found = _replaced(found, t, 2 * t + 1 if cells[2 * t + 1][0] > 0 else 2 * t + 2)
            continue
        ends = [t for t in found if 2 * t + 1 not in found and 2 * t + 2 not in found]
        idle = [
            t for t in ends if gain(cells, t, outcome) <= LEAST_GAIN * noise(cells, t, outcome) + 1e-12 * cells[0][-1]
        ]
        if not idle:
            return found
        weakest = min(idle, key=lambda t: gain(cells, t, outcome))
        found = {t: split for t, split in found.items() if t != weakest}


def _replaced(splits: Splits, t: int, child: int) -> Splits:
    """The tree with one branch of a split in the place of the split."""
    kept = {q: split for q, split in splits.items() if not _is_below(q, t)}
    branch = {q: split for q, split in splits.items() if _is_below(q, child)}
    return {**kept, **{moved(_relative(q, child), t): split for q, split in branch.items()}}


def _is_below(q: int, t: int) -> bool:
    """Whether node q is t or below it."""
    while q > t:
        q = (q - 1) // 2
    return q == t


def _relative(q: int, root: int) -> int:
    """The number of a node in the tree whose root is `root`; the inverse of `moved`."""
    depth = (q + 1).bit_length() - (root + 1).bit_length()
    return (q + 1) - ((root + 1) << depth) + (1 << depth) - 1
