"""Tables and paragraphs in Markdown."""

from collections.abc import Sequence
from textwrap import fill

from benchmarks.records import shown

__all__ = ["markdown_table", "wrapped"]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; numbers have three digits.

    >>> print(markdown_table(["n", "ms"], [[1, 0.12345]]))
    | n | ms |
    |---|---|
    | 1 | 0.123 |
    """
    lines = [header, *([shown(value) for value in row] for row in rows)]
    text = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(header), *text[1:]])


def wrapped(text: str, width: int = 120) -> str:
    r"""Text whose paragraphs, but not tables, have lines of this width.

    >>> print(wrapped("one\ntwo three\n\n| table |", 8))
    one two
    three
    <BLANKLINE>
    | table |
    """
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(part if part.startswith("|") else _filled(part, width) for part in paragraphs)


def _filled(paragraph: str, width: int) -> str:
    return fill(" ".join(paragraph.split()), width, break_long_words=False, break_on_hyphens=False)
