"""Cells of clustering: their data, the methods on one split, and what is stored."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prunus.estimators
from benchmarks.harness.cluster_cells import SETS, ClusterRow, measure
from benchmarks.harness.clusterers import GHHC
from benchmarks.harness.clustering import CLUSTERERS, PAPER, fit_tree
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


def test_validation_chooses_among_trees_of_the_papers_scheme(folder: Path, fitted: list[Any]) -> None:
    data = read(folder, "glass")
    measured = measure(PAPER, "glass", data, seed=5, trials=8)
    assert len(fitted) == 8
    for tree in fitted:
        assert tree.options["targets"] == ["RI", "Na"]
        training = tree.options["training"]
        assert (training.batch_size, training.optimizer) == (8, "qhadam")
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
