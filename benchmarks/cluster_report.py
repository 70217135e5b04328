"""How the methods of clustering stand on each set, over the seeds; the bars; all of it as Markdown."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

from benchmarks.bars import Bar, format_bars
from benchmarks.cluster_cell import ClusterRow
from benchmarks.cluster_methods import METHODS, PRUNUS
from benchmarks.leaderboard import bold, format_versions

__all__ = ["ClusterStanding", "cluster_bars", "cluster_standings", "format_cluster_report", "format_cluster_tables"]

PUBLISHED = {
    "glass": ("0.468 ± 0.028", "0.463 ± 0.002", "0.508 ± 0.008", "0.429 ± 0.013"),
    "covtype": ("0.459 ± 0.008", "0.444 ± 0.005", "0.440 ± 0.001", "0.440 ± 0.002"),
}
"""The paper's table, in the order of its rows."""
PUBLISHED_NAMES = ["argmin tree (published)", "gHHC (published)", "HKMeans (published)", "BIRCH (published)"]
TEST_BARS = {"glass": 0.52, "covtype": 0.47}
BAR_RIVALS = ["HKMeans", "BIRCH"]


@dataclasses.dataclass(frozen=True)
class ClusterStanding:
    """One method on one set: means and deviations of the purities over the seeds."""

    set: str
    method: str
    seeds: int
    status: str
    """ok, or why a seed has no score: then there are no means."""
    test: float | None = None
    test_std: float | None = None
    all_rows: float | None = None
    all_rows_std: float | None = None
    fit_seconds: float | None = None
    leaves: float | None = None


Column = Callable[[ClusterStanding], tuple[float | None, float | None]]
"""A mean and its deviation."""


def cluster_standings(rows: Sequence[ClusterRow]) -> list[ClusterStanding]:
    """Of each set and method, in the order of the sets' rows."""
    groups: dict[tuple[str, str], list[ClusterRow]] = {}
    for row in rows:
        groups.setdefault((row.set, row.method), []).append(row)
    order = ((name, method) for name in dict.fromkeys(row.set for row in rows) for method in METHODS)
    return [_standing(groups[key]) for key in order if key in groups]


def cluster_bars(stands: Sequence[ClusterStanding]) -> list[Bar]:
    """What prunus must reach; makes sense only of a complete run."""
    found = {(stand.set, stand.method): stand for stand in stands}

    def score(mean: float | None) -> float:
        return math.nan if mean is None else mean

    bars = [
        Bar(f"{name}: purity of the test part", score(found[name, PRUNUS].test), limit, at_least=True)
        for name, limit in TEST_BARS.items()
    ]
    for name in dict.fromkeys(stand.set for stand in stands):
        value = score(found[name, PRUNUS].all_rows)
        for rival in BAR_RIVALS:
            limit = score(found[name, rival].all_rows)
            bars.append(Bar(f"{name}: purity of all rows, bar {rival}", value, limit, at_least=True))
    return bars


def format_cluster_report(
    rows: Sequence[ClusterRow], stands: Sequence[ClusterStanding], bars: Sequence[Bar], notes: str
) -> str:
    """The whole file: tables, bars, versions, and the notes, which are written by hand."""
    verdict = format_bars(bars) if bars else "Not judged: cells are missing."
    parts = [
        "# Hierarchical clustering",
        "Written by `make bench-cluster`; the notes at the end come from `cluster_notes.md`.",
        format_cluster_tables(stands),
        f"## Bars\n\n```\n{verdict}\n```",
        f"## Versions\n\n{format_versions(rows, METHODS)}",
        notes,
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def format_cluster_tables(stands: Sequence[ClusterStanding]) -> str:
    """A table for each column of results: a line for each set, a column for each method."""
    purities: dict[str, Column] = {
        "Dendrogram purity of the test part": lambda stand: (stand.test, stand.test_std),
        "Dendrogram purity of all rows": lambda stand: (stand.all_rows, stand.all_rows_std),
    }
    others: dict[str, Column] = {
        "Seconds of a fit": lambda stand: (stand.fit_seconds, None),
        "Leaves where rows end": lambda stand: (stand.leaves, None),
    }
    tables = {title: _table(stands, column, "{:.3f}", is_purity=True) for title, column in purities.items()}
    tables |= {title: _table(stands, column, "{:.1f}", is_purity=False) for title, column in others.items()}
    return "\n\n".join(f"## {title}\n\n{table}" for title, table in tables.items())


def _standing(rows: Sequence[ClusterRow]) -> ClusterStanding:
    key = (rows[0].set, rows[0].method, len(rows))
    troubles = [row.status for row in rows if row.status != "ok"]
    if troubles:
        return ClusterStanding(*key, troubles[0])
    test, test_std = _mean_and_deviation([row.test for row in rows])
    all_rows, all_rows_std = _mean_and_deviation([row.all_rows for row in rows])
    fit_seconds, _ = _mean_and_deviation([row.fit_seconds for row in rows])
    leaves, _ = _mean_and_deviation([row.leaves for row in rows])
    return ClusterStanding(*key, "ok", test, test_std, all_rows, all_rows_std, fit_seconds, leaves)


def _mean_and_deviation(values: Sequence[float | None]) -> tuple[float, float | None]:
    known = [math.nan if value is None else float(value) for value in values]
    return statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else None


def _table(stands: Sequence[ClusterStanding], column: Column, digits: str, *, is_purity: bool) -> str:
    found = {(stand.set, stand.method): stand for stand in stands}
    header = ["set", *METHODS, *(PUBLISHED_NAMES if is_purity else [])]
    lines = [header, ["---"] * len(header)]
    for name in dict.fromkeys(stand.set for stand in stands):
        cells = [_cell(found.get((name, method)), column, digits) for method in METHODS]
        published = list(PUBLISHED.get(name, ["-"] * len(PUBLISHED_NAMES))) if is_purity else []
        lines.append([name, *(bold(cells, METHODS) if is_purity else cells), *published])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(stand: ClusterStanding | None, column: Column, digits: str) -> str:
    if stand is None:
        return "-"
    mean, std = column(stand)
    if mean is None:
        return stand.status.partition(":")[0]
    return digits.format(mean) if std is None else f"{digits.format(mean)} ± {digits.format(std)}"
