"""Predictions of models in leaves stay near the range of the training targets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prunus import ArgminTreeClassifier, ArgminTreeRegressor, export_onnx, load, save

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-1, 1, size=(400, 2))
Y = 3 * X[:, 0] + X[:, 1] ** 2
FAR = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]) * 3  # the encoder limits inputs further out
MARGIN = 0.1 * (Y.max() - Y.min())


def tree(**options: object) -> ArgminTreeRegressor:
    return ArgminTreeRegressor(depth=2, max_epochs=20, random_state=0, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("leaf", ["linear", "additive", "mlp"])
def test_predictions_stay_near_the_targets(leaf: str, hard: bool) -> None:
    found = tree(leaf=leaf, hidden_layer_sizes=(8,)).fit(X, Y).predict(FAR, hard=hard)
    assert (found >= Y.min() - MARGIN - 1e-5).all()
    assert (found <= Y.max() + MARGIN + 1e-5).all()


def test_a_linear_leaf_would_go_further() -> None:
    made = tree(leaf="linear").fit(X, Y)
    made.tree_ = replace(made.tree_, limits=None)
    assert made.predict(FAR).max() > Y.max() + 2 * MARGIN


def test_files_keep_the_limits(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    made = tree(leaf="linear").fit(X, Y)
    save(made, tmp_path / "tree.prunus")
    expected = made.predict(FAR)
    assert (load(tmp_path / "tree.prunus").predict(FAR) == expected).all()
    session = onnxruntime.InferenceSession(export_onnx(made, tmp_path / "tree.onnx"))
    (inputs,) = session.get_inputs()
    (outputs,) = session.run(None, {inputs.name: FAR})
    assert outputs.ravel() == pytest.approx(expected, abs=1e-4)


def test_constant_leaves_and_classes_have_no_limits() -> None:
    assert tree(leaf="constant").fit(X, Y).tree_.limits is None
    assert ArgminTreeClassifier(depth=2, leaf="linear", max_epochs=5).fit(X, Y > 0).tree_.limits is None
