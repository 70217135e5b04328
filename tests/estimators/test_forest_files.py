"""Forests in model files and as ONNX: what comes back predicts the same, and damage is noticed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from onnxruntime import InferenceSession  # type: ignore[import-untyped]
from safetensors.torch import load_file, save_file
from sklearn.exceptions import NotFittedError

import prunus
from prunus import ArgminForestClassifier, ArgminForestRegressor
from prunus.errors import InputTypeError, ModelFileError
from prunus.fitting.training_options import nested
from prunus.io import _checksum, _read
from tests.estimators.problems import as_pandas, labels, mixed, table, values
from tests.tolerances import ROUNDING

X = table(60)
QUICK: dict[str, Any] = {"leaf": "constant", "pieces": 0, "n_trees": 3, "depth": 2, "max_epochs": 5, "random_state": 0}
KINDS: list[dict[str, Any]] = [
    {},
    {"routing": "hard"},
    {"leaf": "mlp", "split": "mlp", "hidden_layer_sizes": (8,)},
    {"leaf": "linear", "bootstrap": True, "max_features": 2},
]
SAME = ROUNDING[torch.float32]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "forest.prunus"


def again(forest: Any, path: Path) -> Any:
    prunus.save(forest, path)
    return prunus.load(path)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_classifier_comes_back_to_the_bit(options: dict[str, Any], path: Path) -> None:
    forest = ArgminForestClassifier().set_params(**nested(QUICK | options)).fit(X, labels(X, "abc"))
    loaded = again(forest, path)
    for hard in (False, True):
        assert_array_equal(loaded.predict_proba(X, hard=hard), forest.predict_proba(X, hard=hard))
    assert_array_equal(loaded.apply(X), forest.apply(X))
    assert_array_equal(loaded.classes_, forest.classes_)
    assert loaded.get_params() == forest.get_params()
    assert [tree.get_params() for tree in loaded.estimators_] == [tree.get_params() for tree in forest.estimators_]


@pytest.mark.parametrize("options", [*KINDS, {"loss": "poisson"}], ids=str)
def test_a_regressor_comes_back_to_the_bit(options: dict[str, Any], path: Path) -> None:
    forest = ArgminForestRegressor().set_params(**nested(QUICK | options)).fit(X, np.abs(values(X)))
    loaded = again(forest, path)
    assert_array_equal(loaded.predict(X), forest.predict(X))
    assert_array_equal(loaded.predict_quantiles(X, [0.3]), forest.predict_quantiles(X, [0.3]))


def test_the_encoder_and_the_target_are_stored_once_and_shared(path: Path) -> None:
    frame = as_pandas(mixed(60))
    forest = ArgminForestRegressor(**QUICK).fit(frame, values(X))
    forest.target_name_, forest.date_orders_ = "price", {"since": "day-first"}
    loaded = again(forest, path)
    assert all(tree.encoder_ is loaded.encoder_ and tree.target_ is loaded.target_ for tree in loaded.estimators_)
    assert_array_equal(loaded.feature_names_in_, frame.columns)
    assert (loaded.target_name_, loaded.date_orders_) == ("price", {"since": "day-first"})
    header, tensors = _read(path)
    assert all("encoder" not in tree for tree in header["trees"])
    assert sorted(name for name in tensors if "target" in name) == ["target.deviation", "target.mean"]


def test_a_loaded_forest_grows_as_the_saved_one_would(path: Path) -> None:
    forest = ArgminForestRegressor(**QUICK, warm_start=True).fit(X, values(X))
    loaded = again(forest, path)
    expected, found = (one.set_params(n_trees=4).fit(X, values(X)) for one in (forest, loaded))
    assert_array_equal(found.predict(X), expected.predict(X))


def test_a_forest_that_is_not_fitted_is_not_saved(path: Path) -> None:
    with pytest.raises(NotFittedError):
        prunus.save(ArgminForestRegressor(), path)


def cut_weights(tensors: Any) -> None:
    tensors["trees.2.tree.splits.0.weight"] = tensors["trees.2.tree.splits.0.weight"][:, :2].clone()


@pytest.mark.parametrize(
    "damage",
    [
        lambda _, tensors: tensors.pop("trees.1.tree.mass"),
        lambda _, tensors: cut_weights(tensors),
        lambda _, tensors: tensors.update({"trees.3.tree.mass": tensors["trees.0.tree.mass"].clone()}),
        lambda record, _: record.update(trees=[]),
        lambda record, _: record.update(kind="ArgminForestClassifier"),
        lambda record, _: record["trees"].pop(),
        lambda record, _: record["fitted"].update(seed="7"),
        lambda record, _: record["fitted"].update(more=1),
        lambda record, _: record["fitted"].update(target_name_=1),
    ],
)
def test_a_damaged_file_is_refused(damage: Callable[[Any, Any], Any], path: Path) -> None:
    prunus.save(ArgminForestRegressor(**QUICK).fit(X, values(X)), path)
    (record, _), tensors = _read(path), load_file(path)
    damage(record, tensors)
    text = json.dumps(record)
    save_file(tensors, path, metadata={"prunus": text, "sha256": _checksum(text, tensors)})
    with pytest.raises(ModelFileError, match="damaged"):
        prunus.load(path)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_onnx_predicts_the_means_of_a_classifier(options: dict[str, Any], hard: bool, tmp_path: Path) -> None:
    forest = ArgminForestClassifier().set_params(**nested(QUICK | options)).fit(X, labels(X, "abc"))
    session = InferenceSession(prunus.export_onnx(forest, tmp_path / "forest.onnx", hard=hard))
    label, probabilities = session.run(["label", "probabilities"], {"X": X})
    assert_allclose(probabilities, forest.predict_proba(X, hard=hard), rtol=0, atol=SAME)
    assert_array_equal(label, forest.predict(X, hard=hard))


@pytest.mark.parametrize("options", [*KINDS, {"loss": "poisson"}], ids=str)
def test_onnx_predicts_the_means_of_a_regressor(options: dict[str, Any], tmp_path: Path) -> None:
    forest = ArgminForestRegressor().set_params(**nested(QUICK | options)).fit(X, np.abs(values(X)))
    session = InferenceSession(prunus.export_onnx(forest, tmp_path / "forest.onnx"))
    (found,) = session.run(["variable"], {"X": X})
    assert_allclose(found, forest.predict(X), rtol=SAME, atol=SAME)


def test_onnx_wants_splits_of_prunus(tmp_path: Path) -> None:
    forest = ArgminForestRegressor(**QUICK, split=lambda inputs, depth: torch.nn.Linear(inputs, 2**depth - 1))
    with pytest.raises(InputTypeError, match="the split must be one of prunus"):
        prunus.export_onnx(forest.fit(X, values(X)), tmp_path / "forest.onnx")
