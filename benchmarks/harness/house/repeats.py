"""Code that is written twice."""

from collections.abc import Sequence
from itertools import combinations

from benchmarks.harness.house.sources import Module, Place, code_lines

__all__ = ["LINES", "find_repeats"]

LINES = 6
"""This many lines of code, one after the other, are a repeat."""


def find_repeats(modules: Sequence[Module], lines: int = LINES) -> list[Place]:
    """Pairs of places that share this many lines of code or more, wherever they are; each pair is at its first place.

    Lines are compared without indentation, comments, docstrings, imports and blank lines, which do not separate lines
    either. A pair reaches as far as its lines are the same, and counts once. What is written three times makes three
    pairs. Two places in one module may not overlap.
    """
    code = {module.name: code_lines(module, with_imports=False) for module in modules}
    texts = {name: [line.text for line in found] for name, found in code.items()}
    starts = _starts(texts, lines)
    found = []
    for name, i, other, j in starts:
        if (name, i - 1, other, j - 1) not in starts:
            more = 0
            while (name, i + more + 1, other, j + more + 1) in starts:
                more += 1
            text = f"{lines + more} lines as in {other}:{code[other][j].number}"
            found.append(Place(name, code[name][i].number, text))
    return found


def _starts(texts: dict[str, list[str]], lines: int) -> set[tuple[str, int, str, int]]:
    """Pairs of modules and positions at which this many lines are the same, the earlier one first."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for name, text in texts.items():
        for i in range(len(text) - lines + 1):
            places.setdefault(tuple(text[i : i + lines]), []).append((name, i))
    pairs = (pair for same in places.values() for pair in combinations(same, 2))
    return {(name, i, other, j) for (name, i), (other, j) in pairs if name != other or j - i >= lines}
