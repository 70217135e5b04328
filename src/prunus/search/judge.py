"""The competition: every kind of tree is searched on some rows and judged on others, with all its sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.search.engine import EngineTable, Splits
from prunus.search.formulas import fit_formulas
from prunus.search.kinds import QUICK, Candidate, Fold, SearchedTree, folds, search_kinds
from prunus.search.outcome import Outcome
from prunus.search.predict import class_scores, leaf_outputs, leaves_of, node_rows, route, some_rows
from prunus.search.problem import Category, Doubles, Number
from prunus.search.record import Leaf, LeafFormula, ReadableRecord, Split
from prunus.search.sizes import grown, node_cells, pruned
from prunus.search.terms import TermTable, read_terms

__all__ = ["Judged", "judge"]

Columns = Sequence[Number | Category]
Rows = npt.NDArray[np.int64]


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


@dataclass(frozen=True)
class Judged:
    """What held-out rows say."""

    best: Candidate
    leaf_terms: int
    """Largest number of terms in the formulas of its leaves."""
    scores: dict[str, float]
    """The score of each candidate: accuracy, or R^2."""
    sizes: dict[int, tuple[float, float]]
    """The score of the best candidate with this many leaves, and its standard error."""

    @property
    def notes(self) -> dict[str, Any]:
        """The same as an estimator keeps it."""
        return {
            "stage": self.best.stage,
            "linear_columns": self.best.slopes,
            "max_split_features": self.best.terms,
            "max_leaf_features": self.leaf_terms,
            "min_samples_leaf": self.best.least,
            "scores": self.scores,
        }

    def at(self, leaves: int) -> tuple[float, float]:
        """Score and standard error of this size, or of the largest smaller one."""
        known = [size for size in self.sizes if size <= leaves]
        return self.sizes[max(known)] if known else (float("nan"), float("nan"))

    def size_within_one_error(self) -> int:
        """The smallest size whose score is within one standard error of the best."""
        if not self.sizes:
            return 8
        best = max(self.sizes, key=lambda size: (self.sizes[size][0], -size))
        score, error = self.sizes[best]
        return min(size for size, (own, _) in self.sizes.items() if own >= score - error)


def judge(
    table: EngineTable,
    outcome: Outcome,
    rivals: Sequence[Candidate],
    leaves: int,
    *,
    leaf_terms: int,
    largest: int,
    threads: int,
    seed: int,
) -> Judged:
    """Let kinds of trees compete, each with constant leaves and with longer and longer formulas.

    Ties go to shorter formulas, then to the first kind, which is the simplest.
    """
    parts = folds(outcome, np.arange(len(outcome)), seed)
    if not parts:
        return Judged(rivals[0], 0, {}, {})
    terms = read_terms(table.columns) if leaf_terms else None
    tasks = [(rival, i) for rival in rivals for i in range(len(parts))]
    learned = [part.learned for part in parts]
    found = search_kinds(table, tasks, learned, leaves, effort=QUICK, seed=seed, threads=threads)
    trees = {rival: found[i * len(parts) : (i + 1) * len(parts)] for i, rival in enumerate(rivals)}
    judged = outcome.part(np.concatenate([part.held_out for part in parts]))
    errors, scores = {}, {}
    for i, rival in enumerate(rivals):
        most = leaf_terms if rival.least >= rivals[0].least else 0  # formulas of few rows say little
        own = zip(trees[rival], parts, strict=True)
        predicted = [predict_held_out([one.splits], table.columns, outcome, part, terms, most) for one, part in own]
        for cap in range(most + 1):
            whole = np.concatenate([by_cap[cap][0] for by_cap in predicted])
            errors[cap, i] = float(np.average(judged.errors(whole), weights=judged.weight))
            scores[rival.name_with(cap)] = _score(judged, whole)[0]
    cap, best = min(sorted(errors), key=lambda one: errors[one])
    kind = rivals[best]
    sizes = _sizes(trees[kind], table, outcome, parts, judged, kind.least, largest, threads, terms, cap)
    return Judged(kind, cap, scores, sizes)


def _score(outcome: Outcome, predicted: Doubles) -> tuple[float, float]:
    """Accuracy, or R^2, and its standard error."""
    weight = outcome.weight / outcome.weight.sum()
    count = 1 / float((weight**2).sum())
    if outcome.labels is not None:
        hits = outcome.hits(predicted)
        right, wrong = float(weight @ hits), float(weight @ (1 - hits))  # their sum is 1 but for rounding
        share = right / (right + wrong)
        return share, float((share * (1 - share) / count) ** 0.5)
    losses = outcome.losses(predicted)
    assert outcome.values is not None
    whole = float(weight @ ((outcome.values - weight @ outcome.values) ** 2).sum(1)) or 1.0
    mean = float(weight @ losses)
    error = float((weight @ (losses - mean) ** 2) ** 0.5 / count**0.5)
    return 1 - mean / whole, error / whole


def _sizes(
    trees: Sequence[SearchedTree],
    table: EngineTable,
    outcome: Outcome,
    parts: Sequence[Fold],
    judged: Outcome,
    least: float,
    largest: int,
    threads: int,
    terms: TermTable | None,
    leaf_terms: int,
) -> dict[int, tuple[float, float]]:
    """The score of all sizes of the best kind of tree."""
    predicted: list[list[Doubles]] = []
    for tree, part in zip(trees, parts, strict=True):
        family = nested(tree, table, outcome, largest, least, threads, rows=part.learned)
        predicted.append(predict_held_out(family, table.columns, outcome, part, terms, leaf_terms)[-1])
    most = max(len(family) for family in predicted)
    whole = [np.concatenate([family[min(size, len(family) - 1)] for family in predicted]) for size in range(most)]
    return {size + 1: _score(judged, own) for size, own in enumerate(whole)}


def nested(
    tree: SearchedTree, table: EngineTable, outcome: Outcome, largest: int, least: float, threads: int, rows: Rows
) -> list[Splits]:
    """Trees of all sizes around one, the smallest first, by the worth for which it was searched."""
    if tree.slopes:
        table = table.as_numbers()
        outcome = replace(outcome, slopes=table.slope_values(tree.slopes, table.columns))
    cells = node_cells(tree.splits, route(tree.splits, table.columns, rows), outcome.part(rows))
    smaller = pruned(tree.splits, cells, outcome)
    return smaller + grown(tree.splits, table, outcome, largest, least, threads, rows=rows, slopes=tree.slopes)
