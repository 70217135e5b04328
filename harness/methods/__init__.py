"""The supervised methods that are compared, each under the interface of `interface.py`."""

import importlib
from typing import Any

__all__ = ["METHODS", "find_method"]

METHODS = {
    "prunus": "harness.methods.prunus_tree:PrunusTree",
    "prunus forest": "harness.methods.prunus_forest:PrunusForest",
    "CART": "harness.methods.cart:CART",
    "XGBoost": "harness.methods.boosting:XGBoost",
    "LightGBM": "harness.methods.boosting:LightGBM",
    "CatBoost": "harness.methods.catboost:CatBoost",
    "EBM": "harness.methods.ebm:EBM",
    "obliquetree": "harness.methods.oblique_tree:ObliqueTree",
    "GOSDT": "harness.methods.gosdt:GOSDT",
    "Optree": "harness.methods.streed:Optree",
    "Optree-MIP": "harness.methods.optree_mip:OptreeMIP",
    "Optree-LS": "harness.methods.optree_ls:OptreeLS",
    "DNDT": "harness.methods.dndt:DNDT",
    "NDF-1": "harness.methods.ndf:NDF",
    "ANT": "harness.methods.ant:ANT",
    "NODE": "harness.methods.node:NODE",
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
        if error.name is None or error.name.startswith("harness"):
            raise
        message = f"{name} needs the package {error.name}: pip install -e '.[experiments]'"
        raise ImportError(message) from error
