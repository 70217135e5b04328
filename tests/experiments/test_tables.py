"""The paper's tables: tuning, limits, and what is written."""

import contextlib
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.sets import PaperSet
from harness.methods import RIVALS
from harness.limits import Outcome, run_limited
from experiments.tables.__main__ import main
from experiments.tables.cell import Budget, Cell, TableRow, measure, tune
from experiments.tables.report import format_table, judge
from experiments.tables.table import OURS, TABLES, TableInfo

ROOT = Path(__file__).parents[2]
INFO = TableInfo(
    "Toys",
    ("toy",),
    ("CART", "GOSDT", "XGBoost", OURS),
    errors={"toy": {"CART": 0.3, "GOSDT": "OOM"}, "large": {"CART": 0.2}},
    goals={"toy": 0.1},
)


def toy(n: int = 90) -> PaperSet:
    x = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    third = n // 3
    parts = [(x[begin : begin + third], y[begin : begin + third]) for begin in (0, third, 2 * third)]
    return PaperSet("toy", "classes", *parts[0], *parts[1], *parts[2], ["a", "b", "c"])


def row(method: str, error: float | None, seconds: float = 1.0, *, seed: int = 1, status: str = "ok") -> TableRow:
    return TableRow("toy", seed, method, status, 3, 10.0, 60.0, error, 0.2, None if error is None else seconds, 5)


def test_starting_points_come_first_and_all_trials_count(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[dict[str, object]] = []

    def spy(*arguments: Any, **options: Any) -> Outcome:
        tried.append(arguments[2])
        return run_limited(*arguments, **options)

    monkeypatch.setattr("experiments.tables.cell.run_limited", spy)
    found = tune(Cell("toy", 1, "CART"), toy(), Budget(4, 60.0, 4_000.0))
    assert tried[:3] == list(RIVALS["CART"].starts_for("classes"))
    assert set(tried[3]) > {"max_depth", "splitter"}
    assert found.finished == 4
    assert found.best is not None
    assert found.best.valid_error <= 0.1
    assert found.best.outcome.valid_loss is not None


def test_of_equal_errors_the_surer_one_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    data = toy()
    losses = iter([None, 0.3, 0.1, 0.2])

    def answer(*_arguments: Any, **_options: Any) -> Outcome:
        return Outcome("ok", {"valid": data.y_valid, "test": data.y_test}, valid_loss=next(losses))

    monkeypatch.setattr("experiments.tables.cell.run_limited", answer)
    found = tune(Cell("toy", 1, "CART"), data, Budget(4, 60.0, 4_000.0))
    assert found.best is not None
    assert found.best.options == RIVALS["CART"].starts_for("classes")[2]


def test_no_trial_begins_after_the_time_for_tuning() -> None:
    found = tune(Cell("toy", 1, "CART"), toy(), Budget(4, 60.0, 4_000.0, tuning_seconds=1e-9))
    assert found.finished == 1


def test_a_method_that_stops_itself_is_told_when(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def refuse(*arguments: Any, **_options: Any) -> Outcome:
        told.append(arguments[2].get("time_limit"))
        return Outcome("OOT")

    monkeypatch.setattr("experiments.tables.cell.run_limited", refuse)
    for method in ("GOSDT", "CART"):
        assert tune(Cell("toy", 1, method), toy(), Budget(1, 60.0, 4_000.0)).failures == {"OOT": 1}
    assert told == [30.0, None]


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
    monkeypatch.setattr("experiments.tables.__main__.note_of", lambda _name: "a toy")
    for module in ("cell", "__main__"):
        monkeypatch.setattr(f"experiments.tables.{module}.load", lambda *_arguments, **_options: toy())
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
    assert "however: CRAT" in capsys.readouterr().err


def test_an_interrupt_ends_what_runs_and_stores_nothing_of_it(tmp_path: Path) -> None:
    program = (
        "import experiments.tables.__main__ as tables, tests.experiments.test_tables as toys;"
        "tables.TABLES['toys'] = toys.INFO; tables.load = lambda *_arguments: None;"
        "import experiments.tables.cell as cell; cell.load = lambda *_arguments, **_options: toys.toy(3000);"
        f"tables.main(['toys', '--out={tmp_path}', '--methods=Ours', '--seeds=1,2', '--jobs=2'])"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE)
    while not (fits := [fit for server in _children(process.pid) for fit in _children(server)]):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in said
    assert not (tmp_path / "toys_cells.csv").exists()
    deadline = time.monotonic() + 30
    while any(map(_is_running, fits)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_running(process: int) -> bool:
    """Whether it is there and not a zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def _children(process: int) -> list[int]:
    """Processes that a process has started, as Linux tells."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # those that have ended since
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
    return found
