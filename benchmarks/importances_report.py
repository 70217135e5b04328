"""What the benchmark of importances says: means over seeds, bars, and all of it as Markdown."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from benchmarks.harness.limits import OK
from benchmarks.harness.reports import (
    Bar,
    format_bars,
    format_mean,
    format_report,
    format_versions,
    group_rows,
    markdown_table,
)
from benchmarks.importances_cells import METHODS, ImportancesRow

__all__ = [
    "ImportancesStanding",
    "format_importances_report",
    "format_importances_tables",
    "importances_bars",
    "standings",
]

LEAST_CORRELATION = 0.8
"""The bar for the mean rank correlation of each kind of tree."""


@dataclass(frozen=True)
class ImportancesStanding:
    """All seeds of one kind of tree on one set."""

    set: str
    method: str
    status: str
    seeds: int
    spearman: float | None = None
    same_top: float | None = None
    """Share of the seeds."""
    same_root: float | None = None
    """Share of the seeds whose strongest column of the root is that of most seeds."""
    root_overlap: float | None = None
    """Share of the root's three strongest columns that two seeds have in common, the mean over pairs of seeds."""
    score: float | None = None
    fit_seconds: float | None = None


Column = Callable[[ImportancesStanding], float | None]
TABLES: dict[str, tuple[Column, int]] = {
    "Rank correlation with permutation importances": (lambda stand: stand.spearman, 2),
    "Share of the seeds with the same most important column": (lambda stand: stand.same_top, 2),
    "Share of the seeds whose root has the strongest column of most seeds": (lambda stand: stand.same_root, 2),
    "Common columns among the root's three strongest": (lambda stand: stand.root_overlap, 2),
    "R^2 or accuracy in %": (lambda stand: stand.score, 2),
    "Seconds of a fit": (lambda stand: stand.fit_seconds, 2),
}


def standings(rows: Sequence[ImportancesRow]) -> list[ImportancesStanding]:
    """One for each set and kind of tree, over all its seeds."""
    return [_standing(group) for group in group_rows(rows, list(METHODS))]


def _standing(rows: Sequence[ImportancesRow]) -> ImportancesStanding:
    first = next((row for row in rows if row.status != OK), rows[0])
    if first.status != OK:
        return ImportancesStanding(first.set, first.method, first.status, len(rows))
    roots = [row.root.split() for row in rows]
    most = Counter(root[0] if root else "" for root in roots).most_common(1)[0][1]
    overlaps = [_overlap(a, b) for a, b in combinations(roots, 2)]

    def mean(name: str) -> float:
        return statistics.fmean(getattr(row, name) for row in rows)

    return ImportancesStanding(
        first.set,
        first.method,
        OK,
        len(rows),
        spearman=mean("spearman"),
        same_top=mean("same_top"),
        same_root=most / len(rows),
        root_overlap=statistics.fmean(overlaps) if overlaps else 1.0,
        score=mean("score"),
        fit_seconds=mean("fit_seconds"),
    )


def _overlap(first: Sequence[str], second: Sequence[str]) -> float:
    most = max(len(first), len(second))
    return len(set(first) & set(second)) / most if most else 1.0


def importances_bars(stands: Sequence[ImportancesStanding]) -> list[Bar]:
    """What each kind of tree must reach; makes sense only of a complete run."""
    return [
        Bar(f"{method}: mean rank correlation", _mean(stands, method, lambda stand: stand.spearman) or 0.0, limit, True)
        for method, limit in dict.fromkeys(METHODS, LEAST_CORRELATION).items()
    ]


def format_importances_report(
    rows: Sequence[ImportancesRow], stands: Sequence[ImportancesStanding], bars: Sequence[Bar], notes: str
) -> str:
    """The whole file: tables, bars, versions, and the notes, which are written by hand."""
    verdict = format_bars(bars) if bars else "Not judged: cells are missing."
    written = "Written by `python -m benchmarks.importances`; the notes at the end come from `importances_notes.md`."
    sections = {
        "": written,
        **_tables(stands),
        "Bars": f"```\n{verdict}\n```",
        "Versions": format_versions(rows, list(METHODS)),
    }
    return format_report("Importances and stable roots", sections, notes)


def format_importances_tables(stands: Sequence[ImportancesStanding]) -> str:
    """A table for each column of results."""
    return "\n\n".join(f"## {title}\n\n{table}" for title, table in _tables(stands).items())


def _tables(stands: Sequence[ImportancesStanding]) -> dict[str, str]:
    return {title: _table(stands, column, digits) for title, (column, digits) in TABLES.items()}


def _table(stands: Sequence[ImportancesStanding], column: Column, digits: int) -> str:
    """A line for each set and one for their mean, a column for each kind of tree."""
    found = {(stand.set, stand.method): stand for stand in stands}
    lines = []
    for name in dict.fromkeys(stand.set for stand in stands):
        here = [found.get((name, method)) for method in METHODS]
        lines.append(
            [
                name,
                *("-" if stand is None else format_mean(column(stand), None, digits, stand.status) for stand in here),
            ]
        )
    means = [format_mean(_mean(stands, method, column), None, digits, "-") for method in METHODS]
    return markdown_table(["set", *METHODS], [*lines, ["mean", *means]])


def _mean(stands: Sequence[ImportancesStanding], method: str, column: Column) -> float | None:
    values = [column(stand) for stand in stands if stand.method == method]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
