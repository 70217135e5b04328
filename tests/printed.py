"""Examples in Markdown, and what they print, compared as a reader would."""

import re
from itertools import zip_longest
from pathlib import Path

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
CLOSE = 0.1  # results of training differ a little between machines
TIMES = re.compile(r"\d+(?:\.\d+)? s\b")


BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def blocks(page: Path, kind: str) -> list[tuple[str, str]]:
    """Code of a kind, such as python, and the print that is shown right below it; empty if none is."""
    return [(code, shown) for name, code, shown in BLOCK.findall(page.read_text(encoding="utf-8")) if name == kind]


def same_print(printed: str, shown: str, close: float = CLOSE) -> bool:
    """Whether the words are the same, and the numbers about.

    >>> same_print("accuracy 0.952, in 3 s", "accuracy 0.958, in 2.1 s")
    True
    >>> same_print("accuracy 0.5", "accuracy 0.9")
    False
    """
    printed, shown = (TIMES.sub("some s", text) for text in (printed, shown))
    if NUMBER.sub("#", printed) != NUMBER.sub("#", shown):
        return False
    pairs = zip_longest(NUMBER.findall(printed), NUMBER.findall(shown))
    return all(abs(float(a) - float(b)) <= close * max(abs(float(a)), abs(float(b))) + 1e-9 for a, b in pairs)
