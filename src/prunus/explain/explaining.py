"""Why rows got their predictions."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.data.calendar import Unit, level_at
from prunus.data.tables import read_table
from prunus.estimators.forest import ArgminForest
from prunus.estimators.readable import ReadableTree
from prunus.estimators.torch_state import plain_torch
from prunus.explain.checks import check_whole
from prunus.explain.digits import short_number
from prunus.explain.formulas import SplitWeight
from prunus.explain.phrases import formula_text
from prunus.explain.predicted_rows import PredictedRows, forest_rows, strongest
from prunus.explain.readable_explaining import ReadableStory
from prunus.explain.row_explanation import Contribution, Route, RowExplanation, SplitStep, SumOfTerms
from prunus.explain.rows import RowsInTree, send_rows
from prunus.explain.scale import Scale, told_scale
from prunus.explain.sentences import split_sentence
from prunus.explain.values import TableColumn, table_columns
from prunus.explain.wording import YES_OR_NO, Words, read_words
from prunus.targets import Target
from prunus.tree.paths import path_nodes
from prunus.tree.prediction import find_routes, outputs_along, outputs_at, row_outputs, score_rows

__all__ = ["explain_rows", "top_reasons"]

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]

MARGIN = 0.5
"""A row goes both ways at a split of a soft tree if its score is closer to 0 than this."""


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
    words = read_words(estimator, feature_names, class_names)
    if isinstance(estimator, ReadableTree):
        of_row = ReadableStory.of(estimator, words, X).of_row
    else:
        of_row = _Story.of(estimator, words, X, max_features).of_row
    return [of_row(i) for i in range(read_table(X).shape[0])]


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
    elif isinstance(estimator, ReadableTree):
        told = ReadableStory.of(estimator, read_words(estimator), X).told
    else:
        told = _Story.of(estimator, read_words(estimator), X, n).told
    return [[reason.text() for reason in told.reasons(i)[0][:n]] for i in range(len(told.x))]


@dataclass(frozen=True)
class _Story:
    """Rows that have descended a tree, with all that is told of them."""

    words: Words
    rows: RowsInTree
    told: PredictedRows
    max_features: int

    @classmethod
    def of(cls, estimator: Any, words: Words, X: Any, max_features: int) -> "_Story":  # noqa: N803
        """The story of the rows of a table."""
        target: Target = estimator.target_
        rows = send_rows(estimator, X)

        def predict(x: Floats) -> Doubles:
            return target.predictions(row_outputs(rows.tree, x))

        cluster = rows.tree.cluster
        answers = target.answers(rows.soft) if cluster is None else cluster[rows.ends]
        predictions = target.predictions(rows.soft) if cluster is None else np.zeros((len(rows.x), 0))
        told = PredictedRows(target, words, table_columns(words.columns), X, rows.x, answers, predictions, predict)
        return cls(words, rows, told, max_features)

    @property
    def target(self) -> Target:
        return self.told.target

    @property
    def columns(self) -> list[TableColumn]:
        return self.told.columns

    @cached_property
    def scale(self) -> Scale:
        return told_scale(self.target, self.words.summary.outputs)

    @cached_property
    def unlimited(self) -> Doubles:
        """Outputs before they are limited, (n, k)."""
        tree = self.rows.tree
        return self.rows.soft if tree.limits is None else row_outputs(replace(tree, limits=None), self.rows.x)

    @cached_property
    def routes(self) -> Floats | None:
        """Routes of the rows, (n, T), in a soft tree."""
        return None if self.rows.tree.is_hard else find_routes(self.rows.tree, self.rows.x)

    def of_row(self, i: int) -> RowExplanation:
        """All that is told of row i."""
        end, is_cluster = int(self.rows.ends[i]), self.target.task == "clusters"
        return replace(
            self.told.of_row(i),
            path=tuple(self._path(i)),
            leaf=end,
            share=float(self.rows.tree.share[end]),
            sums=() if is_cluster else self._sums(i),
            routes=() if self.routes is None else self._routes(i, self.routes[i]),
        )

    def _contributions(self, i: int, weight: Doubles) -> tuple[Contribution, ...]:
        """What each column adds to a linear function of the encoded row with this weight, (d,)."""
        found = []
        for c, column in enumerate(self.columns):
            own = column.positions
            added = float(weight[own] @ (self.rows.x[i, own].astype(np.float64) - column.encoded))
            if added:
                found.append(self.told.contribution(i, c, np.array([added])))
        return strongest(found)

    def _path(self, i: int) -> list[SplitStep]:
        nodes, _ = path_nodes(self.rows.ends[i : i + 1])
        return [self._step(i, t, after) for t, after in zip(nodes[:-1].tolist(), nodes[1:].tolist(), strict=True)]

    def _step(self, i: int, t: int, after: int) -> SplitStep:
        tree, node = self.rows.tree, self.words.nodes[t]
        side = "left" if after == 2 * t + 1 else "right"
        if tree.weight is None or tree.bias is None:
            score = score_rows(tree.splits, torch.from_numpy(self.rows.x[i : i + 1]))[0, t].item()
            sentence = split_sentence(node, score, None)
            return SplitStep(t, sentence, side, score, None, is_undecided=not tree.is_hard and abs(score) < MARGIN)
        weight, bias = tree.weight[t].astype(np.float64), float(tree.bias[t])
        score = float(weight @ self.rows.x[i] + bias)
        value = None if node.column is None else self._asked(i, node.split[0].feature, node.column.unit)
        return SplitStep(
            node=t,
            sentence=split_sentence(replace(node, split=self._present(i, node.split)), score, value, self.max_features),
            side=side,
            score=score,
            typical=float(weight @ self.told.typical + bias),
            contributions=self._contributions(i, weight),
            is_undecided=not tree.is_hard
            and bool(abs(np.expm1(score) if tree.splits.bounded and score < 0 else score) < MARGIN),
        )

    def _present(self, i: int, weights: tuple[SplitWeight, ...]) -> tuple[SplitWeight, ...]:
        """The weights without those of levels that row i does not have, and of pieces that it is below."""
        columns, x = self.words.columns, self.rows.x[i]

        def is_present(part: SplitWeight) -> bool:
            column = columns[part.column]
            return not (column.piece or column.kind in YES_OR_NO) or bool(x[part.column])

        return tuple(filter(is_present, weights))

    def _asked(self, i: int, feature: int, unit: Unit | None) -> str:
        """The value of a column in row i, or the level of this unit of a date, in words."""
        c = next(c for c, column in enumerate(self.columns) if column.feature == feature)
        seconds = self.told.table_values[c][i]
        return self.told.values[c][i] if unit is None or seconds is None else level_at(seconds, unit)

    def _sums(self, i: int) -> tuple[SumOfTerms, ...]:
        tree, scale = self.rows.tree, self.scale
        function = (
            outputs_at(tree, int(self.rows.ends[i])) if self.routes is None else outputs_along(tree, self.routes[i])
        )
        has_slopes = function.weight.shape[1] > 0
        weight = scale.matrix @ function.weight
        row, typical = self.rows.x[i], self.told.typical
        linear = function.constant + (function.weight @ row if has_slopes else 0.0)
        start = scale.at(function.constant + (function.weight @ typical if has_slopes else 0.0))
        network = (
            scale.matrix @ (self.unlimited[i] - linear) if tree.leaves.network is not None else np.zeros(len(start))
        )
        limited = scale.matrix @ (self.rows.soft[i] - self.unlimited[i])
        total = scale.at(self.rows.soft[i])
        formulas = self._formulas(i) if self.routes is None else {}
        return tuple(
            SumOfTerms(
                output=scale.names[m],
                formula=formulas.get(scale.names[m], ""),
                typical=float(start[m]),
                contributions=self._contributions(i, weight[m]) if has_slopes else (),
                network=float(network[m]),
                limited=float(limited[m]),
                total=float(total[m]),
            )
            for m in (np.argsort(-total, kind="stable") if self.target.task == "classes" else range(len(total)))
        )

    def _formulas(self, i: int) -> dict[str, str]:
        """The formulas of the leaf of row i in words, by what they tell, without terms that are 0 for the row."""
        formulas = self.words.nodes[int(self.rows.ends[i])].formulas
        of_row = [replace(formula, weights=self._present(i, formula.weights)) for formula in formulas]
        write = partial(short_number, digits=4)
        return {formula.output: formula_text(formula, self.max_features, write) for formula in of_row}

    def _routes(self, i: int, z: Floats) -> tuple[Route, ...]:
        nodes = np.flatnonzero(z)
        order = nodes[np.argsort(-z[nodes], kind="stable")].tolist()
        return tuple(
            Route(t, float(z[t]), bool(self.rows.tree.is_leaf[t]), self._added(i, t, float(z[t]))) for t in order
        )

    def _added(self, i: int, t: int, amount: float) -> tuple[float, ...]:
        """What a node that this amount of row i reaches adds to each sum."""
        leaves = self.rows.tree.leaves
        if self.target.task == "clusters" or leaves.constant is None:
            return ()
        outputs = leaves.constant[t].astype(np.float64)
        if leaves.slope is not None:
            outputs = outputs + leaves.slope[t] @ self.rows.x[i]
        added: list[float] = (self.scale.matrix @ (amount * outputs)).tolist()
        return tuple(added)
