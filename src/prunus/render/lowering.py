"""A description as a program: sums and conditions in the units of the table, which code is written from."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from prunus.describe.record import LearnedTree, NodeSummary, SearchedTree, TreeDescription
from prunus.errors import InputTypeError, InputValueError
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
    Label,
    Output,
    Program,
    Shared,
    ends,
)
from prunus.render.program import Term as Weighted
from prunus.render.variables import Variables, level_condition, number_condition, read_condition
from prunus.search.predict import class_scores, has_scores, leaf_outputs
from prunus.search.record import Leaf, LeafFormula, ReadableRecord, Split, Term
from prunus.targets.links import IDENTITY, LOG, LOGIT, SOFTMAX, Link
from prunus.tree.paths import path_sums
from prunus.tree.prediction import node_outputs

__all__ = ["read_program"]

Doubles = npt.NDArray[np.float64]
Columns = Sequence[Column]
Values = tuple[Output | Label, ...]

FINISHES: dict[Link, Finish] = {IDENTITY: "values", LOG: "log", LOGIT: "logit", SOFTMAX: "softmax"}
"""How the outputs of each link become results."""


class _Parts(Protocol):
    """What the nodes of a tree compute."""

    finish: Finish

    def condition(self, t: int) -> Condition | bool:
        """When rows go left at the split of node t; True or False if all or none do."""

    def values(self, t: int) -> Values:
        """The outputs, or the results, of rows whose path ends in node t."""


def read_program(tree: TreeDescription, function: str, *, hard: bool, proba: bool) -> Program:
    """The program of a tree; errors name the public function."""
    _check(tree, function, hard=hard, proba=proba)
    target: Any = tree.target
    labels = tuple(label if isinstance(label, Label) else str(label) for label in tree.classes or ())
    program = Program(
        kind=tree.kind,
        labels=labels,
        proba=bool(proba),
        one=target.is_clusters or target.one_dimensional,
        cluster=target.is_clusters,
    )
    if isinstance(tree, SearchedTree):
        searched = _SearchedParts(tree, labels, proba=proba)
        return replace(program, columns=searched.used, root=_part(tree, searched, tree.root), finish=searched.finish)
    assert isinstance(tree, LearnedTree)
    variables = Variables(tree.inputs)
    is_constant = target.is_clusters or tree.model.leaves.is_constant
    parts = _Constants(tree, variables, labels, proba) if is_constant else _Sums(tree, variables, proba)
    root = _part(tree, parts, tree.root)
    return replace(
        program,
        columns=variables.columns,
        calendars=variables.calendars,
        limited=variables.limited,
        effects=variables.effects,
        shared=parts.shared,
        root=root,
        finish=parts.finish,
        means=tuple(target.mean.tolist()) if parts.finish == "log" else (),
    )


def _check(tree: TreeDescription, function: str, *, hard: bool, proba: bool) -> None:
    """Raise an error unless the one-path predictions of a tree can be written as sums and conditions."""
    for name, flag in (("hard", hard), ("proba", proba)):
        if not isinstance(flag, (bool, np.bool_, Integral)):
            raise InputTypeError(f"{name} must be True or False, got {flag!r}")
    if isinstance(tree, LearnedTree):
        _check_learned(tree, function, hard=hard)
    if proba and tree.classes is None:
        article = "a" if isinstance(tree, SearchedTree) else "an"
        raise InputValueError(f"proba must be False unless classes are predicted, got {article} {tree.kind}")


def _check_learned(tree: LearnedTree, function: str, *, hard: bool) -> None:
    """Raise an error unless a tree has the splits and leaves that code can be written of, and one path."""
    model = tree.model
    if not model.splits.is_linear:
        raise InputValueError(f'splits must be linear for {function}, got others. Use split="linear", or export_onnx')
    if tree.target.is_clusters:
        return
    if not model.leaves.is_linear:
        raise InputValueError(
            f"leaves must be constant, linear or additive for {function}, got {model.leaves.kind!r}. Use another "
            "leaf, or export_onnx"
        )
    if not model.is_hard and not hard:
        raise InputValueError(
            f"the tree for {function} must follow one path, got one that predicts along all routes. Fit with "
            'routing="hard", or pass hard=True for the predictions of predict(X, hard=True)'
        )


def _part(tree: TreeDescription, parts: _Parts, node: NodeSummary) -> Branch | End:
    """The tree below a node; splits that send all rows the same way are left out."""
    if node.is_leaf:
        return End(node.node, node.share, parts.values(node.node))
    condition = parts.condition(node.node)
    if isinstance(condition, bool):
        return _side(tree, parts, node, left=condition)
    left, right = (_side(tree, parts, node, left=left) for left in (True, False))
    return Branch(condition, left, right, node.share)


def _side(tree: TreeDescription, parts: _Parts, node: NodeSummary, *, left: bool) -> Branch | End:
    """The child of a node, or the node itself if the child was pruned."""
    child, other = tree.children(node) if left else tree.children(node)[::-1]
    if child is not None:
        return _part(tree, parts, child)
    assert other is not None
    return End(node.node, max(0.0, node.share - other.share), parts.values(node.node))


class _LearnedParts:
    """Splits of a tree that was learned by gradient descent."""

    def __init__(self, tree: LearnedTree, variables: Variables) -> None:
        self.tree, self.variables = tree, variables
        self.shared: tuple[Shared, ...] = ()
        self.finish: Finish = "values"

    def condition(self, t: int) -> Condition | bool:
        weight, bias = self.tree.model.weight, self.tree.model.bias
        assert weight is not None
        assert bias is not None
        return read_condition(self.variables, weight[t], float(bias[t]))


class _Constants(_LearnedParts):
    """Results that are the same for all rows that end in a node."""

    def __init__(self, tree: LearnedTree, variables: Variables, labels: tuple[Label, ...], proba: bool) -> None:
        super().__init__(tree, variables)
        self.results: list[Values]
        if tree.model.cluster is not None:
            self.results = [(cluster,) for cluster in tree.model.cluster.tolist()]
            return
        results = tree.target.predictions(node_outputs(tree.model))
        if labels:
            scores = tree.target.scores(node_outputs(tree.model))  # type: ignore[attr-defined]
            found = zip(scores.argmax(1), results.tolist(), strict=True)
            self.results = [(labels[best], *(row if proba else ())) for best, row in found]
        else:
            self.results = [tuple(row) for row in results.tolist()]

    def values(self, t: int) -> Values:
        return self.results[t]


class _Sums(_LearnedParts):
    """Outputs that are linear functions of the encoded row, in the units of what is predicted."""

    def __init__(self, tree: LearnedTree, variables: Variables, proba: bool) -> None:
        super().__init__(tree, variables)
        model, target = tree.model, cast(Any, tree.target)  # with the scale of numbers, if they are some
        leaves, self.limits = model.leaves, model.limits
        assert leaves.constant is not None
        mass = model.mass.astype(np.float64)
        self.constant = path_sums(mass[:, None] * leaves.constant) + leaves.bias + model.correction
        self.slope = None if leaves.slope is None else path_sums(mass[:, None, None] * leaves.slope)
        common = None if leaves.shared is None else leaves.shared.astype(np.float64)
        if self.slope is not None and common is not None:
            self.slope, common = self.slope + common, None
        self.finish: Finish = FINISHES[target.link]
        if self.finish == "values":
            common = self._scale(target.deviation, target.mean, common)
        elif self.finish == "softmax" and target.n_outputs == 2 and self.limits is None:
            common = self._difference(common)
        if self.finish == "log" or (self.finish == "logit" and proba):
            largest = np.full(self.constant.shape, LARGEST)
            self.limits = (
                np.stack((-largest, largest)) if self.limits is None else np.clip(self.limits, -LARGEST, LARGEST)
            )
        self.shared = () if common is None else self._shared(common)

    def values(self, t: int) -> Values:
        return tuple(self._output(t, j) for j in range(self.constant.shape[1]))

    def _output(self, t: int, j: int) -> Output:
        constant = float(self.constant[t, j])
        if self.slope is not None:
            formula = self.variables.formula(self.slope[t, j], constant)
        else:
            formula = Formula(constant, (Weighted(1.0, self.shared[j]),))
        if self.limits is None:
            return Output(formula)
        low, high = self.limits[:, t, j].tolist()
        return Output(formula, low, high)

    def _scale(self, deviation: Doubles, mean: Doubles, common: Doubles | None) -> Doubles | None:
        """Change standard units to those of the target."""
        self.constant = self.constant * deviation + mean
        if self.slope is not None:
            self.slope = self.slope * deviation[:, None]
        if self.limits is not None:
            self.limits = self.limits * deviation + mean
        return None if common is None else common * deviation[:, None]

    def _difference(self, common: Doubles | None) -> Doubles | None:
        """Change the scores of two classes to one output: the log odds of the second one."""
        self.finish = "logit"
        self.constant = self.constant[:, 1:] - self.constant[:, :1]
        if self.slope is not None:
            self.slope = self.slope[:, 1:] - self.slope[:, :1]
        return None if common is None else common[1:] - common[:1]

    def _shared(self, common: Doubles) -> tuple[Shared, ...]:
        formulas = [self.variables.formula(row, 0.0) for row in common]
        names = ["shared"] if len(formulas) == 1 else [f"shared {j}" for j in range(len(formulas))]
        return tuple(Shared(name, formula) for name, formula in zip(names, formulas, strict=True))


class _SearchedParts:
    """The splits and leaves of a readable tree: its numbers are those of the record, in the order of its terms."""

    def __init__(self, tree: SearchedTree, labels: tuple[Label, ...], *, proba: bool) -> None:
        self.model, self.labels, self.proba = tree.model, labels, proba
        self.columns = [Column(known.name, known.kind) for known in tree.known]
        self.leaves: dict[int, Leaf] = {}
        reached = ends(_part(tree, self, tree.root))
        self.leaves = {end.node: tree.model.leaves[end.node] for end in reached}
        self.finish: Finish = "values"
        scored = [leaf for leaf in self.leaves.values() if labels and has_scores(leaf, len(labels))]
        if scored:
            self.finish = "logit" if all(len(leaf.outputs) == 1 for leaf in scored) else "softmax"

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that splits and formulas use."""
        terms = [term for split in self.model.splits.values() for term in split.terms]
        terms += [term for leaf in self.leaves.values() for formula in leaf.outputs for term in formula.terms]
        return tuple(self.columns[feature] for feature in sorted({term.feature for term in terms}))

    def condition(self, t: int) -> Condition | bool:
        split = self.model.splits[t]
        first, threshold = split.terms[0], float(split.threshold)
        if len(split.terms) == 1 and first.levels is not None:
            return self._of_levels(split, first)
        if len(split.terms) == 1 and first.weight == 1:
            thresholds = () if np.isinf(threshold) else (threshold,)
            low_left = threshold > 0 or bool(thresholds)
            column = self.columns[first.feature]
            return number_condition(column, thresholds, low_left=low_left, missing=bool(split.missing_left))
        largest = sys.float_info.max  # stands for infinity, which is no literal
        terms = tuple(
            self._choice(term) if term.levels is not None else Weighted(float(term.weight), self.columns[term.feature])
            for term in split.terms
        )
        return Below(Formula(-min(max(threshold, -largest), largest), terms), bool(split.missing_left))

    def _of_levels(self, split: Split, term: Term) -> Condition | bool:
        others = split.threshold > 0
        inside = term.weight < split.threshold if term.levels else others
        odd = () if inside == others else tuple(term.levels or ())
        missing = term.weight * term.missing < split.threshold
        return level_condition(self.columns[term.feature], odd, other=others, missing=missing)

    def _choice(self, term: Term) -> Choice:
        weight = float(term.weight)
        levels = tuple((level, weight) for level in term.levels or ())
        return Choice(self.columns[term.feature], levels, 0.0, weight * term.missing)

    def values(self, t: int) -> Values:
        if not self.leaves:  # it is not known yet which leaves rows can reach
            return ()
        leaf, k = self.leaves[t], len(self.labels)
        if not k:
            return self._of_numbers(t)
        if not has_scores(leaf, k):
            scores, shares = class_scores(self.model, (), np.array([t]), k)
            return (self.labels[int(scores[0].argmax())], *(shares[0].tolist() if self.proba else ()))
        outputs = tuple(map(self._output, leaf.outputs))
        if self.finish == "logit" and self.proba:
            return (_within_exponents(outputs[0]),)
        return outputs if self.finish == "logit" or len(outputs) > 1 else (Output(Formula(0.0)), *outputs)

    def _of_numbers(self, t: int) -> Values:
        """The values of a leaf; formulas if any leaf of the tree has some."""
        formulas = self.leaves[t].outputs
        alone = ReadableRecord({}, {t: Leaf(tuple(replace(formula, terms=()) for formula in formulas))})
        constants: list[float] = leaf_outputs(alone, (), np.array([t]), len(formulas))[0].tolist()
        if not any(formula.terms for leaf in self.leaves.values() for formula in leaf.outputs):
            return tuple(constants)
        return tuple(
            self._output(formula) if formula.terms else Output(Formula(constant))
            for formula, constant in zip(formulas, constants, strict=True)
        )

    def _output(self, formula: LeafFormula) -> Output:
        terms = tuple(
            self._choice(term)
            if term.levels is not None
            else Weighted(float(term.weight), Filled(self.columns[term.feature], float(term.missing)))
            for term in formula.terms
        )
        low, high = (None if limit is None else float(limit) for limit in (formula.low, formula.high))
        return Output(Formula(float(formula.constant), terms), low, high)


def _within_exponents(output: Output) -> Output:
    """The output within limits whose exponentials are numbers."""
    low = -LARGEST if output.low is None else min(max(output.low, -LARGEST), LARGEST)
    high = LARGEST if output.high is None else min(max(output.high, -LARGEST), LARGEST)
    return Output(output.formula, low, high)
