"""The benchmark of small trees: parts of tables, means, goals, the report, and the command."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness.cells import Cell
from benchmarks.harness.sets.indexed import read_index
from benchmarks.small import main
from benchmarks.small_bars import chosen, goal_bars, mean, pair, rival_bars, standings
from benchmarks.small_cells import GRACE_S, Plan, SmallRow, measure, run_cell
from benchmarks.small_lists import CART, CLASSES, CONTENDERS, FORMULAS, ONE_COLUMN, RIVALS, TWO_COLUMNS, VALUES
from benchmarks.small_methods import is_installed
from benchmarks.small_report import format_small_report
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


def test_a_class_with_a_single_row_does_not_stop_a_split(folder: Path) -> None:
    entry = read_index(folder)["pets"]
    table = load_small(folder, entry, 100)
    table.loc[table.index[0], "target"] = 7
    assert len(split_small(table, entry, 0, Protocol()).test_rows) == 25


def test_sampled_tables_are_kept(folder: Path, tmp_path: Path) -> None:
    entry = dataclasses.replace(read_index(folder)["airfoil"], sha256=None)
    assert load_small(folder, entry, 50, tmp_path / "cache").shape == (50, 3)
    assert not (tmp_path / "cache").exists()  # without a checksum nobody knows whether the file is the same
    known = tmp_path / "cache" / f"airfoil-50-{'0' * 12}.pkl"
    known.parent.mkdir()
    load_small(folder, entry, 40).to_pickle(known)
    assert len(load_small(folder, dataclasses.replace(entry, sha256="0" * 64), 50, tmp_path / "cache")) == 40


@pytest.mark.parametrize("method", ["STreeD", "obliquetree 2"])
@pytest.mark.parametrize("name", ["airfoil", "pets"])
def test_rivals_of_the_environment_learn_both_tasks(method: str, name: str, folder: Path) -> None:
    if not is_installed(CONTENDERS[method]):
        pytest.skip(f"{method} is not installed")
    data = split(folder, name, Protocol())
    found = measure(method, 4, data, seed=0, limit_s=30.0)
    assert found["score"] <= 100
    if name == "airfoil":  # the target is the first column
        assert found["score"] > 50


def test_cart_has_as_many_leaves_as_it_may(folder: Path) -> None:
    found = measure(CART, 4, split(folder, "airfoil", Protocol()), seed=0, limit_s=1.0)
    assert found["grown"] == 4
    assert found["train_score"] > 50


def test_what_is_not_there_is_not_installed() -> None:
    assert is_installed(CONTENDERS[CART])
    assert not is_installed(dataclasses.replace(CONTENDERS[CART], module="surely_nowhere"))


def test_differences_are_to_cart_with_the_same_seeds_and_leaves() -> None:
    rows = [*rows_of({"a": 2.0}, CLASSES, TWO_COLUMNS), row("a", CLASSES, CART, 90.0, seed=2)]
    (stand,) = chosen(standings(rows), TWO_COLUMNS, 8)
    assert stand.score == pytest.approx(52.5)
    assert stand.over_cart == pytest.approx(2.0)


def test_a_set_with_a_cell_that_failed_has_no_mean() -> None:
    rows = [*rows_of({"a": 2.0}, CLASSES, TWO_COLUMNS), row("a", CLASSES, TWO_COLUMNS, 0, seed=2, status="OOT")]
    assert chosen(standings(rows), TWO_COLUMNS, 8) == []


def test_two_methods_are_compared_on_the_sets_that_both_have() -> None:
    rows = rows_of({"a": 2.0, "b": 4.0}, VALUES, TWO_COLUMNS) + rows_of({"b": 3.0}, VALUES, "FIGS")
    both = pair(standings(rows), TWO_COLUMNS, "FIGS", 8, VALUES)
    assert both is not None
    assert both.sets == 1
    assert both.lead == pytest.approx(1.0)
    assert pair(standings(rows), TWO_COLUMNS, "FIGS", 8, CLASSES) is None


def test_goals_are_met_or_missed() -> None:
    good = rows_of({"a": 1.5, "b": 0.5}, CLASSES, ONE_COLUMN) + rows_of({"c": 1.6, "d": 1.4}, VALUES, ONE_COLUMN)
    assert [bar.met for bar in goal_bars(standings(good))] == [True, True, True]
    bad = rows_of({"a": 1.5, "b": 0.4}, CLASSES, ONE_COLUMN) + rows_of({"c": 4.0, "d": -0.6}, VALUES, ONE_COLUMN)
    assert [(bar.value, bar.met) for bar in goal_bars(standings(bad))] == [
        (pytest.approx(0.95), False),
        (pytest.approx(1.7), True),
        (1, False),
    ]


def test_goals_are_judged_when_all_cells_of_their_trees_are_there() -> None:
    rows = rows_of({"a": 5.0, "b": 5.0}, CLASSES, TWO_COLUMNS)
    assert len(goal_bars(standings(rows))) == 2
    some = [cell for cell in rows if (cell.set, cell.method, cell.seed) != ("b", TWO_COLUMNS, 1)]
    assert goal_bars(standings(some)) == []


def test_terms_must_beat_constant_leaves() -> None:
    rows = rows_of({"a": 5.0}, CLASSES, TWO_COLUMNS)
    for gain, met in ((5.5, True), (4.5, False)):
        more = [cell for cell in rows_of({"a": gain}, CLASSES, FORMULAS) if cell.method == FORMULAS]
        bars = [bar for bar in goal_bars(standings(rows + more)) if FORMULAS in bar.claim]
        assert [bar.met for bar in bars] == [met]


def test_rivals_are_judged_by_the_tree_that_is_like_them() -> None:
    rows = rows_of({"a": 2.0}, VALUES, TWO_COLUMNS) + rows_of({"a": 9.0}, VALUES, FORMULAS)
    rows += rows_of({"a": 5.0}, VALUES, "Cubist") + rows_of({"a": 3.0}, VALUES, "STreeD")
    assert {bar.claim.split(":")[0]: bar.met for bar in rival_bars(standings(rows))} == {
        "prunus 2 columns, 8 leaves": False,
        "prunus 2 columns 3 terms, 8 leaves": True,
    }


def test_the_report_says_what_the_rows_say() -> None:
    rows = rows_of({"a": 2.0, "b": -1.0}, CLASSES, TWO_COLUMNS) + rows_of({"c": 14.0}, VALUES, TWO_COLUMNS)
    late = dataclasses.replace(row("a", CLASSES, "ConTree", 0), status="OOT", score=None)
    rivals = [*rows_of({"a": 3.0, "b": 3.0}, CLASSES, "ConTree"), *rows_of({"b": 1.0}, CLASSES, TWO_COLUMNS)]
    rivals = [late if cell.cell == late.cell else cell for cell in rivals]
    text = format_small_report(rows, rivals, "## Notes\n\nNone.")
    lines = text.splitlines()
    assert "| prunus 2 columns | 8 | 3 | 51.00 | +0.50 | 64.50 | +14.00 | 1 | 2 |" in lines
    assert "| b | 50.50 | -1.00 |" in lines
    assert "| ConTree | 8 | accuracy | 1 | 53.50 | +3.00 | 51.50 | -2.00 | a OOT |" in lines
    assert "MISSED  prunus 2 columns, 8 leaves: points of mean accuracy above CART: 0.50 (bar >= 3.50)" in lines
    assert "met     prunus 2 columns, 8 leaves: points of mean R^2 above CART: 14.00 (bar >= 13.00)" in lines
    assert text.endswith("None.\n")


def test_means_are_over_sets_not_over_cells() -> None:
    rows = [*rows_of({"a": 0.0}, CLASSES, TWO_COLUMNS), row("b", CLASSES, TWO_COLUMNS, 80.0)]
    assert mean(chosen(standings(rows), TWO_COLUMNS, 8), "score") == pytest.approx((50.5 + 80.0) / 2)


def test_failures_and_timeouts_are_rows(folder: Path) -> None:
    plan = Plan(folder, Protocol(), limit_s=1e-6 - GRACE_S)
    late = run_cell(Cell("airfoil", 0, "CART @ 8"), read_index(folder)["airfoil"], plan)
    assert (late.status, late.method, late.leaves, late.task) == ("OOT", CART, 8, VALUES)


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


def test_absent_methods_are_left_out(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONTENDERS, "FIGS", dataclasses.replace(RIVALS["FIGS"], module="surely_nowhere"))
    chosen_cells = ["--sets=pets", "--seeds=0", "--methods=FIGS", "--protocol=rivals"]
    assert main([f"--data={folder}", f"--out={folder / 'out'}", *chosen_cells]) == 0
    assert "FIGS is not installed" in capsys.readouterr().err


def test_unknown_names_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([f"--data={folder}", f"--out={folder}", "--sets=iris"])
    assert "--sets must be some of pets, airfoil, got 'iris'" in capsys.readouterr().err
