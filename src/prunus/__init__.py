"""prunus: binary decision trees learned by gradient descent."""

from typing import TYPE_CHECKING, Any

from prunus.errors import PrunusError

if TYPE_CHECKING:
    from prunus import nn, ops
    from prunus.describe import explain_rows, tree_summary
    from prunus.estimators import (
        ArgminForestClassifier,
        ArgminForestRegressor,
        ArgminTreeClassifier,
        ArgminTreeClusterer,
        ArgminTreeRegressor,
        ReadableTreeClassifier,
        ReadableTreeRegressor,
    )
    from prunus.fitting.training_options import TrainingOptions
    from prunus.io import load, save
    from prunus.onnx import export_onnx
    from prunus.render import (
        export_dict,
        export_graphviz,
        export_html,
        export_python,
        export_rules,
        export_sql,
        export_text,
        plot_curves,
        plot_family,
        plot_tree,
    )

__all__ = [
    "ArgminForestClassifier",
    "ArgminForestRegressor",
    "ArgminTreeClassifier",
    "ArgminTreeClusterer",
    "ArgminTreeRegressor",
    "PrunusError",
    "ReadableTreeClassifier",
    "ReadableTreeRegressor",
    "TrainingOptions",
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
    "TrainingOptions": "prunus.fitting.training_options",
    "explain_rows": "prunus.describe",
    "export_dict": "prunus.render",
    "export_graphviz": "prunus.render",
    "export_html": "prunus.render",
    "export_onnx": "prunus.onnx",
    "export_python": "prunus.render",
    "export_rules": "prunus.render",
    "export_sql": "prunus.render",
    "export_text": "prunus.render",
    "load": "prunus.io",
    "plot_curves": "prunus.render",
    "plot_family": "prunus.render",
    "plot_tree": "prunus.render",
    "save": "prunus.io",
    "tree_summary": "prunus.describe",
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
