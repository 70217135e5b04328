"""Estimators that train on an NVIDIA GPU and predict on the CPU, trees alone and in forests."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification, make_friedman1
from sklearn.metrics import adjusted_rand_score

import prunus
from prunus import (
    ArgminForestClassifier,
    ArgminTreeClassifier,
    ArgminTreeClusterer,
    ArgminTreeRegressor,
    TrainingOptions,
)
from prunus.estimators.forest import ArgminForest
from prunus.fitting.options import forest_checkpoints
from prunus.fitting.training_options import nested
from tests.estimators.problems import made

pytestmark = pytest.mark.gpu

KINDS = [(split, leaf) for split in ("linear", "mlp") for leaf in ("constant", "linear", "mlp")]
CLASSES = make_classification(2000, 8, n_informative=5, n_classes=3, random_state=0)
VALUES = make_friedman1(2000, noise=0.1, random_state=0)
BLOBS = make_blobs(2000, 5, centers=6, random_state=0)[0]
FOREST: dict[str, Any] = {"n_trees": 5, "leaf": "linear", "depth": 4, "max_epochs": 20, "random_state": 0}


def on_both(make: Any, data: Any, **options: Any) -> tuple[Any, Any]:
    """Estimators that were trained on the CPU and on the GPU."""
    here, there = (make(random_state=0, device=device, **options).fit(*data) for device in ("cpu", "cuda"))
    return here, there


def forest(**options: Any) -> prunus.ArgminForestRegressor:
    return made(prunus.ArgminForestRegressor, FOREST | {"device": "cuda"} | options)


def forests_on_both(**options: Any) -> tuple[Any, Any]:
    here, there = (forest(device=device, **options).fit(*VALUES) for device in ("cpu", "cuda"))
    return here, there


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_trees_are_as_good_as_on_the_cpu(split: str, leaf: str) -> None:
    here, there = on_both(ArgminTreeRegressor, VALUES, split=split, leaf=leaf, max_epochs=30)
    assert there.score(*VALUES) == pytest.approx(here.score(*VALUES), abs=0.02)
    assert next(there.model_.parameters()).device.type == "cpu"
    if split == "linear":
        here, there = on_both(ArgminTreeClassifier, CLASSES, leaf=leaf, max_epochs=30)
        assert there.score(*CLASSES) == pytest.approx(here.score(*CLASSES), abs=0.03)


def test_a_clusterer_finds_about_the_same_hierarchy_as_on_the_cpu() -> None:
    here, there = on_both(ArgminTreeClusterer, (BLOBS,), depth=4)
    for depth in range(1, 5):
        assert adjusted_rand_score(here.cut(depth), there.cut(depth)) > 0.95
    np.testing.assert_allclose(there.distances_[-1], here.distances_[-1], rtol=0.05)
    assert next(there.model_.parameters()).device.type == "cpu"


@pytest.mark.parametrize(("split", "targets"), [("linear", [0, 1]), ("mlp", None), ("mlp", [0, 1])])
def test_a_clusterer_from_a_random_start_is_as_good_as_on_the_cpu(split: str, targets: list[int] | None) -> None:
    here, there = on_both(ArgminTreeClusterer, (BLOBS,), depth=4, split=split, targets=targets)
    assert there.reconstruction_error(BLOBS) == pytest.approx(here.reconstruction_error(BLOBS), abs=0.01)


@pytest.mark.parametrize(
    "estimator", [ArgminTreeRegressor(max_epochs=5, random_state=3, device="cuda"), forest(max_epochs=5)]
)
def test_the_same_seed_gives_the_same_predictions(estimator: Any) -> None:
    first, second = (clone(estimator).fit(*VALUES).predict(VALUES[0]) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("options", [{"warm_start": True}, {"optimizer": "qhadam", "schedule": "plateau"}])
def test_weights_validation_data_and_going_on(options: dict[str, Any]) -> None:
    x, y = CLASSES
    tree = ArgminTreeClassifier(max_epochs=4, random_state=0, device="cuda", class_weight="balanced")
    tree.set_params(**nested(options))
    weight = np.random.default_rng(0).random(len(x))
    for _ in range(2):
        tree.fit(x, y, sample_weight=weight, eval_set=(x[:200], y[:200]))
    tree.partial_fit(x, y)
    assert len(tree.history_["valid_loss"]) == tree.n_iter_


def test_what_was_trained_there_is_kept_like_any_other(tmp_path: Path) -> None:
    x, y = VALUES
    tree = ArgminTreeRegressor(
        max_epochs=4, random_state=0, device="cuda", training=TrainingOptions(checkpoint=tmp_path / "run.ckpt")
    ).fit(x, y)
    prunus.save(tree, tmp_path / "tree.safetensors")
    expected = tree.predict(x)
    for again in (prunus.load(tmp_path / "tree.safetensors"), pickle.loads(pickle.dumps(tree))):
        np.testing.assert_array_equal(again.predict(x), expected)
    np.testing.assert_allclose(tree.predict(x[:1]), expected[:1], atol=1e-6)
    assert np.isfinite(tree.predict(x, hard=True)).all()


@pytest.mark.parametrize("leaf", ["constant", "linear", "additive", "mlp"])
@pytest.mark.parametrize("bootstrap", [False, True])
def test_forests_are_as_good_as_on_the_cpu(leaf: str, bootstrap: bool) -> None:
    here, there = forests_on_both(leaf=leaf, bootstrap=bootstrap)
    assert there.score(*VALUES) == pytest.approx(here.score(*VALUES), abs=0.02)
    if leaf == "mlp" and not bootstrap:
        options = {name: FOREST[name] for name in ("n_trees", "depth", "max_epochs")} | {"max_features": 0.7}
        here, there = on_both(ArgminForestClassifier, CLASSES, leaf=leaf, **options)
        assert there.score(*CLASSES) == pytest.approx(here.score(*CLASSES), abs=0.03)


def test_trees_end_as_they_would_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    together = forest(max_epochs=4, early_stopping_rounds=None).fit(*VALUES)
    monkeypatch.setattr("prunus.training.gpu.together.AT_ONCE", 1)
    alone = clone(together).fit(*VALUES)
    for one, other in zip(alone.estimators_, together.estimators_, strict=True):
        np.testing.assert_allclose(other.history_["train_loss"], one.history_["train_loss"], rtol=1e-4)
    np.testing.assert_allclose(together.predict(VALUES[0]), alone.predict(VALUES[0]), rtol=1e-2, atol=1e-2)


def test_trees_of_several_kinds_and_more_than_are_trained_at_once_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [{"leaf": "linear", "depth": 3, "pieces": 0, "weight_decay": 0.1, "loss": 0.5}]
    kinds += [kinds[0] | {"leaf": "constant", "depth": 5}, kinds[0] | {"leaf": "additive", "pieces": 4}]
    with monkeypatch.context() as patch:
        patch.setattr(ArgminForest, "_choose", lambda *_, **__: kinds[0] | {"candidates": kinds})
        here, there = forests_on_both(n_trees=6)
    assert [tree.leaf for tree in there.estimators_] == 2 * ["linear", "constant", "additive"]
    assert there.score(*VALUES) == pytest.approx(here.score(*VALUES), abs=0.02)
    monkeypatch.setattr("prunus.training.gpu.together.AT_ONCE", 2)
    here, there = forests_on_both()
    assert there.score(*VALUES) == pytest.approx(here.score(*VALUES), abs=0.02)


@pytest.mark.parametrize("options", [{"dropout": 0.2, "leaf": "mlp"}, {"split": "mlp"}], ids=["dropout", "mlp splits"])
def test_trees_that_cannot_be_joined(options: dict[str, Any]) -> None:
    found = forest(n_trees=3, max_epochs=5, hidden_layer_sizes=(32,), **options).fit(*VALUES)
    assert all(np.isfinite(tree.history_["train_loss"]).all() for tree in found.estimators_)
    assert found.score(*VALUES) > 0.3


def test_trees_stop_early_each_at_its_own_time_and_may_be_hard() -> None:
    found = forest(leaf="constant", max_epochs=60, early_stopping_rounds=2, learning_rate=0.1).fit(*VALUES)
    assert min(tree.n_iter_ for tree in found.estimators_) < 60
    assert found.score(*VALUES) > 0.5
    here, there = forests_on_both(n_trees=3, routing="hard")
    assert there.score(*VALUES) == pytest.approx(here.score(*VALUES), abs=0.04)


def test_each_tree_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    made: Any = forest(checkpoint=tmp_path / "run", max_epochs=6)
    made.keeps_checkpoint = True
    expected = made.fit(*VALUES).predict(VALUES[0])
    assert all(path.exists() for path in forest_checkpoints(tmp_path / "run", 5))
    again = forest(checkpoint=tmp_path / "run", max_epochs=6).fit(*VALUES)
    np.testing.assert_allclose(again.predict(VALUES[0]), expected, rtol=1e-5, atol=1e-5)
    assert not list(tmp_path.iterdir())


def test_a_fit_that_was_interrupted_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_interrupted: Any, record: dict[str, Any]) -> None:
        if record["epoch"] == 14:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"max_epochs": 16, "early_stopping_rounds": None}
    with monkeypatch.context() as patch:
        patch.setattr("prunus.fitting.forest._stop_if", interrupt)
        with pytest.raises(KeyboardInterrupt):
            forest(checkpoint=tmp_path / "run", **options).fit(*VALUES)
    resumed = forest(checkpoint=tmp_path / "run", **options).fit(*VALUES)
    whole = forest(**options).fit(*VALUES)
    np.testing.assert_allclose(resumed.predict(VALUES[0]), whole.predict(VALUES[0]), rtol=1e-2, atol=1e-2)
