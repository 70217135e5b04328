"""The sheet that a tree needs: where its boxes are, how many of its levels, how long its lines, and which font."""

from dataclasses import replace
from typing import NamedTuple

from prunus.describe.record import TreeDescription
from prunus.render.boxes import Box, BoxOptions, read_boxes

__all__ = ["GAP", "PAD", "Place", "Sheet", "Size", "choose_sheet", "place_boxes", "total_size", "ways_to_break"]


class Size(NamedTuple):
    """The size of a box, in any unit of length."""

    width: float
    height: float


class Place(NamedTuple):
    """The position of a box: the middle of its upper edge, as shares of the whole from the lower left corner."""

    x: float
    top: float


PAD, GAP = 0.35, Size(1.2, 2.0)
"""Space around the text of a box, and between boxes, in units of the font size."""
_WIDTHS = ((30, 32), (22, 28), (16, 24), (12, 16))
"""Characters in a line, and in a name. Shorter ones are tried if boxes are too wide."""
_USUAL, _LEGIBLE = 10.0, 8.0
"""The usual size of the font, and the smallest one that is used to show more levels."""
_SCREEN, _POSTER, _PAGE = Size(16.0, 10.0), Size(40.0, 25.0), Size(195.0, 195.0)
"""Sizes in inches. Lines are broken so that the picture shrinks least on a screen; levels are shown as far as they fit
on a poster; and nothing is larger than a page of a PDF file can be."""


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


class Sheet(NamedTuple):
    """A tree that is to be drawn on a sheet of its own size."""

    root: Box
    font: float
    size: Size
    """The size of the tree, in inches."""
    is_cut: bool
    """Whether levels are left out that were not to be left out."""


def choose_sheet(tree: TreeDescription, options: BoxOptions, font: float | None) -> Sheet:
    """The sheet for a tree: with as many levels as are legible, or with those that the options ask for."""
    measure = _Measure()
    if options.max_depth is not None:
        return _sheet(tree, options, font, _PAGE, measure)
    shown, deepest = 0, max(node.depth for node in tree.nodes if node.share > 0)
    for depth in range(1, deepest + 1):
        levels = replace(options, max_depth=depth, filled=False)  # colors take time
        sheet = _sheet(tree, levels, font, _POSTER, measure)
        if _times(sheet.size, _POSTER) > 1 or (font is None and sheet.font < _LEGIBLE):
            break
        shown = depth
    sheet = _sheet(tree, replace(options, max_depth=shown), font, _POSTER, measure)
    return sheet._replace(is_cut=shown < deepest)


def ways_to_break(tree: TreeDescription, options: BoxOptions) -> list[Box]:
    """The boxes, with their lines broken in several ways, the longest lines first."""
    return [read_boxes(tree, replace(options, width=width, longest=longest)) for width, longest in _WIDTHS]


def _sheet(tree: TreeDescription, options: BoxOptions, font: float | None, most: Size, measure: "_Measure") -> Sheet:
    """The sheet with these levels; its font is smaller than usual if the sheet would be larger than `most`."""
    ways = ways_to_break(tree, options)
    sizes = [measure.tree(root, font or _USUAL) for root in ways]
    *usual, shortest = range(len(ways))
    best = min(usual, key=lambda i: max(_times(sizes[i], _SCREEN), 1.0))
    if _LEGIBLE * _times(sizes[best], most) > _USUAL:  # only then lines are so short that most of them are broken
        best = shortest
    root = _widened(ways, best, font or _USUAL, measure)
    size = measure.tree(root, font or _USUAL)
    if font is not None or _times(size, most) <= 1:
        return Sheet(root, font or _USUAL, size, is_cut=False)
    smaller = 0.98 * _USUAL / _times(size, most)  # the size of text is not exactly proportional to that of the font
    return Sheet(root, smaller, measure.tree(root, smaller), is_cut=False)


def _widened(ways: list[Box], narrow: int, font: float, measure: "_Measure") -> Box:
    """The tree with longer lines in the boxes of those levels that have room for them, the upper ones first."""
    chosen = [narrow] * (1 + max(map(box_depth, (box.name for box in ways[0].walk()))))
    most = measure.tree(ways[narrow], font).width
    for depth in range(len(chosen)):
        for way in range(narrow):
            wider = [*chosen[:depth], way, *chosen[depth + 1 :]]
            if measure.tree(_by_level(ways, wider), font).width <= 1.001 * most:
                chosen = wider
                break
    return _by_level(ways, chosen)


def _by_level(ways: list[Box], chosen: list[int]) -> Box:
    """The tree whose boxes are broken into lines in the way that is chosen for their level."""
    children = zip(*(box.children for box in ways), strict=True)
    return replace(ways[chosen[0]], children=tuple(_by_level(list(child), chosen[1:]) for child in children))


def _times(size: Size, other: Size) -> float:
    """How many times larger a size is than another one, in the direction where it is most."""
    return max(size.width / other.width, size.height / other.height)


class _Measure:
    """Measures boxes, each text only once."""

    def __init__(self) -> None:
        from matplotlib.figure import Figure

        self.figure = Figure()
        self.text = self.figure.text(0.5, 0.5, "", parse_math=False, usetex=False)
        self.known: dict[tuple[tuple[str, ...], float], Size] = {}

    def tree(self, root: Box, font: float) -> Size:
        """The size of a whole tree with this size of the font, in inches."""
        gap = Size(GAP.width * font / 72, GAP.height * font / 72)
        return total_size(root, {box.name: self.box(box.lines, font) for box in root.walk()}, gap)

    def box(self, lines: tuple[str, ...], font: float) -> Size:
        if (lines, font) not in self.known:
            self.text.set(text="\n".join(lines), fontsize=font)
            extent, pad = self.text.get_window_extent(), 2 * PAD * font / 72
            self.known[lines, font] = Size(extent.width / self.figure.dpi + pad, extent.height / self.figure.dpi + pad)
        return self.known[lines, font]
