"""Errors on the command line: each becomes one line on stderr and an exit code."""

import re
from importlib import import_module
from typing import Any

from prunus.errors import PrunusError

__all__ = ["CliError", "Interrupted", "ProcessFailure", "describe", "exit_code", "require", "was_interrupted"]

_PARAMETER = re.compile(r"The '(\w+)' parameter of \w+ must be (.*)\. Got (.*) instead\.")
_IN_PYTHON_ONLY = re.compile(r" or (a str among \{'auto'\}|None)")
_OPTIONS = {"random_state": "seed"}
"""Parameters of the estimators that have another name on the command line."""


class CliError(PrunusError, ValueError):
    """A file or an option cannot be used; the message says why and what to do."""


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C; the message says what was saved and how to continue."""


class ProcessFailure(Exception):  # noqa: N818
    """A process that was started to help has failed.

    Parameters
    ----------
    text : str
        Its error, as `describe` put it there.
    code : int
        Its exit code.
    """

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is the cause of an error, which libraries may replace by another one."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or was_interrupted(error.__context__))


def exit_code(error: BaseException) -> int:
    """Return the exit code: 1 if the user can correct the error, 3 if it is an error in prunus, 130 for Ctrl-C."""
    if was_interrupted(error):
        return 130
    if isinstance(error, ProcessFailure):
        return error.code
    return 1 if isinstance(error, (PrunusError, OSError, ValueError)) else 3


def describe(error: BaseException) -> str:
    """Describe an error in one line.

    Examples
    --------
    >>> describe(FileNotFoundError(2, "No such file or directory", "table.csv"))
    'table.csv: No such file or directory'
    >>> describe(ValueError("The 'depth' parameter of Tree must be an int in the range [0, 12]. Got 13 instead."))
    '--depth must be an int in the range [0, 12], got 13'
    """
    if was_interrupted(error):
        return str(error) if isinstance(error, Interrupted) else "interrupted"
    text = " ".join(" ".join([str(error), *getattr(error, "__notes__", [])]).split())
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    if exit_code(error) == 1 or isinstance(error, ProcessFailure):
        return _PARAMETER.sub(_as_option, text)
    return f"an error in prunus, please report it with what --traceback shows: {type(error).__name__}: {text}"


def _as_option(found: re.Match[str]) -> str:
    """The words of scikit-learn for a parameter, in those for an option."""
    name = _OPTIONS.get(found[1], found[1]).replace("_", "-")
    return f"--{name} must be {_IN_PYTHON_ONLY.sub('', found[2])}, got {found[3]}"


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
        raise CliError(f"this needs {package}, which is not installed: pip install 'prunus[{extra}]'") from error
