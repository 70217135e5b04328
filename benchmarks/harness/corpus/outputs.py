"""What a fitted estimator gives: its predictions, and every text and file that is made of it."""

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import prunus
from benchmarks.harness.corpus.files import as_json, onnx_text, saved_texts
from prunus.data import FileTable

__all__ = ["Fitted", "Outputs", "outputs_of"]

Outputs = dict[str, npt.NDArray[Any] | str]
"""Arrays and texts by the names of their files."""

METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "apply", "transform")
ATTRIBUTES = (
    *("feature_importances_", "node_mass_", "kept_nodes_", "labels_", "children_", "distances_"),
    *("oob_prediction_", "oob_decision_function_", "oob_score_"),
)
PAGE_RECORD = re.compile(r'<script type="application/json" id="record">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator, and rows that it has not seen."""

    estimator: Any
    X: Any
    y: Any
    files: FileTable | None = None
    """The rows of the fit, if they lie in files."""


def outputs_of(fitted: Fitted, folder: Path) -> Outputs:
    """All that a fitted estimator gives; files that are read again are written into the folder."""
    estimator = fitted.estimator
    found: Outputs = {**_predictions(fitted), **_texts(fitted, folder)}
    for k, tree in enumerate(getattr(estimator, "estimators_", ())[:2]):
        found |= {f"tree{k}_text.txt": prunus.export_text(tree), f"tree{k}.json": as_json(prunus.export_dict(tree))}
    return found | _saved(fitted, folder)


def _predictions(fitted: Fitted) -> Outputs:
    """Of every method that takes rows, also along one path where there is a choice, and arrays of the fit."""
    estimator = fitted.estimator
    found: Outputs = {}
    for name in METHODS:
        if not hasattr(estimator, name):
            continue
        method = getattr(estimator, name)
        found[f"{name}.npy"] = method(fitted.X)
        if "hard" in inspect.signature(method).parameters:
            found[f"{name}_hard.npy"] = method(fitted.X, hard=True)
        if fitted.files is not None:
            found[f"{name}_files.npy"] = method(fitted.files)
    if hasattr(estimator, "predict_quantiles"):
        found["predict_quantiles.npy"] = estimator.predict_quantiles(fitted.X, [0.1, 0.5, 0.9])
    if hasattr(estimator, "linkage_matrix"):
        found |= {"linkage.npy": estimator.linkage_matrix(), "cut.npy": estimator.cut(1, fitted.X)}
        found["score.npy"] = np.asarray(estimator.score(fitted.X))
    of_fit = [name for name in ATTRIBUTES if hasattr(estimator, name)]
    return found | {f"{name}.npy": np.asarray(getattr(estimator, name)) for name in of_fit}


def _texts(fitted: Fitted, folder: Path) -> Outputs:
    """Every export, or the error that refuses it."""
    estimator, three_rows = fitted.estimator, fitted.X[:3]
    hard: dict[str, Any] = {"hard": True, "proba": hasattr(estimator, "predict_proba")}

    def explained(tell: Callable[[Any], str]) -> str:
        return "\n".join(map(tell, prunus.explain_rows(estimator, three_rows)))

    exports: dict[str, Callable[[], str]] = {
        "dict.json": lambda: as_json(prunus.export_dict(estimator)),
        "text.txt": lambda: prunus.export_text(estimator, show_weights=True),
        "rules.txt": lambda: prunus.export_rules(estimator),
        "graphviz.txt": lambda: str(prunus.export_graphviz(estimator)),
        "sql.txt": lambda: prunus.export_sql(estimator, "rows"),
        "sql_hard.txt": lambda: prunus.export_sql(estimator, "rows", **hard),
        "python.txt": lambda: prunus.export_python(estimator),
        "python_hard.txt": lambda: prunus.export_python(estimator, **hard),
        "onnx.txt": lambda: onnx_text(estimator, folder),
        "explain.txt": lambda: explained(lambda row: row.text()),
        "explain.json": lambda: explained(lambda row: as_json(row.to_dict())),
        "page.json": lambda: _page(fitted, folder),
        "page_alone.json": lambda: _page(fitted, folder, with_rows=False),
    }
    return {name: _or_error(export).replace(prunus.__version__, "VERSION") for name, export in exports.items()}


def _or_error(export: Callable[[], str]) -> str:
    try:
        return export()
    except Exception as error:  # it is compared as well
        return _words(error)


def _saved(fitted: Fitted, folder: Path) -> Outputs:
    """The content of the model file, and whether the model that is loaded from it predicts the same."""
    path = folder / "model.prunus"
    try:
        found: Outputs = {**saved_texts(fitted.estimator, path)}
    except prunus.PrunusError as error:
        return {"saved.json": _words(error)}
    same = np.array_equal(prunus.load(path).predict(fitted.X), fitted.estimator.predict(fitted.X))
    return found | {"loaded.txt": f"the loaded model predicts {'the same' if same else 'something else'}\n"}


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}\n"


def _page(fitted: Fitted, folder: Path, *, with_rows: bool = True) -> str:
    """The data of the page, without its scripts."""
    rows = (fitted.X, fitted.y) if with_rows else ()
    page = prunus.export_html(fitted.estimator, folder / "page.html", *rows).read_text(encoding="utf-8")
    record = PAGE_RECORD.search(page)
    assert record is not None
    return as_json(json.loads(record[1]))
