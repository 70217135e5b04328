"""Estimators whose trees the engine of GPUs trains, on a CPU by triton's interpreter: TRITON_INTERPRET=1."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1

from prunus import (
    ArgminForestRegressor,
    ArgminTreeClassifier,
    ArgminTreeClusterer,
    ArgminTreeRegressor,
    TrainingOptions,
)
from prunus.training.flat_engine import why_not_flat, why_not_run
from prunus.training.gpu.fused_engine import FusedEngine
from prunus.training.gpu.together import train_together
from tests.interpreter import IS_INTERPRETED

pytestmark = pytest.mark.skipif(not IS_INTERPRETED, reason="triton does not interpret kernels")

X, Y = make_friedman1(150, 6, random_state=0)
CLASSES = make_classification(150, 6, n_informative=4, n_classes=3, random_state=0)[1]
WEIGHT = np.random.default_rng(0).random(150) + 0.5


def why_not(model: Any, loss: Any, options: Any, refresh: Any, train: Any) -> str | None:
    """What the engine knows, on any device."""
    return why_not_flat(model) or why_not_run(loss, options, refresh, train.in_memory)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets trainers use the engine of GPUs from now on."""
    engines = (("fused", why_not, FusedEngine),)
    return lambda: monkeypatch.setattr("prunus.training.trainer._FAST_ENGINES", engines)


OF_ALL: dict[str, Any] = {
    "depth": 3,
    "max_epochs": 4,
    "training": TrainingOptions(batch_size=64, early_stopping_rounds=4),
    "random_state": 0,
}
BY_LOSSES = {"training": TrainingOptions(batch_size=64, early_stopping_rounds=4, schedule="plateau")}
CASES: dict[str, tuple[Any, Any, Any]] = {
    "constant leaves": (ArgminTreeRegressor(leaf="constant", **OF_ALL), Y, None),
    "weights": (ArgminTreeRegressor(leaf="linear", **OF_ALL), Y, WEIGHT),
    "pieces in additive leaves": (ArgminTreeRegressor(leaf="additive", pieces=4, **OF_ALL), Y, None),
    "pieces in linear leaves": (ArgminTreeRegressor(leaf="linear", pieces=4, **OF_ALL), Y, None),
    "networks": (ArgminTreeRegressor(leaf="mlp", hidden_layer_sizes=(8, 8), **OF_ALL), Y, WEIGHT),
    "few columns": (ArgminTreeRegressor(leaf="linear", max_split_features=2, **OF_ALL), Y, None),
    "two outputs": (ArgminTreeRegressor(leaf="linear", **OF_ALL), np.c_[Y, -Y], None),
    "quantiles": (ArgminTreeRegressor(leaf="constant", loss="quantile", **OF_ALL), Y, None),
    "counts": (ArgminTreeRegressor(leaf="linear", loss="poisson", **OF_ALL), Y.round(), None),
    "rates by losses": (
        ArgminTreeRegressor(leaf="constant", **OF_ALL | BY_LOSSES),
        Y,
        None,
    ),
    "three classes": (ArgminTreeClassifier(leaf="linear", class_weight="balanced", **OF_ALL), CLASSES, None),
    "two classes": (ArgminTreeClassifier(leaf="additive", **OF_ALL), CLASSES > 0, WEIGHT),
}


def outputs(tree: Any) -> Any:
    return tree.predict_proba(X) if hasattr(tree, "predict_proba") else tree.predict(X)


@pytest.mark.parametrize("case", CASES)
def test_a_fit_ends_like_that_of_the_cpu(case: str, fused: Any) -> None:
    tree, y, weight = CASES[case]
    expected = clone(tree).fit(X, y, sample_weight=weight)
    fused()
    found = clone(tree).fit(X, y, sample_weight=weight)
    assert (expected.history_["engine"][0], found.history_["engine"][0]) == ("native", "fused")
    assert found.history_["train_loss"] == pytest.approx(expected.history_["train_loss"], rel=1e-4)
    assert found.history_["valid_loss"] == pytest.approx(expected.history_["valid_loss"], rel=1e-4)
    np.testing.assert_allclose(outputs(found), outputs(expected), rtol=1e-4, atol=1e-4)


def test_clusters_are_those_of_the_cpu(fused: Any) -> None:
    expected = ArgminTreeClusterer(**OF_ALL).fit(X)
    fused()
    found = ArgminTreeClusterer(**OF_ALL).fit(X)
    np.testing.assert_array_equal(found.labels_, expected.labels_)


def test_trees_of_a_forest_that_are_trained_together_are_those_of_the_cpu(
    fused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With bootstrap, trees have weights and different numbers of rows."""
    forest = ArgminForestRegressor(n_trees=3, leaf="linear", bootstrap=True, **OF_ALL)
    expected = clone(forest).fit(X, Y)
    runs: list[int] = []

    def together(starts: Any) -> list[Any]:
        runs.append(len(starts))
        return train_together(starts)

    fused()
    monkeypatch.setattr("prunus.fitting.train.train_together", together)
    monkeypatch.setattr("prunus.fitting.forest.rounds", lambda numbers, *_: [numbers])
    monkeypatch.setattr("prunus.fitting.forest.is_cpu", lambda _device: False)
    found = clone(forest).fit(X, Y)
    assert runs == [3]
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-4, atol=1e-4)
