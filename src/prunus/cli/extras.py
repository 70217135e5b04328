"""Imports of optional packages, which only some commands need."""

from importlib import import_module
from typing import Any

from prunus.cli.mistakes import Mistake

__all__ = ["require"]


def require(module: str, extra: str) -> Any:
    """Import a module of an optional package; if it is missing, the error says how to install it.

    Parameters
    ----------
    module : str
        Name of the module.
    extra : str
        The extra of prunus that installs the package.

    Returns
    -------
    module

    Examples
    --------
    >>> require("json", "tables").dumps([])
    '[]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise Mistake(f"this needs {package}, which is not installed: pip install 'prunus[{extra}]'") from error
