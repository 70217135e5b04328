"""Plain text with aligned columns and rounded numbers."""

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["number", "pairs", "quoted", "shortened", "table"]


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
    """A value in quotes, and of a long one only the beginning.

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
