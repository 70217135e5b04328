"""The summary of a tree in words: names that users chose, short numbers, splits and predictions as text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import floor, isfinite, log10
from numbers import Integral
from typing import Any

import numpy as np

from prunus.data import OutputColumn
from prunus.errors import InputTypeError, InputValueError
from prunus.explain.curves import ColumnSplit, Curve
from prunus.explain.formulas import Formula, SplitWeight
from prunus.explain.scale import told_scale
from prunus.explain.summary import NodeSummary, TreeSummary, check_estimator, summarize

__all__ = [
    "Words",
    "check_choice",
    "check_flags",
    "check_whole",
    "curve_text",
    "formula_parts",
    "formula_text",
    "number",
    "percent",
    "point_text",
    "prediction",
    "read_words",
    "shares",
    "short_number",
    "split_parts",
    "split_text",
    "traits",
]

NOTABLE = 0.5
"""A feature of a cluster is shown if its mean is this many standard deviations from the mean of the table."""
MOST_TERMS = 12
"""Number of terms that are written of a split that uses few columns of the table."""
MOST_LEVELS = 6
"""Number of levels of a category that are written; others are counted."""
_PHRASE = ("=", "<", ">", "+", " - ", " is ", " from ", " and ")


@dataclass(frozen=True)
class Words:
    """The summary of a tree, with the names that users chose."""

    summary: TreeSummary
    nodes: dict[int, NodeSummary]
    clusters: dict[int, str]
    """The name of the cluster of each leaf, by node; empty for estimators that do not cluster."""
    yes_or_no: tuple[bool, ...]
    """Which outputs of a clusterer are 0 or 1, such as "color = red"."""
    columns: tuple[OutputColumn, ...] = ()
    """The encoded columns, by the names that the user chose."""

    @property
    def root(self) -> NodeSummary:
        """The node that all rows pass."""
        return self.nodes[0]

    def children(self, node: NodeSummary) -> tuple[NodeSummary | None, NodeSummary | None]:
        """The left and the right child of a node; None for a child that was pruned."""
        return self.nodes.get(2 * node.node + 1), self.nodes.get(2 * node.node + 2)

    def displayed(self, longest: int | None = None) -> "Words":
        """The same, with names on one line of at most `longest` characters."""
        summary = replace(self.summary, outputs=tuple(_line(name, longest) for name in self.summary.outputs))
        curves = tuple(replace(curve, name=_line(curve.name, longest)) for curve in self.summary.curves)
        summary = replace(summary, curves=curves)
        nodes = {t: _in_lines(node, longest) for t, node in self.nodes.items()}
        clusters = {t: _line(name, longest) for t, name in self.clusters.items()}
        return replace(self, summary=summary, nodes=nodes, clusters=clusters)


def read_words(estimator: Any, feature_names: Any = None, class_names: Any = None) -> Words:
    """The summary of a fitted tree, with these names for the columns of the table and for the classes or clusters."""
    check_estimator(estimator, "a picture of a tree")
    summary, tree, target = summarize(estimator), estimator.tree_, estimator.target_
    columns = _renamed(estimator.encoder_.columns_, _names("feature_names", feature_names, estimator.n_features_in_))
    nodes = {node.node: _cleaned(_relabeled(node, columns)) for node in summary.nodes}
    outputs: Sequence[str] = summary.outputs
    clusters: dict[int, str] = {}
    yes_or_no: tuple[bool, ...] = ()
    if target.task == "classes":
        outputs = _names("class_names", class_names, len(outputs)) or outputs
    elif target.task == "clusters":
        reconstructed = columns if target.positions is None else [columns[i] for i in target.positions]
        outputs = [column.label for column in reconstructed]
        yes_or_no = tuple(column.kind in ("boolean", "category", "infrequent", "missing") for column in reconstructed)
        names = _names("class_names", class_names, estimator.n_clusters_)
        labels = {t: int(tree.cluster[t]) for t, node in nodes.items() if node.is_leaf}
        clusters = {t: f"cluster {k}" if names is None else names[k] for t, k in labels.items()}
    names_of = {column.feature: column.name for column in columns}
    curves = tuple(replace(curve, name=names_of[curve.feature]) for curve in summary.curves)
    nodes = _with_names(nodes, target, summary.outputs, tuple(outputs))
    summary = replace(summary, outputs=tuple(outputs), nodes=tuple(nodes.values()), curves=curves)
    return Words(summary, nodes, clusters, yes_or_no, tuple(columns))


def number(x: float, decimals: int) -> str:
    """A number with this many decimals; small numbers have as many significant digits, large ones fewer decimals.

    Examples
    --------
    >>> [number(x, 2) for x in (0.5, 3.14159, -0.000314159, 31415.9, 3.14e-9)]
    ['0.5', '3.14', '-0.00031', '31416', '3.1e-9']
    """
    return _written(x, max(decimals, 1), decimals)


def short_number(x: float, digits: int) -> str:
    """A number with this many significant digits, and all digits before the decimal point.

    Examples
    --------
    >>> [short_number(x, 3) for x in (0.5, 3.14159, -0.000314159, 31415.9)]
    ['0.5', '3.14', '-0.000314', '31416']
    """
    digits = max(digits, 1)
    return _written(x, digits, digits - 1 - _exponent(x))


def percent(share: float) -> str:
    """A share, from 0 to 1, as a percentage.

    Examples
    --------
    >>> percent(0.1234), percent(1.0), percent(0.0002)
    ('12.3%', '100%', '<0.1%')
    """
    return "<0.1%" if 0 < share < 0.0005 else _without_zeros(f"{100 * share:.1f}") + "%"


def split_parts(node: NodeSummary, max_features: int, write: Callable[[float], str]) -> tuple[list[str], list[str]]:
    """The conditions of a split for rows that go left and for those that go right, as lists of words.

    A split is a sum of terms, strongest first, that is below a threshold or not; all levels of categories are written
    if it uses at most `max_features` columns of the table. If it uses only one, it is a threshold for that column, or a
    list of levels. A split that is not linear is named by its number.
    """
    if node.threshold is None:
        return [f"split {node.node}", "< 0"], [f"split {node.node}", ">= 0"]
    if node.column is not None:
        return _of_column(node.column, write, left=True), _of_column(node.column, write, left=False)
    split = node.split
    if len(split) == 1:
        signs = ("<", ">=") if split[0].weight > 0 else (">", "<=")
        term, threshold = [_term(split[0].label)], write(node.threshold / split[0].weight)
        return [*term, f"{signs[0]} {threshold}"], [*term, f"{signs[1]} {threshold}"]
    features = {part.feature for part in split}
    most = max(max_features, MOST_TERMS) if -1 not in features and len(features) <= max_features else max_features
    parts = _terms(split, most, write) or ["0"]
    threshold = write(node.threshold)
    return [*parts, f"< {threshold}"], [*parts, f">= {threshold}"]


def split_text(node: NodeSummary, max_features: int = 3, digits: int = 2, *, left: bool = True) -> str:
    """The condition of a split in one line: that of rows that go left, or of those that go right.

    Examples
    --------
    >>> parts = (SplitWeight("age", 0.8321, 2.0), SplitWeight("color = red", -1.2, 1.0), SplitWeight("size", 2.0, 0.1))
    >>> split_text(NodeSummary(0, 0, 1.0, 1.0, False, parts, 3.1), max_features=2)
    '0.83 age - 1.2 (color = red) and 1 more < 3.1'
    """
    return " ".join(split_parts(node, max_features, partial(number, decimals=digits))[0 if left else 1])


def formula_text(formula: Formula, max_features: int, write: Callable[[float], str]) -> str:
    """The formula of a leaf in one line: its constant and its terms, strongest first.

    Examples
    --------
    >>> parts = (SplitWeight("age", 0.8321, 2.0), SplitWeight("color = red", -1.2, 1.0), SplitWeight("size", 2.0, 0.1))
    >>> formula_text(Formula("y", 12.5, parts), 2, partial(number, decimals=2))
    '12.5 + 0.83 age - 1.2 (color = red) and 1 more'
    """
    return " ".join(formula_parts(formula, max_features, write))


def formula_parts(formula: Formula, max_features: int, write: Callable[[float], str]) -> list[str]:
    """The constant of a formula, its strongest terms, and how many more there are."""
    return [write(formula.constant), *_terms(formula.weights, max_features, write, after_constant=True)]


def curve_text(curve: Curve, outputs: Sequence[str], write: Callable[[float], str]) -> str:
    """A curve in one line: its smallest and its largest value, and where they are.

    Of several outputs it is the one that changes most.

    Examples
    --------
    >>> curve = Curve(0, "rooms", "number", (1.0, 9.0), ((-2.0,), (3.0,)), (0.0,), shown=(1.0, 9.0))
    >>> curve_text(curve, ["y"], partial(number, decimals=2))
    'rooms: from -2 at 1 to 3 at 9'
    """
    points, values = curve.visible()
    k = int((values.max(0) - values.min(0)).argmax())
    name = f"{curve.name}, {outputs[k]}" if len(outputs) > 1 else curve.name
    low, high = int(values[:, k].argmin()), int(values[:, k].argmax())
    ends = [f"{write(values[i, k])} at {point_text(curve, points[i], write)}" for i in (low, high)]
    if len(points) == 1:
        return f"{name}: {ends[0]}" + (f", {write(curve.other[k])} elsewhere" if curve.other is not None else "")
    return f"{name}: from {' to '.join(ends)}"


def point_text(column: Curve | ColumnSplit, point: float | str, write: Callable[[float], str]) -> str:
    """A value of a column: a number, a date or a duration in seconds, or a level.

    Examples
    --------
    >>> [point_text(ColumnSplit("since", kind), 86400.0, str) for kind in ("datetime", "duration", "number")]
    ['1970-01-02', '86400.0 s', '86400.0']
    """
    if isinstance(point, str):
        return point
    if column.kind == "datetime":
        try:
            time = datetime.fromtimestamp(0, UTC) + timedelta(minutes=round(point / 60))
        except OverflowError:
            return write(point)
        return f"{time:%Y-%m-%d}" if (time.hour, time.minute) == (0, 0) else f"{time:%Y-%m-%d %H:%M}"
    return f"{write(point)} s" if column.kind == "duration" else write(point)


def prediction(node: NodeSummary) -> tuple[float, ...]:
    """The prediction of a leaf, if it is constant; of other nodes the shares or means of their rows."""
    return node.value if node.is_leaf and node.value else node.distribution


def traits(words: Words, node: NodeSummary, max_features: int) -> list[str]:
    """The features in which the rows of a clusterer's node differ most from the whole table, such as "high age"."""
    mean, root = node.distribution, words.root
    found = []
    for i, name in enumerate(words.summary.outputs):
        away = (mean[i] - root.distribution[i]) / root.spread[i] if root.spread[i] > 0 else 0.0
        if abs(away) >= NOTABLE:
            found.append((abs(away), _trait(name, yes_or_no=words.yes_or_no[i], more=away > 0)))
    found.sort(key=lambda pair: -pair[0])
    return [trait for _, trait in found[:max_features]]


