"""Fields in quotes: they are left as they are while the text around them is prepared for pyarrow."""

import re

from prunus.cli.mistakes import Mistake

__all__ = ["check_quotes", "normalized"]

_QUOTED = r'"[^"]*(?:""[^"]*)*'
"""A field in quotes up to its closing quote."""
_SPACES = re.compile(rf'(?P<field>(?:^|(?<=[ \t])){_QUOTED}")|(?P<edge>^[ \t]+|[ \t]+$)|[ \t]+', re.MULTILINE)
"""Fields in quotes, spaces at the ends of lines, and spaces between fields."""


def normalized(text: str, separator: str) -> str:
    r"""Rewrite text for pyarrow: lines end in line feeds, one space separates fields, and none is before a quote.

    Examples
    --------
    >>> normalized('a, "x  y\r\nz"\r\n', ",")
    'a,"x  y\r\nz"\n'
    """
    text = _with_line_feeds(text, separator)
    if separator == " ":
        return _SPACES.sub(lambda found: found["field"] or ("" if found["edge"] else " "), text)
    return _fields(separator).sub(r"\1\2", text) if ' "' in text else text


def check_quotes(text: str, separator: str, file: str) -> None:
    """Raise an error that names the line if a field in quotes does not end."""
    for found in _fields(separator).finditer(text) if '"' in text else ():
        if not found[2]:
            line = text.count("\n", 0, found.start()) + 1
            raise Mistake(
                f"{file}, line {line}: a field in quotes must end with a quote, got none up to the end of the file; "
                "close it, or remove the quote"
            )


def _fields(separator: str) -> re.Pattern[str]:
    """Find fields in quotes, and the spaces before them: groups are the field and its closing quote, if any."""
    return re.compile(rf'(?:^|(?<={re.escape(separator)})) *({_QUOTED})("|\Z)', re.MULTILINE)


def _with_line_feeds(text: str, separator: str) -> str:
    if "\r" not in text:
        return text
    if '"' not in text:
        return text.replace("\r\n", "\n").replace("\r", "\n")
    pattern = rf'((?:\A|(?<=[\r\n{re.escape(separator)}])) *{_QUOTED}")|\r\n?'
    return re.sub(pattern, lambda found: found[1] or "\n", text)
