"""Errors on the command line: one line each, and an exit code."""

from prunus.errors import PrunusError

__all__ = ["Interrupted", "Mistake", "describe", "exit_code"]


class Mistake(PrunusError, ValueError):  # noqa: N818
    """Files or options that cannot be used; the message names what and the cure."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a message that says what is left and how to go on."""


def exit_code(error: BaseException) -> int:
    """1 is for the user to mend, 3 for us."""
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 1 if isinstance(error, (PrunusError, OSError, ValueError)) else 3


def describe(error: BaseException) -> str:
    """An error in one line.

    >>> describe(FileNotFoundError(2, "No such file or directory", "table.csv"))
    'table.csv: No such file or directory'
    """
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "interrupted"
    text = " ".join(" ".join([str(error), *getattr(error, "__notes__", [])]).split())
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    if exit_code(error) == 1:
        return text
    return f"an error in prunus, please report it with what --traceback shows: {type(error).__name__}: {text}"
