"""The benchmark of small trees: parts of tables, means, goals, the report, and the command."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness.sets.indexed import read_index
from benchmarks.small import main
from benchmarks.small_bars import chosen, goal_bars, mean, standings
from benchmarks.small_cells import SmallRow
from benchmarks.small_lists import CART, CLASSES, ONE_COLUMN, TWO_COLUMNS, VALUES
from benchmarks.small_tables import MISSING, Protocol, SmallSplit, load_small, split_small
from tests.benchmarks.harness.folders import write_tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tables(tmp_path)


def split(folder: Path, name: str, protocol: Protocol, seed: int = 0) -> SmallSplit:
    entry = read_index(folder)[name]
    return split_small(load_small(folder, entry, protocol.rows), entry, seed, protocol)


def row(
    name: str, task: str, method: str, score: float, *, seed: int = 0, leaves: int = 8, status: str = "ok"
) -> SmallRow:
    found = None if status != "ok" else score
    return SmallRow(name, task, 100, 3, seed, method, leaves, status, 1, found, found, 0.5, leaves)


def rows_of(gains: dict[str, float], task: str, method: str, leaves: int = 8) -> list[SmallRow]:
    """CART with 50 points on each set, and a method with this many more; two seeds."""
    return [
        row(name, task, kind, 50 + seed + more, seed=seed, leaves=leaves)
        for name, gain in gains.items()
        for seed in (0, 1)
        for kind, more in ((CART, 0.0), (method, gain))
    ]


def test_a_quarter_scores_and_the_rest_trains(folder: Path) -> None:
    data = split(folder, "pets", Protocol())
    assert (len(data.train_rows), len(data.test_rows)) == (75, 25)
    assert not set(data.train_rows) & set(data.test_rows)
    assert np.bincount(data.y[data.test_rows]).max() <= 9  # three classes in equal shares


def test_inner_scores_rows_of_the_training_part(folder: Path) -> None:
    outer, inner = (split(folder, "airfoil", Protocol(inner=kind)) for kind in (False, True))
    assert set(inner.train_rows) | set(inner.test_rows) == set(outer.train_rows)
    assert len(inner.test_rows) == 19


def test_fewer_training_rows_leave_the_rows_that_score(folder: Path) -> None:
    outer, few = (split(folder, "airfoil", Protocol(train_rows=limit)) for limit in (None, 10))
    assert few.train_rows.tolist() == outer.train_rows[:10].tolist()
    assert few.test_rows.tolist() == outer.test_rows.tolist()


def test_seeds_draw_other_parts_of_the_same_rows(folder: Path) -> None:
    first, second = (split(folder, "airfoil", Protocol(rows=60), seed) for seed in (0, 1))
    assert (first.y == second.y).all()
    assert len(first.y) == 60
    assert set(first.test_rows) != set(second.test_rows)


def test_matrices_have_a_column_for_each_level_and_tables_keep_what_is_missing(folder: Path) -> None:
    data = split(folder, "pets", Protocol(rows=100))
    assert data.matrix.shape == (100, 4)
    assert (data.matrix == MISSING).sum() == 1
    table = data.train(as_table=True).x
    assert table["kind"].dtype == "category"
    assert data.x.isna().to_numpy().sum() == 1


def test_differences_are_to_cart_with_the_same_seeds_and_leaves() -> None:
    rows = [*rows_of({"a": 2.0}, CLASSES, TWO_COLUMNS), row("a", CLASSES, CART, 90.0, seed=2)]
    (stand,) = chosen(standings(rows), TWO_COLUMNS, 8)
    assert stand.score == pytest.approx(52.5)
    assert stand.over_cart == pytest.approx(2.0)


def test_a_set_with_a_cell_that_failed_has_no_mean() -> None:
    rows = [*rows_of({"a": 2.0}, CLASSES, TWO_COLUMNS), row("a", CLASSES, TWO_COLUMNS, 0, seed=2, status="OOT")]
    assert chosen(standings(rows), TWO_COLUMNS, 8) == []


def test_goals_are_met_or_missed() -> None:
    good = rows_of({"a": 1.5, "b": 0.5}, CLASSES, ONE_COLUMN) + rows_of({"c": 1.6, "d": 1.4}, VALUES, ONE_COLUMN)
    assert [bar.met for bar in goal_bars(standings(good))] == [True, True, True]
    bad = rows_of({"a": 1.5, "b": 0.4}, CLASSES, ONE_COLUMN) + rows_of({"c": 4.0, "d": -0.6}, VALUES, ONE_COLUMN)
    assert [(bar.value, bar.met) for bar in goal_bars(standings(bad))] == [
        (pytest.approx(0.95), False),
        (pytest.approx(1.7), True),
        (1, False),
    ]


def test_means_are_over_sets_not_over_cells() -> None:
    rows = [*rows_of({"a": 0.0}, CLASSES, TWO_COLUMNS), row("b", CLASSES, TWO_COLUMNS, 80.0)]
    assert mean(chosen(standings(rows), TWO_COLUMNS, 8), "score") == pytest.approx((50.5 + 80.0) / 2)


def test_a_second_run_computes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "out"
    arguments = [f"--data={folder}", f"--out={out}", "--sets=pets", "--seeds=0", "--methods=CART", "--leaves=4"]
    assert main(arguments) == 0
    first = (out / "small.csv").read_text()
    assert "[1/1] pets 0 CART @ 4:" in capsys.readouterr().err
    assert main(arguments) == 0
    assert (out / "small.csv").read_text() == first
    assert "1 of 1 cells are there already" in capsys.readouterr().err
    assert "Not judged: cells are missing." in (out / "small.md").read_text()
    assert main([*arguments, "--again"]) == 0
    assert len((out / "small.csv").read_text().splitlines()) == 2
