"""What the benchmark of clustering says: the bars, and all of it as Markdown."""

import math
from collections.abc import Callable, Sequence

from benchmarks.harness.cluster_cells import ClusterRow, ClusterStanding
from benchmarks.harness.clustering import METHODS, PRUNUS
from benchmarks.harness.reports import (
    Bar,
    bold_largest,
    format_bars,
    format_mean,
    format_report,
    format_versions,
    markdown_table,
)

__all__ = ["cluster_bars", "format_cluster_report", "format_cluster_tables"]

PUBLISHED = {
    "glass": ("0.468 ± 0.028", "0.463 ± 0.002", "0.508 ± 0.008", "0.429 ± 0.013"),
    "covtype": ("0.459 ± 0.008", "0.444 ± 0.005", "0.440 ± 0.001", "0.440 ± 0.002"),
}
"""The paper's table, in the order of its rows."""
PUBLISHED_NAMES = ("argmin tree (published)", "gHHC (published)", "HKMeans (published)", "BIRCH (published)")
TEST_BARS = {"glass": 0.52, "covtype": 0.47}
COMPARED = ("HKMeans", "BIRCH")
"""Methods whose purity of all rows is a bar."""

Column = Callable[[ClusterStanding], tuple[float | None, float | None]]
"""A mean and its deviation."""
PURITIES: dict[str, Column] = {
    "Dendrogram purity of the test part": lambda stand: (stand.test, stand.test_std),
    "Dendrogram purity of all rows": lambda stand: (stand.all_rows, stand.all_rows_std),
}
OTHERS: dict[str, Column] = {
    "Seconds of a fit": lambda stand: (stand.fit_seconds, None),
    "Leaves where rows end": lambda stand: (stand.leaves, None),
}


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
        for method in COMPARED:
            limit = score(found[name, method].all_rows)
            bars.append(Bar(f"{name}: purity of all rows, bar {method}", value, limit, at_least=True))
    return bars


def format_cluster_report(
    rows: Sequence[ClusterRow], stands: Sequence[ClusterStanding], bars: Sequence[Bar], notes: str
) -> str:
    """The whole file: tables, bars, versions, and the notes, which are written by hand."""
    verdict = format_bars(bars) if bars else "Not judged: cells are missing."
    sections = {
        "": "Written by `make bench-cluster`; the notes at the end come from `cluster_notes.md`.",
        **_tables(stands),
        "Bars": f"```\n{verdict}\n```",
        "Versions": format_versions(rows, METHODS),
    }
    return format_report("Hierarchical clustering", sections, notes)


def format_cluster_tables(stands: Sequence[ClusterStanding]) -> str:
    """A table for each column of results."""
    return "\n\n".join(f"## {title}\n\n{table}" for title, table in _tables(stands).items())


def _tables(stands: Sequence[ClusterStanding]) -> dict[str, str]:
    tables = {title: _table(stands, column, 3, is_purity=True) for title, column in PURITIES.items()}
    return tables | {title: _table(stands, column, 1, is_purity=False) for title, column in OTHERS.items()}


def _table(stands: Sequence[ClusterStanding], column: Column, digits: int, *, is_purity: bool) -> str:
    """A line for each set, a column for each method."""
    found = {(stand.set, stand.method): stand for stand in stands}
    lines = []
    for name in dict.fromkeys(stand.set for stand in stands):
        cells = [_cell(found.get((name, method)), column, digits) for method in METHODS]
        published = PUBLISHED.get(name, ("-",) * len(PUBLISHED_NAMES)) if is_purity else ()
        lines.append([name, *(bold_largest(cells) if is_purity else cells), *published])
    return markdown_table(["set", *METHODS, *(PUBLISHED_NAMES if is_purity else ())], lines)


def _cell(stand: ClusterStanding | None, column: Column, digits: int) -> str:
    return "-" if stand is None else format_mean(*column(stand), digits, stand.status)
