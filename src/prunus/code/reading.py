"""The program of a fitted estimator, made from its encoder, its tree and its target."""

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.code.conditions import read_condition
from prunus.code.program import LARGEST, Branch, End, Finish, Formula, Label, Output, Program, Shared, Term
from prunus.code.readable import readable_program
from prunus.code.variables import Variables
from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.readable import ReadableTree
from prunus.estimators.single_tree import check_single_tree
from prunus.estimators.tree import ArgminTree
from prunus.targets.links import IDENTITY, LOG, LOGIT, SOFTMAX, Link
from prunus.tree import Tree
from prunus.tree.paths import path_sums
from prunus.tree.prediction import node_outputs

__all__ = ["read_program"]

Doubles = npt.NDArray[np.float64]

FINISHES: dict[Link, Finish] = {IDENTITY: "values", LOG: "log", LOGIT: "logit", SOFTMAX: "softmax"}
"""How the outputs of each link become results."""


def read_program(estimator: Any, function: str, *, hard: bool, proba: bool) -> Program:
    """The program of a fitted estimator; errors name the public function."""
    _check(estimator, function, hard=hard, proba=proba)
    if isinstance(estimator, ReadableTree):
        return readable_program(estimator, _labels(estimator.target_), proba=proba)
    tree, target = estimator.tree_, estimator.target_
    variables = Variables(estimator.encoder_.columns_)
    outputs = (
        _Constants(tree, target, proba=proba) if _is_constant(tree, target) else _Sums(tree, target, variables, proba)
    )
    root = _part(tree, variables, outputs, 0)
    is_number = target.task == "numbers"
    return Program(
        kind=type(estimator).__name__,
        columns=variables.columns,
        calendars=variables.calendars,
        limited=variables.limited,
        effects=variables.effects,
        shared=outputs.shared,
        root=root,
        finish=outputs.finish,
        labels=_labels(target),
        means=tuple(target.mean.tolist()) if is_number and outputs.finish == "log" else (),
        proba=bool(proba),
        one=not is_number or target.one_dimensional,
        cluster=target.task == "clusters",
    )


def _check(estimator: Any, function: str, *, hard: bool, proba: bool) -> None:
    """Raise an error unless the one-path predictions of a fitted estimator can be written as sums and conditions."""
    check_single_tree(estimator)
    for name, flag in (("hard", hard), ("proba", proba)):
        if not isinstance(flag, (bool, np.bool_, Integral)):
            raise InputTypeError(f"{name} must be True or False, got {flag!r}")
    if isinstance(estimator, ArgminTree):
        _check_tree(estimator.tree_, estimator.target_.task, function, hard=hard)
    if proba and estimator.target_.task != "classes":
        article = "a" if isinstance(estimator, ReadableTree) else "an"
        raise InputValueError(
            f"proba must be False unless classes are predicted, got {article} {type(estimator).__name__}"
        )


def _check_tree(tree: Tree, task: str, function: str, *, hard: bool) -> None:
    """Raise an error unless a tree has the splits and leaves that code can be written of, and one path."""
    if not tree.splits.is_linear:
        raise InputValueError(f'splits must be linear for {function}, got others. Use split="linear", or export_onnx')
    if task != "clusters":
        if not tree.leaves.is_linear:
            raise InputValueError(
                f"leaves must be constant, linear or additive for {function}, got {tree.leaves.kind!r}. Use another "
                "leaf, or export_onnx"
            )
        if not tree.is_hard and not hard:
            raise InputValueError(
                f"the tree for {function} must follow one path, got one that predicts along all routes. Fit with "
                'routing="hard", or pass hard=True for the predictions of predict(X, hard=True)'
            )


def _is_constant(tree: Tree, target: Any) -> bool:
    """Whether the results of a row depend only on the end of its path."""
    return target.task == "clusters" or tree.leaves.is_constant


def _part(tree: Tree, variables: Variables, outputs: "_Constants | _Sums", t: int) -> Branch | End:
    """The kept tree below a node; splits that send all rows the same way are left out."""
    if tree.is_leaf[t]:
        return End(t, float(tree.share[t]), outputs.at(t))
    assert tree.weight is not None
    assert tree.bias is not None
    condition = read_condition(variables, tree.weight[t], float(tree.bias[t]))
    if isinstance(condition, bool):
        return _side(tree, variables, outputs, t, left=condition)
    left, right = (_side(tree, variables, outputs, t, left=left) for left in (True, False))
    return Branch(condition, left, right, float(tree.share[t]))


def _side(tree: Tree, variables: Variables, outputs: "_Constants | _Sums", t: int, *, left: bool) -> Branch | End:
    """The child of a node, or the node itself if the child was pruned."""
    child, other = (2 * t + 1, 2 * t + 2) if left else (2 * t + 2, 2 * t + 1)
    if tree.kept[child]:
        return _part(tree, variables, outputs, child)
    return End(t, max(0.0, float(tree.share[t] - tree.share[other])), outputs.at(t))


def _labels(target: Any) -> tuple[Label, ...]:
    """The classes, those of other types than booleans, numbers and text by their text."""
    if target.task != "classes":
        return ()
    return tuple(label if isinstance(label, Label) else str(label) for label in target.labels.tolist())


class _Constants:
    """Results that are the same for all rows that end in a node."""

    def __init__(self, tree: Tree, target: Any, *, proba: bool) -> None:
        self.shared: tuple[Shared, ...] = ()
        self.finish: Finish = "values"
        if target.task == "clusters":
            assert tree.cluster is not None
            self.results: list[tuple[Label, ...]] = [(cluster,) for cluster in tree.cluster.tolist()]
            return
        outputs = node_outputs(tree)
        results = target.predictions(outputs).tolist()
        if target.task == "classes":
            labels = [_labels(target)[best] for best in target.scores(outputs).argmax(1)]
            self.results = [(label, *(row if proba else ())) for label, row in zip(labels, results, strict=True)]
        else:
            self.results = [tuple(row) for row in results]

    def at(self, t: int) -> tuple[Label, ...]:
        return self.results[t]


class _Sums:
    """Outputs that are linear functions of the encoded row, in the units of what is predicted."""

    def __init__(self, tree: Tree, target: Any, variables: Variables, proba: bool) -> None:
        self.variables = variables
        leaves, self.limits = tree.leaves, tree.limits
        assert leaves.constant is not None
        mass = tree.mass.astype(np.float64)
        self.constant = path_sums(mass[:, None] * leaves.constant) + leaves.bias + tree.correction
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

    def at(self, t: int) -> tuple[Output, ...]:
        return tuple(self._output(t, j) for j in range(self.constant.shape[1]))

    def _output(self, t: int, j: int) -> Output:
        constant = float(self.constant[t, j])
        if self.slope is not None:
            formula = self.variables.formula(self.slope[t, j], constant)
        else:
            formula = Formula(constant, (Term(1.0, self.shared[j]),))
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
