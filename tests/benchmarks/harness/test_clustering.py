"""Cells of clustering: their data, the methods on one split, and what is stored."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prunus.estimators
from benchmarks.harness.cells import Cell, CellStore
from benchmarks.harness.cluster_cells import SETS, ClusterRow, cell_grid, measure, run_cell, run_missing, standings
from benchmarks.harness.clusterers import GHHC
from benchmarks.harness.clustering import CLUSTERERS, METHODS, PAPER, does, fit_tree
from benchmarks.harness.sets.loading import SplitSet, load_clusters
from benchmarks.harness.splits import shuffled_parts
from tests.benchmarks.harness.folders import write_clusters

pytestmark = pytest.mark.usefixtures("closed_sources")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_clusters(tmp_path)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The trees that were fitted, in place of the estimator: depth 3 reconstructs best, all rows end in one node."""
    found: list[Any] = []

    class Clusterer:
        def __init__(self, **options: Any) -> None:
            self.options = options
            self.measured: list[Any] = []

        def fit(self, x: Any) -> "Clusterer":
            self.train = x
            found.append(self)
            return self

        def apply(self, x: Any) -> Any:
            return np.zeros(len(x), dtype=np.int64)

        def transform(self, x: Any) -> Any:
            z = np.zeros((len(x), 7), dtype=np.float32)
            z[:, 1], z[:, 4] = 1.0, 0.5  # most of a row may reach an inner node; only leaves count
            return z

        def reconstruction_error(self, x: Any) -> float:
            self.measured.append(x)
            return abs(float(self.options["depth"]) - 3.1)

    monkeypatch.setattr(prunus.estimators, "ArgminTreeClusterer", Clusterer, raising=False)
    return found


def read(folder: Path, name: str) -> SplitSet:
    return load_clusters(SETS[name].source, folder, 1)


def test_columns_are_those_of_the_sources(folder: Path) -> None:
    assert list(read(folder, "glass").x.columns) == ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"]
    covtype = read(folder, "covtype")
    assert (covtype.x.shape, covtype.x.dtype) == ((60, 54), np.float32)
    assert read(folder, "letter").x.shape == (60, 5)


@pytest.mark.parametrize("name", SETS)
def test_the_split_is_that_of_accuracy(folder: Path, name: str) -> None:
    data = read(folder, name)
    assert np.array_equal(data.y, np.arange(60) % 3)
    for part, expected in zip(data.rows, shuffled_parts(data.y, 60, 1), strict=True):
        assert np.array_equal(part, expected)
    assert np.array_equal(np.sort(np.concatenate(data.rows)), np.arange(60))


