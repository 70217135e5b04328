"""Means over seeds, bars and tables."""

import dataclasses
from pathlib import Path

import pytest

import benchmarks
from benchmarks.accuracy_bars import accuracy_bars
from benchmarks.accuracy_cells import AccuracyRow
from benchmarks.accuracy_lists import CONTENDERS
from benchmarks.accuracy_lists import HARD as ALL_HARD
from benchmarks.accuracy_report import CHOSEN, format_accuracy_report, format_leaderboard, standings
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


def test_hard_trees_are_judged_on_tasks_of_which_all_cells_are_there() -> None:
    scores = SCORES | dict.fromkeys(HARD, 85.7)
    rows = rows_of("airfoil", "regression", scores) + rows_of("pets", "classification", SCORES)
    judged = [bar for bar in accuracy_bars(standings(rows)) if "hard" in bar.claim]
    assert [bar.met for bar in judged] == [True, True, False, True, False]  # additive leaves; one column on one set
    assert judged[-1].value == 1.0
    some = [row for row in rows if (row.method, row.seed) != ("prunus hard linear", 2)]
    assert sum("hard" in bar.claim for bar in accuracy_bars(standings(some))) == len(judged) - 1


def test_classes_of_hard_trees_may_be_a_little_below_soft_ones() -> None:
    for score, met in ((SCORES["prunus linear"] - 0.5, True), (SCORES["prunus linear"] - 1, False)):
        rows = ROWS[: len(ROWS) // 2] + rows_of("pets", "classification", SCORES | dict.fromkeys(HARD, score))
        judged = [bar for bar in accuracy_bars(standings(rows)) if "hard" in bar.claim]
        assert [bar.met for bar in judged] == [met, True]  # the second: not below CART


def test_options_that_are_chosen_are_judged_on_tasks_of_which_all_cells_are_there() -> None:
    scores = SCORES | {"prunus auto": 88.95, "prunus hard auto": 88.3, "prunus forest 16": 88.4}
    rows = rows_of("airfoil", "regression", scores) + rows_of("pets", "classification", scores)
    judged = {bar.claim: bar.met for bar in accuracy_bars(standings(rows)) if "auto" in bar.claim or "16" in bar.claim}
    assert judged == {
        "mean R^2 of prunus auto": True,
        "mean accuracy of prunus auto": True,
        "mean R^2 of prunus forest 16": True,
        "mean accuracy of prunus forest 16": False,
        "sets with classes on which prunus forest 16 is ahead of LightGBM": False,
        "mean R^2 of prunus hard auto": True,
        "sets of regression on which prunus hard auto is not below CART": True,
        "mean accuracy of prunus hard auto": True,
        "sets of classification on which prunus hard auto is not below CART": True,
    }
    some = [row for row in rows if (row.method, row.task) != ("prunus auto", "regression")]
    left = [bar.claim for bar in accuracy_bars(standings(some)) if "auto" in bar.claim or "16" in bar.claim]
    assert set(judged) - set(left) == {"mean R^2 of prunus auto", "mean R^2 of prunus hard auto"}


def test_a_cell_without_a_score_misses_its_bars() -> None:
    first = next(row for row in ROWS if row.method == "prunus constant")
    late = dataclasses.replace(first, status="OOT", valid=None, test=None)
    stands = standings([late if row.cell == late.cell else row for row in ROWS])
    assert [bar.met for bar in accuracy_bars(stands)] == [False, True, True, True]
    assert "| OOT |" in format_leaderboard(stands)


def test_the_best_is_bold_and_published_numbers_are_beside() -> None:
    lines = format_leaderboard(standings(ROWS)).splitlines()
    (line,) = (line for line in lines if line.startswith("| airfoil"))
    assert line.count("**") == 2
    assert "**90.00 ± 1.41**" in line
    assert line.endswith("| 90.34 | 90.65 | 93.39 |")


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
