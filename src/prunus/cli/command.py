"""What all subcommands share: common options, their result, plain text, and how they report progress."""

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

__all__ = [
    "Outcome",
    "Parser",
    "common_options",
    "flag",
    "model_argument",
    "number",
    "pairs",
    "plain",
    "quoted",
    "repeated",
    "say",
    "shortened",
    "table",
    "table_argument",
    "value",
]

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
    flag(parser, "--json", "print the result as one JSON object, for programs")
    flag(parser, "--quiet", "report no progress on stderr")
    flag(parser, "--traceback", "show where in the code an error was raised")
    return parser


def flag(parser: Any, name: str, words: str) -> None:
    """Add an option that is given or not."""
    parser.add_argument(name, action="store_true", help=words)


def value(parser: Any, name: str, metavar: str, words: str, **settings: Any) -> None:
    """Add an argument or an option that has a value."""
    parser.add_argument(name, metavar=metavar, help=words, **settings)


def repeated(parser: Any, name: str, metavar: str, words: str) -> None:
    """Add an option that can be given more than once; its value is a list."""
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=words)


def model_argument(parser: Any) -> None:
    """Add the model that a command uses."""
    value(parser, "model", "MODEL", "a file that `prunus fit` or `prunus cluster` wrote")


def table_argument(parser: Any) -> None:
    """Add the one table that a command reads."""
    value(parser, "data", "DATA", "a table: CSV, Parquet or Feather; - is stdin", nargs="?", default="-")


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


def pairs(entries: Iterable[tuple[str, Any]]) -> str:
    """Format names and values, a pair in a line; a name that is repeated is written only once.

    Examples
    --------
    >>> print(pairs([("rows", 3), ("accuracy", 0.98765)]))
    rows      3
    accuracy  0.9877
    """
    rows = [(name, number(value)) for name, value in entries]
    width = max((len(name) for name, _ in rows), default=0)
    lines, before = [], ""
    for name, value in rows:
        lines.append(f"{'' if name == before else name:<{width}}  {value}".rstrip())
        before = name
    return "\n".join(lines)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format a table; text is aligned to the left and numbers to the right.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : iterable of sequences
        The cells of each row, as many as there are columns.

    Returns
    -------
    str

    Examples
    --------
    >>> print(table(["tree", "leaves"], [["CART", 12], ["prunus", 7]]))
    tree    leaves
    CART        12
    prunus       7
    """
    given = [list(row) for row in rows]
    is_numeric = [all(isinstance(row[i], (int, float)) for row in given) for i in range(len(header))]
    cells = [list(header), *([number(cell) for cell in row] for row in given)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            f"{cell:>{width}}" if numeric else f"{cell:<{width}}"
            for cell, width, numeric in zip(row, widths, is_numeric, strict=True)
        ).rstrip()
        for row in cells
    )


def number(value: Any) -> str:
    """Format a value; a float gets four digits.

    Examples
    --------
    >>> number(0.123456), number(1234567), number("text")
    ('0.1235', '1234567', 'text')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def quoted(value: Any, most: int = 80) -> str:
    """A value in quotes; a long one is cut.

    Examples
    --------
    >>> quoted(1), quoted("a" * 100, most=5)
    ("'1'", "'aaaaa...'")
    """
    text = str(value)
    return repr(text if len(text) <= most else f"{text[:most]}...")


def shortened(names: Sequence[Any], most: int = 6) -> str:
    """Format the first few names in quotes, and say how many more there are.

    Examples
    --------
    >>> shortened(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = ", ".join(quoted(name) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"
