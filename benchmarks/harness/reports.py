"""What reports are made of: tables in Markdown, means over seeds, versions, and bars that must be reached."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from benchmarks.harness.records import format_value

__all__ = [
    "Bar",
    "bold_largest",
    "format_bars",
    "format_mean",
    "format_report",
    "format_versions",
    "group_rows",
    "markdown_table",
    "mean_and_deviation",
    "wrap_paragraphs",
]


@dataclass(frozen=True)
class Bar:
    """A measured value and the limit that it must not cross."""

    claim: str
    value: float
    limit: float
    at_least: bool = False
    """Whether the limit is a lower one."""
    digits: int | None = None
    """Digits after the point in its text; by default the value has three digits in all."""

    @property
    def met(self) -> bool:
        """Whether the value is on the right side of the limit; a NaN is not."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        value = format_value(self.value) if self.digits is None else f"{self.value:.{self.digits}f}"
        limit = f"{self.limit:,g}" if self.digits is None else f"{self.limit:.{self.digits}f}"
        return f"{'met   ' if self.met else 'MISSED'}  {self.claim}: {value} (bar {sign} {limit})"


def format_bars(bars: Iterable[Bar]) -> str:
    """One line for each bar."""
    return "\n".join(map(str, bars))


def group_rows(rows: Sequence[Any], methods: Sequence[str]) -> list[list[Any]]:
    """The rows of all seeds of each set and method; sets in the order of their rows, methods in the order given."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        groups.setdefault((row.set, row.method), []).append(row)
    order = ((name, method) for name in dict.fromkeys(row.set for row in rows) for method in methods)
    return [groups[key] for key in order if key in groups]


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean, and standard deviation if there are several.

    >>> mean_and_deviation([1.0, 3.0])
    (2.0, 1.4142135623730951)
    """
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None


def format_mean(mean: float | None, deviation: float | None, digits: int, status: str) -> str:
    """A mean with its deviation, if it has one; the status, without its details, if there is no mean.

    >>> format_mean(0.5, 0.25, 2, "ok"), format_mean(None, None, 2, "failed: no rows")
    ('0.50 ± 0.25', 'failed')
    """
    if mean is None:
        return status.partition(":")[0]
    return f"{mean:.{digits}f}" if deviation is None else f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def bold_largest(cells: Sequence[str], competes: Sequence[bool] | None = None) -> list[str]:
    """The largest of the numbers that compete in bold, as far as its digits are shown.

    >>> bold_largest(["1.5 ± 0.1", "2.0", "OOT"])
    ['1.5 ± 0.1', '**2.0**', 'OOT']
    """
    competes = [True] * len(cells) if competes is None else competes
    scores = [
        float(cell.partition(" ")[0]) if cell[-1].isdigit() and can_win else None
        for cell, can_win in zip(cells, competes, strict=True)
    ]
    best = max((score for score in scores if score is not None), default=None)
    return [
        f"**{cell}**" if score is not None and score == best else cell
        for cell, score in zip(cells, scores, strict=True)
    ]


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]], *, rule: str = " --- ") -> str:
    """A table; numbers that are not texts have three digits.

    >>> print(markdown_table(["n", "ms"], [[1, 0.12345]]))
    | n | ms |
    | --- | --- |
    | 1 | 0.123 |
    """
    lines = [header, *([format_value(value) for value in row] for row in rows)]
    first, *others = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([first, f"|{'|'.join([rule] * len(header))}|", *others])


def format_versions(rows: Sequence[Any], methods: Sequence[str]) -> str:
    """Versions and trials of each method; more than one kind means that its cells are not of one state of the code."""
    found: dict[str, list[str]] = {method: [] for method in methods}
    for row in rows:
        state = f"{row.versions}, {row.trials} trials"
        if row.versions and state not in found[row.method]:
            found[row.method].append(state)
    lines = (
        f"- {method}: {'; '.join(kinds)}{' (cells of different states are mixed)' if len(kinds) > 1 else ''}"
        for method, kinds in found.items()
        if kinds
    )
    return "\n".join(lines)


def format_report(title: str, sections: Mapping[str, str], notes: str) -> str:
    """A whole file: sections under their headings, then the notes, which are written by hand."""
    parts = [f"# {title}", *(f"## {heading}\n\n{text}" if heading else text for heading, text in sections.items())]
    return "\n\n".join(part.strip() for part in [*parts, notes]) + "\n"


def wrap_paragraphs(text: str, width: int = 120) -> str:
    r"""Text whose paragraphs, but not tables, have lines of this width.

    >>> print(wrap_paragraphs("one\ntwo three\n\n| table |", 8))
    one two
    three
    <BLANKLINE>
    | table |
    """
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(part if part.startswith("|") else _filled(part, width) for part in paragraphs)


def _filled(paragraph: str, width: int) -> str:
    return fill(" ".join(paragraph.split()), width, break_long_words=False, break_on_hyphens=False)
