"""The supervised methods that are compared, each under the interface of `interface.py`.

A method is imported when it is looked up, so that a missing package only fails where it is used.
"""

import importlib
from collections.abc import Iterator, Mapping

from harness.methods.interface import Method

__all__ = ["METHODS", "place_of"]


class LazyTable(Mapping[str, type[Method]]):
    """Classes by name, imported at first use from the places ``module:class`` in this folder.

    >>> table = LazyTable({"CART": "cart:CART"})
    >>> list(table), table["CART"].__name__
    (['CART'], 'CART')
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self.places = {name: f"{__name__}.{place}" for name, place in places.items()}

    def __getitem__(self, name: str) -> type[Method]:
        module, _, attribute = self.places[name].partition(":")
        try:
            found: type[Method] = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("harness"):
                raise
            message = f"{name} needs the package {error.name}: pip install -e '.[experiments]'"
            raise ImportError(message) from error
        return found

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


METHODS = LazyTable(
    {
        "prunus": "prunus_tree:PrunusTree",
        "CART": "cart:CART",
        "XGBoost": "boosting:XGBoost",
        "LightGBM": "boosting:LightGBM",
        "GOSDT": "gosdt:GOSDT",
        "Optree": "streed:Optree",
        "Optree-MIP": "optree_mip:OptreeMIP",
        "Optree-LS": "optree_ls:OptreeLS",
        "DNDT": "dndt:DNDT",
        "NDF-1": "ndf:NDF",
        "ANT": "ant:ANT",
        "NODE": "node:NODE",
    }
)


def place_of(name: str) -> str:
    """Where the class of a method is, as ``module:class``; such a place may also be given itself.

    >>> place_of("CART")
    'harness.methods.cart:CART'
    """
    return METHODS.places.get(name, name)
