"""What the interactive page computes with: what values of the table count as, and the sums of splits and leaves."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

from prunus.data import OutputColumn
from prunus.describe.record import SplitWeight
from prunus.search.record import LeafFormula, Term
from prunus.tree import Tree

__all__ = ["MAX_WEIGHTS", "InputList", "learned_inputs", "model_record", "n_weights", "splits"]

Record = dict[str, Any]

MAX_WEIGHTS = 60_000
"""Largest number of weights in the linear models of nodes; with more, the page only shows predictions of given rows."""


def learned_inputs(inputs: Sequence[OutputColumn]) -> list[Record]:
    """How values of the table become the numbers of an encoded row."""
    return [_learned_input(column) for column in inputs]


def _learned_input(column: OutputColumn) -> Record:
    record = {name: getattr(column, name) for name in ("feature", "label", "kind", "center", "scale", "low", "high")}
    return (
        record
        | ({"category": column.category} if column.category is not None else {})
        | ({"piece": True} if column.piece else {})
        | ({"effects": column.effects} if column.effects is not None else {})
        | ({"missing": column.missing} if column.missing is not None else {})
        | ({"unit": column.unit} if column.unit is not None else {})
    )


class InputList:
    """The inputs of the sums of a readable tree: numbers of the table as they are, and groups of levels.

    A number that is missing counts as `missing`; without it, it is missing in the sum, too.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.places: dict[Any, int] = {}

    def terms(self, terms: Sequence[Term], weights: Sequence[SplitWeight], *, fill: bool) -> list[tuple[int, float]]:
        """The position of the input of each term, and its weight."""
        return [(self._place(term, own, fill=fill), term.weight) for term, own in zip(terms, weights, strict=True)]

    def formula(self, formula: LeafFormula, weights: Sequence[SplitWeight]) -> Record:
        """An output of a leaf."""
        terms = self.terms(formula.terms, weights, fill=True)
        return {"start": formula.constant, "terms": terms, "low": formula.low, "high": formula.high}

    def _place(self, term: Term, weight: SplitWeight, *, fill: bool) -> int:
        missing = term.missing if fill or term.levels is not None else None
        key = (term.feature, term.levels, missing)
        if key not in self.places:
            self.places[key] = len(self.records)
            spread = weight.strength / weight.weight if weight.weight else 1.0
            record = {
                "feature": term.feature,
                "label": weight.label,
                "kind": "plain",
                "missing": missing,
                "spread": spread,
            }
            self.records.append(
                record | ({} if term.levels is None else {"kind": "levels", "levels": list(term.levels)})
            )
        return self.places[key]


def splits(tree: Tree) -> Record:
    """Weights of the splits that are kept, or that have a positive mass."""
    if tree.weight is None or tree.bias is None:
        return {"nodes": [], "weight": "", "bias": ""}
    used = tree.kept | (tree.mass > 0)
    nodes = np.flatnonzero(used[1:].reshape(-1, 2).any(1))
    return {"nodes": nodes.tolist(), "weight": _floats(tree.weight[nodes]), "bias": _floats(tree.bias[nodes])}


def n_weights(tree: Tree) -> int:
    """Number of weights in the linear models of the nodes that take part in predictions."""
    return 0 if tree.leaves.slope is None else int(tree.leaves.slope[tree.mass > 0].size)


def model_record(tree: Tree) -> Record | None:
    """The arrays that the page needs to predict; None if it cannot predict."""
    if tree.weight is None:
        return None
    record: Record = {"elu": tree.splits.bounded, "mass": _floats(tree.mass), "outputs": tree.n_outputs}
    record |= dict.fromkeys(("constant", "slope", "shared", "output"), "")
    if tree.cluster is not None:
        return record | {"position": {}, "outputs": 0}
    nodes, leaves = np.flatnonzero(tree.mass > 0), tree.leaves
    if leaves.constant is None or n_weights(tree) > MAX_WEIGHTS:
        return None
    if tree.limits is not None:
        record["limits"] = _floats(tree.limits[:, nodes])
    if tree.correction.any():
        record["correction"] = _floats(tree.correction[tree.kept])
    return record | {
        "position": {int(t): i for i, t in enumerate(nodes)},
        "constant": _floats(leaves.constant[nodes]),
        "slope": "" if leaves.slope is None else _floats(leaves.slope[nodes]),
        "shared": "" if leaves.shared is None else _floats(leaves.shared),
        "output": _floats(leaves.bias),
    }


def _floats(values: Any) -> str:
    return b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()
