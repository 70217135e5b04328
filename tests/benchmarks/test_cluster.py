"""The clustering benchmark: its data, its methods on one split, and the command."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prunus.estimators
from benchmarks.cells import Cell
from benchmarks.cluster import main
from benchmarks.cluster_cell import ClusterRow, cluster_cell, measure
from benchmarks.cluster_methods import METHODS, PAPER, RIVALS, Task, does, fit_tree
from benchmarks.cluster_tables import SETS, read_clusters
from benchmarks.tables import split_rows
from harness.clusterers import GHHC
from tests.benchmarks.cluster_tables import write_cluster_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_cluster_folder(tmp_path)


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


def test_columns_are_those_of_the_sources(folder: Path) -> None:
    glass = read_clusters(folder, "glass", 1)
    assert list(glass.x.columns) == ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"]
    covtype = read_clusters(folder, "covtype", 1)
    assert (covtype.x.shape, covtype.x.dtype) == ((60, 54), np.float32)
    assert read_clusters(folder, "letter", 1).x.shape == (60, 5)


@pytest.mark.parametrize("name", SETS)
def test_the_split_is_that_of_accuracy(folder: Path, name: str) -> None:
    data = read_clusters(folder, name, 1)
    assert np.array_equal(data.y, np.arange(60) % 3)
    for part, expected in zip((data.train, data.valid, data.test), split_rows(data.y, 60, 1), strict=True):
        assert np.array_equal(part, expected)
    assert np.array_equal(np.sort(np.concatenate((data.train, data.valid, data.test))), np.arange(60))


@pytest.mark.parametrize(
    ("method", "name"), [*((method, "glass") for method in RIVALS), *(("HKMeans", name) for name in SETS)]
)
def test_rivals_find_classes_that_are_far_apart(
    folder: Path, method: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.clusterers.GHHC", functools.partial(GHHC, steps=50))
    measured = measure(method, Task(name, read_clusters(folder, name, 1), seed=1, trials=1))
    assert measured.test > 0.9
    assert measured.all_rows > 0.9
    assert (measured.n, measured.classes) == (60, 3)
    assert 2 <= measured.leaves <= 64
    assert 0 < measured.fit_seconds <= measured.total_seconds
    assert "source" in measured.versions


def test_rivals_get_columns_in_units_of_the_training_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Rival:
        def __init__(self, depth: int, *, random_state: int) -> None:
            assert (depth, random_state) == (6, 5)

        def fit(self, x: Any) -> None:
            seen.append(x)

        def apply(self, x: Any) -> Any:
            seen.append(x)
            return np.zeros(len(x), dtype=np.int64)

    monkeypatch.setattr("harness.clusterers.HKMeans", Rival)
    data = read_clusters(folder, "covtype", 1)
    fit_tree("HKMeans", Task("covtype", data, seed=5, trials=1)).apply(data.x)
    train, everything = seen
    assert train.shape == (36, 54)
    assert np.allclose(train.mean(0), 0.0)
    assert np.allclose(train.std(0)[:-1], 1.0)
    assert (train[:, -1] == 0).all()
    assert np.allclose(everything[data.train], train)


def test_prunus_gets_the_training_part_as_it_is(folder: Path, fitted: list[Any]) -> None:
    data = read_clusters(folder, "glass", 1)
    measured = measure("prunus", Task("glass", data, seed=5, trials=6))
    (tree,) = fitted
    assert tree.options == {"random_state": 5}
    assert tree.train.equals(data.x.iloc[data.train])
    assert measured.leaves == 1
    assert measured.all_rows == pytest.approx(1 / 3)


def test_validation_chooses_among_trees_of_the_papers_scheme(folder: Path, fitted: list[Any]) -> None:
    data = read_clusters(folder, "glass", 1)
    measured = measure(PAPER, Task("glass", data, seed=5, trials=8))
    assert len(fitted) == 8
    for tree in fitted:
        assert tree.options["targets"] == ["RI", "Na"]
        assert (tree.options["batch_size"], tree.options["optimizer"]) == (8, "qhadam")
        assert 2 <= tree.options["depth"] <= 6
        assert 1e-3 <= tree.options["pruning_strength"] <= 1e3
        assert tree.measured[0].equals(data.x.iloc[data.valid])
    best = min(fitted, key=lambda tree: abs(tree.options["depth"] - 3.1))
    assert measured.valid_error == pytest.approx(abs(best.options["depth"] - 3.1))
    assert f'"depth": {best.options["depth"]}, "pruning_strength": {best.options["pruning_strength"]}' in (
        measured.configuration
    )
    tree = fit_tree(PAPER, Task("glass", data, seed=5, trials=1))
    assert tree.apply(data.x).tolist() == [4] * 60


def test_draws_depend_on_set_and_seed_and_more_trials_add_to_fewer(folder: Path, fitted: list[Any]) -> None:
    data = read_clusters(folder, "glass", 1)
    for seed, trials in ((5, 2), (5, 3), (6, 2)):
        fit_tree(PAPER, Task("glass", data, seed, trials))
    strengths = [tree.options["pruning_strength"] for tree in fitted]
    assert strengths[:2] == strengths[2:4]
    assert strengths[:2] != strengths[5:]


def test_the_papers_scheme_is_for_the_papers_sets() -> None:
    assert [name for name in SETS if does(PAPER, name)] == ["glass", "covtype"]
    assert all(does(method, name) for name in SETS for method in METHODS if method != PAPER)


def test_failures_and_timeouts_are_rows(folder: Path) -> None:
    (folder / "letter.csv.gz").unlink()
    failed = cluster_cell(Cell("letter", 1, "HKMeans"), folder, 1, 60.0)
    assert failed.status.startswith("failed: FileNotFoundError")
    assert cluster_cell(Cell("glass", 1, "HKMeans"), folder, 1, 0.01).status == "OOT"


def test_a_second_run_computes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "out"
    arguments = [f"--data={folder}", f"--out={out}", "--sets=glass", "--seeds=1225", "--methods=HKMeans"]
    assert main(arguments) == 0
    first = (out / "cluster_cells.csv").read_text()
    assert "[1/1] glass 1225 HKMeans: test" in capsys.readouterr().err
    assert main(arguments) == 0
    assert (out / "cluster_cells.csv").read_text() == first
    assert "0 cells to run" in capsys.readouterr().err
    assert {path.name for path in out.iterdir()} == {"cluster_cells.csv", "cluster.csv", "cluster.md"}
    assert "Not judged: cells are missing." in (out / "cluster.md").read_text()


def test_finished_cells_run_again_if_asked_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(cell: Cell, _data: Path, trials: int, _limit: float) -> ClusterRow:
        values = {"n": 60, "test": 0.5, "all_rows": 0.4, "fit_seconds": 1.0, "total_seconds": 2.0, "leaves": 3}
        return ClusterRow(*cell, "ok", trials if cell.method == PAPER else 1, **values)  # type: ignore[arg-type]

    monkeypatch.setattr("benchmarks.cluster.cluster_cell", measured)
    arguments = [f"--data={folder}", f"--out={folder / 'out'}", "--sets=glass,letter", "--seeds=1225"]
    ran = []
    for more in ([], [], ["--sets=letter", "--fresh"], ["--trials=7"]):
        assert main([*arguments, *more]) == 0
        ran.append(capsys.readouterr().err.splitlines()[0])
    assert ran == ["9 cells to run", "0 cells to run", "4 cells to run", "1 cells to run"]


def test_unknown_names_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([f"--data={folder}", f"--out={folder}", "--sets=iris"])
    assert "there is no set 'iris'; there are: glass, satimage, letter, covtype" in capsys.readouterr().err
