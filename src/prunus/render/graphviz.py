"""The tree in DOT, the language of Graphviz."""

from collections.abc import Callable
from html import escape
from os import PathLike
from typing import Any

from prunus.describe.checks import check_flags
from prunus.describe.read import describe
from prunus.errors import InputTypeError
from prunus.files import write_bytes
from prunus.render.boxes import Box, BoxOptions, read_boxes

__all__ = ["export_graphviz"]

_WIDTH = 40


def export_graphviz(
    estimator: Any,
    out_file: Any = None,
    *,
    max_depth: int | None = None,
    feature_names: Any = None,
    class_names: Any = None,
    label: str = "all",
    filled: bool = False,
    leaves_parallel: bool = False,
    impurity: bool = True,
    node_ids: bool = False,
    proportion: bool = False,  # noqa: ARG001
    rotate: bool = False,
    rounded: bool = False,
    special_characters: bool = False,
    precision: int | None = None,
    fontname: str = "helvetica",
    max_features: int = 3,
) -> str | None:
    r"""A fitted tree in the DOT language, with the options of `sklearn.tree.export_graphviz`.

    Rows for which the condition in a box is true go left. A dash marks a branch that was pruned, or that no training
    row reaches; rows that would go to a pruned branch end in the node above it.

    Parameters
    ----------
    estimator : a tree of prunus
        The fitted estimator.
    out_file : path, open text file or None, default=None
        Where to write the text; None returns it.
    max_depth : int or None, default=None
        The deepest level that is shown; None shows all levels.
    feature_names : list of n_features_in_ names, optional
        Names of the columns; by default those of the table, or "x0", "x1" and so on if it had no names.
    class_names : list of names, optional
        Names of the classes, in the order of `classes_`, or of the clusters.
    label : {"all", "root", "none"}, default="all"
        Which nodes show the names of their numbers, such as "samples": all of them, only the root, or none.
    filled : bool, default=False
        Whether boxes are colored: by the largest class, stronger if the node is purer; by the value; or, for clusters,
        by the share of rows.
    leaves_parallel : bool, default=False
        Whether all leaves are on the bottom level.
    impurity : bool, default=True
        Whether nodes show how much their training rows differ: the Gini impurity of classes, or the standard deviation
        of values.
    node_ids : bool, default=False
        Whether nodes show their numbers, which are in heap order, as in `apply`.
    proportion : bool, default=False
        Accepted for compatibility with scikit-learn, and ignored: nodes always show shares of the training rows, since
        their number is not stored.
    rotate : bool, default=False
        Whether the tree grows from left to right.
    rounded : bool, default=False
        Whether boxes have round corners.
    special_characters : bool, default=False
        Whether labels are written as HTML-like strings of DOT.
    precision : int or None, default=None
        Number of significant digits; digits before the decimal point are always written. None means 3, and all digits
        of the numbers of a readable tree that predict.
    fontname : str, default="helvetica"
        Name of the font.
    max_features : int, default=3
        Number of features of a split that are written, the strongest first.

    Returns
    -------
    str or None
        The text, if `out_file` is None.

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, max_epochs=20, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> print(export_graphviz(tree).splitlines()[0])
    digraph Tree {
    """
    if not isinstance(fontname, str):
        raise InputTypeError(f"fontname must be a string, got {fontname!r}")
    check_flags(leaves_parallel=leaves_parallel, rotate=rotate, rounded=rounded, special_characters=special_characters)
    options = BoxOptions(max_depth, label, filled, impurity, node_ids, precision, max_features, _WIDTH, longest=None)
    root = read_boxes(describe(estimator, feature_names, class_names), options)
    quote = _html_label if special_characters else _quoted
    lines = ["digraph Tree {", *_defaults(rotate, rounded, leaves_parallel, filled, fontname)]
    lines += [f"{box.name} [{_attributes(box, quote)}] ;" for box in root.walk()]
    lines += [edge for box in root.walk() for edge in _edges(box, -45 if rotate else 45)]
    if leaves_parallel:
        leaves = "; ".join(box.name for box in root.walk() if not box.children and box.node is not None)
        lines.append(f"{{rank=same ; {leaves}}} ;")
    return _write("\n".join([*lines, "}"]) + "\n", out_file)


def _defaults(rotate: bool, rounded: bool, leaves_parallel: bool, filled: bool, fontname: str) -> list[str]:
    font = f"fontname={_quoted((fontname,))}"
    styles = [style for style, wanted in (("filled", filled), ("rounded", rounded)) if wanted]
    style = f', style="{", ".join(styles)}", color="black"' if styles else ""
    return [
        f"node [shape=box{style}, {font}] ;",
        *(["graph [ranksep=equally, splines=polyline] ;"] if leaves_parallel else []),
        f"edge [{font}] ;",
        *(["rankdir=LR ;"] if rotate else []),
    ]


def _attributes(box: Box, quote: Callable[[tuple[str, ...]], str]) -> str:
    if box.node is None:
        return f'label={quote(box.lines)}, shape=plaintext, style=""'
    return f"label={quote(box.lines)}" + (f', fillcolor="{box.color}"' if box.color else "")


def _edges(box: Box, angle: int) -> list[str]:
    """Lines for the edges to the children; those of the root are labelled True and False."""
    sides = (("True", angle), ("False", -angle))
    notes = [f' [labeldistance=2.5, labelangle={degrees}, headlabel="{side}"]' for side, degrees in sides]
    return [
        f"{box.name} -> {child.name}{note if box.name == '0' else ''} ;"
        for child, note in zip(box.children, notes, strict=False)
    ]


def _quoted(lines: tuple[str, ...]) -> str:
    r"""Lines as one string of DOT, escaped so that only ``\n`` is a command and no text is read as an HTML entity."""
    escaped = [line.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + r"\n".join(escaped) + '"'


def _html_label(lines: tuple[str, ...]) -> str:
    r"""Lines as one HTML-like string; an element around each backslash prevents commands such as ``\N``."""
    escaped = [escape(line).replace("\\", "<font>&#92;</font>") for line in lines]
    return f"<{'<br/>'.join(escaped)}>"


def _write(text: str, out_file: Any) -> str | None:
    if out_file is None:
        return text
    if isinstance(out_file, (str, PathLike)):
        write_bytes(out_file, text.encode())
    elif hasattr(out_file, "write"):
        out_file.write(text)
    else:
        raise InputTypeError(f"out_file must be a path, an open file or None, got {type(out_file).__name__}")
    return None
