"""Each row's prediction is its own: the same alone, among others and in any order; and that of the torch model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from onnxruntime import InferenceSession  # type: ignore[import-untyped]

from prunus import export_onnx, load, save
from prunus.ops import available_backends
from prunus.ops.backends import kernels
from tests.estimators.problems import (
    KINDS,
    Floats,
    as_pandas,
    as_polars,
    classifier,
    labels,
    mixed,
    regressor,
    table,
    values,
)
from tests.tolerances import ENCODED, SAME_ROW

X = table(columns=5)
MANY = table(5000, columns=5, seed=1)
EXACT = {("linear", "constant"), ("linear", "linear")}
"""Kinds of trees whose rows are worked on one by one."""


def same(split: str, leaf: str, actual: Floats, expected: Floats) -> None:
    if (split, leaf) in EXACT:
        assert_array_equal(actual, expected)
    else:
        assert_allclose(actual, expected, rtol=SAME_ROW, atol=SAME_ROW)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_a_row_is_predicted_alone_and_in_any_order_as_among_many(split: str, leaf: str, hard: bool) -> None:
    tree = regressor(depth=3, split=split, leaf=leaf).fit(X, values(X))
    among = tree.predict(MANY, hard=hard)
    rows = [0, 1, 2047, 2048, 4095, 4999]
    same(split, leaf, np.concatenate([tree.predict(MANY[[row]], hard=hard) for row in rows]), among[rows])
    order = np.random.default_rng(0).permutation(len(MANY))
    same(split, leaf, tree.predict(MANY[order], hard=hard), among[order])
    classes = classifier(depth=3, split=split, leaf=leaf).fit(X, labels(X, "abc"))
    alone = np.concatenate([classes.predict(row[None], hard=hard) for row in MANY[:40]])
    assert_array_equal(alone, classes.predict(MANY, hard=hard)[:40])


@pytest.mark.parametrize("hard", [False, True])
def test_rows_of_frames_are_predicted_one_by_one_and_in_chunks(hard: bool) -> None:
    frame, many = as_pandas(mixed()), as_polars(mixed(3000))
    tree = regressor(leaf="linear").fit(frame, frame["count"])
    alone = np.concatenate([tree.predict(frame.iloc[[row]], hard=hard) for row in range(len(frame))])
    assert_array_equal(alone, tree.predict(frame, hard=hard))
    chunks = np.concatenate([tree.predict(many[begin : begin + 700], hard=hard) for begin in range(0, 3000, 700)])
    assert_array_equal(chunks, tree.predict(many, hard=hard))
    x = table(20_000, 2)
    for make in (classifier, regressor):
        large: Any = make(depth=1, max_epochs=1).fit(x[:50], (x[:50, 0] > 0).astype(int))
        halves = np.concatenate((large.predict(x[:9_999], hard=hard), large.predict(x[9_999:], hard=hard)))
        assert_array_equal(halves, large.predict(x, hard=hard))


def on_the_edge(tree: Any, n: int = 4000) -> Floats:
    """Rows whose scores at the root differ from zero by rounding only."""
    weight, bias = tree.tree_.weight[0].astype(float), float(tree.tree_.bias[0])
    center, scale = (np.array([getattr(c, part) for c in tree.encoder_.columns_]) for part in ("center", "scale"))
    x = np.clip(table(n, len(weight), seed=7), -1, 1)  # encoded: nothing is cut off
    x -= np.outer(x @ weight + bias, weight) / (weight @ weight)
    rows: Floats = x * scale + center
    return rows


@pytest.mark.parametrize("columns", [1, 3, 8, 13])
def test_tables_of_any_form_lead_to_the_same_nodes(columns: int) -> None:
    """Tables with missing values take another way to their leaves; sums in another order would tip some rows over."""
    x = table(columns=columns)
    tree = regressor(depth=3).fit(x, x[:, 0])
    rows = on_the_edge(tree)
    beside = np.vstack((rows, np.full((1, columns), np.nan)))
    assert_array_equal(tree.apply(beside)[:-1], tree.apply(rows))
    assert_array_equal(tree.predict(beside, hard=True)[:-1], tree.predict(rows, hard=True))
    assert_array_equal(tree.apply(pd.DataFrame(rows)), tree.apply(rows))
    assert_array_equal(tree.apply(np.asfortranarray(rows)), tree.apply(rows))


@pytest.mark.skipif("cpp" not in available_backends(), reason="the kernels were not compiled")
@pytest.mark.parametrize("columns", [1, 7, 8, 17])
@pytest.mark.parametrize("leaf", ["constant", "linear"])
@pytest.mark.parametrize("depth", [0, 1, 5])
def test_the_kernel_predicts_as_the_torch_model(depth: int, leaf: str, columns: int) -> None:
    x = table(columns=columns)
    tree = regressor(depth=depth, leaf=leaf).fit(x, np.column_stack((x[:, 0], x[:, -1])))
    with torch.inference_mode():
        out = tree.model_(torch.from_numpy(tree.encoder_.transform(x))).double().numpy()
    if tree.tree_.limits is not None:
        out = np.clip(out, *tree.tree_.limits[:, 0])
    assert_allclose(tree.predict(x), out * tree.target_scale_ + tree.target_mean_, rtol=ENCODED, atol=ENCODED)


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_probabilities_are_those_of_the_torch_model(split: str, leaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = classifier(split=split, leaf=leaf).fit(X, labels(X, "abc"))
    with torch.inference_mode():
        out = tree.model_(torch.from_numpy(tree.encoder_.transform(X))).softmax(1).numpy()
    assert_allclose(tree.predict_proba(X), out, rtol=ENCODED)
    expected = [tree.predict_proba(X, hard=hard) for hard in (False, True)]
    before = {name: id(value) for name, value in vars(tree).items()}
    tree.apply(X)
    assert {name: id(value) for name, value in vars(tree).items()} == before
    tree.set_params(leaf="mlp", split="mlp", depth=7)  # options set after the fit do not matter
    for hard in (False, True):
        assert_array_equal(tree.predict_proba(X, hard=hard), expected[hard])
    monkeypatch.setattr("prunus.tree.prediction.kernels_for", lambda _: kernels("reference"))
    for hard in (False, True):
        assert_allclose(tree.predict_proba(X, hard=hard), expected[hard], rtol=ENCODED)


def test_the_training_rows_do_not_stay_behind() -> None:
    """What is kept does not grow with the table, but for the numbers of those held out."""
    parts = [
        {name: np.size(value) for name, value in vars(regressor(max_epochs=1).fit(x, x[:, 0])).items()}
        for x in (table(20), table(2000))
    ]
    small, large = ({name: size for name, size in part.items() if name != "validation_rows_"} for part in parts)
    assert small == large


def test_predictions_stay_near_the_range_of_the_targets(tmp_path: Path) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    y = 3 * x[:, 0] + x[:, 1] ** 2
    far = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]) * 3  # the encoder limits inputs further out
    margin = 0.1 * np.ptp(y)
    for leaf in ("mlp", "additive", "linear"):
        tree = regressor(leaf=leaf, hidden_layer_sizes=(8,), max_epochs=20).fit(x, y)
        for hard in (False, True):
            found = tree.predict(far, hard=hard)
            assert y.min() - margin - 1e-5 <= found.min() <= found.max() <= y.max() + margin + 1e-5
    save(tree, tmp_path / "tree.prunus")
    expected = tree.predict(far)
    assert_array_equal(load(tmp_path / "tree.prunus").predict(far), expected)
    (onnx,) = InferenceSession(export_onnx(tree, tmp_path / "tree.onnx")).run(None, {"X": far})
    assert_allclose(onnx.ravel(), expected, atol=1e-4)
    tree.tree_ = replace(tree.tree_, limits=None)
    assert tree.predict(far).max() > y.max() + 2 * margin, "a linear leaf would go further"
    assert regressor(leaf="constant").fit(x, y).tree_.limits is None
    assert classifier(leaf="linear").fit(x, y > 0).tree_.limits is None
