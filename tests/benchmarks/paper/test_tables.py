"""The paper's tables: tuning, limits, and what is written."""

from typing import Any

import numpy as np
import pytest

from benchmarks.harness.cells import Cell
from benchmarks.harness.fitting import Fit, fit_limited
from benchmarks.harness.sets.loading import SplitSet
from benchmarks.harness.splits import Parts
from benchmarks.paper.tables.cells import Budget, TableRow, measure, tune
from benchmarks.paper.tables.paper_tables import OURS, TableInfo
from benchmarks.paper.tables.report import judge
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


def test_a_cell_is_scored_on_the_test_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.paper.tables.cells.load_scaled", lambda *_arguments, **_options: toy())
    measured = measure(Cell("toy", 1, "CART"), None, Budget(1, 60.0, 4_000.0))
    assert measured.status == "ok"
    assert measured.test_error is not None
    assert measured.test_error <= 0.1
    assert measured.n_parameters is not None
    assert measured.n_parameters >= 3


def test_goals_are_judged() -> None:
    rows = {"CART": [row("CART", 0.05)], OURS: [row(OURS, 0.1)]}
    assert judge(INFO, {"toy": rows}) == [
        "met toy: 0.1000, goal 0.100",
        "MISSED toy: 0.1000, the best rival CART 0.0500",
    ]
