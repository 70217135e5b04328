"""The layout of the boxes of a tree: close together without touching, parents above the middle of their children."""

from typing import NamedTuple

from prunus.explain.boxes import Box

__all__ = ["Place", "Size", "box_depth", "place_boxes", "total_size"]


class Size(NamedTuple):
    """The size of a box, in any unit of length."""

    width: float
    height: float


class Place(NamedTuple):
    """The position of a box: the middle of its upper edge, as shares of the whole from the lower left corner."""

    x: float
    top: float


class _Subtree(NamedTuple):
    """A laid out subtree, with its root at 0."""

    x: dict[str, float]
    left: list[float]
    right: list[float]
    """How far it extends on each level."""


def total_size(root: Box, sizes: dict[str, Size], gap: Size) -> Size:
    """The size of the whole tree, with these gaps between boxes and between levels."""
    tree, heights = _packed(root, sizes, gap.width), _heights(root, sizes)
    width = max(tree.right) - min(tree.left)
    return Size(width, sum(heights) + gap.height * (len(heights) - 1))


def place_boxes(root: Box, sizes: dict[str, Size], gap: Size, whole: Size) -> dict[str, Place]:
    """The places of all boxes, by their names, in a whole of this size, which they fill.

    Examples
    --------
    >>> root = Box("0", ("",), children=(Box("1", ("",)), Box("2", ("",))))
    >>> places = place_boxes(root, dict.fromkeys("012", Size(2.0, 1.0)), Size(1.0, 1.0), Size(5.0, 4.0))
    >>> [(round(place.x, 2), place.top) for place in places.values()]
    [(0.5, 1.0), (0.2, 0.25), (0.8, 0.25)]
    """
    tree, heights = _packed(root, sizes, gap.width), _heights(root, sizes)
    left, width = min(tree.left), max(tree.right) - min(tree.left)
    between = max(whole.height - sum(heights), 0.0) / max(len(heights) - 1, 1)
    tops = [1 - (sum(heights[:d]) + d * between) / whole.height for d in range(len(heights))]
    return {name: Place((x - left) / width, tops[box_depth(name)]) for name, x in tree.x.items()}


def _packed(box: Box, sizes: dict[str, Size], gap: float) -> _Subtree:
    half = sizes[box.name].width / 2
    if not box.children:
        return _Subtree({box.name: 0.0}, [-half], [half])
    first, second = (_packed(child, sizes, gap) for child in box.children)
    apart = gap + max(end - begin for end, begin in zip(first.right, second.left, strict=False))
    x = {box.name: 0.0}
    x |= {name: at - apart / 2 for name, at in first.x.items()}
    x |= {name: at + apart / 2 for name, at in second.x.items()}
    left = [edge - apart / 2 for edge in first.left]
    left += [edge + apart / 2 for edge in second.left[len(left) :]]
    right = [edge + apart / 2 for edge in second.right]
    right += [edge - apart / 2 for edge in first.right[len(right) :]]
    return _Subtree(x, [-half, *left], [half, *right])


def _heights(root: Box, sizes: dict[str, Size]) -> list[float]:
    """The height of each level."""
    heights: dict[int, float] = {}
    for box in root.walk():
        depth = box_depth(box.name)
        heights[depth] = max(heights.get(depth, 0.0), sizes[box.name].height)
    return [heights[depth] for depth in sorted(heights)]


def box_depth(name: str) -> int:
    """The depth of the node of a box, whose name is the number of the node in heap order."""
    return (int(name) + 1).bit_length() - 1
