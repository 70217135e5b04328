"""What nested trees that are fitted to some rows predict for others, with constant leaves and with formulas."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from prunus.search.choice import Fold
from prunus.search.formulas import fit_formulas
from prunus.search.outcome import Outcome
from prunus.search.predict import class_scores, leaf_outputs
from prunus.search.problem import Category, Doubles, Number
from prunus.search.record import Leaf, LeafFormula, ReadableRecord, Split
from prunus.search.routes import leaves_of, node_rows, route, some_rows
from prunus.search.sizes import node_cells
from prunus.search.terms import TermTable

__all__ = ["predict_held_out"]

Splits = Mapping[int, Split]
Columns = Sequence[Number | Category]


def predict_held_out(
    family: Sequence[dict[int, Split]],
    columns: Columns,
    outcome: Outcome,
    part: Fold,
    terms: TermTable | None = None,
    most: int = 0,
) -> list[list[Doubles]]:
    """What nested trees predict for the held-out rows of a fold.

    Parameters
    ----------
    family : sequence of Splits
        The largest tree is the last.
    columns : sequence of Number or Category
    outcome : Outcome
    part : Fold
    terms : TermTable, optional
        The columns that formulas may have.
    most : int, default=0
        Largest number of terms of a formula.

    Returns
    -------
    list of length most + 1 of lists of arrays of shape (rows, outputs)
        With at most 0, 1, ... terms a formula, for each tree.
    """
    complete = family[-1]
    leaf = route(complete, columns, part.learned)
    cells = node_cells(complete, leaf, outcome.part(part.learned))
    ends = {t for tree in family for t in leaves_of(tree)}
    leaves = {t: _constant_leaf(t, cells) for t in ends}
    end = route(complete, columns, part.held_out)
    found = [[_predicted(tree, leaves, end, (), outcome) for tree in family]]
    if most and terms is not None:
        rows = {t: part.learned[own] for t, own in node_rows(complete, leaf).items() if t in ends and len(own)}
        formulas = fit_formulas(terms, rows, outcome, cells[0][1:-1] / cells[0][0], most)
        others = some_rows(columns, part.held_out)
        for cap in range(1, most + 1):
            best = leaves | {t: own[cap] or leaves[t] for t, own in formulas.items()}
            found.append([_predicted(tree, best, end, others, outcome) for tree in family])
    return found


def _predicted(
    tree: Splits, leaves: Mapping[int, Leaf], end: npt.NDArray[np.int64], columns: Columns, outcome: Outcome
) -> Doubles:
    """The outputs of rows, where `end` is the leaf of each row in the largest tree."""
    ends, where = np.unique(end, return_inverse=True)
    own = np.array([_end(t, tree) for t in ends.tolist()])[where]
    record = ReadableRecord({}, {t: leaves[t] for t in np.unique(own).tolist()})
    if outcome.labels is None:
        return leaf_outputs(record, columns, own, outcome.outputs)
    return class_scores(record, columns, own, outcome.outputs)[1]


def _end(t: int, tree: Splits) -> int:
    """The leaf of a smaller tree that contains a leaf of a larger one."""
    while t > 0 and (t - 1) // 2 not in tree:
        t = (t - 1) // 2
    return t


def _constant_leaf(t: int, cells: Mapping[int, Doubles]) -> Leaf:
    while cells[t][0] <= 0:
        t = (t - 1) // 2
    return Leaf(tuple(map(LeafFormula, (cells[t][1:-1] / cells[t][0]).tolist())))
