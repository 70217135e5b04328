"""A description as a program: sums and conditions in the units of the table, which code is written from."""

from collections.abc import Sequence
from math import fsum, isfinite
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.data.calendar import Unit
from prunus.describe.functions import grouped, parted, read_curve, split_column
from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.base import ArgminTree
from prunus.estimators.readable import ReadableTree
from prunus.estimators.single_tree import check_single_tree
from prunus.render.lowering_searched import readable_program
from prunus.render.program import (
    LARGEST,
    Below,
    Branch,
    Calendar,
    Choice,
    Column,
    Condition,
    End,
    Finish,
    Formula,
    InRanges,
    IsLevel,
    Label,
    Limited,
    Output,
    Program,
    Shared,
    Term,
)
from prunus.targets.links import IDENTITY, LOG, LOGIT, SOFTMAX, Link
from prunus.tree import Tree
from prunus.tree.paths import path_sums
from prunus.tree.prediction import node_outputs

__all__ = ["Variables", "read_condition", "read_program"]

FAR = 1e6
"""A number whose center is this many units of scale from 0 is measured from its center, so that no digits are lost."""
SIZES = (1e-100, 1e100)
"""Scales beyond these are not multiplied into weights."""
OF_LEVELS = ("category", "infrequent", "missing", "calendar")
"""The kinds of encoded columns that say whether a column of the table has a certain level."""
Part = tuple[int, Unit | None]
"""A column of the table by its position, or the calendar of a column of dates."""