def shares(distribution: tuple[float, ...], names: tuple[str, ...], most: int) -> list[str]:
    """The largest classes of a node, such as "red: 98%"; classes without rows are left out.

    Examples
    --------
    >>> shares((0.25, 0.0, 0.75), ("red", "green", "blue"), 3)
    ['blue: 75%', 'red: 25%']
    """
    order = sorted((i for i, share in enumerate(distribution) if share > 0), key=lambda i: -distribution[i])
    found = [f"{names[i]}: {percent(distribution[i])}" for i in order[:most]]
    return found + ([f"{len(order) - most} more"] if len(order) > most else [])


def check_whole(name: str, value: Any, least: int, *, or_none: bool = False) -> None:
    """Raise an error unless the option is an integer of at least `least`."""
    if (value is None and or_none) or (isinstance(value, int) and not isinstance(value, bool) and value >= least):
        return
    also = " or None" if or_none else ""
    raise InputValueError(f"{name} must be an integer of at least {least}{also}, got {value!r}")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise an error unless the option is one of these choices."""
    if not isinstance(value, str) or value not in tuple(choices):
        raise InputValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_flags(**flags: Any) -> None:
    """Raise an error unless these options are True or False; 1 and 0 will do."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_, Integral)):
            raise InputTypeError(f"{name} must be True or False, got {value!r}")


