"""Why rows got their predictions from a readable tree."""

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

        def predict(x: Doubles) -> Doubles:
            return predict_readable(estimator, x)

        told = PredictedRows(estimator.target_, words, columns, X, matrix, answers, rows.predictions, predict)
        middle = as_columns(estimator.columns_, np.asarray(told.typical, dtype=np.float64)[None])
        typical = ReadableRows(estimator.record_, middle, ONE, np.zeros((1, 0)))
        return cls(words, rows, told, typical)

    def of_row(self, i: int) -> RowExplanation:
        """All that is told of row i."""
        leaf = int(self.rows.ends[i])
        nodes, _ = path_nodes(self.rows.ends[i : i + 1])
        return replace(
            self.told.of_row(i),
            path=tuple(self._step(i, t, after) for t, after in zip(nodes[:-1].tolist(), nodes[1:].tolist(), strict=True)),
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
            tuple(float(self._value(term, i)) for term in split.terms),
            total,
        )
        return SplitStep(
            node=t,
            sentence=question_sentence(question, asked, left=is_left),
            side="left" if is_left else "right",
            score=None if isnan(total) else total - split.threshold,
            typical=None if isnan(middle) else middle - split.threshold,
            contributions=() if isnan(total) or isnan(middle) else self._contributions(i, split.terms),
        )

    def _value(self, term: Term, i: int, *, missing: bool = True) -> float:
        """The value of a number, or whether the group of levels counts, in row i, before it is weighted."""
        plain = replace(term, weight=1.0)
        return float(term_values(plain, self.rows.columns[term.feature], np.array([i]), keep_missing=missing)[0])

    def _contributions(self, i: int, terms: tuple[Term, ...], *, missing: bool = True) -> tuple[Contribution, ...]:
        """What each column adds to a sum of terms, compared with a row of typical values."""
        added: dict[int, float] = {}
        for term in terms:
            own = term_values(term, self.rows.columns[term.feature], np.array([i]), keep_missing=missing)
            usual = term_values(term, self.typical.columns[term.feature], ONE, keep_missing=missing)
            added[term.feature] = added.get(term.feature, 0.0) + float(own[0] - usual[0])
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
        unlimited = replace(formula, low=None, high=None)
        before = float(outputs_of(unlimited, self.rows.columns, np.array([i]))[0])
        total = float(outputs_of(formula, self.rows.columns, np.array([i]))[0])
        return SumOfTerms(
            output=name,
            formula=text,
            typical=float(outputs_of(unlimited, self.typical.columns, ONE)[0]),
            contributions=self._contributions(i, formula.terms, missing=False),
            network=0.0,
            limited=total - before,
            total=total,
        )
