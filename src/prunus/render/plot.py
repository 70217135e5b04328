"""The tree as a picture, drawn with matplotlib."""

from typing import TYPE_CHECKING, Any

from prunus.describe.read import describe
from prunus.describe.record import TreeDescription
from prunus.render.boxes import Box, BoxOptions
from prunus.render.pyplot import pyplot_for
from prunus.render.sheets import GAP, PAD, Place, Size, choose_sheet, place_boxes, total_size, ways_to_break

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

__all__ = ["plot_tree"]


_LARGEST, _SMALLEST = 12.0, 1.0
"""The limits of the font size on axes that exist, if the user gives none."""
_LEAST, _SIDE, _TOP = Size(3.0, 2.0), 0.2, 0.4
"""The smallest size of a figure that is made for a tree, its margins, and its upper margin, which has room for a title;
all in inches."""


def plot_tree(
    estimator: Any,
    *,
    max_depth: int | None = None,
    feature_names: Any = None,
    class_names: Any = None,
    label: str = "all",
    filled: bool = False,
    impurity: bool = True,
    node_ids: bool = False,
    proportion: bool = False,  # noqa: ARG001
    rounded: bool = False,
    precision: int | None = None,
    ax: "Axes | None" = None,
    fontsize: float | None = None,
    max_features: int = 3,
) -> "list[Text]":
    """Draw a fitted tree with matplotlib, with the options of `sklearn.tree.plot_tree`.

    Rows for which the condition in a box is true go left. A dash marks a branch that was pruned, or that no training
    row reaches; rows that would go to a pruned branch end in the node above it. The function needs matplotlib:
    ``pip install 'prunus[plot]'``.

    Parameters
    ----------
    estimator : a tree of prunus
        The fitted estimator.
    max_depth : int or None, default=None
        The deepest level that is shown. None shows all levels; on a figure that is made for the tree, those that can be
        shown legibly.
    feature_names : list of n_features_in_ names, optional
        Names of the columns; by default those of the table, or "x0", "x1" and so on if it had no names.
    class_names : list of names, optional
        Names of the classes, in the order of `classes_`, or of the clusters.
    label : {"all", "root", "none"}, default="all"
        Which nodes show the names of their numbers, such as "samples": all of them, only the root, or none.
    filled : bool, default=False
        Whether boxes are colored: by the largest class, stronger if the node is purer; by the value; or, for clusters,
        by the share of rows.
    impurity : bool, default=True
        Whether nodes show how much their training rows differ: the Gini impurity of classes, or the standard deviation
        of values.
    node_ids : bool, default=False
        Whether nodes show their numbers, which are in heap order, as in `apply`.
    proportion : bool, default=False
        Accepted for compatibility with scikit-learn, and ignored: nodes always show shares of the training rows, since
        their number is not stored.
    rounded : bool, default=False
        Whether boxes have round corners.
    precision : int or None, default=None
        Number of significant digits; digits before the decimal point are always written. None means 3, and all digits
        of the numbers of a readable tree that predict.
    ax : matplotlib Axes, optional
        The axes to draw on, which are cleared first. By default these are the axes of the current figure, or, if there
        is no figure, those of a new one, which is as large as the tree needs: up to about 40 by 25 inches, or larger if
        `max_depth` is given.
    fontsize : float, optional
        Size of the font, in points. By default it is the largest size, up to 12, with which no boxes overlap. On a
        figure that is made for the tree it is from 8 to 10.
    max_features : int, default=3
        Number of features of a split that are written, the strongest first.

    Returns
    -------
    list of matplotlib Text
        The boxes, parents before children, from left to right.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, max_epochs=20, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> len(plot_tree(tree, ax=Figure().add_subplot()))
    3
    """
    options = BoxOptions(max_depth, label, filled, impurity, node_ids, precision, max_features, width=1, longest=None)
    options.check()
    tree, size = describe(estimator, feature_names, class_names), None if fontsize is None else float(fontsize)
    if ax is None and not pyplot_for("plot_tree").get_fignums():
        return _on_new_figure(tree, options, size, rounded=rounded)
    ax = pyplot_for("plot_tree").gca() if ax is None else ax
    ax.clear()
    choices = ways_to_break(tree, options)
    texts = _add_texts(ax, choices[0], rounded=rounded)
    _place(ax, choices[0], texts, _fitted_size(ax, choices, texts) if size is None else size)
    return list(texts.values())


def _on_new_figure(tree: TreeDescription, options: BoxOptions, font: float | None, *, rounded: bool) -> "list[Text]":
    """Draw the tree on a new figure of the size that it needs."""
    sheet = choose_sheet(tree, options, font)
    width = max(sheet.size.width + 2 * _SIDE, _LEAST.width)
    height = max(sheet.size.height + _SIDE + _TOP, _LEAST.height, min(width / 4, 10.0))  # lines have some slope
    figure = pyplot_for("plot_tree").figure(figsize=(width, height))
    ax = figure.add_axes((_SIDE / width, _SIDE / height, 1 - 2 * _SIDE / width, 1 - (_SIDE + _TOP) / height))
    texts = _add_texts(ax, sheet.root, rounded=rounded)
    _place(ax, sheet.root, texts, sheet.font)
    if sheet.is_cut:
        note = f"Deeper levels are left out; max_depth={tree.depth} shows them all."
        figure.text(_SIDE / width, 1 - _SIDE / height, note, va="top", fontsize=sheet.font, color="0.3")
    return list(texts.values())


