"""The command of the clustering benchmark."""

from pathlib import Path

import pytest

from benchmarks.cluster import main
from benchmarks.harness.cells import Cell
from benchmarks.harness.cluster_cells import ClusterRow


def measured(cell: Cell, _data: Path, _trials: int, _limit: float) -> ClusterRow:
    """In place of a process for the cell, which `tests/benchmarks/harness/test_clustering.py` runs."""
    return ClusterRow(*cell, "ok", 1, 60, 5, 3, 0.5, 0.4, 1.0, 2.0, 9)


def test_a_second_run_computes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.harness.cluster_cells.run_cell", measured)
    out = tmp_path / "out"
    arguments = [f"--data={tmp_path}", f"--out={out}", "--sets=letter", "--seeds=1225", "--methods=HKMeans"]
    assert main(arguments) == 0
    first = (out / "cluster_cells.csv").read_text()
    assert "[1/1] letter 1225 HKMeans: test" in capsys.readouterr().err
    assert main(arguments) == 0
    assert (out / "cluster_cells.csv").read_text() == first
    assert "1 of 1 cells are there already" in capsys.readouterr().err
    assert {path.name for path in out.iterdir()} == {"cluster_cells.csv", "cluster.csv", "cluster.md"}
    assert "Not judged: cells are missing." in (out / "cluster.md").read_text()


def test_unknown_names_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([f"--data={tmp_path}", f"--out={tmp_path}", "--sets=iris"])
    assert "--sets must be some of glass, satimage, letter, covtype, got 'iris'" in capsys.readouterr().err
