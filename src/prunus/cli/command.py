"""What all subcommands share: common options, their result, and how they report progress."""

import argparse
import math
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

__all__ = ["Outcome", "Parser", "common_options", "plain", "say"]

LONGEST = 80
"""An error quotes at most this many characters of an argument."""


@dataclass(frozen=True)
class Outcome:
    """The result of a command.

    Parameters
    ----------
    record : dict
        The result for programs, printed with --json.
    text : str
        The result for people.
    """

    record: dict[str, Any]
    text: str


class Parser(argparse.ArgumentParser):
    """A parser that describes wrong arguments in one line."""

    def error(self, message: str) -> NoReturn:
        """Write the line and exit with code 2."""
        words = (word if len(word) <= LONGEST else f"{word[:LONGEST]}..." for word in message.split())
        self.exit(2, f"{self.prog}: error: {' '.join(words)}; see `{self.prog} --help`\n")


def common_options() -> Parser:
    """Make a parser with the options that every command has."""
    parser = Parser(add_help=False)
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object, for programs")
    parser.add_argument("--quiet", action="store_true", help="report no progress on stderr")
    parser.add_argument("--traceback", action="store_true", help="show where in the code an error was raised")
    return parser


def say(options: argparse.Namespace, text: str) -> None:
    """Write a line of progress to stderr, unless --quiet was given."""
    if not options.quiet:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def plain(value: Any) -> Any:
    """Convert a value to the types of JSON; NaN and infinity become None.

    Examples
    --------
    >>> plain({"r2": float("nan"), "classes": ("a", "b")})
    {'r2': None, 'classes': ['a', 'b']}
    """
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if hasattr(value, "tolist"):  # arrays and scalars of numpy
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
