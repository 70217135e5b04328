"""Means over seeds, bars and tables."""

import dataclasses
from pathlib import Path

import pytest

import benchmarks
from benchmarks.accuracy_bars import accuracy_bars
from benchmarks.accuracy_cells import AccuracyRow
from benchmarks.accuracy_lists import CONTENDERS
from benchmarks.accuracy_lists import HARD as ALL_HARD
from benchmarks.accuracy_report import CHOSEN, format_accuracy_report, standings
from benchmarks.harness.cells import CellStore
from benchmarks.harness.reports import format_bars

VALID = {"prunus constant": 90.0, "prunus linear": 95.0, "prunus mlp": 80.0}


def rows_of(name: str, task: str, test: dict[str, float], seeds: tuple[int, ...] = (1, 2)) -> list[AccuracyRow]:
    """All methods, with test scores one below and one above those given."""
    return [
        AccuracyRow(
            name, task, 9, 9, seed, method, "ok", 4, VALID.get(method, 0.0), test[method] + sign, 1.0, 2.0, 3, None
        )
        for seed, sign in zip(seeds, (-1, 1), strict=True)
        for method in (method for method in CONTENDERS if method in test)
    ]


RANKED = ["CART", "XGBoost", "LightGBM", "prunus constant", "prunus linear", "prunus mlp"]
AUTO = [method for method in CONTENDERS if "auto" in method or "forest" in method]
HARD = [method for method in ALL_HARD if method not in AUTO]
SOFT = [method for method in CONTENDERS if method not in (*HARD, *AUTO)]
SCORES = dict.fromkeys(SOFT, 80.0) | {method: 85.0 + i for i, method in enumerate(RANKED)}
ROWS = rows_of("airfoil", "regression", SCORES) + rows_of("pets", "classification", SCORES)


def test_mean_and_deviation_are_those_of_the_seeds() -> None:
    first = standings(ROWS)[0]
    assert (first.set, first.method, first.seeds, first.mean) == ("airfoil", "CART", 2, 85.0)
    assert first.std == pytest.approx(2**0.5)


def test_the_leaf_is_chosen_on_validation_in_each_split() -> None:
    rows = [
        dataclasses.replace(row, valid=99.0) if (row.method, row.seed) == ("prunus mlp", 2) else row for row in ROWS
    ]
    (chosen,) = (stand for stand in standings(rows) if (stand.set, stand.method) == ("pets", CHOSEN))
    assert chosen.mean == (SCORES["prunus linear"] - 1 + SCORES["prunus mlp"] + 1) / 2


def test_bars_are_met_or_missed() -> None:
    assert [bar.met for bar in accuracy_bars(standings(ROWS))] == [True, True, True, True]
    low = rows_of("airfoil", "regression", dict.fromkeys(SOFT, 84.0) | {"XGBoost": 84.5})
    weak = rows_of("pets", "classification", SCORES | {"prunus linear": 84.99})
    bars = accuracy_bars(standings(low + weak))
    assert [bar.met for bar in bars] == [True, False, False, False]
    assert "MISSED  mean R^2 of prunus linear: 84.00 (bar >= 84.77)" in format_bars(bars)


def test_the_stored_report_is_that_of_its_cells() -> None:
    folder = Path(benchmarks.__file__).parent
    store: CellStore[AccuracyRow] = CellStore(AccuracyRow, folder / "results" / "accuracy_cells.csv")
    stored = (folder / "results" / "accuracy.md").read_text()
    sets = [line.split("|")[1].strip() for line in stored.splitlines() if line.startswith("| ")]
    rows = sorted(
        store.rows.values(), key=lambda row: (sets.index(row.set), row.seed, list(CONTENDERS).index(row.method))
    )
    stands = standings(rows)
    notes = (folder / "accuracy_notes.md").read_text()
    assert format_accuracy_report(rows, stands, accuracy_bars(stands), notes) == stored
