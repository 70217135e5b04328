"""Names in written code that are unique and short, and sums that fit in lines."""

from collections.abc import Callable, Iterable, Sequence

__all__ = ["Names", "sum_lines"]

LONGEST = 48
"""Number of bytes of a name before a number is added; PostgreSQL cuts names that are longer than 63."""
WIDTH = 100
"""Number of characters of a line of a sum."""
MOST = 50
"""Number of terms of a sum without parentheses: parsers nest terms, and a thousand would be too many for some."""


class Names:
    """Gives each variable a name of its own, which differs from others by more than the case of its letters.

    Parameters
    ----------
    clean : callable
        Makes a name of any text that is allowed in the language.
    taken : iterable of str
        Names that are used already.

    Examples
    --------
    >>> names = Names(str.strip, ["Leaf"])
    >>> names.new("leaf"), names.new(" size"), names.new("size")
    ('leaf 2', 'size', 'size 2')
    """

    def __init__(self, clean: Callable[[str], str], taken: Iterable[str] = ()) -> None:
        self._clean = clean
        self._taken = {name.casefold() for name in taken}

    def new(self, text: str) -> str:
        """A name that resembles the text."""
        short = text
        while len(short.encode("utf-8", "surrogatepass")) > LONGEST:
            short = short[:-1]
        name, count = self._clean(short), 1
        while name.casefold() in self._taken:
            count += 1
            name = self._clean(f"{short} {count}")
        self._taken.add(name.casefold())
        return name


def sum_lines(parts: Sequence[tuple[float, str]], factor: Callable[[float], str]) -> list[str]:
    """A sum in lines; a part is a weight and what it is multiplied by, or a weight alone if that is empty.

    Examples
    --------
    >>> sum_lines([(2.5, ""), (-1.0, "rooms"), (0.5, "age")], repr)
    ['2.5 - rooms + 0.5 * age']
    """
    if len(parts) > MOST:
        size = -(-len(parts) // MOST) if len(parts) > MOST**2 else MOST
        groups = [sum_lines(parts[i : i + size], factor) for i in range(0, len(parts), size)]
        return [
            line
            for g, group in enumerate(groups)
            for line in (["(" if g == 0 else "+ ("] + [f"    {line}" for line in group] + [")"])
        ]
    lines = [""]
    for i, (weight, what) in enumerate(parts):
        sign = ("-" if weight < 0 else "") if i == 0 else ("- " if weight < 0 else "+ ")
        size_of = abs(weight)
        term = what if what and size_of == 1 else f"{factor(size_of)} * {what}" if what else factor(size_of)
        if lines[-1] and len(lines[-1]) + len(sign) + len(term) + 1 > WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + sign + term
    return lines if parts else [factor(0.0)]
