"""Why rows got their predictions from a readable tree."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.explain.digits import exact_number
from prunus.explain.phrases import formula_text
from prunus.explain.predicted_rows import PredictedRows, strongest
from prunus.explain.readable_rows import ReadableRows, predict_readable, readable_columns, send_readable
from prunus.explain.readable_sentences import Asked, question_sentence
from prunus.explain.row_explanation import Contribution, RowExplanation, SplitStep, SumOfTerms
from prunus.explain.wording import Words
from prunus.search.columns import as_columns, as_matrix
from prunus.search.predict import outputs_of, split_sums, term_values
from prunus.search.record import LeafFormula, Term
from prunus.tree.paths import path_nodes

__all__ = ["ReadableStory"]

Doubles = npt.NDArray[np.float64]
ONE = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class ReadableStory:
    """Rows that have descended a readable tree, with all that is told of them."""

    words: Words
    rows: ReadableRows
    told: PredictedRows
    typical: ReadableRows
    """The row of typical values."""

    @classmethod
    def of(cls, estimator: Any, words: Words, X: Any) -> "ReadableStory":  # noqa: N803
        """The story of the rows of a table."""
        rows = send_readable(estimator, X)
        columns = readable_columns(words.known)
        answers = rows.predictions
        if estimator.target_.task == "classes":
            answers = estimator.classes_[rows.predictions.argmax(1)]
        matrix = as_matrix(rows.columns)

        def predict(x: npt.NDArray[np.floating]) -> Doubles:
            return predict_readable(estimator, x.astype(np.float64, copy=False))

        told = PredictedRows(estimator.target_, words, columns, X, matrix, answers, rows.predictions, predict)
        middle = as_columns(estimator.columns_, told.typical[None].astype(np.float64))
        typical = ReadableRows(estimator.record_, middle, ONE, np.zeros((1, 0)))
        return cls(words, rows, told, typical)

    def of_row(self, i: int) -> RowExplanation:
        """All that is told of row i."""
        leaf = int(self.rows.ends[i])
        nodes, _ = path_nodes(self.rows.ends[i : i + 1])
        return replace(
            self.told.of_row(i),
            path=tuple(
                self._step(i, t, after) for t, after in zip(nodes[:-1].tolist(), nodes[1:].tolist(), strict=True)
            ),
            leaf=leaf,
            share=self.words.nodes[leaf].share,
            sums=tuple(self._sums(i, leaf)),
        )

    def _step(self, i: int, t: int, after: int) -> SplitStep:
        split, question = self.rows.record.splits[t], self.words.nodes[t].question
        assert question is not None
        is_left = after == 2 * t + 1
        total = float(split_sums(split, self.rows.columns, np.array([i]))[0])
        middle = float(split_sums(split, self.typical.columns, ONE)[0])
        asked = Asked(
            tuple(self.told.values[term.feature][i] for term in split.terms),
            tuple(_value(replace(term, weight=1.0), self.rows, i) for term in split.terms),
            total,
        )
        moved = {} if isnan(total) or isnan(middle) else self._moved(i, split.terms)
        return SplitStep(
            node=t,
            sentence=question_sentence(question, asked, left=is_left),
            side="left" if is_left else "right",
            score=None if isnan(total) else total - split.threshold,
            typical=None if isnan(middle) else middle - split.threshold,
            contributions=self._contributions(i, moved),
        )

    def _moved(self, i: int, terms: tuple[Term, ...]) -> dict[int, float]:
        """What each column adds to the sum of a split, compared with a row of typical values."""
        return _by_column(terms, [_value(term, self.rows, i) - _value(term, self.typical, 0) for term in terms])

    def _contributions(self, i: int, added: dict[int, float]) -> tuple[Contribution, ...]:
        return strongest([self.told.contribution(i, c, np.array([size])) for c, size in added.items() if size])

    def _sums(self, i: int, leaf: int) -> list[SumOfTerms]:
        """The formulas of the leaf; the value of a leaf without formulas, unless it has probabilities."""
        outputs, node = self.rows.record.leaves[leaf].outputs, self.words.nodes[leaf]
        if not node.formulas:
            names = () if self.words.summary.classes is not None else self.words.summary.outputs
            return [self._sum(i, name, formula, "") for name, formula in zip(names, outputs, strict=False)]
        return [
            self._sum(i, formula.output, own, formula_text(formula, 1, exact_number))
            for formula, own in zip(node.formulas, outputs, strict=True)
        ]

    def _sum(self, i: int, name: str, formula: LeafFormula, text: str) -> SumOfTerms:
        """A formula, term by term; terms of the same column are one."""
        unlimited = replace(formula, low=None, high=None)
        before, total = (float(outputs_of(one, self.rows.columns, np.array([i]))[0]) for one in (unlimited, formula))
        values = [_value(term, self.rows, i, keep_missing=False) for term in formula.terms]
        added = _by_column(formula.terms, values)
        return SumOfTerms(
            output=name,
            formula=text,
            typical=formula.constant,
            contributions=tuple(replace(part, typical="") for part in self._contributions(i, added)),
            network=0.0,
            limited=total - before,
            total=total,
            start="the constant",
        )


def _value(term: Term, rows: ReadableRows, i: int, *, keep_missing: bool = True) -> float:
    """What a term adds in row i."""
    return float(term_values(term, rows.columns[term.feature], np.array([i]), keep_missing=keep_missing)[0])


def _by_column(terms: Sequence[Term], values: Sequence[float]) -> dict[int, float]:
    """The sums of these values of terms by the columns of the table."""
    added: dict[int, float] = {}
    for term, value in zip(terms, values, strict=True):
        added[term.feature] = added.get(term.feature, 0.0) + value
    return added
