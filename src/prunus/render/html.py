"""The tree as an interactive web page."""

import html
import json
import os
from base64 import b64encode
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from prunus import __version__
from prunus.describe.read import describe
from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.forest import ArgminForest
from prunus.files import write_bytes
from prunus.render.page_forest import forest_record
from prunus.render.page_record import page_record

__all__ = ["export_html"]

_TITLES = {"classes": "Classification", "numbers": "Regression", "clusters": "Cluster"}
_SCRIPTS = (
    "data.js",
    "predict.js",
    "reasons.js",
    "sentences.js",
    "bars.js",
    "panel.js",
    "words.js",
    "charts.js",
    "boxes.js",
    "layout.js",
    "tree.js",
    "marks.js",
    "legend.js",
    "story.js",
    "picker.js",
    "sample.js",
    "forest.js",
    "curves.js",
    "help.js",
    "app.js",
)


def export_html(
    estimator: Any,
    path: str | os.PathLike[str],
    X: Any = None,  # noqa: N803
    y: Any = None,
    *,
    title: str | None = None,
) -> Path:
    """Write an interactive web page of a tree, or of the trees of a forest: one file that needs no network.

    In the page one can pan, zoom and collapse the tree, open a panel for each node, search for features, and pick or
    enter rows to see why they get their prediction: what each column added compared with a typical row, the path in
    sentences, and the sum that is the prediction. If leaves are additive, a panel draws the curves of the columns.

    In the page of a forest one chooses the tree that is shown. A row stays picked when another tree is chosen, and
    beside the prediction of the tree there is that of the forest. At most 32 trees are in the page, and fewer if they
    are very large.

    Parameters
    ----------
    estimator : a tree (ReadableTreeClassifier, ReadableTreeRegressor, ArgminTreeClassifier, ArgminTreeRegressor or \
ArgminTreeClusterer) or a forest (ArgminForestClassifier or ArgminForestRegressor)
        The fitted estimator.
    path : str or path
        The file; one that exists is replaced.
    X : table of shape (n, n_features_in_), optional
        Rows for the page: about 200 of them can be picked, boxes say how many arrive, and histograms show their values;
        in a tree of up to 16 leaves the boxes themselves contain histograms. The page contains some of these rows, so
        give it only to people who may see them.
    y : array-like of shape (n,) or (n, n_outputs), optional
        Classes or values of these rows, which color the histograms; without y, predictions do.
    title : str, optional
        The title of the page.

    Returns
    -------
    Path
        The path of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from prunus import ArgminTreeClassifier
    >>> tree = ArgminTreeClassifier(depth=1, max_epochs=20, random_state=0).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    >>> with TemporaryDirectory() as folder:
    ...     export_html(tree, Path(folder) / "tree.html").name
    'tree.html'
    """
    if y is not None and X is None:
        raise InputValueError("X must be given if y is, got y alone: y contains the classes or values of the rows of X")
    if title is not None and not isinstance(title, str):
        raise InputTypeError(f"title must be a string or None, got {title!r}")
    is_forest = isinstance(estimator, ArgminForest)
    record = forest_record(estimator, X, y) if is_forest else page_record(describe(estimator), X, y)
    style, script = _asset("style.css"), _script()
    page = _filled(
        {
            "title": html.escape(title or f"{_TITLES[record['task']]} {'forest' if is_forest else 'tree'}"),
            "version": html.escape(__version__),
            "policy": _policy(style, script),
            "style": style,
            "script": script,
            "record": _as_json(record),
        }
    )
    path = Path(path)
    write_bytes(path, page.encode(errors="backslashreplace"))  # lone surrogates, as JSON writes them
    return path


def _script() -> str:
    """All scripts as one: a function that shows a tree, so that it can be called again for another tree of a forest."""
    begin = ['(() => {\n"use strict";', _asset("book.js"), "const showTree = (number, kept) => {"]
    return "\n".join([*begin, *map(_asset, _SCRIPTS), "};\nshowTree(0, null);\n})();\n"])


def _policy(style: str, script: str) -> str:
    """The content security policy: only this style and this script, and nothing from elsewhere."""
    style_hash, script_hash = (b64encode(sha256(part.encode()).digest()).decode() for part in (style, script))
    return (
        f"default-src 'none'; script-src 'sha256-{script_hash}'; style-src 'sha256-{style_hash}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _filled(parts: dict[str, str]) -> str:
    """The page with all parts filled in; placeholders within a part are not replaced."""
    first, *others = _asset("page.html").split("{{")
    filled = [first]
    for other in others:
        name, rest = other.split("}}", 1)
        filled += [parts[name], rest]
    return "".join(filled)


def _as_json(record: dict[str, Any]) -> str:
    """The record as JSON, escaped so that no text in it ends the HTML element that contains it."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _asset(name: str) -> str:
    return (resources.files("prunus.render") / "page" / name).read_text(encoding="utf-8")
