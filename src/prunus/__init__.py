"""prunus: binary decision trees learned by gradient descent."""

from typing import TYPE_CHECKING, Any

from prunus import nn, ops
from prunus.errors import PrunusError

if TYPE_CHECKING:
    from prunus.estimators import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor
    from prunus.explain import export_dict, export_graphviz, export_html, export_text, plot_tree, tree_summary
    from prunus.io import load, save
    from prunus.onnx import export_onnx

__all__ = [
    "ArgminTreeClassifier",
    "ArgminTreeClusterer",
    "ArgminTreeRegressor",
    "PrunusError",
    "__version__",
    "export_dict",
    "export_graphviz",
    "export_html",
    "export_onnx",
    "export_text",
    "load",
    "nn",
    "ops",
    "plot_tree",
    "save",
    "tree_summary",
]

__version__ = "0.2.0.dev0"

_ELSEWHERE = {
    "ArgminTreeClassifier": "prunus.estimators",
    "ArgminTreeClusterer": "prunus.estimators",
    "ArgminTreeRegressor": "prunus.estimators",
    "export_dict": "prunus.explain",
    "export_graphviz": "prunus.explain",
    "export_html": "prunus.explain",
    "export_onnx": "prunus.onnx",
    "export_text": "prunus.explain",
    "load": "prunus.io",
    "plot_tree": "prunus.explain",
    "save": "prunus.io",
    "tree_summary": "prunus.explain",
}
"""Public names that need more than torch: imported when first used, so that layers work with torch alone."""


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'prunus' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_ELSEWHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
