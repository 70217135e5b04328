"""Means over seeds, bars and tables of clustering."""

from pathlib import Path

import benchmarks
from benchmarks.cluster_report import cluster_bars, format_cluster_report
from benchmarks.harness.cells import SEEDS, CellStore
from benchmarks.harness.cluster_cells import SETS, ClusterRow, cell_grid, standings
from benchmarks.harness.clustering import METHODS, does
from benchmarks.harness.reports import format_bars

SCORES = {"HKMeans": 0.5, "BIRCH": 0.51, "gHHC": 0.7, "prunus": 0.6, "prunus paper": 0.4}


def rows_of(name: str, scores: dict[str, float]) -> list[ClusterRow]:
    """All methods, with test scores 0.01 below and above those given, and 0.1 less on all rows."""
    return [
        ClusterRow(
            name, seed, method, "ok", 1, 60, 9, 3, scores[method] + sign, scores[method] + sign - 0.1, 1.5, 2.0, 9,
            versions="v 1",
        )
        for seed, sign in ((1, -0.01), (2, 0.01))
        for method in METHODS
        if does(method, name)
    ]  # fmt: skip


ROWS = [row for name in SETS for row in rows_of(name, SCORES)]


def test_bars_are_met_or_missed() -> None:
    bars = cluster_bars(standings(ROWS))
    assert len(bars) == 2 + 2 * len(SETS)
    assert all(bar.met for bar in bars)
    weak = [row for name in SETS for row in rows_of(name, SCORES | {"prunus": 0.505})]
    bars = cluster_bars(standings(weak))
    assert [bar.met for bar in bars] == [False, True] + [True, False] * len(SETS)
    assert "MISSED  glass: purity of the test part: 0.505 (bar >= 0.52)" in format_bars(bars)


def test_the_stored_report_is_that_of_its_cells() -> None:
    folder = Path(benchmarks.__file__).parent
    store: CellStore[ClusterRow] = CellStore(ClusterRow, folder / "results" / "cluster_cells.csv")
    rows = [store.rows[cell] for cell in cell_grid(list(SETS), SEEDS, METHODS)]
    stands = standings(rows)
    notes = (folder / "cluster_notes.md").read_text()
    text = format_cluster_report(rows, stands, cluster_bars(stands), notes)
    assert text == (folder / "results" / "cluster.md").read_text()
