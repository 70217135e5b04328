"""A small picture of a fitted tree, or of the first tree of a forest, in scikit-learn's HTML of an estimator."""

from importlib import import_module
from typing import Any

from prunus.estimators.scikit_learn import BaseEstimator

__all__ = ["html_with_picture", "mimebundle_with_picture"]


def html_with_picture(self: Any) -> str:
    """The method `_repr_html_inner` of estimators: what scikit-learn shows, and the picture."""
    shown: str = BaseEstimator._repr_html_inner(self)
    if any(hasattr(self, learned) for learned in ("estimators_", "tree_", "record_")):
        # Pictures are drawn above estimators, which import nothing of them until one is shown.
        return shown + str(import_module("prunus.render.notebook").notebook_html(self))
    return shown


def mimebundle_with_picture(self: Any, **options: Any) -> dict[str, str]:
    """The method `_repr_mimebundle_` of estimators."""
    shown: dict[str, str] = BaseEstimator._repr_mimebundle_(self, **options)
    return shown | {"text/html": html_with_picture(self)} if "text/html" in shown else shown
