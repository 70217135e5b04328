"""The tree as a list of rules, one for each leaf."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

from prunus.data.calendar import LEVELS
from prunus.describe.checks import check_whole
from prunus.describe.numbers import percent, writer
from prunus.describe.read import describe
from prunus.describe.record import ColumnSplit, LearnedTree, NodeSummary, TreeDescription
from prunus.describe.words import Write, in_lines, outcome, point_text, split_parts, traits
from prunus.search.words import quoted

__all__ = ["export_rules"]

JOINS = re.compile(r" (or|and|where) ")
"""Words in the condition of a sum that need parentheses beside other conditions."""
MOST_LEVELS = 6
"""Number of levels of a category that are written; others are counted."""


def export_rules(
    estimator: Any,
    *,
    feature_names: Any = None,
    class_names: Any = None,
    decimals: int | None = None,
    max_features: int = 3,
) -> str:
    """The leaves of a fitted tree as rules, one in each line, those of the most training rows first.

    A rule has the conditions of a path, then what is predicted there and the share of the training rows. Conditions of
    one column are merged, as in "2 <= rooms < 6 and color is red or blue". Other conditions are sums, as in
    `export_text`, in the order of the path. Leaves that no training row reaches are left out.

    Parameters
    ----------
    estimator : a tree of prunus
        The fitted estimator.
    feature_names : list of n_features_in_ names, optional
        Names of the columns; by default those of the table, or "x0", "x1" and so on if it had no names.
    class_names : list of names, optional
        Names of the classes, in the order of `classes_`, or of the clusters.
    decimals : int or None, default=None
        Number of decimals; small numbers have this many significant digits. None means all digits of a readable tree,
        whose numbers are round, and 2 for other trees.
    max_features : int, default=3
        Number of features of a sum that are written, the strongest first.

    Returns
    -------
    str

    Examples
    --------
    >>> from prunus import ArgminTreeClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["low", "low", "high", "high"]
    >>> tree = ArgminTreeClassifier(depth=1, max_epochs=50, random_state=0).fit(X, y)
    >>> print(export_rules(tree, feature_names=["size"]))  # doctest: +ELLIPSIS
    if size < 2...: class low (50% of rows)
    if size >= 2...: class high (50% of rows)
    <BLANKLINE>
    """
    check_whole("decimals", decimals, 0, or_none=True)
    check_whole("max_features", max_features, 1)
    tree = in_lines(describe(estimator, feature_names, class_names))
    write = writer(decimals, exact=tree.exact)
    found = sorted(_paths(tree, tree.root, ()), key=lambda path: -path.share)
    lines = [line for path in found if (line := _line(tree, path, write, max_features)) is not None]
    if tree.warning is not None:
        lines.append(tree.warning)
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class _Path:
    """A path to its end: the splits, and whether it goes left at each."""

    splits: tuple[tuple[NodeSummary, bool], ...]
    end: NodeSummary
    share: float


def _paths(tree: TreeDescription, node: NodeSummary, splits: tuple[tuple[NodeSummary, bool], ...]) -> Iterator[_Path]:
    """The paths below a node that training rows take; rows that would go to a pruned child end in the node itself."""
    if node.is_leaf:
        yield _Path(splits, node, node.share)
        return
    children = tree.children(node)
    for child, other, left in zip(children, children[::-1], (True, False), strict=True):
        below = (*splits, (node, left))
        if child is not None:
            yield from _paths(tree, child, below)
        elif other is not None and node.share - other.share > 1e-12:
            yield _Path(below, node, node.share - other.share)


def _line(tree: TreeDescription, path: _Path, write: Write, max_features: int) -> str | None:
    """The rule of a path; None if no training row takes it or its conditions cannot hold."""
    columns: dict[tuple[int, str | None], _Numbers | _Levels] = {}
    sums: list[str] = []
    for node, left in path.splits:
        if node.column is None:
            if not _goes_one_way(tree, node):
                sums.append(" ".join(split_parts(node, max_features, write)[0 if left else 1]))
            continue
        own = _side(node.column, left=left)
        key = (node.split[0].feature, node.column.unit)
        columns[key] = columns[key].both(own) if key in columns else own
    parts = [column.text(write) for column in columns.values()]
    if path.share <= 0 or None in parts:
        return None
    conditions = [part for part in parts if part] + sums
    if tree.exact and len(conditions) > 1:
        conditions = [f"({part})" if JOINS.search(part) else part for part in conditions]
    start = f"if {' and '.join(conditions)}" if conditions else "always"
    return f"{start}: {_outcome(tree, path.end, write, max_features)} ({percent(path.share)} of rows)"


def _goes_one_way(tree: TreeDescription, node: NodeSummary) -> bool:
    """Whether all rows go the same way at a split that is not told as one of a single column."""
    if not isinstance(tree, LearnedTree) or node.threshold is None:
        return False
    used = {part.column for part in node.split}
    has_levels = any(c.kind in ("effect", "calendar") and i in used for i, c in enumerate(tree.inputs))
    return not has_levels and len({part.feature for part in node.split}) < 2


def _outcome(tree: TreeDescription, node: NodeSummary, write: Write, max_features: int) -> str:
    """What is predicted at the end of a path."""
    if tree.clusters:
        return ", ".join([tree.clusters.get(node.node, "no cluster"), *traits(tree, node, max_features)])
    found = outcome(tree, node, max_features, write, partial(_listed, write=write))
    return ("; " if tree.exact and node.formulas else ", ").join(f"{name} {value}" for name, value in found)


def _listed(values: Sequence[float], write: Write) -> str:
    return write(values[0]) if len(values) == 1 else f"[{', '.join(map(write, values))}]"


@dataclass(frozen=True)
class _Range:
    """The numbers between two ends, one of which may belong to it."""

    low: float = -inf
    high: float = inf
    with_low: bool = False
    with_high: bool = False

    def both(self, other: "_Range") -> "_Range":
        low = max((self.low, not self.with_low), (other.low, not other.with_low))
        high = min((self.high, self.with_high), (other.high, other.with_high))
        return _Range(low[0], high[0], not low[1], high[1])

    @property
    def is_empty(self) -> bool:
        return self.low > self.high or (self.low == self.high and not (self.with_low and self.with_high))


@dataclass(frozen=True)
class _Numbers:
    """The numbers of a column for which conditions hold."""

    split: ColumnSplit
    ranges: tuple[_Range, ...]
    missing: bool | None
    """Whether they hold for missing numbers; None if none were missing in training."""

    def both(self, other: Any) -> "_Numbers":
        pairs = (mine.both(its) for mine in self.ranges for its in other.ranges)
        return replace(
            self, ranges=tuple(p for p in pairs if not p.is_empty), missing=_all(self.missing, other.missing)
        )

    def text(self, write: Write) -> str | None:
        name = self.split.name
        missing = [f"{name} is missing"] if self.missing else []
        if not self.ranges:
            return missing[0] if missing else None
        if self.ranges == (_Range(),):
            return f"{name} is not missing" if self.missing is False else ""
        words = [self._range(r, write) for r in self.ranges] + missing
        if len(words) == 1:
            return words[0]
        return " or ".join(words) if self.split.exact else f"({' or '.join(words)})"

    def _range(self, r: _Range, write: Write) -> str:
        name, below = self.split.name, f"{'<=' if r.with_high else '<'} {point_text(self.split, r.high, write)}"
        if r.low == -inf:
            return f"{name} {below}"
        low = point_text(self.split, r.low, write)
        if r.high == inf:
            return f"{name} {'>=' if r.with_low else '>'} {low}"
        return f"{low} {'<=' if r.with_low else '<'} {name} {below}"


@dataclass(frozen=True)
class _Levels:
    """The levels of a column for which conditions hold."""

    split: ColumnSplit
    levels: frozenset[str]
    other: bool | None
    """Whether they hold for levels without a name here; None if there are none."""
    missing: bool | None

    def both(self, other: Any) -> "_Levels":
        return replace(
            self,
            levels=self.levels & other.levels,
            other=_all(self.other, other.other),
            missing=_all(self.missing, other.missing),
        )

    def text(self, write: Write) -> str | None:  # noqa: ARG002
        known = sorted({*self.split.left, *self.split.right}, key=self._place)
        into = [level for level in known if level in self.levels]
        out = [level for level in known if level not in self.levels]
        into += ["missing"] * (self.missing is True) + ["another level"] * (self.other is True)
        if not into:
            return None
        not_in = out + ["missing"] * (self.missing is False)
        if not not_in and self.other is not False:
            return ""
        if (self.other or self.split.unit is not None) and 0 < len(not_in) <= len(into):
            return f"{self.split.title} is not {self._either(not_in)}"
        return f"{self.split.title} is {self._either(into)}"

    def _either(self, names: list[str]) -> str:
        """Some of the names, or all of them in a readable tree, where those of levels may be in quotes."""
        if not self.split.exact:
            return _either(names, MOST_LEVELS)
        known = {*self.split.left, *self.split.right}
        return _either([quoted(name) if name in known else name for name in names], len(names))

    def _place(self, level: str) -> tuple[int, str]:
        """The levels of a calendar have an order of their own."""
        return (0 if self.split.unit is None else LEVELS[self.split.unit].index(level), level)


def _either(names: list[str], most: int) -> str:
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _all(mine: bool | None, its: bool | None) -> bool | None:
    if mine is None or its is None:  # without missing values there is no condition for them
        return mine if its is None else its
    return mine and its


def _side(split: ColumnSplit, *, left: bool) -> _Numbers | _Levels:
    """The values of a column that go to one side of a split."""
    missing = None if split.missing_left is None else split.missing_left is left
    if split.left or split.right:
        levels = frozenset(split.left if left else split.right)
        return _Levels(split, levels, None if split.other_left is None else split.other_left is left, missing)
    ends = (-inf, *split.thresholds, inf)
    ranges = []
    for i in range(len(ends) - 1):
        if (split.low_left if i % 2 == 0 else not split.low_left) is left:
            # A score of 0 goes right.
            ranges.append(_Range(ends[i], ends[i + 1], not left and i > 0, not left and i + 2 < len(ends)))
    return _Numbers(split, tuple(ranges), missing)
