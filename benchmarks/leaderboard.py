"""The standings as Markdown."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Protocol

from benchmarks.bars import Bar
from benchmarks.cells import Row
from benchmarks.published import PUBLISHED
from benchmarks.spaces import METHODS
from benchmarks.standings import CHOSEN, Standing, mean_of_sets

__all__ = ["bold", "format_accuracy_bars", "format_leaderboard", "format_report", "format_versions"]


class Measured(Protocol):
    """A row of results, as far as versions go."""

    @property
    def method(self) -> str:
        """Its name."""

    @property
    def trials(self) -> int:
        """Configurations that it tried."""

    @property
    def versions(self) -> str:
        """Of what it depends on."""


_PUBLISHED_NAMES = ["RADDT (published)", "RADDT-Linear (published)", "XGBoost (published)"]
_TITLES = {"regression": "Regression: test R^2 in %", "classification": "Classification: test accuracy in %"}


def format_report(rows: Sequence[Row], stands: Sequence[Standing], bars: Sequence[Bar], notes: str) -> str:
    """The whole file: tables, bars, versions, and the notes, which are written by hand."""
    verdict = format_accuracy_bars(bars) if bars else "Not judged: cells are missing."
    parts = [
        "# Accuracy",
        "Written by `make bench-accuracy`; the notes at the end come from `accuracy_notes.md`.",
        format_leaderboard(stands),
        f"## Bars\n\n```\n{verdict}\n```",
        f"## Versions\n\n{format_versions(rows, METHODS)}",
        notes,
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def format_leaderboard(stands: Sequence[Standing]) -> str:
    """A table for each task: a line for each set, a column for each method."""
    tasks = [task for task in _TITLES if any(stand.task == task for stand in stands)]
    return "\n\n".join(f"## {_TITLES[task]}\n\n{_table(stands, task)}" for task in tasks)


def format_accuracy_bars(bars: Iterable[Bar]) -> str:
    """One line for each bar, to the second digit after the point: `str` of a bar has three digits in all."""
    return "\n".join(
        f"{'met   ' if bar.met else 'MISSED'}  {bar.claim}: {bar.value:.2f} (bar >= {bar.limit:.2f})" for bar in bars
    )


def _table(stands: Sequence[Standing], task: str) -> str:
    found = {(stand.set, stand.method): stand for stand in stands if stand.task == task}
    sets = list(dict.fromkeys(name for name, _ in found))
    methods = [method for method in [*METHODS, CHOSEN] if any(method == key[1] for key in found)]
    published = task == "regression"
    header = ["set", *methods, *(_PUBLISHED_NAMES if published else [])]
    lines = [header, ["---"] * len(header)]
    for name in sets:
        line = _line([found.get((name, method)) for method in methods])
        lines.append([name, *line, *([f"{value:.2f}" for value in PUBLISHED[name]] if published else [])])
    means = [_mean_cell(stands, method, task, len(sets)) for method in methods]
    columns = zip(*(PUBLISHED[name] for name in sets), strict=True) if published else []
    lines.append([f"mean of {len(sets)}", *bold(means, methods), *(f"{fmean(column):.2f}" for column in columns)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(stands: Sequence[Standing | None]) -> list[str]:
    return bold([_cell(stand) for stand in stands], [stand.method if stand else "" for stand in stands])


def _cell(stand: Standing | None) -> str:
    if stand is None:
        return "-"
    if stand.mean is None:
        return stand.status.partition(":")[0]
    return f"{stand.mean:.2f}" if stand.std is None else f"{stand.mean:.2f} ± {stand.std:.2f}"


def _mean_cell(stands: Sequence[Standing], method: str, task: str, n_sets: int) -> str:
    there = sum((stand.method, stand.task) == (method, task) for stand in stands)
    mean = mean_of_sets(stands, method, task)
    return "-" if there < n_sets or math.isnan(mean) else f"{mean:.2f}"


def bold(cells: Sequence[str], methods: Sequence[str]) -> list[str]:
    """The best in bold, as far as it is shown; the chosen leaf, with three times the trials, does not compete."""
    scores = [
        float(cell.partition(" ")[0]) if cell[-1].isdigit() and method != CHOSEN else -math.inf
        for cell, method in zip(cells, methods, strict=True)
    ]
    best = max(scores)
    return [f"**{cell}**" if score == best > -math.inf else cell for cell, score in zip(cells, scores, strict=True)]


def format_versions(rows: Sequence[Measured], methods: Sequence[str]) -> str:
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
