"""A method tuned on one split."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.methods import FIT, Model, Problem
from benchmarks.spaces import FIRST, METHODS
from benchmarks.tables import read_index, read_split
from benchmarks.tuning import tune
from tests.benchmarks.tables import write_folder


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")  # eval_X is not in all of LightGBM 4
@pytest.mark.parametrize("name", ["airfoil", "pets"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_handles_both_tasks(method: str, name: str, tmp_path: Path) -> None:
    if method in ("XGBoost", "LightGBM"):
        pytest.importorskip(method.lower())
    folder = write_folder(tmp_path)
    split = read_split(folder, read_index(folder)[name], seed=1)
    tuned = tune(method, split, [FIRST[method]], seed=1, max_epochs=2)
    assert -100 < tuned.test <= 100
    assert tuned.leaves >= 1
    assert 0 < tuned.fit_seconds <= tuned.tuning_seconds


def test_validation_chooses_and_the_test_part_is_predicted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path)
    split = read_split(folder, read_index(folder)["airfoil"], seed=1)
    predicted = []

    def fit(configuration: dict[str, Any], problem: Problem) -> Model:
        truth = {id(split.valid.x): split.valid.y, id(split.test.x): split.test.y}

        def predict(x: Any) -> Any:
            predicted.append((configuration["error"], x is split.test.x))
            return truth[id(x)] + configuration["error"]

        assert not hasattr(problem, "test")
        return Model(predict, 1, None)

    monkeypatch.setitem(FIT, "CART", fit)
    tuned = tune("CART", split, [{"error": 0.5}, {"error": 0.1}, {"error": -0.1}], seed=1)
    assert [error for error, is_test in predicted if is_test] == [0.1]
    assert tuned.configuration == '{"error": 0.1}'
    assert np.isclose(tuned.test, 100 - 1 / split.test.y.var())
