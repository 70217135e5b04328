"""The methods of the paper's tables, each under the interface of `interface.py`.

A method is imported when it is looked up, so that a missing package only fails where it is used.
"""

import importlib
from collections.abc import Iterator, Mapping

from experiments.rivals.interface import Rival

__all__ = ["RIVALS"]


class LazyTable(Mapping[str, type[Rival]]):
    """Classes by name, imported at first use from the places ``module:class`` in this folder.

    >>> table = LazyTable({"CART": "cart:CART"})
    >>> list(table), table["CART"].__name__
    (['CART'], 'CART')
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)

    def __getitem__(self, name: str) -> type[Rival]:
        module, _, attribute = self._places[name].partition(":")
        try:
            found: type[Rival] = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("experiments"):
                raise
            message = f"{name} needs the package {error.name}: pip install -e '.[experiments]'"
            raise ImportError(message) from error
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


RIVALS: Mapping[str, type[Rival]] = LazyTable(
    {
        "Ours": "prunus_tree:PrunusTree",
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
"""Method by its name in the tables."""
