"""Rows with the predictions of a tree or of a forest, and the reasons for them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from prunus.estimators.forest import tree_predictions
from prunus.explain.reasons import moved_by_columns
from prunus.explain.row_explanation import Contribution, RowExplanation
from prunus.explain.values import TableColumn, table_columns, table_values, typical_row, value_text
from prunus.explain.wording import Words, read_words
from prunus.targets import Target

__all__ = ["PredictedRows", "forest_rows", "strongest"]

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating]


@dataclass(frozen=True)
class PredictedRows:
    """Rows of a table with their predictions, and what is told of them without a look into trees."""

    target: Target
    words: Words
    columns: list[TableColumn]
    """The columns of the table, by the names that the user chose."""
    table: Any
    x: Floats
    """The encoded rows, (n, d)."""
    answers: npt.NDArray[Any]
    """Labels, values or clusters, as `predict` returns them."""
    predictions: Doubles
    """Probabilities of all classes, or values, (n, k); (n, 0) for clusters."""
    predict: Callable[[Floats], Doubles]
    """Predictions of other encoded rows."""

    @cached_property
    def typical(self) -> Floats:
        """The encoded row of typical values, (d,)."""
        return typical_row(self.columns)

    @cached_property
    def table_values(self) -> list[npt.NDArray[np.object_]]:
        """The values of each column, (n,): numbers, seconds of times, names of levels, and None for missing values."""
        return table_values(self.columns, self.table)

    @cached_property
    def values(self) -> list[list[str]]:
        """The values of each column in words."""
        return [
            [value_text(column, value) for value in values]
            for column, values in zip(self.columns, self.table_values, strict=True)
        ]

    @cached_property
    def typical_values(self) -> list[str]:
        """The typical value of each column in words."""
        return [value_text(column, column.typical) for column in self.columns]

    @cached_property
    def moved(self) -> tuple[Doubles, Doubles]:
        """How much columns moved what is explained, (n, columns, k), and what it is for a typical row, (n, k)."""
        classes = self.predictions.argmax(1)

        def predict(x: Floats, rows: npt.NDArray[np.int64]) -> Doubles:
            found = self.predict(x)
            return np.take_along_axis(found, classes[rows, None], 1) if self.target.task == "classes" else found

        return moved_by_columns(predict, self.columns, self.x)

    def of_row(self, i: int) -> RowExplanation:
        """The prediction of row i, with its reasons unless it is a cluster."""
        reasons, typical = ((), None) if self.target.task == "clusters" else self.reasons(i)
        return RowExplanation(
            row=i,
            prediction=self._prediction(i),
            probabilities=self._probabilities(i),
            explained=self._explained(i),
            typical=typical,
            reasons=reasons,
        )

    def reasons(self, i: int) -> tuple[tuple[Contribution, ...], float | tuple[float, ...]]:
        """The reasons for the prediction of row i, strongest first, and what is predicted for a typical row."""
        moved, typical = self.moved[0][i], self.moved[1][i]
        found = [self.contribution(i, c, moved[c]) for c in range(len(self.columns)) if moved[c].any()]
        return strongest(found), _one_or_more(typical)

    def contribution(self, i: int, c: int, added: Doubles) -> Contribution:
        """What column c of row i has added, (k,)."""
        return Contribution(self.columns[c].name, self.values[c][i], self.typical_values[c], _one_or_more(added))

    def _prediction(self, i: int) -> Any:
        if self.target.task == "numbers":
            return _one_or_more(self.predictions[i])
        label = self.answers[i]
        return label.item() if isinstance(label, np.generic) else label

    def _probabilities(self, i: int) -> dict[str, float] | None:
        if self.target.task != "classes":
            return None
        return dict(zip(self.words.summary.outputs, self.predictions[i].tolist(), strict=True))

    def _explained(self, i: int) -> str:
        if self.target.task == "classes":
            return f"probability of {self.words.summary.outputs[int(self.predictions[i].argmax())]}"
        return "" if self.target.task == "clusters" else ", ".join(self.words.summary.outputs)


def forest_rows(forest: Any, X: Any, feature_names: Any = None, class_names: Any = None) -> PredictedRows:  # noqa: N803
    """The rows of a table with the means of what the trees of a forest predict."""
    check_is_fitted(forest)
    trees, target = forest.estimators_, forest.target_

    def predict(x: Floats) -> Doubles:
        return np.asarray(sum(tree_predictions(tree, x) for tree in trees)) / len(trees)

    words, x = read_words(trees[0], feature_names, class_names), forest.encoder_.transform(X)
    predictions = predict(x)
    answers = target.labels[predictions.argmax(1)] if target.task == "classes" else predictions
    return PredictedRows(target, words, table_columns(words.columns), X, x, answers, predictions, predict)


def strongest(contributions: list[Contribution]) -> tuple[Contribution, ...]:
    """The contributions, the largest first."""
    return tuple(sorted(contributions, key=lambda part: -part.size))


def _one_or_more(values: Doubles) -> float | tuple[float, ...]:
    listed = values.tolist()
    return listed[0] if len(listed) == 1 else tuple(listed)
