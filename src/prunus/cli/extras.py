"""Packages that only some commands need."""

from importlib import import_module
from typing import Any

from prunus.cli.mistakes import Mistake

__all__ = ["require"]


def require(module: str, extra: str) -> Any:
    """Import a module of an optional package, or say how to get it.

    >>> require("json", "tables").dumps([])
    '[]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise Mistake(f"this needs {package}, which is not installed: pip install 'prunus[{extra}]'") from error
