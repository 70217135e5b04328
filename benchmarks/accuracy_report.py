"""How the methods stand on each set, over the seeds, and all of it as Markdown."""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence

from benchmarks.accuracy_cells import AccuracyRow
from benchmarks.accuracy_lists import CONTENDERS, PRUNUS, PUBLISHED
from benchmarks.harness.limits import OK
from benchmarks.harness.reports import (
    Bar,
    bold_largest,
    format_bars,
    format_mean,
    format_report,
    format_versions,
    group_rows,
    markdown_table,
    mean_and_deviation,
)

__all__ = [
    "CHOSEN",
    "CHOSEN_HARD",
    "Standing",
    "format_accuracy_report",
    "format_leaderboard",
    "mean_of_sets",
    "standings",
]

CHOSEN = "prunus, leaf chosen"
"""Of the three kinds of leaf, in each split, the one that was best on validation."""

CHOSEN_HARD = "prunus hard, leaf chosen"
HARD_LEAVES = ["prunus hard constant", "prunus hard linear", "prunus hard additive"]
"""The same for trees in which every row follows one path."""
CHOICES = {CHOSEN: PRUNUS, CHOSEN_HARD: HARD_LEAVES}

PUBLISHED_NAMES = ("RADDT (published)", "RADDT-Linear (published)", "XGBoost (published)")
TITLES = {"regression": "Regression: test R^2 in %", "classification": "Classification: test accuracy in %"}


@dataclasses.dataclass(frozen=True)
class Standing:
    """One method on one set. Mean and deviation are those of the test scores, in %, over the seeds."""

    set: str
    task: str
    method: str
    seeds: int
    status: str
    """ok, or why a seed has no score: then there is no mean."""
    mean: float | None = None
    std: float | None = None
    fit_seconds: float | None = None
    leaves: float | None = None
    parameters: float | None = None


def standings(rows: Sequence[AccuracyRow]) -> list[Standing]:
    """Of each set and method, in the order of the sets' rows, with the tree whose kind of leaf was chosen as well."""
    chosen = [row for name, leaves in CHOICES.items() for row in _choose_leaves(rows, name, leaves)]
    return [_standing(group) for group in group_rows([*rows, *chosen], [*CONTENDERS, *CHOICES])]


def mean_of_sets(stands: Iterable[Standing], method: str, task: str) -> float:
    """Mean over the sets of a task; NaN if one has no score, or there are none."""
    means = [stand.mean for stand in stands if (stand.method, stand.task) == (method, task)]
    return statistics.fmean(math.nan if mean is None else mean for mean in means) if means else math.nan


def format_accuracy_report(
    rows: Sequence[AccuracyRow], stands: Sequence[Standing], bars: Sequence[Bar], notes: str
) -> str:
    """The whole file: tables, bars, versions, and the notes, which are written by hand."""
    verdict = format_bars(bars) if bars else "Not judged: cells are missing."
    sections = {
        "": "Written by `make bench-accuracy`; the notes at the end come from `accuracy_notes.md`.",
        **_tables(stands),
        "Bars": f"```\n{verdict}\n```",
        "Versions": format_versions(rows, list(CONTENDERS)),
    }
    return format_report("Accuracy", sections, notes)


def format_leaderboard(stands: Sequence[Standing]) -> str:
    """A table for each task."""
    return "\n\n".join(f"## {title}\n\n{table}" for title, table in _tables(stands).items())


def _tables(stands: Sequence[Standing]) -> dict[str, str]:
    tasks = {stand.task for stand in stands}
    return {title: _table(stands, task) for task, title in TITLES.items() if task in tasks}


def _table(stands: Sequence[Standing], task: str) -> str:
    """A line for each set, a column for each method."""
    found = {(stand.set, stand.method): stand for stand in stands if stand.task == task}
    sets = list(dict.fromkeys(name for name, _ in found))
    methods = [method for method in [*CONTENDERS, *CHOICES] if any(method == key[1] for key in found)]
    published = [PUBLISHED[name] for name in sets] if task == "regression" else []
    competes = [method not in CHOICES for method in methods]  # with three times the trials the chosen leaf does not
    lines = []
    for number, name in enumerate(sets):
        cells = bold_largest([_cell(found.get((name, method))) for method in methods], competes)
        lines.append([name, *cells, *(f"{value:.2f}" for values in published[number : number + 1] for value in values)])
    means = bold_largest([_mean_cell(stands, method, task, len(sets)) for method in methods], competes)
    columns = zip(*published, strict=True)
    lines.append([f"mean of {len(sets)}", *means, *(f"{statistics.fmean(column):.2f}" for column in columns)])
    return markdown_table(["set", *methods, *(PUBLISHED_NAMES if published else ())], lines)


def _cell(stand: Standing | None) -> str:
    return "-" if stand is None else format_mean(stand.mean, stand.std, 2, stand.status)


def _mean_cell(stands: Sequence[Standing], method: str, task: str, n_sets: int) -> str:
    there = sum((stand.method, stand.task) == (method, task) for stand in stands)
    mean = mean_of_sets(stands, method, task)
    return "-" if there < n_sets or math.isnan(mean) else f"{mean:.2f}"


def _choose_leaves(rows: Sequence[AccuracyRow], name: str, leaves: Sequence[str]) -> list[AccuracyRow]:
    """A row for each split on which all kinds of leaf have run: the best on validation, or the one without a score."""
    splits: dict[tuple[str, int], list[AccuracyRow]] = {}
    for row in rows:
        if row.method in leaves:
            splits.setdefault((row.set, row.seed), []).append(row)
    complete = (split for split in splits.values() if len(split) == len(leaves))
    return [dataclasses.replace(max(split, key=_preference), method=name) for split in complete]


def _preference(row: AccuracyRow) -> float:
    return math.inf if row.valid is None else row.valid


def _standing(rows: Sequence[AccuracyRow]) -> Standing:
    first = rows[0]
    key = (first.set, first.task, first.method, len(rows))
    troubles = [row.status for row in rows if row.status != OK]
    if troubles:
        return Standing(*key, troubles[0])
    mean, deviation = mean_and_deviation([row.test for row in rows if row.test is not None])
    others = ([getattr(row, name) for row in rows] for name in ("fit_seconds", "leaves", "parameters"))
    return Standing(*key, OK, mean, deviation, *map(_mean, others))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
