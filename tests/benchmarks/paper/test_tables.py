"""The paper's tables: tuning, limits, and what is written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.harness.cells import Cell
from benchmarks.harness.fitting import Fit, fit_limited
from benchmarks.harness.sets.loading import SplitSet
from benchmarks.harness.splits import Parts
from benchmarks.paper.tables.__main__ import main
from benchmarks.paper.tables.cells import Budget, TableRow, measure, tune
from benchmarks.paper.tables.paper_tables import OURS, TABLES, TableInfo
from benchmarks.paper.tables.report import format_table, judge
from benchmarks.paper.tables.tuning import TUNINGS

INFO = TableInfo(
    "Toys",
    ("toy",),
    ("CART", "GOSDT", "XGBoost", OURS),
    errors={"toy": {"CART": 0.3, "GOSDT": "OOM"}, "large": {"CART": 0.2}},
    goals={"toy": 0.1},
)


def toy(n: int = 90) -> SplitSet:
    x = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    return SplitSet("toy", "classes", x, y, Parts(*np.split(np.arange(n), 3)), ["a", "b", "c"])


def row(method: str, error: float | None, seconds: float = 1.0, *, seed: int = 1, status: str = "ok") -> TableRow:
    return TableRow("toy", seed, method, status, 3, 10.0, 60.0, error, 0.2, None if error is None else seconds, 5)


def test_starting_points_come_first_and_all_trials_count(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[dict[str, object]] = []

    def spy(*arguments: Any, **options: Any) -> Fit:
        tried.append(arguments[2])
        return fit_limited(*arguments, **options)

    monkeypatch.setattr("benchmarks.paper.tables.cells.fit_limited", spy)
    found = tune(Cell("toy", 1, "CART"), toy(), Budget(4, 60.0, 4_000.0))
    assert tried[:3] == list(TUNINGS["CART"].starts_for("classes"))
    assert set(tried[3]) > {"max_depth", "splitter"}
    assert found.finished == 4
    assert found.best is not None
    assert found.best.valid_error <= 0.1
    assert found.best.fit.valid_loss is not None


def test_of_equal_errors_the_surer_one_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    data = toy()
    losses = iter([None, 0.3, 0.1, 0.2])

    def answer(*_arguments: Any, **_options: Any) -> Fit:
        return Fit("ok", {"valid": data.valid.y, "test": data.test.y}, valid_loss=next(losses))

    monkeypatch.setattr("benchmarks.paper.tables.cells.fit_limited", answer)
    found = tune(Cell("toy", 1, "CART"), data, Budget(4, 60.0, 4_000.0))
    assert found.best is not None
    assert found.best.options == TUNINGS["CART"].starts_for("classes")[2]


def test_no_trial_begins_after_the_time_for_tuning() -> None:
    found = tune(Cell("toy", 1, "CART"), toy(), Budget(4, 60.0, 4_000.0, tuning_seconds=1e-9))
    assert found.finished == 1


def test_a_method_that_stops_itself_is_told_when(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def refuse(*arguments: Any, **_options: Any) -> Fit:
        told.append(arguments[2].get("time_limit"))
        return Fit("OOT")

    monkeypatch.setattr("benchmarks.paper.tables.cells.fit_limited", refuse)
    for method in ("GOSDT", "CART"):
        assert tune(Cell("toy", 1, method), toy(), Budget(1, 60.0, 4_000.0)).failures == {"OOT": 1}
    assert told == [30.0, None]


def test_a_cell_is_scored_on_the_test_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.paper.tables.cells.load_scaled", lambda *_arguments, **_options: toy())
    measured = measure(Cell("toy", 1, "CART"), None, Budget(1, 60.0, 4_000.0))
    assert measured.status == "ok"
    assert measured.test_error is not None
    assert measured.test_error <= 0.1
    assert measured.n_parameters is not None
    assert measured.n_parameters >= 3


def test_a_method_that_takes_too_long_is_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.paper.tables.cells.load_scaled", lambda *_arguments, **_options: toy())
    measured = measure(Cell("toy", 1, "CART"), None, Budget(1, 1e-6, 4_000.0))
    assert (measured.status, measured.test_error) == ("OOT", None)


def test_the_best_of_a_family_is_bold() -> None:
    rows = [row("CART", 0.2), row("CART", 0.22, seed=2), row(OURS, 0.1), row(OURS, 0.12, seed=2), row("XGBoost", 0.3)]
    text = format_table(INFO, rows, ["a note"])
    assert "| CART | single tree | 0.2100 ± 0.0141 | 0.3 | 0.2 |" in text
    assert "| Ours | single tree | **0.1100 ± 0.0141** |  |  |" in text
    assert "| XGBoost | ensemble | **0.3000 (1 seed)** |  |  |" in text
    assert "- a note" in text


def test_notes_say_which_seeds_a_set_had() -> None:
    rows = [row("CART", 0.1, seed=4), row("CART", 0.2, seed=3), replace(row("CART", 0.3, seed=7), set="other")]
    text = format_table(INFO, rows, [])
    assert "- toy: at most 3 trials" in text
    assert "Seeds: 3, 4; cells: 2." in text
    assert "Seeds: 7; cells: 1." in text


def test_limits_that_were_exceeded_are_shown() -> None:
    text = format_table(INFO, [row("GOSDT", None, status="OOT"), row(OURS, 0.1)], [])
    assert "| GOSDT | single tree | OOT | OOM |  |" in text
    assert "| method | family | toy | paper | large, paper |" in text
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
    monkeypatch.setattr("benchmarks.paper.tables.__main__.note_of", lambda _name: "a toy")
    for module in ("cells", "__main__"):
        monkeypatch.setattr(f"benchmarks.paper.tables.{module}.load_scaled", lambda *_arguments, **_options: toy())
    arguments = ["toys", f"--out={tmp_path}", "--methods=CART", "--seeds=1,2", "--trials=1"]
    assert main(arguments) == 0
    assert "[2/2] toy" in capsys.readouterr().err
    first = (tmp_path / "toys_cells.csv").read_text()
    assert main(arguments) == 0
    assert (tmp_path / "toys_cells.csv").read_text() == first
    text = (tmp_path / "toys.md").read_text()
    assert text.startswith("# Toys\n")
    assert "- toy: a toy\n" in text


def test_methods_that_are_not_there_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["small", "--methods=CRAT"])
    assert "--methods must be some of Ours, CART, " in capsys.readouterr().err