def _names(option: str, names: Any, n: int) -> list[str] | None:
    if names is None or isinstance(names, bool):
        return None
    if isinstance(names, str) or not isinstance(names, Iterable) or getattr(names, "ndim", 1) != 1:
        raise InputTypeError(f"{option} must be a list of names, got {names!r}")
    listed = [str(name) for name in names]
    if len(listed) != n:
        raise InputValueError(f"{option} must contain {n} elements, got {len(listed)}")
    return listed


def _cleaned(node: NodeSummary) -> NodeSummary:
    """The node, with shares of exactly 0 for classes without rows, where rounding has left tiny numbers."""
    if node.spread:
        return node
    return replace(node, distribution=tuple(0.0 if share < 1e-9 else share for share in node.distribution))


def _renamed(columns: list[OutputColumn], features: list[str] | None) -> list[OutputColumn]:
    """The encoded columns, with the names that the user gave for the columns of the table."""
    return columns if features is None else [replace(column, name=features[column.feature]) for column in columns]


def _relabeled(node: NodeSummary, columns: list[OutputColumn]) -> NodeSummary:
    column = None if node.column is None else replace(node.column, name=columns[node.split[0].column].name)
    return replace(_changed(node, lambda part: columns[part.column].label), column=column)


def _with_names(
    nodes: dict[int, NodeSummary], target: Any, before: tuple[str, ...], now: tuple[str, ...]
) -> dict[int, NodeSummary]:
    """The nodes, with the names that the user gave for the classes in the formulas of leaves."""
    if before == now or target.task != "classes":
        return nodes
    names = dict(zip(told_scale(target, before).names, told_scale(target, now).names, strict=True))
    return {
        t: replace(node, formulas=tuple(replace(formula, output=names[formula.output]) for formula in node.formulas))
        for t, node in nodes.items()
    }


