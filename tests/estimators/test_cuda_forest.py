"""Forests whose trees are trained together on an NVIDIA GPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1

from prunus import ArgminForestClassifier, ArgminForestRegressor
from prunus.estimators import forest as module
from prunus.fitting.options import forest_checkpoints
from prunus.fitting.training_options import nested

pytestmark = pytest.mark.gpu

DEVICE = "cuda"
CLASSES = make_classification(2000, 8, n_informative=5, n_classes=3, random_state=0)
VALUES = make_friedman1(2000, noise=0.1, random_state=0)


def regressor(**options: Any) -> ArgminForestRegressor:
    usual: dict[str, Any] = {
        "n_trees": 5,
        "leaf": "linear",
        "depth": 4,
        "max_epochs": 20,
        "random_state": 0,
        "device": DEVICE,
    }
    return ArgminForestRegressor().set_params(**nested(usual | options))


@pytest.mark.parametrize("leaf", ["constant", "linear", "additive", "mlp"])
@pytest.mark.parametrize("bootstrap", [False, True])
def test_a_forest_is_as_good_as_on_the_cpu(leaf: str, bootstrap: bool) -> None:
    here, there = (regressor(leaf=leaf, bootstrap=bootstrap, device=device).fit(*VALUES) for device in ("cpu", DEVICE))
    assert there.score(*VALUES) == pytest.approx(here.score(*VALUES), abs=0.02)


def test_a_forest_of_classes_is_as_good_as_on_the_cpu() -> None:
    here, there = (
        ArgminForestClassifier(
            n_trees=5, leaf="mlp", depth=4, max_epochs=20, max_features=0.7, random_state=0, device=device
        ).fit(*CLASSES)
        for device in ("cpu", DEVICE)
    )
    assert there.score(*CLASSES) == pytest.approx(here.score(*CLASSES), abs=0.03)


def test_trees_end_as_they_would_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    forest = regressor(max_epochs=4, early_stopping_rounds=None)
    together = forest.fit(*VALUES)
    monkeypatch.setattr("prunus.training.gpu.together.AT_ONCE", 1)
    alone = clone(forest).fit(*VALUES)
    for one, other in zip(alone.estimators_, together.estimators_, strict=True):
        np.testing.assert_allclose(other.history_["train_loss"], one.history_["train_loss"], rtol=1e-4)
    np.testing.assert_allclose(together.predict(VALUES[0]), alone.predict(VALUES[0]), rtol=1e-2, atol=1e-2)


def test_the_same_seed_gives_the_same_predictions() -> None:
    first, second = (regressor(max_epochs=5, random_state=3).fit(*VALUES).predict(VALUES[0]) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_trees_of_several_kinds_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [{"leaf": "linear", "depth": 3, "pieces": 0, "weight_decay": 0.1, "loss": 0.5}]
    kinds += [kinds[0] | {"leaf": "constant", "depth": 5}, kinds[0] | {"leaf": "additive", "pieces": 4}]
    monkeypatch.setattr(module.ArgminForest, "_choose", lambda *_: kinds[0] | {"candidates": kinds})
    here, there = (regressor(n_trees=6, device=device).fit(*VALUES) for device in ("cpu", DEVICE))
    assert [tree.leaf for tree in there.estimators_] == 2 * ["linear", "constant", "additive"]
    assert there.score(*VALUES) == pytest.approx(here.score(*VALUES), abs=0.02)


@pytest.mark.parametrize("options", [{"dropout": 0.2, "leaf": "mlp"}, {"split": "mlp"}], ids=["dropout", "mlp splits"])
def test_trees_that_cannot_be_joined(options: dict[str, Any]) -> None:
    forest = regressor(n_trees=3, max_epochs=5, hidden_layer_sizes=(32,), **options).fit(*VALUES)
    assert all(np.isfinite(tree.history_["train_loss"]).all() for tree in forest.estimators_)
    assert forest.score(*VALUES) > 0.3


def test_trees_stop_early_each_at_its_own_time() -> None:
    found = regressor(leaf="constant", max_epochs=60, early_stopping_rounds=2, learning_rate=0.1).fit(*VALUES)
    epochs = [tree.n_iter_ for tree in found.estimators_]
    assert min(epochs) < 60
    assert found.score(*VALUES) > 0.5


def test_hard_trees() -> None:
    here, there = (regressor(n_trees=3, routing="hard", device=device).fit(*VALUES) for device in ("cpu", DEVICE))
    assert there.score(*VALUES) == pytest.approx(here.score(*VALUES), abs=0.04)


def test_each_tree_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    forest = regressor(checkpoint=tmp_path / "run", max_epochs=6)
    forest.keeps_checkpoint = True
    expected = forest.fit(*VALUES).predict(VALUES[0])
    assert all(path.exists() for path in forest_checkpoints(tmp_path / "run", 5))
    again = regressor(checkpoint=tmp_path / "run", max_epochs=6).fit(*VALUES)
    np.testing.assert_allclose(again.predict(VALUES[0]), expected, rtol=1e-5, atol=1e-5)
    assert not list(tmp_path.iterdir())


def test_a_fit_that_was_interrupted_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_interrupted: Any, record: dict[str, Any]) -> None:
        if record["epoch"] == 14:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"max_epochs": 16, "early_stopping_rounds": None}
    with monkeypatch.context() as patch:
        patch.setattr(module, "_stop_if", interrupt)
        with pytest.raises(KeyboardInterrupt):
            regressor(checkpoint=tmp_path / "run", **options).fit(*VALUES)
    resumed = regressor(checkpoint=tmp_path / "run", **options).fit(*VALUES)
    whole = regressor(**options).fit(*VALUES)
    np.testing.assert_allclose(resumed.predict(VALUES[0]), whole.predict(VALUES[0]), rtol=1e-2, atol=1e-2)


def test_more_trees_than_are_trained_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.training.gpu.together.AT_ONCE", 2)
    here, there = (regressor(device=device).fit(*VALUES) for device in ("cpu", DEVICE))
    assert there.score(*VALUES) == pytest.approx(here.score(*VALUES), abs=0.02)
