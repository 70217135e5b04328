"""Estimators that train on an NVIDIA GPU and predict on the CPU."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification, make_friedman1
from sklearn.metrics import adjusted_rand_score

import prunus
from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, TrainingOptions

pytestmark = pytest.mark.gpu

KINDS = [(split, leaf) for split in ("linear", "mlp") for leaf in ("constant", "linear", "mlp")]
CLASSES = make_classification(2000, 8, n_informative=5, n_classes=3, random_state=0)
VALUES = make_friedman1(2000, noise=0.1, random_state=0)
BLOBS = make_blobs(2000, 5, centers=6, random_state=0)[0]


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_a_regressor_is_as_good_as_on_the_cpu(split: str, leaf: str) -> None:
    here, there = (
        ArgminTreeRegressor(split=split, leaf=leaf, max_epochs=30, random_state=0, device=device).fit(*VALUES)
        for device in ("cpu", "cuda")
    )
    assert there.score(*VALUES) == pytest.approx(here.score(*VALUES), abs=0.02)
    assert next(there.model_.parameters()).device.type == "cpu"


@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
def test_a_classifier_is_as_good_as_on_the_cpu(leaf: str) -> None:
    here, there = (
        ArgminTreeClassifier(leaf=leaf, max_epochs=30, random_state=0, device=device).fit(*CLASSES)
        for device in ("cpu", "cuda")
    )
    assert there.score(*CLASSES) == pytest.approx(here.score(*CLASSES), abs=0.03)


def test_a_clusterer_finds_about_the_same_hierarchy_as_on_the_cpu() -> None:
    here, there = (ArgminTreeClusterer(depth=4, random_state=0, device=device).fit(BLOBS) for device in ("cpu", "cuda"))
    for depth in range(1, 5):
        assert adjusted_rand_score(here.cut(depth), there.cut(depth)) > 0.95
    np.testing.assert_allclose(there.distances_[-1], here.distances_[-1], rtol=0.05)
    assert next(there.model_.parameters()).device.type == "cpu"


@pytest.mark.parametrize(("split", "targets"), [("linear", [0, 1]), ("mlp", None), ("mlp", [0, 1])])
def test_a_clusterer_from_a_random_start_is_as_good_as_on_the_cpu(split: str, targets: list[int] | None) -> None:
    here, there = (
        ArgminTreeClusterer(depth=4, split=split, targets=targets, random_state=0, device=device).fit(BLOBS)
        for device in ("cpu", "cuda")
    )
    assert there.reconstruction_error(BLOBS) == pytest.approx(here.reconstruction_error(BLOBS), abs=0.01)


def test_the_same_seed_gives_the_same_predictions() -> None:
    estimator = ArgminTreeRegressor(max_epochs=5, random_state=3, device="cuda")
    first, second = (clone(estimator).fit(*VALUES).predict(VALUES[0]) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("options", [{"warm_start": True}, {"optimizer": "qhadam", "schedule": "plateau"}])
def test_weights_validation_data_and_going_on(options: dict[str, Any]) -> None:
    x, y = CLASSES
    tree = ArgminTreeClassifier(max_epochs=4, random_state=0, device="cuda", class_weight="balanced", **options)
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
    np.testing.assert_array_equal(prunus.load(tmp_path / "tree.safetensors").predict(x), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(tree)).predict(x), expected)
    np.testing.assert_allclose(tree.predict(x[:1]), expected[:1], atol=1e-6)
    assert np.isfinite(tree.predict(x, hard=True)).all()