@pytest.mark.parametrize(
    ("method", "name"), [*((method, "glass") for method in CLUSTERERS), *(("HKMeans", name) for name in SETS)]
)
def test_classes_that_are_far_apart_are_found(
    folder: Path, method: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.harness.clusterers.GHHC", functools.partial(GHHC, steps=50))
    row = ClusterRow(name, 1, method, "ok", 1, **measure(method, name, read(folder, name), seed=1, trials=1))
    assert row.test is not None
    assert row.all_rows is not None
    assert min(row.test, row.all_rows) > 0.9
    assert (row.n, row.classes) == (60, 3)
    assert 2 <= (row.leaves or 0) <= 64
    assert 0 < (row.fit_seconds or 0) <= (row.total_seconds or 0)
    assert "source" in row.versions


def test_other_methods_get_columns_in_units_of_the_training_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Clusterer:
        def __init__(self, depth: int, *, random_state: int) -> None:
            assert (depth, random_state) == (6, 5)

        def fit(self, x: Any) -> None:
            seen.append(x)

        def apply(self, x: Any) -> Any:
            seen.append(x)
            return np.zeros(len(x), dtype=np.int64)

    monkeypatch.setattr("benchmarks.harness.clusterers.HKMeans", Clusterer)
    data = read(folder, "covtype")
    fit_tree("HKMeans", "covtype", data, seed=5, trials=1).apply(data.x)
    train, everything = seen
    assert train.shape == (36, 54)
    assert np.allclose(train.mean(0), 0.0)
    assert np.allclose(train.std(0)[:-1], 1.0)
    assert (train[:, -1] == 0).all()
    assert np.allclose(everything[data.rows.train], train)


def test_prunus_gets_the_training_part_as_it_is(folder: Path, fitted: list[Any]) -> None:
    data = read(folder, "glass")
    measured = measure("prunus", "glass", data, seed=5, trials=6)
    (tree,) = fitted
    assert tree.options == {"random_state": 5}
    assert tree.train.equals(data.x.iloc[data.rows.train])
    assert measured["leaves"] == 1
    assert measured["all_rows"] == pytest.approx(1 / 3)


def test_validation_chooses_among_trees_of_the_papers_scheme(folder: Path, fitted: list[Any]) -> None:
    data = read(folder, "glass")
    measured = measure(PAPER, "glass", data, seed=5, trials=8)
    assert len(fitted) == 8
    for tree in fitted:
        assert tree.options["targets"] == ["RI", "Na"]
        assert (tree.options["batch_size"], tree.options["optimizer"]) == (8, "qhadam")
        assert 2 <= tree.options["depth"] <= 6
        assert 1e-3 <= tree.options["pruning_strength"] <= 1e3
        assert tree.measured[0].equals(data.x.iloc[data.rows.valid])
    best = min(fitted, key=lambda tree: abs(tree.options["depth"] - 3.1))
    assert measured["valid_error"] == pytest.approx(abs(best.options["depth"] - 3.1))
    chosen = f'"depth": {best.options["depth"]}, "pruning_strength": {best.options["pruning_strength"]}'
    assert chosen in measured["configuration"]
    tree = fit_tree(PAPER, "glass", data, seed=5, trials=1)
    assert tree.apply(data.x).tolist() == [4] * 60


def test_draws_depend_on_set_and_seed_and_more_trials_add_to_fewer(folder: Path, fitted: list[Any]) -> None:
    data = read(folder, "glass")
    for seed, trials in ((5, 2), (5, 3), (6, 2)):
        fit_tree(PAPER, "glass", data, seed, trials)
    strengths = [tree.options["pruning_strength"] for tree in fitted]
    assert strengths[:2] == strengths[2:4]
    assert strengths[:2] != strengths[5:]


def test_the_papers_scheme_is_for_the_papers_sets() -> None:
    assert [name for name in SETS if does(PAPER, name)] == ["glass", "covtype"]
    assert all(does(method, name) for name in SETS for method in METHODS if method != PAPER)
    assert len(cell_grid(list(SETS), [1], METHODS)) == 4 * 4 + 2


def test_results_failures_and_timeouts_are_rows(folder: Path) -> None:
    measured = run_cell(Cell("letter", 1225, "HKMeans"), folder, 1, 60.0)
    assert (measured.status, measured.n) == ("ok", 60)
    assert run_cell(Cell("letter", 1, "HKMeans"), folder, 1, 1e-6).status == "OOT"
    (folder / "letter.csv.gz").unlink()
    failed = run_cell(Cell("letter", 1, "HKMeans"), folder, 1, 60.0)
    assert failed.status.startswith("failed: benchmarks.harness.sets.files.MissingDataError")


def test_finished_cells_run_again_only_if_asked_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(cell: Cell, _data: Path, trials: int, _limit: float) -> ClusterRow:
        values = {"n": 60, "test": 0.5, "all_rows": 0.4, "fit_seconds": 1.0, "total_seconds": 2.0, "leaves": 3}
        return ClusterRow(*cell, "ok", trials if cell.method == PAPER else 1, **values)  # type: ignore[arg-type]

    monkeypatch.setattr("benchmarks.harness.cluster_cells.run_cell", measured)
    ran = []
    for options in ({}, {}, {"sets": ["letter"], "fresh": True}, {"trials": 7}):
        store: CellStore[ClusterRow] = CellStore(ClusterRow, folder / "cells.csv")
        assert not run_missing(store, folder, **({"sets": ["glass", "letter"], "seeds": [1225]} | options))  # type: ignore[arg-type]
        ran.append(capsys.readouterr().err.splitlines()[0].partition(" cells")[0])
    assert ran == ["0 of 9", "9 of 9", "0 of 4", "8 of 9"]


def test_mean_and_deviation_are_those_of_the_seeds() -> None:
    rows = [
        ClusterRow("glass", seed, "HKMeans", "ok", 1, 60, 9, 3, test, test - 0.1, 1.5, 2.0, 9)
        for seed, test in ((1, 0.49), (2, 0.51))
    ]
    (stand,) = standings(rows)
    assert (stand.set, stand.method, stand.seeds) == ("glass", "HKMeans", 2)
    assert stand.test == pytest.approx(0.5)
    assert stand.test_std == pytest.approx(0.01 * 2**0.5)
    assert stand.all_rows == pytest.approx(0.4)
    assert (stand.fit_seconds, stand.leaves) == (1.5, 9.0)
    (failed,) = standings([*rows, ClusterRow("glass", 3, "HKMeans", "OOT", 1)])
    assert (failed.status, failed.test) == ("OOT", None)
