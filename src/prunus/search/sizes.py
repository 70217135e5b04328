"""Trees of other sizes around one, and splits that say nothing."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prunus.search.engine import EngineTable, Job, Splits, search_trees
from prunus.search.outcome import Outcome
from prunus.search.predict import leaves_of, route
from prunus.search.problem import Category, Doubles, Number

__all__ = ["grown", "moved", "node_cells", "pruned", "without_debris"]

Columns = Sequence[Number | Category]

DEEPEST = 2**40
"""Leaves with numbers from here on stay leaves."""
LEAST_GAIN = 4.0
"""What a split above two leaves must gain, in units of the noise of one estimated number: two standard errors."""


def node_cells(splits: Splits, leaf: npt.NDArray[np.int64], outcome: Outcome) -> dict[int, Doubles]:
    """The sums of all rows that pass each node, where `leaf` is the leaf of each row."""
    leaves = leaves_of(splits)
    place = {t: i for i, t in enumerate(leaves)}
    found, where = np.unique(leaf, return_inverse=True)
    cells = outcome.cells(np.array([place[t] for t in found.tolist()], dtype=np.int64)[where], len(leaves))
    nodes = {t: cells[i] for t, i in place.items()}
    for t in sorted(splits, reverse=True):
        nodes[t] = nodes[2 * t + 1] + nodes[2 * t + 2]
    return nodes


def pruned(splits: Splits, cells: dict[int, Doubles], outcome: Outcome) -> list[Splits]:
    """The tree, and what is left of it when the split that is worth least is taken away again and again.

    Returns
    -------
    list of Splits
        The smallest first; it has no split.
    """
    value = {t: float(outcome.worth(cell[None])[0]) for t, cell in cells.items()}
    trees = [dict(splits)]
    while trees[-1]:
        tree = trees[-1]
        ends = [t for t in tree if 2 * t + 1 not in tree and 2 * t + 2 not in tree]
        weakest = min(ends, key=lambda t: (value[2 * t + 1] + value[2 * t + 2] - value[t], -t))
        trees.append({t: split for t, split in tree.items() if t != weakest})
    return trees[::-1]


def grown(
    splits: Splits,
    table: EngineTable,
    outcome: Outcome,
    most: int,
    least: float,
    threads: int,
    rows: npt.NDArray[np.int64] | None = None,
    slopes: tuple[int, ...] = (),
) -> list[Splits]:
    """Larger trees with more splits of single columns, best first, up to this many leaves.

    Parameters
    ----------
    rows : array, optional
        The rows of the table that count; all by default.
    slopes : tuple of int, default=()
        The columns of the slopes of the outcome.

    Returns
    -------
    list of Splits
        The smallest first; the given tree is not among them.
    """
    wanted = most - len(splits) - 1
    if wanted <= 0:
        return []
    rows = np.arange(len(outcome)) if rows is None else rows
    leaf = route(splits, table.columns, rows)
    ends = [(t, rows[leaf == t]) for t in leaves_of(splits)]
    ends = [(t, own) for t, own in ends if len(own) > 1 and t < DEEPEST]
    jobs = [Job(own, leaves=wanted + 1, least=least, slopes=slopes) for _, own in ends]
    below = search_trees(table, jobs, threads)
    added = {moved(t, end): split for (end, _), tree in zip(ends, below, strict=True) for t, split in tree.items()}
    complete = {**splits, **added}
    cells = node_cells(complete, route(complete, table.columns, rows), outcome.part(rows))
    value = {t: float(outcome.worth(cell[None])[0]) for t, cell in cells.items()}
    trees, tree = list[Splits](), dict(splits)
    while wanted > 0:
        ready = [t for t in added if t not in tree and (t == 0 or (t - 1) // 2 in tree)]
        ready = [t for t in ready if cells[2 * t + 1][0] > 0 and cells[2 * t + 2][0] > 0]
        if not ready:
            break
        best = max(ready, key=lambda t: (value[2 * t + 1] + value[2 * t + 2] - value[t], -t))
        if gain(cells, best, outcome) <= LEAST_GAIN * noise(cells, best, outcome):
            break
        tree = {**tree, best: added[best]}
        trees.append(tree)
        wanted -= 1
    return trees


def moved(t: int, end: int) -> int:
    """The number of node t of a tree whose root becomes the node `end` of another.

    Examples
    --------
    >>> [moved(t, 2) for t in (0, 1, 2, 3)]
    [2, 5, 6, 11]
    """
    depth = (t + 1).bit_length() - 1
    return (end + 1) * (1 << depth) - 1 + (t + 1 - (1 << depth))


def noise(cells: dict[int, Doubles], t: int, outcome: Outcome) -> float:
    """What the numbers of one more leaf gain by chance: each the mean squared error of the rows at a split."""
    both = float(outcome.worth(np.stack((cells[2 * t + 1], cells[2 * t + 2]))).sum())
    return outcome.n_numbers * max(float(cells[t][-1]) - both, 0.0) / max(float(cells[t][0]), 1e-300)


def gain(cells: dict[int, Doubles], t: int, outcome: Outcome) -> float:
    """What a split between two leaves is worth."""
    children = outcome.worth(np.stack((cells[2 * t + 1], cells[2 * t + 2], cells[t])))
    return float(children[0] + children[1] - children[2])


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
