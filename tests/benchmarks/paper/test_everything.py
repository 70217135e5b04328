"""One way in for all tables and figures, and whether what is stored says what its numbers say."""

from pathlib import Path
from typing import Any

import pytest

import benchmarks.paper.__main__ as everything
from benchmarks.harness.cluster_cells import ClusterRow, ClusterStanding
from benchmarks.harness.records import read_records
from benchmarks.paper.tables import clustering
from benchmarks.paper.tables.__main__ import text_of
from benchmarks.paper.tables.cells import TableRow
from benchmarks.paper.tables.paper_tables import TABLES

RESULTS = Path(everything.__file__).parent / "results"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def record(*arguments: Any) -> int:
        found.append(arguments)
        return 0

    for name in ("make_table", "make_figure", "make_clustering"):
        monkeypatch.setattr(everything, name, record)
    return found


def test_all_is_made_by_default_tables_first(calls: list[Any], tmp_path: Path) -> None:
    assert everything.main(["--data", str(tmp_path), "--out", str(tmp_path)]) == 0
    first = [arguments[0] for arguments in calls]
    names = [one[0] if isinstance(one, list) else "clustering" if one == tmp_path else one for one in first]
    assert names == list(everything.NAMES)
    assert names.index("regression") < names.index("error-time")
    assert calls[0][0][1:] == ["--out", str(tmp_path), "--data", str(tmp_path), "--jobs", "2"]


def test_one_is_made_by_its_name(calls: list[Any]) -> None:
    assert everything.main(["small", "--trials", "3"]) == 0
    assert [arguments[0][0] for arguments in calls] == ["small"]
    assert calls[0][0][-4:] == ["--trials", "3", "--jobs", "2"]


def test_what_is_not_there_does_not_stop_the_rest(calls: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert everything.main(["clustering", "glass-routing"]) == 1
    assert "clustering: --data must name the folder" in capsys.readouterr().err
    assert len(calls) == 1


def test_names_that_are_not_there_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        everything.main(["smal"])
    assert "got 'smal'" in capsys.readouterr().err


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
