"""One way in for all tables and figures, and whether what is stored says what its numbers say."""

from pathlib import Path

import pytest

import benchmarks.paper.__main__ as everything
from benchmarks.harness.cluster_cells import ClusterRow, ClusterStanding
from benchmarks.harness.records import read_records
from benchmarks.paper.tables import clustering
from benchmarks.paper.tables.__main__ import text_of
from benchmarks.paper.tables.cells import TableRow
from benchmarks.paper.tables.paper_tables import TABLES

RESULTS = Path(everything.__file__).parent / "results"


@pytest.mark.parametrize("name", [name for name in TABLES if (RESULTS / f"{name}_cells.csv").exists()])
def test_a_stored_table_is_that_of_its_cells(name: str) -> None:
    rows = read_records(RESULTS / f"{name}_cells.csv", TableRow)
    assert (RESULTS / f"{name}.md").read_text() == text_of(TABLES[name], rows)


def test_the_stored_clustering_is_that_of_the_benchmark() -> None:
    stored = read_records(RESULTS / "clustering.csv", ClusterStanding)
    current = clustering.standings(read_records(clustering.CELLS, ClusterRow))
    assert [(stand.method, stand.set) for stand in stored] == [(stand.method, stand.set) for stand in current]
    assert [stand.test for stand in stored] == pytest.approx([stand.test for stand in current], rel=1e-5)
    assert (RESULTS / "clustering.md").read_text() == clustering.text_of(stored)
