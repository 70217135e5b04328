"""Numbers that are cut into pieces: which parts of a tree use the pieces."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import prunus
from prunus.fitting import building
from tests.estimators.problems import regressor, table, values

X = table(300)
V = values(X)


def pieces_of(tree: Any) -> Any:
    is_piece = np.array([column.piece for column in tree.encoder_.columns_])
    assert is_piece.any()
    return is_piece


@pytest.mark.parametrize(
    ("leaf", "split", "columns"),
    [("additive", "linear", None), ("additive", "linear", 1), ("linear", "linear", None), ("linear", "linear", 2),
     ("linear", "elu", None), ("linear", "mlp", None), ("additive", "sparse_mlp", None)],
)  # fmt: skip
def test_only_shared_curves_use_pieces(leaf: str, split: str, columns: int | None) -> None:
    tree = regressor(leaf=leaf, split=split, pieces=4, max_split_features=columns).fit(X, V)
    is_piece, leaves = pieces_of(tree), tree.tree_.leaves
    assert not tree.tree_.splits.layers.weights[0][:, is_piece].any()
    assert leaves.slope is None or not leaves.slope[..., is_piece].any()
    assert leaves.shared[:, is_piece].all()


@pytest.mark.parametrize("leaf", ["constant", "mlp"])
def test_splits_use_pieces_if_leaves_share_no_curves(leaf: str) -> None:
    tree = regressor(leaf=leaf, pieces=4).fit(X, V)
    assert tree.tree_.splits.weight[:, pieces_of(tree)].any()
    assert tree.tree_.leaves.shared is None
    assert regressor(leaf="linear", pieces=0).fit(X, V).tree_.leaves.shared is None


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("split", ["linear", "elu"])
def test_predictions_are_those_of_the_model(split: str, is_wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there are too many inputs to decorrelate them."""
    monkeypatch.setattr(building, "MAX_WHITENED", 2 if is_wide else 2_000)
    tree = regressor(leaf="linear", pieces=4, split=split).fit(X, V)
    assert not tree.tree_.leaves.slope[..., pieces_of(tree)].any()
    with torch.inference_mode():
        out = tree.model_(torch.from_numpy(tree.encoder_.transform(X))).double().numpy()
    assert_allclose(tree.predict(X), tree.target_.answers(out), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("routing", ["soft", "hard"])
def test_curves_bend(routing: str) -> None:
    """A sum of functions of one column that are not linear is learned by a tree of one split."""
    x = np.random.default_rng(0).uniform(-2, 2, size=(2000, 3))
    y = np.abs(x[:, 0]) + np.cos(3 * x[:, 1]) + 0.5 * x[:, 2]
    options: Any = {"leaf": "linear", "depth": 1, "routing": routing, "max_epochs": 60}
    straight, bent = (regressor(pieces=pieces, **options).fit(x[:1500], y[:1500]) for pieces in (0, 12))
    assert straight.score(x[1500:], y[1500:]) < 0.9
    assert bent.score(x[1500:], y[1500:]) > 0.97


@pytest.mark.parametrize("routing", ["soft", "hard"])
@pytest.mark.parametrize("loss", ["squared_error", "gamma"])
def test_pieces_are_no_disaster_with_few_rows(routing: str, loss: str) -> None:
    """Linear models of all nodes with all pieces once had a negative score here."""
    random = np.random.default_rng(1)
    x = random.standard_t(2, size=(900, 6))
    y = np.exp(0.5 * np.tanh(x[:, 0]) + 0.3 * np.tanh(x[:, 1] * x[:, 2]) + 0.1 * random.normal(size=900))
    options: Any = {"leaf": "linear", "routing": routing, "loss": loss, "random_state": 0}
    trees = [prunus.ArgminTreeRegressor(pieces=pieces, **options).fit(x[:400], y[:400]) for pieces in (0, 16)]
    scores = [tree.score(x[400:], y[400:]) for tree in trees]
    assert scores[1] > scores[0] - 0.1


def test_a_stored_tree_can_be_trained_further(tmp_path: Path) -> None:
    tree = regressor(leaf="linear", pieces=4, warm_start=True).fit(X, V)
    prunus.save(tree, tmp_path / "tree.prunus")
    loaded: Any = prunus.load(tmp_path / "tree.prunus")
    assert_array_equal(loaded.predict(X), tree.predict(X))
    assert loaded.model_.head.curved == tree.model_.head.curved != ()
    assert_allclose(loaded.fit(X, V).predict(X), tree.fit(X, V).predict(X), rtol=1e-6)