class Variables:
    """The columns of the table that are used, and the limited numbers made from them, in the order of the encoder.

    Parameters
    ----------
    columns : sequence of OutputColumn
        The columns of the encoded matrix.
    """

    def __init__(self, columns: Sequence[OutputColumn]) -> None:
        self.outputs = columns
        self.parts = parted(columns)
        self._columns = {feature: _column([columns[i] for i in own]) for feature, own in grouped(columns).items()}
        self._used: set[int] = set()
        self._calendars: dict[Part, Calendar] = {}
        self._limited: dict[int, Limited] = {}
        self._effects: dict[int, Shared] = {}

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table that are used."""
        return tuple(self._columns[feature] for feature in sorted(self._used))

    @property
    def calendars(self) -> tuple[Calendar, ...]:
        """The weekdays, months and hours of dates that are used."""
        return tuple(self._calendars.values())

    @property
    def limited(self) -> tuple[Limited, ...]:
        """The limited numbers that are used."""
        return tuple(self._limited[i] for i in sorted(self._limited))

    @property
    def effects(self) -> tuple[Shared, ...]:
        """The effects of levels that are used."""
        return tuple(self._effects[i] for i in sorted(self._effects))

    def column(self, feature: int) -> Column:
        """A column of the table, which counts as used from now on."""
        self._used.add(feature)
        return self._columns[feature]

    def levels(self, part: Part) -> Column | Calendar:
        """A category of the table, or the calendar of a date, which counts as used from now on."""
        feature, unit = part
        column = self.column(feature)
        return column if unit is None else self._calendars.setdefault(part, Calendar(column, unit))

    def used_parts(self, weight: npt.NDArray[np.floating]) -> list[Part]:
        """The parts of the table that matter for a sum with these weights of the encoded columns, (d,)."""
        return [p for p, own in self.parts.items() if any(weight[i] and not _is_constant(self.outputs[i]) for i in own)]

    def formula(self, weight: npt.NDArray[np.floating], constant: float) -> Formula:
        """The sum with these weights of the encoded columns, (d,), strongest terms first, missing numbers last."""
        strengths: list[tuple[float, Term | Choice]] = []
        constants = [constant]
        for part in self.used_parts(weight):
            marks: dict[tuple[str, str | None], float] = {}
            for i in self.parts[part]:
                w, output = float(weight[i]), self.outputs[i]
                if w == 0 or _is_constant(output):
                    continue
                if output.kind in OF_LEVELS:
                    marks[output.kind, output.category] = w * output.encode(1.0)
                    continue
                variable = self._effect(i) if output.kind == "effect" else self._limit(i)
                if _is_near(output):
                    constants.append(-w * (output.center / output.scale))
                    strengths.append((abs(w), Term(w / output.scale, variable)))
                else:
                    strengths.append((abs(w), Term(w, variable)))
            if marks:
                choice = self._choice(part, marks)
                strengths.append((max(map(abs, marks.values())) if choice.levels else 0.0, choice))
        strengths.sort(key=lambda pair: -pair[0])
        return Formula(fsum(constants), tuple(term for _, term in strengths))

    def _choice(self, part: Part, marks: dict[tuple[str, str | None], float]) -> Choice:
        levels = tuple((str(level), w) for (_, level), w in marks.items() if level is not None)
        others = marks.get(("infrequent", None), 0.0)
        if others:  # levels without a weight are no others
            known = (self.outputs[i] for i in self.parts[part])
            levels = tuple(
                (str(o.category), dict(levels).get(str(o.category), 0.0)) for o in known if o.kind == "category"
            )
        return Choice(self.levels(part), levels, others, marks.get(("missing", None), 0.0))

    def _limit(self, i: int) -> Limited:
        if i not in self._limited:
            self._limited[i] = _limited(self.column(self.outputs[i].feature), self.outputs[i])
        return self._limited[i]

    def _effect(self, i: int) -> Shared:
        """The effect in the units of the target, or in those of the encoder where digits would be lost."""
        if i not in self._effects:
            output = self.outputs[i]
            start, unit = (output.center, output.scale) if _is_near(output) else (0.0, 1.0)
            levels = tuple((level, start + unit * output.encode_level(level)) for level in output.effects or {})
            missing = start + unit * output.encode_level(None)
            choice = Choice(self.column(output.feature), levels, start, missing)
            self._effects[i] = Shared(output.label, Formula(0.0, (choice,)))
        return self._effects[i]


def _column(outputs: list[OutputColumn]) -> Column:
    numbers = [output.kind for output in outputs if output.kind not in (*OF_LEVELS, "effect")]
    return Column(outputs[0].name, numbers[0] if numbers else "category")


def _is_constant(output: OutputColumn) -> bool:
    return output.low == output.high


def _is_near(output: OutputColumn) -> bool:
    """Whether a number can be told in the units of the table without losing digits."""
    ends = (output.center + output.scale * end for end in (output.low, output.high))
    near = abs(output.center) <= FAR * output.scale and SIZES[0] < output.scale < SIZES[1]
    return near and all(map(isfinite, ends))


def _limited(column: Column, output: OutputColumn) -> Limited:
    """The number in the units of the table, or in those of the encoder where digits would be lost."""
    if _is_near(output):
        low, high = (output.center + output.scale * end for end in (output.low, output.high))
        label = output.label if output.piece else f"{column.name} limited"
        return Limited(column, label, low, high, output.center + output.scale * output.encode_missing())
    label = f"{output.label} scaled"
    return Limited(column, label, output.low, output.high, output.encode_missing(), output.center, output.scale)


def read_condition(variables: Variables, weight: npt.NDArray[np.floating], bias: float) -> Condition | bool:
    """When rows go left at a split with these weights of the encoded columns, (d,); True or False if all or none do."""
    parts = variables.used_parts(weight)
    if not parts:
        return bias < 0
    if len(parts) > 1:
        return Below(variables.formula(weight, bias))
    own = variables.parts[parts[0]]
    if any(weight[i] and variables.outputs[i].kind == "effect" for i in own):
        return Below(variables.formula(weight, bias))
    outputs = [variables.outputs[i] for i in own]
    curve = read_curve(outputs, weight[own][None])
    missing = bool(curve.missing[0] + bias < 0)
    if curve.kind == "boolean":
        low, high = (values[0] + bias for values in curve.values)
        between = (0.5,) if (low < 0) != (high < 0) else ()
        return _of_number(variables, parts[0][0], between, low_left=bool(low < 0), missing=missing)
    split = split_column(outputs, weight[own], bias)
    if curve.is_number:
        low_left = split.low_left if split is not None else bool(curve.values[0][0] + bias < 0)
        return _of_number(variables, parts[0][0], split.thresholds if split else (), low_left=low_left, missing=missing)
    other = bool((curve.other[0] if curve.other is not None else 0.0) + bias < 0)
    odd = [
        str(level) for level, values in zip(curve.points, curve.values, strict=True) if (values[0] + bias < 0) != other
    ]
    if not odd and other == missing:
        return other
    return IsLevel(variables.levels(parts[0]), tuple(odd), other, missing)


def _of_number(
    variables: Variables, feature: int, thresholds: tuple[float, ...], *, low_left: bool, missing: bool
) -> Condition | bool:
    """The ranges of a number that go left; the sides of its ranges alternate."""
    if not thresholds and low_left == missing:
        return low_left
    column: Column = variables.column(feature)
    ends = [None, *thresholds, None]
    ranges = [(ends[i], ends[i + 1]) for i in range(len(ends) - 1) if (i % 2 == 0) == low_left]
    return InRanges(column, tuple(ranges), missing)


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
        _Constants(tree, target, proba=proba)
        if _has_constant_ends(tree, target)
        else _Sums(tree, target, variables, proba)
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


def _has_constant_ends(tree: Tree, target: Any) -> bool:
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