def _place(ax: "Axes", root: Box, texts: "dict[str, Text]", size: float) -> None:
    sizes, whole = _measured(texts, size), _of_axes(ax)
    places = place_boxes(root, sizes, _gap(ax, size), whole)
    heights = {name: box.height / whole.height for name, box in sizes.items()}
    for name, place in places.items():
        texts[name].set_position((place.x, place.top - heights[name] / 2))
    _add_lines(ax, root, places, heights, size)


def _add_texts(ax: "Axes", root: Box, *, rounded: bool) -> "dict[str, Text]":
    """Draw all boxes, by their names; they have no places yet."""
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    return {box.name: _add_text(ax, box, rounded=rounded) for box in root.walk()}


def _add_text(ax: "Axes", box: Box, *, rounded: bool) -> "Text":
    """Draw a box with its text; the mark of a branch that is not shown has no frame."""
    frame = None
    if box.node is not None:
        style = f"{'round' if rounded else 'square'},pad={PAD}"
        frame = {"boxstyle": style, "facecolor": box.color or "white", "edgecolor": "0.3", "linewidth": 0.8}
    return ax.text(
        0.5,
        0.5,
        "\n".join(box.lines),
        ha="center",
        va="center",
        color="black" if frame else "0.3",
        bbox=frame,
        zorder=3,
        parse_math=False,  # a dollar sign in a name does not begin a formula
        usetex=False,
    )


def _fitted_size(ax: "Axes", choices: list[Box], texts: "dict[str, Text]") -> float:
    """The largest font size that fits, over several ways to break lines; the texts keep the lines of the best way."""
    best, chosen = 0.0, choices[0]
    for root in choices:
        _write(root, texts)
        size = _fitting(ax, root, texts, _LARGEST)
        if size > best:
            best, chosen = size, root
        if best == _LARGEST:
            break
    _write(chosen, texts)
    for _ in range(3):  # the size of text is not exactly proportional to that of the font
        size, best = best, _fitting(ax, chosen, texts, best)
        if size == best:
            break
    return best


def _fitting(ax: "Axes", root: Box, texts: "dict[str, Text]", size: float) -> float:
    """The given size of the font, or a smaller one with which the tree fits approximately."""
    needed, whole = total_size(root, _measured(texts, size), _gap(ax, size)), _of_axes(ax)
    fit = min(whole.width / needed.width, whole.height / needed.height)
    return size if fit >= 1 else max(0.99 * fit * size, _SMALLEST)


def _write(root: Box, texts: "dict[str, Text]") -> None:
    for box in root.walk():
        texts[box.name].set_text("\n".join(box.lines))


def _measured(texts: "dict[str, Text]", size: float) -> dict[str, Size]:
    """Set the size of the font, and return the sizes of the boxes in pixels."""
    sizes = {}
    for name, text in texts.items():
        text.set_fontsize(size)
        extent, figure = text.get_window_extent(), text.get_figure()
        assert figure is not None
        pad = 2 * PAD * size * figure.dpi / 72
        sizes[name] = Size(extent.width + pad, extent.height + pad)
    return sizes


def _gap(ax: "Axes", size: float) -> Size:
    pixels = size * ax.figure.dpi / 72
    return Size(GAP.width * pixels, GAP.height * pixels)


def _of_axes(ax: "Axes") -> Size:
    extent = ax.get_window_extent()
    return Size(extent.width, extent.height)


def _add_lines(ax: "Axes", root: Box, places: dict[str, Place], heights: dict[str, float], size: float) -> None:
    """Draw lines from each box to its children; those of the root are labelled True and False."""
    level: dict[float, float] = {}  # the lower edge of the lowest box: lines spread below it, and cross no box
    for name, place in places.items():
        level[place.top] = min(place.top - heights[name], level.get(place.top, 1.0))
    for box in root.walk():
        x, top = places[box.name]
        for child in box.children:
            end = places[child.name]
            bend = [top - heights[box.name], level[top], end.top]
            ax.plot([x, x, end.x], bend, color="0.5", linewidth=max(0.4, size / 12), zorder=1)
    for child, side, align in zip(root.children, ("True ", " False"), ("right", "left"), strict=False):
        x, y = (places[root.name].x + places[child.name].x) / 2, (level[1.0] + places[child.name].top) / 2
        ax.text(x, y, side, ha=align, va="bottom", fontsize=size, color="0.3", zorder=2, usetex=False)