def _changed(node: NodeSummary, label: Callable[[SplitWeight], str]) -> NodeSummary:
    """The node with other labels of the features in its split and in its formulas."""

    def changed(weights: tuple[SplitWeight, ...]) -> tuple[SplitWeight, ...]:
        return tuple(replace(part, label=label(part)) for part in weights)

    formulas = tuple(replace(formula, weights=changed(formula.weights)) for formula in node.formulas)
    return replace(node, split=changed(node.split), formulas=formulas)


def _in_lines(node: NodeSummary, longest: int | None) -> NodeSummary:
    """The node with names on one line of at most `longest` characters."""

    def lines(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_line(name, longest) for name in names)

    own = node.column
    if own is not None:
        own = replace(own, name=_line(own.name, longest), left=lines(own.left), right=lines(own.right))
    node = _changed(node, lambda part: _line(part.label, longest))
    formulas = tuple(replace(formula, output=_line(formula.output, longest)) for formula in node.formulas)
    return replace(node, column=own, formulas=formulas)


def _of_column(split: ColumnSplit, write: Callable[[float], str], *, left: bool) -> list[str]:
    """The condition of one side of a split that uses one column of the table."""
    has_missing = split.missing_left is left
    if split.left or split.right:
        return _of_levels(split, left=left)
    if not split.thresholds:
        return [split.name, "is missing" if has_missing else "is not missing"]
    ends = [point_text(split, threshold, write) for threshold in split.thresholds]
    ranges = []
    for i in range(len(ends) + 1):
        if (split.low_left if i % 2 == 0 else not split.low_left) is not left:
            continue
        if i == 0:
            ranges.append(f"{'<' if left else '<='} {ends[0]}")  # a score of 0 goes right
        elif i == len(ends):
            ranges.append(f"{'>' if left else '>='} {ends[-1]}")
        else:
            ranges.append(f"from {ends[i - 1]} to {ends[i]}")
    words = [*ranges, *(["missing"] if has_missing else [])]
    return [_term(split.name), words[0], *(f"or {word}" for word in words[1:])]


