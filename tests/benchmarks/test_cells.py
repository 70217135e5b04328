"""Cells: stored, resumed, and run in processes of their own."""

from pathlib import Path

import pytest

from benchmarks.accuracy import main
from benchmarks.cells import Budget, Cell, Row, finished, read_rows, run_cells
from benchmarks.store import append_record
from benchmarks.tables import read_index
from tests.benchmarks.tables import write_folder

DONE = Row("pets", "classification", 100, 3, 1, "CART", "ok", 18, 90.5, 89.25, 0.1, 1.5, 7, 33, '{"a": null}', "v 1")


def test_rows_survive_the_file_and_the_last_of_a_cell_counts(tmp_path: Path) -> None:
    path = tmp_path / "new" / "cells.csv"
    late = Row("pets", "classification", 100, 3, 1, "XGBoost", "OOT", 4)
    for row in (Row("pets", "classification", 100, 3, 1, "CART", 'failed: a, "b"', 18), late, DONE):
        append_record(path, row)
    assert read_rows(path) == {DONE.cell: DONE, late.cell: late}


def test_a_cell_runs_again_unless_it_was_tuned_with_this_budget() -> None:
    late = Row("pets", "classification", 100, 3, 1, "XGBoost", "OOT", 4)
    tuned = Row("pets", "classification", 100, 3, 1, "LightGBM", "ok", 4)
    rows = {row.cell: row for row in (DONE, late, tuned)}
    assert finished(rows, DONE.cell, trials=4)
    assert not finished(rows, late.cell, trials=4)
    assert finished(rows, tuned.cell, trials=4)
    assert not finished(rows, tuned.cell, trials=8)


def test_failures_and_timeouts_are_rows(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    tables = read_index(folder)
    (tmp_path / "pets.csv.gz").unlink()
    (failed,) = run_cells([Cell("pets", 1, "CART")], tables, Budget(folder, 1, 60.0), jobs=1)
    assert failed.status.startswith("failed: FileNotFoundError")
    (late,) = run_cells([Cell("airfoil", 1, "CART")], tables, Budget(folder, 1, 0.01), jobs=1)
    assert late.status == "OOT"


def test_a_second_run_computes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = write_folder(tmp_path), tmp_path / "out"
    arguments = [f"--data={folder}", f"--out={out}", "--sets=pets", "--seeds=1225", "--methods=CART"]
    assert main(arguments) == 0
    first = (out / "accuracy_cells.csv").read_text()
    assert "[1/1] pets 1225 CART: test" in capsys.readouterr().err
    assert main(arguments) == 0
    assert (out / "accuracy_cells.csv").read_text() == first
    assert "1 of 1 cells are there already" in capsys.readouterr().err
    assert {path.name for path in out.iterdir()} == {"accuracy_cells.csv", "accuracy.csv", "accuracy.md"}
