"""Each row's prediction is its own: the same alone, among others and in any order; and that of the torch model."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from prunus import ArgminTreeClassifier, ArgminTreeRegressor
from prunus.ops import available_backends
from prunus.ops.backends import kernels
from tests.estimators.problems import (
    KINDS,
    LEAVES,
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
def test_a_row_alone_is_predicted_as_among_many(split: str, leaf: str, hard: bool) -> None:
    tree = regressor(depth=3, split=split, leaf=leaf).fit(X, values(X))
    among = tree.predict(MANY, hard=hard)
    rows = [0, 1, 2047, 2048, 4095, 4999]
    same(split, leaf, np.concatenate([tree.predict(MANY[[row]], hard=hard) for row in rows]), among[rows])


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_a_row_alone_has_the_label_it_has_among_many(split: str, leaf: str, hard: bool) -> None:
    tree = classifier(depth=3, split=split, leaf=leaf).fit(X, labels(X, "abc"))
    some = MANY[:40]
    alone = np.concatenate([tree.predict(row[None], hard=hard) for row in some])
    assert_array_equal(alone, tree.predict(MANY, hard=hard)[:40])


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_the_order_of_rows_does_not_matter(split: str, leaf: str, hard: bool) -> None:
    tree = regressor(split=split, leaf=leaf).fit(X, values(X))
    order = np.random.default_rng(0).permutation(len(MANY))
    same(split, leaf, tree.predict(MANY[order], hard=hard), tree.predict(MANY, hard=hard)[order])


@pytest.mark.parametrize("hard", [False, True])
def test_rows_of_a_mixed_frame_are_predicted_one_by_one(hard: bool) -> None:
    frame = as_pandas(mixed())
    tree = regressor(leaf="linear").fit(frame, frame["count"])
    alone = np.concatenate([tree.predict(frame.iloc[[row]], hard=hard) for row in range(len(frame))])
    assert_array_equal(alone, tree.predict(frame, hard=hard))


def on_the_edge(tree: Any, n: int = 4000) -> Floats:
    """Rows whose scores at the root differ from zero by rounding only."""
    weight, bias = tree.tree_.weight[0].astype(float), float(tree.tree_.bias[0])
    center, scale = (np.array([getattr(c, part) for c in tree.encoder_.columns_]) for part in ("center", "scale"))
    x = np.clip(table(n, len(weight), seed=7), -1, 1)  # encoded: nothing is cut off
    x -= np.outer(x @ weight + bias, weight) / (weight @ weight)
    rows: Floats = x * scale + center
    return rows


@pytest.mark.parametrize("columns", [1, 3, 8, 13])
def test_a_missing_value_elsewhere_does_not_move_a_row_to_another_node(columns: int) -> None:
    """Tables with missing values take another way to their leaves; sums in another order would tip some rows over."""
    x = table(columns=columns)
    tree = regressor(depth=3).fit(x, x[:, 0])
    rows = on_the_edge(tree)
    beside = np.vstack((rows, np.full((1, columns), np.nan)))
    assert_array_equal(tree.apply(beside)[:-1], tree.apply(rows))
    assert_array_equal(tree.predict(beside, hard=True)[:-1], tree.predict(rows, hard=True))


@pytest.mark.parametrize("columns", [3, 8, 13])
def test_frames_and_arrays_lead_to_the_same_nodes(columns: int) -> None:
    x = table(columns=columns)
    tree = regressor(depth=3).fit(x, x[:, 0])
    rows = on_the_edge(tree)
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
def test_probabilities_are_those_of_the_torch_model(split: str, leaf: str) -> None:
    tree = classifier(split=split, leaf=leaf).fit(X, labels(X, "abc"))
    with torch.inference_mode():
        out = tree.model_(torch.from_numpy(tree.encoder_.transform(X))).softmax(1).numpy()
    assert_allclose(tree.predict_proba(X), out, rtol=ENCODED)


@pytest.mark.parametrize(("split", "leaf"), [("linear", "linear"), ("linear", "constant")])
def test_without_the_kernel_predictions_are_the_same(split: str, leaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = classifier(split=split, leaf=leaf).fit(X, labels(X))
    expected = [tree.predict_proba(X, hard=hard) for hard in (False, True)]
    monkeypatch.setattr("prunus.tree.prediction.kernels_for", lambda _: kernels("reference"))
    for hard in (False, True):
        assert_allclose(tree.predict_proba(X, hard=hard), expected[hard], rtol=ENCODED)


def test_the_training_rows_do_not_stay_behind() -> None:
    """What is kept does not grow with the table, but for the numbers of those held out."""
    small, large = (regressor(max_epochs=1).fit(x, x[:, 0]) for x in (table(20), table(2000)))
    parts = [
        {name: np.size(value) for name, value in vars(tree).items() if name != "validation_rows_"}
        for tree in (small, large)
    ]
    assert parts[0] == parts[1]


def test_polars_rows_are_predicted_in_chunks() -> None:
    frame = as_polars(mixed(3000))
    tree = regressor().fit(frame[:40], frame["count"][:40])
    chunks = np.concatenate([tree.predict(frame[begin : begin + 700]) for begin in range(0, 3000, 700)])
    assert_array_equal(chunks, tree.predict(frame))


@pytest.mark.parametrize("kind", [ArgminTreeClassifier, ArgminTreeRegressor])
def test_large_arrays_are_predicted_in_chunks(kind: Any) -> None:
    x = table(20_000, 2)
    tree = kind(depth=1, max_epochs=1, random_state=0).fit(x[:50], (x[:50, 0] > 0).astype(int))
    halves = np.concatenate((tree.predict(x[:9_999]), tree.predict(x[9_999:])))
    assert_array_equal(halves, tree.predict(x))


@pytest.mark.parametrize("leaf", LEAVES)
def test_predicting_changes_nothing_of_the_estimator(leaf: str) -> None:
    tree = classifier(leaf=leaf).fit(X, labels(X))
    before = {name: id(value) for name, value in vars(tree).items()}
    for hard in (False, True):
        tree.predict(X, hard=hard)
    tree.apply(X)
    assert {name: id(value) for name, value in vars(tree).items()} == before


def test_options_set_after_the_fit_do_not_matter() -> None:
    tree = classifier(leaf="constant").fit(X, labels(X))
    expected = [tree.predict_proba(X, hard=hard) for hard in (False, True)]
    tree.set_params(leaf="mlp", split="mlp", depth=7)
    for hard in (False, True):
        assert_array_equal(tree.predict_proba(X, hard=hard), expected[hard])
