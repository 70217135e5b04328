"""Trees drawn as circles, level by level: how rows spread over the nodes."""

from dataclasses import dataclass
from math import hypot
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Circle
from matplotlib.text import Text

from prunus.ops.heap import depth_of_nodes, level, n_nodes

__all__ = ["Routing", "draw_circles", "routing"]

Floats = npt.NDArray[np.float64]

DARK = np.array([8, 48, 107]) / 255
"""The colour of mass 1; for less mass it is mixed with white. One hue has shades that every eye can tell apart."""
GREY = "#8c8c8c"
EMPTY = "\N{EN DASH}"
LARGEST_RADIUS = 17.0
LARGEST_FONT = 11.0
"""In points."""


@dataclass(frozen=True)
class Routing:
    """The upper part of a complete tree, in heap order, T nodes."""

    depth: int
    mass: npt.NDArray[np.float32]
    """(T,): 0 is pruned, 1 is kept wholly."""
    percent: Floats
    """(T,): of the rows that are routed through a node, among the nodes of its level."""


def routing(tree: Any, x: Any, *, max_depth: int | None = None) -> Routing:
    """How rows are routed through a tree: each counts in all the nodes that it reaches, as much as it reaches them.

    Parameters
    ----------
    tree : ArgminTreeClusterer
        A fitted one.
    x : table of shape (n, n_features_in_)
    max_depth : int, optional
        Last level that is wanted; by default all are.
    """
    deepest = depth_of_nodes(len(tree.node_mass_))
    depth = deepest if max_depth is None else min(max_depth, deepest)
    upper = slice(n_nodes(depth))
    passing = tree.transform(x)[:, upper].sum(axis=0, dtype=np.float64)
    return Routing(depth, tree.node_mass_[upper], _percent_of_level(passing, depth))


def _percent_of_level(passing: Floats, depth: int) -> Floats:
    percent = np.zeros(len(passing))
    for d in range(depth + 1):
        total = passing[level(d)].sum()
        if total > 0:
            percent[level(d)] = 100 * passing[level(d)] / total
    return percent


class Layout(NamedTuple):
    """In units of the distance between two nodes of the last level."""

    width: float
    row: float
    radius: list[float]
    """Of the circles of each level."""
    point: float
    """Units of a typographic point."""

    def center(self, t: int) -> tuple[float, float]:
        """Of the circle of node t."""
        d = (t + 1).bit_length() - 1
        return self.width * (t + 1.5 - 2**d) / 2**d, -self.row * d


def draw_circles(routing: Routing, ax: Axes) -> None:
    """Draw all nodes: shades are masses, texts are percentages; pruned nodes are dashed."""
    layout = _layout(routing.depth, ax)
    _draw_lines(routing, layout, ax)
    for d in range(routing.depth + 1):
        nodes = range(*level(d).indices(len(routing.mass)))
        texts = [_text(float(routing.percent[t])) for t in nodes]
        longest = max(texts, key=lambda text: (len(text), "<" in text))  # digits are narrower
        for t, text in zip(nodes, texts, strict=True):
            mass, center, radius = float(routing.mass[t]), layout.center(t), layout.radius[d]
            ax.add_patch(Circle(center, radius, facecolor=_shade(mass), zorder=2, **_outline(mass, radius, layout)))
            ax.add_artist(FittedText(*center, text, radius, longest, color=_ink(mass), zorder=3))
    ax.set_xlim(0, layout.width)
    ax.set_ylim(-layout.row * (routing.depth + 0.5), layout.row / 2)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _layout(depth: int, ax: Axes) -> Layout:
    """Fill the Axes; circles grow upwards, where there is more room, and never touch."""
    width, scale = float(2**depth), 72 / ax.figure.dpi
    point = width / max(ax.bbox.width * scale, 1.0)
    row = max(ax.bbox.height * scale, 1.0) * point / (depth + 1)
    largest = min(0.4 * row, LARGEST_RADIUS * point)
    return Layout(width, row, [min(0.45 * 2 ** (depth - d), largest) for d in range(depth + 1)], point)


def _draw_lines(routing: Routing, layout: Layout, ax: Axes) -> None:
    """From parents to children, beneath the circles; dashed to what is pruned."""
    children = range(1, len(routing.mass))
    pruned = [routing.mass[t] <= 0 for t in children]
    lines = LineCollection(
        [[layout.center((t - 1) // 2), layout.center(t)] for t in children],
        colors=["#c8c8c8" if gone else GREY for gone in pruned],
        linestyles=["dashed" if gone else "solid" for gone in pruned],
        linewidths=_line_width(layout.radius[-1], layout),
        zorder=1,
    )
    ax.add_collection(lines, autolim=False)


def _shade(mass: float) -> tuple[float, ...]:
    return tuple((1 - mass * (1 - DARK)).tolist())


def _ink(mass: float) -> Any:
    """The colour of texts on a shade."""
    if mass <= 0:
        return GREY
    return "white" if mass > 0.65 else "black"


def _outline(mass: float, radius: float, layout: Layout) -> dict[str, Any]:
    pruned = mass <= 0
    return {
        "edgecolor": GREY if pruned else tuple(DARK.tolist()),
        "linestyle": "dashed" if pruned else "solid",
        "linewidth": _line_width(radius, layout),
    }


def _line_width(radius: float, layout: Layout) -> float:
    """Thin around small circles."""
    return float(np.clip(0.08 * radius / layout.point, 0.3, 1.0))


def _text(percent: float) -> str:
    if percent <= 0:
        return EMPTY
    return f"{percent:.0f}" if round(percent) else "<1"


class FittedText(Text):
    """Text in the middle of a circle, as large as the longest of its level may be, whatever the size of the Axes."""

    def __init__(self, x: float, y: float, text: str, radius: float, longest: str, **options: Any) -> None:
        super().__init__(x, y, text, ha="center", va="center_baseline", fontsize=LARGEST_FONT, **options)
        self.set_in_layout(False)  # it stays within its circle, which is laid out
        self._radius, self._longest = radius, longest

    def draw(self, renderer: Any) -> None:
        """Fit the size, then draw."""
        assert self.axes is not None
        (left, _), (right, _) = self.axes.transData.transform([(-self._radius, 0.0), (self._radius, 0.0)])
        font = FontProperties(family=self.get_fontfamily(), size=LARGEST_FONT)
        width, height, descent = renderer.get_text_width_height_descent(self._longest, font, False)
        self.set_fontsize(LARGEST_FONT * min(1.0, 0.92 * (right - left) / hypot(width, height - descent)))
        super().draw(renderer)
