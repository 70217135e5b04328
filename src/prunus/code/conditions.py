"""Splits as conditions in the units of the table: ranges or levels of one column, or a sum that is negative."""

import numpy as np
import numpy.typing as npt

from prunus.code.program import Below, Column, Condition, InRanges, IsLevel
from prunus.code.variables import Variables
from prunus.explain.column_splits import split_column
from prunus.explain.curves import read_curve

__all__ = ["read_condition"]


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
