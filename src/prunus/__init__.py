"""prunus: binary decision trees learned by gradient descent."""

from typing import TYPE_CHECKING, Any

from prunus.errors import PrunusError

if TYPE_CHECKING:
    from prunus import nn, ops
    from prunus.code import export_python, export_sql
    from prunus.estimators import (
        ArgminForestClassifier,
        ArgminForestRegressor,
        ArgminTreeClassifier,
        ArgminTreeClusterer,
        ArgminTreeRegressor,
        ReadableTreeClassifier,
        ReadableTreeRegressor,
    )
    from prunus.explain import (
        explain_rows,
        export_dict,
        export_graphviz,
        export_html,
        export_rules,
        export_text,
        plot_curves,
        plot_family,
        plot_tree,
        tree_summary,
    )
    from prunus.io import load, save
    from prunus.onnx import export_onnx

__all__ = [
    "ArgminForestClassifier",
    "ArgminForestRegressor",
    "ArgminTreeClassifier",
    "ArgminTreeClusterer",
    "ArgminTreeRegressor",
    "PrunusError",
    "ReadableTreeClassifier",
    "ReadableTreeRegressor",
    "__version__",
    "explain_rows",
    "export_dict",
    "export_graphviz",
    "export_html",
    "export_onnx",
    "export_python",
    "export_rules",
    "export_sql",
    "export_text",
    "load",
    "nn",
    "ops",
    "plot_curves",
    "plot_family",
    "plot_tree",
    "save",
    "tree_summary",
]

__version__ = "0.2.0.dev0"

_ELSEWHERE = {
    "ArgminForestClassifier": "prunus.estimators",
    "ArgminForestRegressor": "prunus.estimators",
    "ArgminTreeClassifier": "prunus.estimators",
    "ArgminTreeClusterer": "prunus.estimators",
    "ArgminTreeRegressor": "prunus.estimators",
    "ReadableTreeClassifier": "prunus.estimators",
    "ReadableTreeRegressor": "prunus.estimators",
    "explain_rows": "prunus.explain",
    "export_dict": "prunus.explain",
    "export_graphviz": "prunus.explain",
    "export_html": "prunus.explain",
    "export_onnx": "prunus.onnx",
    "export_python": "prunus.code",
    "export_rules": "prunus.explain",
    "export_sql": "prunus.code",
    "export_text": "prunus.explain",
    "load": "prunus.io",
    "plot_curves": "prunus.explain",
    "plot_family": "prunus.explain",
    "plot_tree": "prunus.explain",
    "save": "prunus.io",
    "tree_summary": "prunus.explain",
}
"""Public names, and the modules that hold them."""
_MODULES = ("nn", "ops")


def __getattr__(name: str) -> Any:
    """Import what is used first: layers work with torch alone, and the command's help without it."""
    if name not in _ELSEWHERE and name not in _MODULES:
        raise AttributeError(f"module 'prunus' has no attribute {name!r}")
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"prunus.{name}")
    return getattr(import_module(_ELSEWHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
