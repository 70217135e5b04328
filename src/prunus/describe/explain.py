"""Why rows got their predictions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.data.calendar import Unit, level_at
from prunus.describe.checks import check_whole
from prunus.describe.explanation import Route, RowExplanation, SplitStep, SumOfTerms
from prunus.describe.numbers import exact_number, short_number
from prunus.describe.read import YES_OR_NO, describe
from prunus.describe.reasons import PredictedRows, forest_rows
from prunus.describe.record import SplitWeight
from prunus.describe.rows import LearnedRows, Rows, SearchedRows, send_rows
from prunus.describe.sentences import Asked, question_sentence, split_sentence
from prunus.describe.words import formula_text
from prunus.estimators.forest import ArgminForest
from prunus.fitting.torch_state import plain_torch
from prunus.search.columns import as_columns
from prunus.search.predict import outputs_of, split_sums, term_values
from prunus.search.record import LeafFormula, Term
from prunus.targets import Scale
from prunus.tree.paths import path_nodes
from prunus.tree.prediction import find_routes, outputs_along, outputs_at, row_outputs, score_rows

__all__ = ["explain_rows", "top_reasons"]

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]

MARGIN = 0.5
"""A row goes both ways at a split of a soft tree if its score is closer to 0 than this."""
ONE = np.zeros(1, dtype=np.int64)


@plain_torch()
def explain_rows(
    estimator: Any,
    X: Any,  # noqa: N803
    *,
    feature_names: Any = None,
    class_names: Any = None,
    max_features: int = 3,
) -> list[RowExplanation]:
    """Explain why rows got their predictions: the reasons, the path, and the sum that is the prediction.

    A prediction is told in three ways. *Reasons* say how much each column moved it, compared with a row that has
    typical values in all columns. The *path* says for each split what it does with the row, and what each column adds
    to its score. The *sums* say how the leaf, or in a soft tree all routes of the row, make the prediction from the
    values of the row; they equal `predict` up to rounding.

    Paths and sums are those of single trees. For a forest only reasons are told, which are those of the mean that it
    predicts; explain ``forest.estimators_[k]`` to see what the tree number k does with a row.

    Parameters
    ----------
    estimator : a tree (ReadableTreeClassifier, ReadableTreeRegressor, ArgminTreeClassifier, ArgminTreeRegressor or \
ArgminTreeClusterer) or a forest (ArgminForestClassifier or ArgminForestRegressor)
        The fitted estimator.
    X : table of shape (n, n_features_in_)
        The rows to explain.
    feature_names : list of n_features_in_ names, optional
        Names of the columns; by default those of the table, or "x0", "x1" and so on if it had no names.
    class_names : list of names, optional
        Names of the classes, in the order of `classes_`.
    max_features : int, default=3
        Number of features that the sentence of a split names, the strongest first.

    Returns
    -------
    list of RowExplanation
        One for each row. Its method `text` tells it in words, `to_dict` as plain data; notebooks show a picture.

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, routing="hard", random_state=0).fit([[0.0], [1.0], [8.0]], [0.0, 0.0, 9.0])
    >>> (why,) = explain_rows(tree, [[8.0]], feature_names=["size"])
    >>> why.path[0].sentence  # doctest: +ELLIPSIS
    'size = 8, above ...'
    >>> round(why.sums[0].total, 3) == round(float(tree.predict([[8.0]])[0]), 3)
    True
    """
    check_whole("max_features", max_features, 1)
    if isinstance(estimator, ArgminForest):
        told = forest_rows(estimator, X, feature_names, class_names)
        return [told.of_row(i) for i in range(len(told.x))]
    rows = send_rows(describe(estimator, feature_names, class_names), X)
    told = PredictedRows.of(rows, X)
    if isinstance(rows, SearchedRows):
        story: _Story = _SearchedStory(rows, told, max_features)
    else:
        assert isinstance(rows, LearnedRows)
        story = _LearnedStory(rows, told, max_features)
    return [story.of_row(i) for i in range(len(rows.ends))]


@plain_torch()
def top_reasons(estimator: Any, X: Any, n: int = 3) -> list[list[str]]:  # noqa: N803
    """The strongest reasons for the prediction of each row in words, at most n.

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, routing="hard", random_state=0).fit([[0.0], [1.0], [8.0]], [0.0, 0.0, 9.0])
    >>> top_reasons(tree, [[8.0]])  # doctest: +ELLIPSIS
    [['x0 = 8 (+...)']]
    """
    if isinstance(estimator, ArgminForest):
        told = forest_rows(estimator, X)
    else:
        told = PredictedRows.of(send_rows(describe(estimator), X), X)
    return [[reason.text() for reason in told.reasons(i)[0][:n]] for i in range(len(told.x))]


@dataclass(frozen=True)
class _Story:
    """Rows that have descended a tree, with all that is told of them."""

    rows: Rows
    told: PredictedRows
    max_features: int

    def of_row(self, i: int) -> RowExplanation:
        """All that is told of row i."""
        end = int(self.rows.ends[i])
        nodes, _ = path_nodes(self.rows.ends[i : i + 1])
        steps = zip(nodes[:-1].tolist(), nodes[1:].tolist(), strict=True)
        return replace(
            self.told.of_row(i),
            path=tuple(self.step(i, t, left=after == 2 * t + 1) for t, after in steps),
            leaf=end,
            share=self.rows.tree.by_number[end].share,
            sums=() if self.rows.tree.clusters else tuple(self.sums(i, end)),
            routes=self.routes_of(i),
        )

    def step(self, i: int, t: int, *, left: bool) -> SplitStep:
        """What the split of node t does with row i."""
        raise NotImplementedError

    def sums(self, i: int, end: int) -> Sequence[SumOfTerms]:
        """How the outputs of row i are made."""
        raise NotImplementedError

    def routes_of(self, i: int) -> tuple[Route, ...]:  # noqa: ARG002
        """The nodes that parts of row i reach, in a soft tree."""
        return ()


@dataclass(frozen=True)
class _LearnedStory(_Story):
    """The story of rows in a tree that was learned by gradient descent."""

    rows: LearnedRows

    @cached_property
    def scale(self) -> Scale:
        return self.rows.tree.target.display_scale(self.rows.tree.outputs)

    @cached_property
    def unlimited(self) -> Doubles:
        """Outputs before they are limited, (n, k)."""
        model = self.rows.tree.model
        return self.rows.soft if model.limits is None else row_outputs(replace(model, limits=None), self.rows.x)

    @cached_property
    def routes(self) -> Floats | None:
        """Routes of the rows, (n, T), in a soft tree."""
        return None if self.rows.tree.model.is_hard else find_routes(self.rows.tree.model, self.rows.x)

    def step(self, i: int, t: int, *, left: bool) -> SplitStep:
        model, node = self.rows.tree.model, self.rows.tree.by_number[t]
        side = "left" if left else "right"
        if model.weight is None or model.bias is None:
            score = score_rows(model.splits, torch.from_numpy(self.rows.x[i : i + 1]))[0, t].item()
            sentence = split_sentence(node, score, None)
            return SplitStep(t, sentence, side, score, None, is_undecided=not model.is_hard and abs(score) < MARGIN)
        weight, bias = model.weight[t].astype(np.float64), float(model.bias[t])
        score = float(weight @ self.rows.x[i] + bias)
        margin = np.expm1(score) if model.splits.bounded and score < 0 else score
        value = None if node.column is None else self._asked(i, node.split[0].feature, node.column.unit)
        present = replace(node, split=self._present(i, node.split))
        return SplitStep(
            node=t,
            sentence=split_sentence(present, score, value, self.max_features),
            side=side,
            score=score,
            typical=float(weight @ self.told.typical + bias),
            contributions=self.told.contributions(i, self._added(i, weight)),
            is_undecided=bool(not model.is_hard and abs(margin) < MARGIN),
        )

    def _added(self, i: int, weight: Doubles) -> Doubles:
        """What each column adds to a linear function of the encoded row with this weight, (columns, 1)."""
        row = self.rows.x[i].astype(np.float64)
        columns = self.told.columns
        return np.array([[weight[own.positions] @ (row[own.positions] - own.encoded)] for own in columns])

    def _present(self, i: int, weights: tuple[SplitWeight, ...]) -> tuple[SplitWeight, ...]:
        """The weights without those of levels that row i does not have, and of pieces that it is below."""
        columns, x = self.rows.tree.inputs, self.rows.x[i]

        def is_present(part: SplitWeight) -> bool:
            column = columns[part.column]
            return not (column.piece or column.kind in YES_OR_NO) or bool(x[part.column])

        return tuple(filter(is_present, weights))

    def _asked(self, i: int, feature: int, unit: Unit | None) -> str:
        """The value of a column in row i, or the level of this unit of a date, in words."""
        c = next(c for c, column in enumerate(self.told.columns) if column.feature == feature)
        if unit is None:
            return self.told.values[c][i]
        seconds = self.told.table.numbers(feature)[i]
        return self.told.values[c][i] if isnan(seconds) else level_at(float(seconds), unit)

    def sums(self, i: int, end: int) -> Sequence[SumOfTerms]:
        model, scale = self.rows.tree.model, self.scale
        function = outputs_at(model, end) if self.routes is None else outputs_along(model, self.routes[i])
        has_slopes = function.weight.shape[1] > 0
        weight = scale.matrix @ function.weight
        row, typical = self.rows.x[i], self.told.typical
        linear = function.constant + (function.weight @ row if has_slopes else 0.0)
        start = scale.at(function.constant + (function.weight @ typical if has_slopes else 0.0))
        has_network = model.leaves.network is not None
        network = scale.matrix @ (self.unlimited[i] - linear) if has_network else np.zeros(len(start))
        limited = scale.matrix @ (self.rows.soft[i] - self.unlimited[i])
        total = scale.at(self.rows.soft[i])
        formulas = self._formulas(i, end) if self.routes is None else {}
        is_classes = self.rows.tree.classes is not None
        return [
            SumOfTerms(
                output=scale.names[m],
                formula=formulas.get(scale.names[m], ""),
                typical=float(start[m]),
                contributions=self.told.contributions(i, self._added(i, weight[m])) if has_slopes else (),
                network=float(network[m]),
                limited=float(limited[m]),
                total=float(total[m]),
            )
            for m in (np.argsort(-total, kind="stable") if is_classes else range(len(total)))
        ]

    def _formulas(self, i: int, end: int) -> dict[str, str]:
        """The formulas of the leaf of row i in words, by what they tell, without terms that are 0 for the row."""
        formulas = self.rows.tree.by_number[end].formulas
        of_row = [replace(formula, weights=self._present(i, formula.weights)) for formula in formulas]
        write = partial(short_number, digits=4)
        return {formula.output: formula_text(formula, self.max_features, write) for formula in of_row}

    def routes_of(self, i: int) -> tuple[Route, ...]:
        if self.routes is None:
            return ()
        z, is_leaf = self.routes[i], self.rows.tree.model.is_leaf
        nodes = np.flatnonzero(z)
        order = nodes[np.argsort(-z[nodes], kind="stable")].tolist()
        return tuple(Route(t, float(z[t]), bool(is_leaf[t]), self._added_by_node(i, t, float(z[t]))) for t in order)

    def _added_by_node(self, i: int, t: int, amount: float) -> tuple[float, ...]:
        """What a node that this amount of row i reaches adds to each sum."""
        leaves = self.rows.tree.model.leaves
        if self.rows.tree.clusters or leaves.constant is None:
            return ()
        outputs = leaves.constant[t].astype(np.float64)
        if leaves.slope is not None:
            outputs = outputs + leaves.slope[t] @ self.rows.x[i]
        added: list[float] = (self.scale.matrix @ (amount * outputs)).tolist()
        return tuple(added)


@dataclass(frozen=True)
class _SearchedStory(_Story):
    """The story of rows in a readable tree."""

    rows: SearchedRows

    @cached_property
    def typical(self) -> SearchedRows:
        """The row of typical values."""
        columns = as_columns(self.rows.tree.known, self.told.typical[None].astype(np.float64))
        return replace(self.rows, columns=columns, ends=ONE)

    def step(self, i: int, t: int, *, left: bool) -> SplitStep:
        split, question = self.rows.tree.model.splits[t], self.rows.tree.by_number[t].question
        assert question is not None
        total = float(split_sums(split, self.rows.columns, np.array([i]))[0])
        middle = float(split_sums(split, self.typical.columns, ONE)[0])
        asked = Asked(
            tuple(self.told.values[term.feature][i] for term in split.terms),
            tuple(_value(replace(term, weight=1.0), self.rows, i) for term in split.terms),
            total,
        )
        moved = [_value(term, self.rows, i) - _value(term, self.typical, 0) for term in split.terms]
        is_known = not (isnan(total) or isnan(middle))
        return SplitStep(
            node=t,
            sentence=question_sentence(question, asked, left=left),
            side="left" if left else "right",
            score=None if isnan(total) else total - split.threshold,
            typical=None if isnan(middle) else middle - split.threshold,
            contributions=self.told.contributions(i, self._by_column(split.terms, moved)) if is_known else (),
        )

    def sums(self, i: int, end: int) -> Sequence[SumOfTerms]:
        """The formulas of the leaf; the value of a leaf without formulas, unless it has probabilities."""
        outputs, node = self.rows.tree.model.leaves[end].outputs, self.rows.tree.by_number[end]
        if not node.formulas:
            names = () if self.rows.tree.classes is not None else self.rows.tree.outputs
            return [self._sum(i, name, formula, "") for name, formula in zip(names, outputs, strict=False)]
        return [
            self._sum(i, formula.output, own, formula_text(formula, 1, exact_number))
            for formula, own in zip(node.formulas, outputs, strict=True)
        ]

    def _sum(self, i: int, name: str, formula: LeafFormula, text: str) -> SumOfTerms:
        """A formula, term by term; terms of the same column are one."""
        unlimited = replace(formula, low=None, high=None)
        before, total = (float(outputs_of(one, self.rows.columns, np.array([i]))[0]) for one in (unlimited, formula))
        added = [_value(term, self.rows, i, keep_missing=False) for term in formula.terms]
        contributions = self.told.contributions(i, self._by_column(formula.terms, added))
        return SumOfTerms(
            output=name,
            formula=text,
            typical=formula.constant,
            contributions=tuple(replace(part, typical="") for part in contributions),
            network=0.0,
            limited=total - before,
            total=total,
            start="the constant",
        )

    def _by_column(self, terms: Sequence[Term], values: Sequence[float]) -> Doubles:
        """The sums of these values of terms by the columns of the table, (columns, 1)."""
        added = np.zeros((len(self.told.columns), 1))
        for term, value in zip(terms, values, strict=True):
            added[term.feature] += value
        return added


def _value(term: Term, rows: SearchedRows, i: int, *, keep_missing: bool = True) -> float:
    """What a term adds in row i."""
    return float(term_values(term, rows.columns[term.feature], np.array([i]), keep_missing=keep_missing)[0])
