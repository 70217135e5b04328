"""The supervised methods that are compared, each under the interface of `interface.py`."""

import importlib
from typing import Any

__all__ = ["METHODS", "find_method"]

METHODS = {
    "prunus": "benchmarks.harness.methods.prunus_tree:PrunusTree",
    "prunus forest": "benchmarks.harness.methods.prunus_forest:PrunusForest",
    "CART": "benchmarks.harness.methods.cart:CART",
    "XGBoost": "benchmarks.harness.methods.boosting:XGBoost",
    "LightGBM": "benchmarks.harness.methods.boosting:LightGBM",
    "CatBoost": "benchmarks.harness.methods.catboost:CatBoost",
    "EBM": "benchmarks.harness.methods.ebm:EBM",
    "obliquetree": "benchmarks.harness.methods.oblique_tree:ObliqueTree",
    "GOSDT": "benchmarks.harness.methods.gosdt:GOSDT",
    "Optree": "benchmarks.harness.methods.streed:Optree",
    "Optree-MIP": "benchmarks.harness.methods.optree_mip:OptreeMIP",
    "Optree-LS": "benchmarks.harness.methods.optree_ls:OptreeLS",
    "DNDT": "benchmarks.harness.methods.dndt:DNDT",
    "NDF-1": "benchmarks.harness.methods.ndf:NDF",
    "ANT": "benchmarks.harness.methods.ant:ANT",
    "NODE": "benchmarks.harness.methods.node:NODE",
}
"""Where the class of each method is; it is imported when it is looked up, as some need packages of their own."""


def find_method(name: str) -> Any:
    """The class of a method, by its name in METHODS or by its place, ``module:class``.

    >>> find_method("CART").__name__
    'CART'
    """
    module, _, attribute = METHODS.get(name, name).partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("benchmarks"):
            raise
        message = f"{name} needs the package {error.name}: pip install -e '.[bench]'"
        raise ImportError(message) from error
