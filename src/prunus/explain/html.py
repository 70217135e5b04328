"""The tree as a page that opens in a browser."""

import html
import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

from prunus import __version__
from prunus.errors import InputValueError
from prunus.explain.page_record import page_record

__all__ = ["export_html"]

_TITLES = {"classes": "Classification tree", "values": "Regression tree", "clusters": "Cluster tree"}
_SCRIPTS = ("data.js", "predict.js", "panel.js", "layout.js", "tree.js", "sample.js", "app.js")


def export_html(
    estimator: Any,
    path: str | os.PathLike[str],
    X: Any = None,  # noqa: N803
    y: Any = None,
    *,
    title: str | None = None,
) -> Path:
    """Write a page with the tree to explore: one file that needs no network.

    The page has the tree to pan, zoom and collapse, a panel for each node, a search for features, and samples to pick
    or to enter, with their path and prediction.

    Parameters
    ----------
    estimator : ArgminTreeClassifier, ArgminTreeRegressor or ArgminTreeClusterer
    path : str or path
        The file; one that exists is replaced.
    X : table of shape (n, n_features_in_), optional
        Rows to pick, and to count the scores of. The page holds some of them: mind who may see them.
    y : array-like of shape (n,) or (n, n_outputs), optional
        Their classes or values.
    title : str, optional

    Returns
    -------
    Path

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
        raise InputValueError("X must be given with y: y tells the classes or values of its rows")
    if y is not None and len(y) != len(X):
        raise InputValueError(f"y must have a value for each of the {len(X)} rows of X, got {len(y)}")
    record = page_record(estimator, X, y)
    page = _filled(
        {
            "title": html.escape(title or _TITLES[record["task"]]),
            "version": html.escape(__version__),
            "style": _asset("style.css"),
            "script": "\n".join(_asset(name) for name in _SCRIPTS),
            "record": _as_json(record),
        }
    )
    path = Path(path)
    path.write_text(page, encoding="utf-8")
    return path


def _filled(parts: dict[str, str]) -> str:
    """The page, each part filled in once: what is in a part stays as it is."""
    first, *others = _asset("page.html").split("{{")
    filled = [first]
    for other in others:
        name, rest = other.split("}}", 1)
        filled += [parts[name], rest]
    return "".join(filled)


def _as_json(record: dict[str, Any]) -> str:
    """No text in it can end the element that it is in."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _asset(name: str) -> str:
    return (resources.files("prunus.explain") / "page" / name).read_text(encoding="utf-8")
