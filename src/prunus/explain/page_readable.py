"""The nodes of a readable tree as the interactive page shows them: every number is the one that predicts."""

from math import isfinite
from typing import Any

from prunus.explain.digits import exact_number
from prunus.explain.page_nodes import node_record
from prunus.explain.phrases import formula_parts, probability_text, split_parts
from prunus.explain.readable_sentences import PLACES
from prunus.explain.summary_record import NodeSummary, TreeSummary
from prunus.explain.wording import Words
from prunus.search.predict import has_scores
from prunus.search.questions import OPPOSITE, Comparison, Question, comparisons, sum_words, switch_words
from prunus.search.record import LeafFormula, ReadableRecord, Term
from prunus.search.words import bracketed, instant_text

__all__ = ["readable_nodes"]

Record = dict[str, Any]


def readable_nodes(words: Words, tree: ReadableRecord) -> dict[int, Record]:
    """The nodes with their questions and formulas, as plain types; infinite thresholds are strings."""
    return {t: _node(node, tree, words.summary) for t, node in words.nodes.items()}


def _node(node: NodeSummary, tree: ReadableRecord, summary: TreeSummary) -> Record:
    record = node_record(node)
    if node.question is not None:
        record["condition"] = [" ".join(side) for side in split_parts(node, 1, exact_number)]
        record["question"] = _question(node, node.question)
        return record
    leaf = tree.leaves[node.node]
    is_classes = summary.classes is not None
    if node.value:
        record["value"] = list(node.value)
        if is_classes:
            record["probabilities"] = probability_text(node, summary.outputs, exact_number)
    record["scored"] = is_classes and has_scores(leaf, len(summary.outputs))
    record["outputs"] = [_formula(formula) for formula in leaf.outputs]
    if node.formulas:
        record["formulas"] = [
            {"output": formula.output, "words": formula_parts(formula, 1, exact_number)} for formula in node.formulas
        ]
    return record


def _question(node: NodeSummary, question: Question) -> Record:
    split = question.split
    terms = [
        _term(term) | {"name": column.name, "label": part.label, "strength": part.strength}
        for term, column, part in zip(split.terms, question.columns, node.split, strict=True)
    ]
    return {
        "terms": terms,
        "threshold": split.threshold if isfinite(split.threshold) else f"{'-' * (split.threshold < 0)}Infinity",
        "missing_left": split.missing_left,
        "cases": [_case(question, case) for case in comparisons(question)],
    }


def _case(question: Question, case: Comparison) -> Record:
    """What is compared in a case, such as "size where color is E", and how it lies to the limit on either side."""
    is_single = len(case.terms) == 1 and (case.switch is not None or question.split.terms[0].weight == 1)
    i = case.terms[0]
    column = question.columns[i]
    limit = instant_text(column.kind, case.limit, exact_number) if is_single else exact_number(case.limit)
    return {
        "switch": case.switch,
        "on": case.on,
        "feature": question.split.terms[i].feature if is_single else None,
        "what": bracketed(column.name) if is_single else sum_words(question, exact_number),
        "where": "" if case.switch is None else f" where {switch_words(question, case.switch, on=case.on)}",
        "left": f"{PLACES[case.sign]} {limit}",
        "right": f"{PLACES[OPPOSITE[case.sign]]} {limit}",
    }


def _term(term: Term) -> Record:
    levels = None if term.levels is None else list(term.levels)
    return {"feature": term.feature, "weight": term.weight, "levels": levels, "missing": term.missing}


def _formula(formula: LeafFormula) -> Record:
    terms = [_term(term) for term in formula.terms]
    return {"constant": formula.constant, "terms": terms, "low": formula.low, "high": formula.high}
