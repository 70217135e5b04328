"""The boxes of a picture of a tree: their lines and colors, before anything is drawn."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from textwrap import wrap

from prunus.describe.checks import check_choice, check_flags, check_whole
from prunus.describe.numbers import exact_number, percent, short_number
from prunus.describe.record import NodeSummary, TreeDescription
from prunus.describe.words import formula_parts, in_lines, prediction, probability_text, shares, split_parts, traits
from prunus.palette import CLUSTER, HIGH, LOW, class_color, mixed, tinted

__all__ = ["CUT", "PRUNED", "Box", "BoxOptions", "read_boxes"]

PRUNED = "\N{EN DASH}"
"""The text in place of a branch that was pruned, or that no training row reaches."""
CUT = "(...)"
"""The text in place of a branch that is deeper than the levels to show."""
MOST_OUTPUTS = 3
MOST_FORMULAS = 2
_FULL = 0.75
"""Strength of the color of the purest node: black text must stay readable on it."""


@dataclass(frozen=True)
class BoxOptions:
    """The options of boxes, see `prunus.plot_tree`."""

    max_depth: int | None
    label: str
    filled: bool
    impurity: bool
    node_ids: bool
    precision: int | None
    """Number of significant digits; None means all digits of numbers that predict, and 3 of others."""
    max_features: int
    width: int
    """Largest number of characters in a line, if it can be broken between its parts."""
    longest: int | None
    """Largest number of characters in a name; None means no limit."""

    exact: bool = False
    """Whether numbers of splits and predictions are those that predict."""

    def written(self, x: float) -> str:
        """A number of a split or of a prediction as text."""
        return exact_number(x) if self.exact and self.precision is None else self.counted(x)

    def counted(self, x: float) -> str:
        """A number that tells of the rows as text."""
        return short_number(x, 3 if self.precision is None else self.precision)

    def check(self) -> None:
        """Raise an error if an option has an invalid value."""
        check_whole("max_depth", self.max_depth, 0, or_none=True)
        check_choice("label", self.label, ("all", "root", "none"))
        check_flags(filled=self.filled, impurity=self.impurity, node_ids=self.node_ids)
        check_whole("precision", self.precision, 0, or_none=True)
        check_whole("max_features", self.max_features, 1)


@dataclass(frozen=True)
class Box:
    """The box of a node, or the text in place of a branch that is not shown."""

    name: str
    """The number of the node, as text."""
    lines: tuple[str, ...]
    node: NodeSummary | None = None
    color: str | None = None
    children: tuple["Box", ...] = ()
    """The boxes of the left and the right child; empty for a leaf."""

    def walk(self) -> Iterator["Box"]:
        """Iterate over the box and all boxes below it, from left to right."""
        yield self
        for child in self.children:
            yield from child.walk()


def read_boxes(tree: TreeDescription, options: BoxOptions) -> Box:
    """The box of the root, with all boxes below it."""
    options.check()
    options = replace(options, exact=tree.exact)
    tree = in_lines(tree, options.longest)
    return _box(tree, tree.root, options)


def _box(tree: TreeDescription, node: NodeSummary, options: BoxOptions) -> Box:
    color = _color(tree, node) if options.filled else None
    lines = tuple(_lines(tree, node, options))
    return Box(str(node.node), lines, node, color, () if node.is_leaf else _children(tree, node, options))


def _children(tree: TreeDescription, node: NodeSummary, options: BoxOptions) -> tuple[Box, ...]:
    found = []
    for side, child in enumerate(tree.children(node), start=1):
        name = str(2 * node.node + side)
        if child is None or child.share == 0:
            found.append(Box(name, (PRUNED,)))
        elif options.max_depth is not None and child.depth > options.max_depth:
            found.append(Box(name, (CUT,)))
        else:
            found.append(_box(tree, child, options))
    return tuple(found)


def _lines(tree: TreeDescription, node: NodeSummary, options: BoxOptions) -> Iterator[str]:
    for parts in _paragraphs(tree, node, options):
        yield from _wrapped(parts, options.width)


def _paragraphs(tree: TreeDescription, node: NodeSummary, options: BoxOptions) -> Iterator[list[str]]:
    """The paragraphs of a box, each as a list of parts; a part is broken only if it does not fit on one line."""
    named = options.label == "all" or (options.label == "root" and node.node == 0)
    if options.node_ids:
        yield [f"node #{node.node}" if named else f"#{node.node}"]
    if not node.is_leaf:
        yield split_parts(node, options.max_features, options.written)[0]
    yield ["samples = " * named + percent(node.share)]
    if tree.classes is not None:
        yield from _of_classes(tree, node, options, named=named)
    elif tree.clusters:
        yield [tree.clusters[node.node]] if node.is_leaf else []
        most = options.max_features if node.is_leaf else 1  # an inner node also shows its split
        yield _commas(traits(tree, node, most))
    else:
        yield from _of_values(tree, node, options, named=named)
    if named and node.is_leaf and node.node == 0 and tree.n_nodes > 1:
        yield ["no split was worth keeping"]


def _of_classes(tree: TreeDescription, node: NodeSummary, options: BoxOptions, *, named: bool) -> Iterator[list[str]]:
    values, names = prediction(node), tree.outputs
    if options.impurity:
        gini = 1 - sum(share**2 for share in node.distribution)
        yield ["gini = " * named + options.counted(round(gini, 6))]
    if node.is_leaf:
        if not (options.exact and node.formulas):
            yield ["class = " * named + names[values.index(max(values))]]
        yield from _formulas(node, options)
    if options.exact and node.is_leaf and node.value:
        yield probability_text(node, names, options.written).split(" ")
        return
    yield _commas(shares(node.distribution, names, MOST_OUTPUTS))


def _formulas(node: NodeSummary, options: BoxOptions) -> Iterator[list[str]]:
    """The formulas of a linear leaf, a paragraph each."""
    for formula in node.formulas if options.exact else node.formulas[:MOST_FORMULAS]:
        yield [f"{formula.output} =", *formula_parts(formula, options.max_features, options.written)]


def _of_values(tree: TreeDescription, node: NodeSummary, options: BoxOptions, *, named: bool) -> Iterator[list[str]]:
    if node.is_leaf and node.formulas:
        yield from _formulas(node, options)
        if options.impurity:
            yield _commas([f"± {options.counted(spread)}" for spread in node.spread[:MOST_OUTPUTS]])
    else:
        yield _values(tree, node, options, named=named)


def _values(tree: TreeDescription, node: NodeSummary, options: BoxOptions, *, named: bool) -> list[str]:
    """The value of a leaf, or the mean of an inner node, with the standard deviation of its rows."""
    is_sum = node.is_leaf and bool(node.offset)  # of curves and this value
    word = "value = " if node.is_leaf and (node.value or is_sum) else "mean = "
    if is_sum and tree.link == "log":
        word = "log value = "
    write = options.written if node.is_leaf else options.counted
    parts = [write(value) for value in (node.offset if is_sum else prediction(node))]
    spreads = [f"± {options.counted(spread)}" for spread in node.spread] if options.impurity else []
    if len(parts) == 1:
        return [word * named + parts[0], *(["+ curves"] if is_sum else []), *spreads]
    if options.impurity:
        parts = [f"{part} {spread}" for part, spread in zip(parts, spreads, strict=True)]
    if len(parts) > MOST_OUTPUTS + 1 and not options.exact:
        parts = [*parts[:MOST_OUTPUTS], f"{len(parts) - MOST_OUTPUTS} more"]
    return [*_commas([word * named + parts[0], *parts[1:]]), *(["+ curves"] if is_sum else [])]


def _commas(parts: list[str]) -> list[str]:
    return [f"{part}," for part in parts[:-1]] + parts[-1:]


def _wrapped(parts: list[str], width: int) -> Iterator[str]:
    """Lines of whole parts; a part that is longer than a line is broken between words."""
    line = ""
    for part in parts:
        if line and len(line) + 1 + len(part) > width:
            yield line
            line = ""
        if len(part) > width:
            yield from wrap(part, width, break_long_words=False, break_on_hyphens=False)
        else:
            line = f"{line} {part}" if line else part
    if line:
        yield line


def _color(tree: TreeDescription, node: NodeSummary) -> str:
    """The color of a node: of its largest class, stronger if it is purer; of its value; or of its share of the rows."""
    if tree.classes is not None:
        values = node.distribution
        best, k = max(values), len(values)
        purity = 1.0 if k == 1 else (best - 1 / k) / (1 - 1 / k)
        return _filling(class_color(values.index(best)), purity)
    if tree.clusters:
        return _filling(CLUSTER, sqrt(node.share))
    heights = {t: _height(tree, other) for t, other in tree.by_number.items() if other.share > 0}
    low, high = min(heights.values()), max(heights.values())
    place = (heights[node.node] - low) / (high - low) if high > low else 0.5
    return _filling(mixed(LOW, HIGH, place), abs(2 * place - 1))


def _height(tree: TreeDescription, node: NodeSummary) -> float:
    """The value of a node in standard units; the mean if there are several outputs."""
    root, values = tree.root, prediction(node)
    scale = [spread if spread > 0 else 1.0 for spread in root.spread]
    return sum((value - mean) / s for value, mean, s in zip(values, root.distribution, scale, strict=True)) / len(scale)


def _filling(color: str, strength: float) -> str:
    """A color mixed with white, from almost none of it to as much as keeps black text readable."""
    return tinted(color, _FULL * (0.05 + 0.95 * min(max(strength, 0.0), 1.0)))
