"""A small picture of a fitted tree, or of the first tree of a forest, for notebooks."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from textwrap import wrap
from typing import Any

import numpy as np

from prunus.describe.numbers import exact_number
from prunus.describe.read import describe
from prunus.describe.record import NodeSummary, TreeDescription
from prunus.describe.words import split_parts
from prunus.palette import class_color

__all__ = ["notebook_html"]

WIDTH, HEIGHT, LINE, GAP, DROP = 112, 34, 13, 10, 28
LETTER = 6.1
"""Width of a letter, about."""


@dataclass(frozen=True)
class Box:
    """A node of the picture."""

    text: str
    share: float
    """Share of the training rows that pass it."""
    bar: Sequence[float]
    """The shares of the classes; if there are no classes, that of the rows."""


@dataclass(frozen=True)
class Picture:
    """The nodes of a tree that are drawn, by their numbers in heap order, and how."""

    boxes: dict[int, Box]
    levels: int
    """Number of levels of splits that are drawn, so that the picture is small; `export_html` shows the whole tree."""
    width: int = WIDTH
    lines: int = 1
    """Number of lines of a text."""

    @property
    def height(self) -> int:
        """The height of a box."""
        return HEIGHT + LINE * (self.lines - 1)

    def children(self, t: int) -> list[int]:
        """The children of a node that are known."""
        return [child for child in (2 * t + 1, 2 * t + 2) if child in self.boxes]


def notebook_html(estimator: Any) -> str:
    """A line about a forest or about a tree that needs one, and the top of the tree as SVG."""
    trees = getattr(estimator, "estimators_", [estimator])
    tree, told = describe(trees[0]), None
    if trees[0] is estimator:
        told = tree.warning
    else:
        n = len(trees)
        told = "This forest has one tree:" if n == 1 else f"The first of {n} trees, whose predictions are averaged:"
    return (f'<p style="font:12px sans-serif">{escape(told)}</p>' if told else "") + _svg(_picture(tree))


def _picture(tree: TreeDescription) -> Picture:
    """The top of a tree: the questions of a readable tree, or the strongest feature of each split."""
    levels = 5 if tree.exact else 3
    boxes = {
        node.node: Box(_text(tree, node), node.share, (node.share,) if tree.classes is None else node.distribution)
        for node in tree.nodes
        if tree.exact or node.depth <= levels
    }
    return Picture(boxes, levels, width=172, lines=2) if tree.exact else Picture(boxes, levels)


def _text(tree: TreeDescription, node: NodeSummary) -> str:
    if not node.is_leaf:
        if node.question is not None:
            return " ".join(split_parts(node, 1, exact_number)[0])
        return node.split[0].label if node.split else f"split {node.node}"
    if tree.clusters:
        return tree.clusters[node.node]
    if tree.classes is not None:
        shares = node.value if tree.exact and node.value else node.distribution
        return tree.outputs[int(np.argmax(shares))]
    if tree.exact and node.value:
        return ", ".join(map(exact_number, node.value))
    return f"{'formula, mean ' * tree.exact}{node.distribution[0]:.4g}"


def _svg(picture: Picture) -> str:
    place = _layout(picture)
    edges = [_edge(picture, place, t) for t in place if t]
    boxes = [_box(picture, t, *place[t]) for t in place]
    width = max(x for x, _ in place.values()) + picture.width / 2 + 2
    height = max(y for _, y in place.values()) + picture.height / 2 + 2
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" style="max-width:100%;font:11px sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{"".join(edges + boxes)}</svg>'


def _layout(picture: Picture) -> dict[int, tuple[float, float]]:
    """The centers of the nodes: leaves are side by side, parents above the middle of their children."""
    place: dict[int, tuple[float, float]] = {}
    taken = 0

    def visit(t: int, level: int) -> float:
        nonlocal taken
        below = [] if level == picture.levels else [visit(child, level + 1) for child in picture.children(t)]
        if not below:
            taken += 1
        x = float(np.mean(below)) if below else picture.width / 2 + 2 + (taken - 1) * (picture.width + GAP)
        place[t] = (x, picture.height / 2 + 2 + level * (picture.height + DROP))
        return x

    visit(0, 0)
    return place


def _edge(picture: Picture, place: dict[int, tuple[float, float]], t: int) -> str:
    start, end, half = place[(t - 1) // 2], place[t], picture.height / 2
    top, bottom = start[1] + half, end[1] - half
    middle = (top + bottom) / 2
    return (
        f'<path d="M{start[0]:.1f},{top:g}C{start[0]:.1f},{middle:g} {end[0]:.1f},{middle:g} {end[0]:.1f},{bottom:g}" '
        f'fill="none" stroke="currentColor" stroke-opacity=".35" stroke-width="{1 + 4 * picture.boxes[t].share:.2f}"/>'
    )


def _box(picture: Picture, t: int, x: float, y: float) -> str:
    box, width, height = picture.boxes[t], picture.width, picture.height
    left, top = x - width / 2, y - height / 2
    lines = "".join(
        f'<text x="{left + 7:.1f}" y="{top + 14 + LINE * i:g}" fill="currentColor">{escape(line)}</text>'
        for i, line in enumerate(_lines(box.text, int((width - 32) / LETTER), picture.lines))
    )
    return (
        f'<g><title>{escape(box.text)}: {box.share:.1%}</title><rect x="{left:.1f}" y="{top:g}" width="{width}" '
        f'height="{height}" rx="{4 if picture.children(t) else 10}" fill="none" stroke="currentColor" '
        f'stroke-opacity=".5"/>{lines}'
        f'<text x="{left + width - 7:.1f}" y="{top + 14:g}" text-anchor="end" fill="currentColor" opacity=".6" '
        f'font-size="9">{box.share:.0%}</text>{_strip(box.bar, left + 7, top + height - 13, width - 14)}</g>'
    )


def _lines(text: str, room: int, most: int) -> list[str]:
    """A text on lines of at most `room` letters; what is too long is cut."""
    first, *others = wrap(text, room) if most > 1 else [text]
    found = [first, *([" ".join(others)] if others else [])]
    return [line if len(line) <= room else line[: room - 1] + "…" for line in found]


def _strip(shares: Sequence[float], x: float, y: float, size: float) -> str:
    ends = np.concatenate(([0.0], np.cumsum(shares))) * size
    return "".join(
        f'<rect x="{x + begin:.1f}" y="{y:g}" width="{end - begin:.1f}" height="6" fill="{class_color(k)}"/>'
        for k, (begin, end) in enumerate(pairwise(ends))
        if end - begin >= 0.05
    )
