"""The program of a readable tree: its numbers are those of the record, and sums have the order of its terms."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prunus.render.program import (
    LARGEST,
    Below,
    Branch,
    Choice,
    Column,
    Condition,
    End,
    Filled,
    Finish,
    Formula,
    InRanges,
    IsLevel,
    Label,
    Output,
    Program,
    ends,
)
from prunus.render.program import Term as Weighted
from prunus.search.predict import class_scores, has_scores, leaf_outputs
from prunus.search.record import Leaf, LeafFormula, ReadableRecord, Split, Term

__all__ = ["readable_program"]

Columns = Sequence[Column]
Values = tuple[Output | Label, ...]


def readable_program(estimator: Any, labels: tuple[Label, ...], *, proba: bool) -> Program:
    """The program of a fitted readable tree that predicts these labels, or numbers if there are none."""
    target = estimator.target_
    columns = [Column(known.name, known.kind) for known in estimator.columns_]
    record = _reached(estimator.record_, columns)
    finish = _finish(record, len(labels))
    if labels:
        values = {t: _of_classes(record, columns, t, labels, finish, proba=proba) for t in record.leaves}
    else:
        values = {t: _of_numbers(record, columns, t) for t in record.leaves}
    return Program(
        kind=type(estimator).__name__,
        columns=tuple(columns[feature] for feature in _used(record)),
        calendars=(),
        limited=(),
        effects=(),
        shared=(),
        root=_part(record, columns, values, 0),
        finish=finish,
        labels=labels,
        proba=bool(proba),
        one=bool(labels) or target.one_dimensional,
    )


def _reached(record: ReadableRecord, columns: Columns) -> ReadableRecord:
    """The record without leaves that no row can reach."""
    root = _part(record, columns, dict.fromkeys(record.leaves, ()), 0)
    return replace(record, leaves={end.node: record.leaves[end.node] for end in ends(root)})


def _used(record: ReadableRecord) -> list[int]:
    """The columns that splits and formulas use, by their positions."""
    terms = [term for split in record.splits.values() for term in split.terms]
    terms += [term for leaf in record.leaves.values() for formula in leaf.outputs for term in formula.terms]
    return sorted({term.feature for term in terms})


def _part(record: ReadableRecord, columns: Columns, values: dict[int, Values], t: int) -> Branch | End:
    """The tree below a node; splits that send all rows the same way are left out."""
    share = _share(record, t)
    if t in record.leaves:
        return End(t, share, values[t])
    condition = _condition(record.splits[t], columns)
    if isinstance(condition, bool):
        return _part(record, columns, values, 2 * t + 1 if condition else 2 * t + 2)
    left, right = (_part(record, columns, values, child) for child in (2 * t + 1, 2 * t + 2))
    return Branch(condition, left, right, share)


def _share(record: ReadableRecord, t: int) -> float:
    """The share of the training rows that pass a node; 0 if that is not known."""
    known = t in record.rows and 0 in record.rows and record.rows[0].count > 0
    return record.rows[t].count / record.rows[0].count if known else 0.0


def _condition(split: Split, columns: Columns) -> Condition | bool:
    """When rows go left; True or False if all or none do."""
    first = split.terms[0]
    if len(split.terms) == 1 and first.levels is not None:
        return _of_levels(split, first, columns[first.feature])
    if len(split.terms) == 1 and first.weight == 1:
        return _of_number(split, columns[first.feature])
    largest = sys.float_info.max  # stands for infinity, which is no literal
    threshold = min(max(float(split.threshold), -largest), largest)
    terms = tuple(
        Weighted(float(term.weight), columns[term.feature]) if term.levels is None else _choice(term, columns)
        for term in split.terms
    )
    return Below(Formula(-threshold, terms), bool(split.missing_left))


def _of_number(split: Split, column: Column) -> Condition | bool:
    threshold, missing = float(split.threshold), bool(split.missing_left)
    if np.isinf(threshold):
        if (threshold > 0) == missing:
            return missing
        return InRanges(column, ((None, None),) if threshold > 0 else (), missing)
    return InRanges(column, ((None, threshold),), missing)


def _of_levels(split: Split, term: Term, column: Column) -> Condition | bool:
    others = split.threshold > 0
    inside = term.weight < split.threshold if term.levels else others
    missing = term.weight * term.missing < split.threshold
    if inside == others == missing:
        return missing
    return IsLevel(column, () if inside == others else tuple(term.levels or ()), others, missing)


def _choice(term: Term, columns: Columns) -> Choice:
    weight = float(term.weight)
    levels = tuple((level, weight) for level in term.levels or ())
    return Choice(columns[term.feature], levels, 0.0, weight * term.missing)


def _output(formula: LeafFormula, columns: Columns) -> Output:
    terms = tuple(
        Weighted(float(term.weight), Filled(columns[term.feature], float(term.missing)))
        if term.levels is None
        else _choice(term, columns)
        for term in formula.terms
    )
    low, high = (None if limit is None else float(limit) for limit in (formula.low, formula.high))
    return Output(Formula(float(formula.constant), terms), low, high)


def _of_numbers(record: ReadableRecord, columns: Columns, t: int) -> Values:
    """The values of a leaf; formulas if any leaf of the tree has some."""
    constants = _constants(record, t)
    if not any(formula.terms for leaf in record.leaves.values() for formula in leaf.outputs):
        return tuple(constants)
    return tuple(
        _output(formula, columns) if formula.terms else Output(Formula(constant))
        for formula, constant in zip(record.leaves[t].outputs, constants, strict=True)
    )


def _constants(record: ReadableRecord, t: int) -> list[float]:
    """The values of a leaf whose formulas have no terms; within their limits, if they have such."""
    leaf = Leaf(tuple(LeafFormula(f.constant, (), f.low, f.high) for f in record.leaves[t].outputs))
    alone = ReadableRecord({}, {t: leaf})
    found: list[float] = leaf_outputs(alone, (), np.array([t]), len(leaf.outputs))[0].tolist()
    return found


def _finish(record: ReadableRecord, k: int) -> Finish:
    """How the outputs of leaves with scores become classes; leaves without them have results."""
    scored = [leaf for leaf in record.leaves.values() if k and has_scores(leaf, k)]
    if not scored:
        return "values"
    return "logit" if all(len(leaf.outputs) == 1 for leaf in scored) else "softmax"


def _of_classes(
    record: ReadableRecord, columns: Columns, t: int, labels: tuple[Label, ...], finish: Finish, *, proba: bool
) -> Values:
    """The label and the probabilities of a leaf, or its scores."""
    leaf = record.leaves[t]
    if not has_scores(leaf, len(labels)):
        scores, shares = class_scores(record, (), np.array([t]), len(labels))
        return (labels[int(scores[0].argmax())], *(shares[0].tolist() if proba else ()))
    outputs = tuple(_output(formula, columns) for formula in leaf.outputs)
    if finish == "logit" and proba:
        return (_within_exponents(outputs[0]),)
    return outputs if finish == "logit" or len(outputs) > 1 else (Output(Formula(0.0)), *outputs)


def _within_exponents(output: Output) -> Output:
    """The output within limits whose exponentials are numbers."""
    low = -LARGEST if output.low is None else min(max(output.low, -LARGEST), LARGEST)
    high = LARGEST if output.high is None else min(max(output.high, -LARGEST), LARGEST)
    return Output(output.formula, low, high)
