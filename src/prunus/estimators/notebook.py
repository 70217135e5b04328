"""A small picture of a fitted tree, or of the first tree of a forest, for notebooks."""

from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.palette import class_color
from prunus.targets import remarks
from prunus.tree import Tree

__all__ = ["NotebookPicture", "tree_svg"]

LEVELS = 3
"""Number of levels of splits that are drawn, so that the picture is small; `export_html` shows the whole tree."""
WIDTH, HEIGHT, GAP, DROP = 112, 34, 10, 62


class NotebookPicture:
    """A mixin that adds the picture to scikit-learn's HTML of an estimator."""

    def _repr_html_inner(self) -> str:
        shown: str = super()._repr_html_inner()  # type: ignore[misc]
        if hasattr(self, "estimators_"):
            return shown + _first_of(len(self.estimators_)) + tree_svg(self.estimators_[0])
        return shown + _warning(self) + tree_svg(self) if hasattr(self, "tree_") else shown

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return shown | {"text/html": self._repr_html_inner()} if "text/html" in shown else shown


def _first_of(n: int) -> str:
    """A line above the picture of a forest."""
    words = "This forest has one tree:" if n == 1 else f"The first of {n} trees, whose predictions are averaged:"
    return f'<p style="font:12px sans-serif">{words}</p>'


def _warning(estimator: Any) -> str:
    """A line about a tree without splits, or about paths that predict something else than the tree."""
    tree = estimator.tree_
    warning = remarks(estimator.target_.task, tree.agreement, all_pruned=tree.all_pruned)
    return f'<p style="font:12px sans-serif">{escape(warning)}</p>' if warning else ""


def tree_svg(estimator: Any) -> str:
    """The top of the tree as SVG: strongest features, shares of the samples, classes as colors."""
    tree: Tree = estimator.tree_
    place = _layout(tree)
    edges = [_edge(place[(t - 1) // 2], place[t], tree.share[t]) for t in place if t]
    boxes = [_box(estimator, t, *place[t]) for t in place]
    width = max(x for x, _ in place.values()) + WIDTH / 2 + 2
    height = max(y for _, y in place.values()) + HEIGHT / 2 + 2
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" style="max-width:100%;font:11px sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{"".join(edges + boxes)}</svg>'


def _layout(tree: Tree) -> dict[int, tuple[float, float]]:
    """The centers of the nodes: leaves are side by side, parents above the middle of their children."""
    place: dict[int, tuple[float, float]] = {}
    taken = 0

    def visit(t: int, level: int) -> float:
        nonlocal taken
        below = [] if level == LEVELS else [visit(child, level + 1) for child in _children(tree, t)]
        if not below:
            taken += 1
        x = float(np.mean(below)) if below else WIDTH / 2 + 2 + (taken - 1) * (WIDTH + GAP)
        place[t] = (x, HEIGHT / 2 + 2 + level * DROP)
        return x

    visit(0, 0)
    return place


def _children(tree: Tree, t: int) -> list[int]:
    return [child for child in (2 * t + 1, 2 * t + 2) if child < len(tree.kept) and tree.kept[child]]


def _edge(start: tuple[float, float], end: tuple[float, float], share: float) -> str:
    top, bottom = start[1] + HEIGHT / 2, end[1] - HEIGHT / 2
    middle = (top + bottom) / 2
    return (
        f'<path d="M{start[0]:.1f},{top:g}C{start[0]:.1f},{middle:g} {end[0]:.1f},{middle:g} {end[0]:.1f},{bottom:g}" '
        f'fill="none" stroke="currentColor" stroke-opacity=".35" stroke-width="{1 + 4 * share:.2f}"/>'
    )


def _box(estimator: Any, t: int, x: float, y: float) -> str:
    tree: Tree = estimator.tree_
    is_leaf = not _children(tree, t)
    left, top = x - WIDTH / 2, y - HEIGHT / 2
    text = _outcome(estimator, t) if is_leaf else _strongest(estimator, t)
    short = text if len(text) <= 13 else text[:12] + "…"
    return (
        f'<g><title>{escape(text)}: {tree.share[t]:.1%}</title><rect x="{left:.1f}" y="{top:g}" width="{WIDTH}" '
        f'height="{HEIGHT}" rx="{10 if is_leaf else 4}" fill="none" stroke="currentColor" stroke-opacity=".5"/>'
        f'<text x="{left + 7:.1f}" y="{top + 14:g}" fill="currentColor">{escape(short)}</text>'
        f'<text x="{left + WIDTH - 7:.1f}" y="{top + 14:g}" text-anchor="end" fill="currentColor" opacity=".6" '
        f'font-size="9">{tree.share[t]:.0%}</text>{_strip(estimator, t, left + 7, top + 21)}</g>'
    )


def _strip(estimator: Any, t: int, x: float, y: float) -> str:
    """A bar with the shares of the classes; if there are no classes, with the share of the samples."""
    size, tree = WIDTH - 14, estimator.tree_
    shares = _mean(estimator, t) if estimator.target_.task == "classes" else tree.share[t : t + 1]
    ends = np.concatenate(([0.0], np.cumsum(shares))) * size
    return "".join(
        f'<rect x="{x + begin:.1f}" y="{y:g}" width="{end - begin:.1f}" height="6" fill="{class_color(k)}"/>'
        for k, (begin, end) in enumerate(pairwise(ends))
        if end - begin >= 0.05
    )


def _strongest(estimator: Any, t: int) -> str:
    weight = estimator.tree_.weight
    if weight is None:
        return f"split {t}"
    return str(estimator.encoder_.columns_[int(np.abs(weight[t]).argmax())].label)


def _outcome(estimator: Any, t: int) -> str:
    tree, target = estimator.tree_, estimator.target_
    if tree.cluster is not None:
        return f"cluster {tree.cluster[t]}"
    if target.task == "classes":
        return str(target.labels[int(_mean(estimator, t).argmax())])
    return f"{float(_mean(estimator, t)[0]):.4g}"


def _mean(estimator: Any, t: int) -> npt.NDArray[np.float64]:
    """The shares of the classes, or the means, of the rows that pass a node."""
    tree = estimator.tree_
    mean, _ = estimator.target_.node_units(tree.mean[t : t + 1], tree.spread[t : t + 1], estimator.encoder_)
    of_node: npt.NDArray[np.float64] = mean[0]
    return of_node