def _of_levels(split: ColumnSplit, *, left: bool) -> list[str]:
    """The levels of one side, or those of the other side if these are fewer."""
    sides = {}
    for side, levels in ((True, split.left), (False, split.right)):
        missing = ["missing"] if split.missing_left is side else []
        sides[side] = [*levels, *missing, *(["another level"] if split.other_left is side else [])]
    if split.other_left is None:  # all levels have names
        listed = left
    else:
        listed = min(sides, key=lambda side: (len(sides[side]), split.other_left is side))
    names = sides[listed]
    if len(names) > MOST_LEVELS:
        names = [*names[: MOST_LEVELS - 1], f"{len(names) - MOST_LEVELS + 1} more"]
    words = [f"{name}," for name in names[:-2]] + names[-2:-1] + [f"or {names[-1]}" if len(names) > 1 else names[0]]
    return [f"{_term(split.name)} is" if listed is left else f"{_term(split.name)} is not", *words]


def _line(name: str, longest: int | None) -> str:
    name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if longest is None or len(name) <= longest:
        return name
    return name[: (longest - 1) // 2 + 1] + "…" + name[len(name) - (longest - 2) // 2 :]


def _exponent(x: float) -> int:
    return floor(log10(abs(x))) if x != 0 and isfinite(x) else 0


def _written(x: float, digits: int, decimals: int) -> str:
    """A number with this many decimals, but with about `digits` significant digits."""
    if x == 0 or not isfinite(x):
        return "0" if x == 0 else str(x)
    exponent = _exponent(x)
    if not -5 < exponent < 8:
        mantissa, power = f"{x:.{digits - 1}e}".split("e")
        return f"{_without_zeros(mantissa)}e{int(power)}"
    enough = digits - 1 - exponent
    return _without_zeros(f"{x:.{max(enough if exponent < 0 else min(decimals, enough + 3), 0)}f}")


def _without_zeros(text: str) -> str:
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _term(label: str) -> str:
    return f"({label})" if any(sign in label for sign in _PHRASE) else label


def _signed(part: SplitWeight, write: Callable[[float], str], *, first: bool) -> str:
    minus, plus = ("-", "") if first else ("- ", "+ ")
    return f"{minus if part.weight < 0 else plus}{write(abs(part.weight))} {_term(part.label)}"


def _terms(
    weights: Sequence[SplitWeight], most: int, write: Callable[[float], str], *, after_constant: bool = False
) -> list[str]:
    """The first terms of a sum, and how many more there are."""
    parts = [_signed(part, write, first=i == 0 and not after_constant) for i, part in enumerate(weights[:most])]
    return parts + ([f"and {len(weights) - most} more"] if len(weights) > most else [])


def _trait(name: str, *, yes_or_no: bool, more: bool) -> str:
    if yes_or_no:
        return f"{'often' if more else 'seldom'} {name}"
    return f"{'high' if more else 'low'} {name}"
