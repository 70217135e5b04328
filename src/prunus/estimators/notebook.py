"""A small picture of a fitted tree, or of the first tree of a forest, for notebooks."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.palette import class_color
from prunus.search.predict import has_scores
from prunus.search.questions import Question, question_words
from prunus.search.record import Leaf
from prunus.search.words import exact_number
from prunus.targets import remarks
from prunus.tree import Tree

__all__ = ["NotebookPicture", "tree_svg"]

WIDTH, HEIGHT, LINE, GAP, DROP = 112, 34, 13, 10, 28
LETTER = 6.1
"""Width of a letter, about."""


class NotebookPicture:
    """A mixin that adds the picture to scikit-learn's HTML of an estimator."""

    def _repr_html_inner(self) -> str:
        shown: str = super()._repr_html_inner()  # type: ignore[misc]
        if hasattr(self, "estimators_"):
            return shown + _first_of(len(self.estimators_)) + tree_svg(self.estimators_[0])
        if hasattr(self, "tree_") or hasattr(self, "record_"):
            return shown + _warning(self) + tree_svg(self)
        return shown

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return shown | {"text/html": self._repr_html_inner()} if "text/html" in shown else shown


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


def _first_of(n: int) -> str:
    """A line above the picture of a forest."""
    words = "This forest has one tree:" if n == 1 else f"The first of {n} trees, whose predictions are averaged:"
    return f'<p style="font:12px sans-serif">{words}</p>'


def _warning(estimator: Any) -> str:
    """A line about a tree without splits, or about paths that predict something else than the tree."""
    if hasattr(estimator, "record_"):
        agreement, all_pruned = None, not estimator.record_.splits
    else:
        agreement, all_pruned = estimator.tree_.agreement, estimator.tree_.all_pruned
    warning = remarks(estimator.target_.task, agreement, all_pruned=all_pruned)
    return f'<p style="font:12px sans-serif">{escape(warning)}</p>' if warning else ""


def tree_svg(estimator: Any) -> str:
    """The top of the tree as SVG: strongest features or questions, shares of the samples, classes as colors."""
    picture = _readable_picture(estimator) if hasattr(estimator, "record_") else _picture(estimator)
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


def _picture(estimator: Any) -> Picture:
    """A tree by the strongest feature of each split, the top of it."""
    tree: Tree = estimator.tree_
    levels = 3
    kept = [t for t in range(min(len(tree.kept), 2 ** (levels + 1) - 1)) if tree.kept[t]]
    below = {(t - 1) // 2 for t in range(1, len(tree.kept)) if tree.kept[t]}
    boxes = {}
    for t in kept:
        mean = _mean(estimator, t)
        bar = mean if estimator.target_.task == "classes" else tree.share[t : t + 1]
        text = _strongest(estimator, t) if t in below else _outcome(estimator, t, mean)
        boxes[t] = Box(text, float(tree.share[t]), bar.tolist())
    return Picture(boxes, levels)


def _strongest(estimator: Any, t: int) -> str:
    weight = estimator.tree_.weight
    if weight is None:
        return f"split {t}"
    return str(estimator.encoder_.columns_[int(np.abs(weight[t]).argmax())].label)


def _outcome(estimator: Any, t: int, mean: npt.NDArray[np.float64]) -> str:
    tree, target = estimator.tree_, estimator.target_
    if tree.cluster is not None:
        return f"cluster {tree.cluster[t]}"
    if target.task == "classes":
        return str(target.labels[int(mean.argmax())])
    return f"{float(mean[0]):.4g}"


def _mean(estimator: Any, t: int) -> npt.NDArray[np.float64]:
    """The shares of the classes, or the means, of the rows that pass a node."""
    tree = estimator.tree_
    mean, _ = estimator.target_.node_units(tree.mean[t : t + 1], tree.spread[t : t + 1], estimator.encoder_)
    of_node: npt.NDArray[np.float64] = mean[0]
    return of_node


def _readable_picture(estimator: Any) -> Picture:
    """A readable tree by the questions of its splits."""
    record, is_classes = estimator.record_, estimator.target_.task == "classes"
    boxes = {}
    for t in (*record.splits, *record.leaves):
        share = record.rows[t].count / record.rows[0].count
        text = _asked(estimator, t) if t in record.splits else _predicted(estimator, record.leaves[t], t)
        boxes[t] = Box(text, share, record.rows[t].mean if is_classes else (share,))
    return Picture(boxes, levels=5, width=172, lines=2)


def _asked(estimator: Any, t: int) -> str:
    split = estimator.record_.splits[t]
    columns = tuple(estimator.columns_[term.feature] for term in split.terms)
    question = Question(split, columns, tuple(column.missing > 0 for column in columns))
    return " ".join(question_words(question, exact_number, left=True))


def _predicted(estimator: Any, leaf: Leaf, t: int) -> str:
    mean, has_terms = estimator.record_.rows[t].mean, any(formula.terms for formula in leaf.outputs)
    if estimator.target_.task == "classes":
        known = mean if has_scores(leaf, len(mean)) else [formula.constant for formula in leaf.outputs]
        return str(estimator.classes_[int(np.argmax(known))])
    if has_terms:
        return f"formula, mean {mean[0]:.4g}"
    return ", ".join(exact_number(formula.constant) for formula in leaf.outputs)
