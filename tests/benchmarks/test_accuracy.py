"""The benchmark of accuracy: what is tried, a method tuned on one split, and the command."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.accuracy import main
from benchmarks.accuracy_cells import tune
from benchmarks.accuracy_lists import CONTENDERS, PUBLISHED, benchmark_sets, configurations
from benchmarks.harness.methods.interface import MethodBase, Targets, Task
from benchmarks.harness.sets.indexed import read_index
from benchmarks.harness.sets.loading import SplitSet, load_table
from tests.benchmarks.harness.folders import write_tables

NAMES = list(CONTENDERS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tables(tmp_path, PUBLISHED)


def load(folder: Path, name: str) -> SplitSet:
    return load_table(folder, read_index(folder)[name], seed=1)


def test_the_published_sets_come_first_then_all_with_classes(folder: Path) -> None:
    assert list(benchmark_sets(read_index(folder))) == [*PUBLISHED, "pets"]


@pytest.mark.parametrize("name", NAMES)
def test_the_first_is_the_default_and_all_differ(name: str) -> None:
    drawn = configurations(name, "airfoil", 1225, 6)
    assert drawn[0] == CONTENDERS[name].first
    greedy = {"CART": 18, "obliquetree 2": 18, "obliquetree 3": 18}
    untuned = {"prunus auto": 1, "prunus forest 16": 1, "prunus hard auto": 1}
    assert len(drawn) == (greedy | untuned | {"EBM": 2}).get(name, 6)
    assert all(a != b for i, a in enumerate(drawn) for b in drawn[:i])


def test_draws_depend_on_set_seed_and_method_alone() -> None:
    drawn = configurations("prunus mlp", "airfoil", 1225, 6)
    assert configurations("prunus mlp", "airfoil", 1225, 4) == drawn[:4]
    assert configurations("prunus mlp", "airfoil", 1337, 6) != drawn
    assert configurations("prunus mlp", "abalone", 1225, 6) != drawn


@pytest.mark.parametrize("set_name", ["airfoil", "pets"])
@pytest.mark.parametrize("name", NAMES)
def test_every_method_handles_both_tasks(name: str, set_name: str, folder: Path) -> None:
    if CONTENDERS[name].versions:
        pytest.importorskip(CONTENDERS[name].versions)
    tuned = tune(name, load(folder, set_name), [CONTENDERS[name].first], seed=1, max_epochs=2)
    assert -100 < tuned["test"] <= 100
    assert tuned["leaves"] is None if name == "EBM" else tuned["leaves"] >= 1
    assert (tuned["parameters"] is None) == CONTENDERS[name].is_ensemble
    assert 0 < tuned["fit_seconds"] <= tuned["tuning_seconds"]


def test_validation_chooses_and_the_test_part_is_predicted_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load(folder, "airfoil")
    predicted = []

    class Wrong(MethodBase):
        takes_tables = True

        def __init__(self, task: Task, *, random_state: int, error: float) -> None:
            super().__init__(task, random_state=random_state)
            self.error, self.n_leaves = error, 1

        def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:  # noqa: ARG002
            assert (x is data.train.x, x_valid is data.valid.x) == (True, True)

        def _predict(self, x: Any) -> Any:
            predicted.append((self.error, x is data.test.x))
            return (data.test.y if x is data.test.x else data.valid.y) + self.error

        def _count(self) -> int:
            return 1

    monkeypatch.setattr("benchmarks.accuracy_cells.find_method", {"CART": Wrong}.get)
    tuned = tune("CART", data, [{"error": 0.5}, {"error": 0.1}, {"error": -0.1}], seed=1)
    assert [error for error, is_test in predicted if is_test] == [0.1]
    assert tuned["configuration"] == '{"error": 0.1}'
    assert np.isclose(tuned["test"], 100 - 1 / data.test.y.var())


def test_a_second_run_computes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "out"
    arguments = [f"--data={folder}", f"--out={out}", "--sets=pets", "--seeds=1225", "--methods=CART"]
    assert main(arguments) == 0
    first = (out / "accuracy_cells.csv").read_text()
    assert "[1/1] pets 1225 CART: test" in capsys.readouterr().err
    assert main(arguments) == 0
    assert (out / "accuracy_cells.csv").read_text() == first
    assert "1 of 1 cells are there already" in capsys.readouterr().err
    assert {path.name for path in out.iterdir()} == {"accuracy_cells.csv", "accuracy.csv", "accuracy.md"}
