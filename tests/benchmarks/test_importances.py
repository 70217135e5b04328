"""The benchmark of importances: a fit, the columns of its root, means over seeds, and the command."""

from pathlib import Path

import numpy as np
import pytest

import benchmarks
from benchmarks.harness.cells import Cell, CellStore
from benchmarks.harness.sets.indexed import read_index
from benchmarks.harness.sets.loading import load_table
from benchmarks.importances import SEEDS, SETS
from benchmarks.importances_cells import METHODS, ImportancesRow, measure, root_columns
from benchmarks.importances_report import format_importances_report, importances_bars, standings
from prunus import ArgminTreeRegressor
from tests.benchmarks.harness.folders import write_tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tables(tmp_path, SETS[:2])


def row(seed: int, root: str, *, method: str = "soft linear", status: str = "ok") -> ImportancesRow:
    return ImportancesRow(
        "airfoil", "regression", 100, 2, seed, method, status, 1, 0.5 + 0.1 * seed, 1, root, 90.0, 1.0
    )


@pytest.mark.parametrize("name", ["airfoil", "pets"])
@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_tree_is_measured_on_both_tasks(method: str, name: str, folder: Path) -> None:
    found = measure(method, load_table(folder, read_index(folder)[name], 1), seed=3)
    assert -1 <= found["spearman"] <= 1
    assert found["same_top"] in (0, 1)
    assert found["score"] <= 100
    if name == "airfoil":  # the target is the first column
        assert found["same_top"] == 1


def test_the_test_part_is_never_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_table(folder, read_index(folder)["airfoil"], 1)
    monkeypatch.setattr(type(data), "test", property(lambda _: pytest.fail("the test part was read")))
    assert measure("soft constant", data, seed=0)["same_top"] == 1


def test_columns_of_the_root_come_in_the_order_of_their_strength() -> None:
    x = np.random.default_rng(0).normal(size=(300, 3))
    tree = ArgminTreeRegressor(depth=1, max_epochs=30, random_state=0).fit(x, x[:, 2] + 0.3 * x[:, 0])
    assert root_columns(tree, x).tolist()[:2] == [2, 0]


def test_roots_are_compared_over_seeds() -> None:
    (stand,) = standings([row(0, "x1 x2 x3"), row(1, "x1 x3 x4"), row(2, "x5 x1 x3")])
    assert stand.same_root == pytest.approx(2 / 3)
    assert stand.root_overlap == pytest.approx(2 / 3)
    assert stand.spearman == pytest.approx(0.6)


def test_the_stored_report_is_that_of_its_cells() -> None:
    folder = Path(benchmarks.__file__).parent
    store: CellStore[ImportancesRow] = CellStore(ImportancesRow, folder / "results" / "importances_cells.csv")
    rows = [store.rows[Cell(name, seed, method)] for name in SETS for seed in SEEDS for method in METHODS]
    stands = standings(rows)
    notes = (folder / "importances_notes.md").read_text()
    text = format_importances_report(rows, stands, importances_bars(stands), notes)
    assert text == (folder / "results" / "importances.md").read_text()
