"""A small picture of a fitted tree, or of the first tree of a forest, for notebooks."""

from importlib import import_module
from typing import Any

__all__ = ["NotebookPicture"]


class NotebookPicture:
    """A mixin that adds the picture to scikit-learn's HTML of an estimator."""

    def _repr_html_inner(self) -> str:
        shown: str = super()._repr_html_inner()  # type: ignore[misc]
        if any(hasattr(self, learned) for learned in ("estimators_", "tree_", "record_")):
            # Pictures are drawn above estimators, which import nothing of them until one is shown.
            return shown + str(import_module("prunus.render.notebook").notebook_html(self))
        return shown

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return shown | {"text/html": self._repr_html_inner()} if "text/html" in shown else shown
