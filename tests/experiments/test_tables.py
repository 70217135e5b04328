"""The paper's tables: tuning, limits, and what is written."""

from pathlib import Path

import numpy as np
import pytest

from experiments.data import PaperSet
from experiments.tables.__main__ import main
from experiments.tables.cell import Budget, Cell, TableRow, measure, tune
from experiments.tables.report import format_table, judge
from experiments.tables.table import OURS, TABLES, TableInfo

INFO = TableInfo("Toys", ("toy",), ("CART", "GOSDT", "XGBoost", OURS), {"toy": {"CART": 0.3}}, {"toy": 0.1})


def toy(n: int = 90) -> PaperSet:
    x = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    third = n // 3
    parts = [(x[begin : begin + third], y[begin : begin + third]) for begin in (0, third, 2 * third)]
    return PaperSet("toy", "classes", *parts[0], *parts[1], *parts[2], ["a", "b", "c"])


def row(method: str, error: float | None, seconds: float = 1.0, *, seed: int = 1, status: str = "ok") -> TableRow:
    return TableRow("toy", seed, method, status, 3, 10.0, error, 0.2, None if error is None else seconds, 5)


def test_the_first_trial_has_the_defaults_and_all_count() -> None:
    found = tune(Cell("toy", 1, "CART"), toy(), Budget(3, 60.0, 4_000.0))
    assert found.finished == 3
    assert found.valid_error <= 0.1


def test_a_cell_is_scored_on_the_test_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.tables.cell.load", lambda *_arguments, **_options: toy())
    measured = measure(Cell("toy", 1, "CART"), None, Budget(1, 60.0, 4_000.0))
    assert measured.status == "ok"
    assert measured.test_error is not None
    assert measured.test_error <= 0.1
    assert measured.n_parameters is not None
    assert measured.n_parameters >= 3


def test_a_method_that_takes_too_long_is_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.tables.cell.load", lambda *_arguments, **_options: toy())
    measured = measure(Cell("toy", 1, "Ours"), None, Budget(1, 0.001, 4_000.0))
    assert (measured.status, measured.test_error) == ("OOT", None)


def test_the_best_of_a_family_is_bold() -> None:
    rows = [row("CART", 0.2), row("CART", 0.22, seed=2), row(OURS, 0.1), row(OURS, 0.12, seed=2), row("XGBoost", 0.3)]
    text = format_table(INFO, rows, ["a note"])
    assert "| CART | 0.2100 ± 0.0141 | 0.3000 |" in text
    assert "| Ours | **0.1100 ± 0.0141** |  |" in text
    assert "| XGBoost | **0.3000 ± 0.0000** |  |" in text
    assert "- a note" in text


def test_limits_that_were_exceeded_are_shown() -> None:
    text = format_table(INFO, [row("GOSDT", None, status="OOT"), row(OURS, 0.1)], [])
    assert "| GOSDT | OOT |  |" in text
    assert "met toy: trained in 1.00 s, GOSDT in more than 10 s" in text


def test_goals_are_judged() -> None:
    rows = {"CART": [row("CART", 0.05)], OURS: [row(OURS, 0.1)]}
    assert judge(INFO, {"toy": rows}) == [
        "met toy: 0.1000, goal 0.100",
        "MISSED toy: 0.1000, the best rival CART 0.0500",
    ]


def test_a_run_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(TABLES, "toys", INFO)
    for module in ("cell", "__main__"):
        monkeypatch.setattr(f"experiments.tables.{module}.load", lambda *_arguments, **_options: toy())
    arguments = ["toys", f"--out={tmp_path}", "--methods=CART", "--seeds=1,2", "--trials=1"]
    assert main(arguments) == 0
    assert "[2/2] toy" in capsys.readouterr().err
    first = (tmp_path / "toys_cells.csv").read_text()
    assert main(arguments) == 0
    assert (tmp_path / "toys_cells.csv").read_text() == first
    assert (tmp_path / "toys.md").read_text().startswith("# Toys\n")
