"""The benchmark of large tables: its bars, its file, the cost of a step, and a process that is killed."""

import csv
from pathlib import Path

import pytest

from benchmarks import scale, scale_cost, scale_files, scale_killed, scale_processes
from benchmarks.harness.reports import Bar
from benchmarks.measured import Measured


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures as the parts would measure them."""
    of_files = [scale_files.Row(part, 1000, 500.0, 2.0, 0.5) for part in scale_files.PARTS]
    monkeypatch.setattr(scale_files, "write_files", lambda _folder, _rows: None)
    monkeypatch.setattr(scale_files, "measure", lambda _folder, _rows, _in_memory: of_files)
    of_processes = [
        scale_processes.Row(
            size,
            4,
            seconds_an_epoch=3.0 / size,
            times_faster=size,
            processor_seconds=3.0 / size,
            times_less=size,
            train_loss=0.1,
        )
        for size in (1, 2)
    ]
    monkeypatch.setattr(scale_processes, "measure", lambda: of_processes)
    of_killed = [Measured("killed", "R^2", 0.9, "")], [Bar("R^2 that is lost", 0.0, 0.002)]
    monkeypatch.setattr(scale_killed, "measure", lambda: of_killed)
    monkeypatch.setattr(scale_cost, "measure", lambda: [scale_cost.Row(30, 4, 8192, 2, 1.0, 9.0, 8.0)])


@pytest.mark.usefixtures("_small")
def test_all_figures_are_stored_with_the_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scale.main(["--folder", str(tmp_path), "--out", str(tmp_path)]) == 0
    with (tmp_path / "scale.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["part"] for line in lines} == set(scale.PARTS)
    assert all(line["cpu"] and float(line["value"]) >= 0 for line in lines)
    assert capsys.readouterr().out.count("met  ") == 5


@pytest.mark.usefixtures("_small")
def test_a_missed_bar_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        scale_killed, "measure", lambda: ([Measured("killed", "R^2", 0.4, "")], [Bar("R^2 that is lost", 0.5, 0.002)])
    )
    assert scale.main(["--folder", str(tmp_path), "--out", str(tmp_path), "--only", "killed"]) == 1
    assert "MISSED  R^2 that is lost" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_step_sums_at_least_the_gradient_and_the_nodes() -> None:
    alone, shared = scale_cost.measure(sizes=(1, 4), shapes=[(3, 2)])
    splits, nodes, columns = 3, 7, 3
    assert shared.sums_a_step >= 2
    assert shared.kb_a_step >= (4 * (splits + nodes) * (columns + 1) + 16 * nodes) / 1e3
    assert alone.sums_a_step < 1
    assert 0 < shared.ms_a_step < alone.ms_a_step


@pytest.mark.slow
def test_a_run_of_which_a_process_was_killed_ends_as_if_nothing_had_happened() -> None:
    _, bars = scale_killed.measure(20_000)
    assert [bar.claim for bar in bars if not bar.met] == []
