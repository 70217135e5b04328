"""Kinds of splits and leaves: what the registry knows, and that a new one needs a module and a line there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn

import prunus
from prunus.errors import InputTypeError
from prunus.estimators.tree import ArgminTree
from prunus.nn import ConstantHead, LinearSplit, TreeLayer, TreeModel
from prunus.nn.networks import array
from prunus.nn.registry import (
    LEAVES,
    SPLITS,
    build_head,
    build_split,
    leaf_name,
    read_leaves,
    read_splits,
    split_name,
)
from prunus.tree import Leaves


class DoubledHead(ConstantHead):
    """A kind of leaf that prunus does not have: nodes predict twice their value."""

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return 2 * super().forward(x, z)

    def read(self, inputs: nn.Module) -> Leaves:  # noqa: ARG002
        return Leaves(2 * array(self.bias), constant=2 * array(self.weight.T))


@pytest.fixture
def doubled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A regressor with the new kind, which has a line in the registry, and its table."""
    monkeypatch.setitem(LEAVES, "doubled", DoubledHead)
    monkeypatch.setitem(ArgminTree._parameter_constraints, "leaf", [StrOptions(set(LEAVES))])
    monkeypatch.setitem(prunus.ArgminTreeRegressor._parameter_constraints, "leaf", [StrOptions(set(LEAVES))])
    x = np.random.default_rng(0).normal(size=(60, 3))
    return prunus.ArgminTreeRegressor(leaf="doubled", depth=2, max_epochs=5, random_state=0).fit(x, x[:, 0]), x


def test_a_new_kind_of_leaf_is_predicted_with(doubled: Any) -> None:
    tree, x = doubled
    with torch.inference_mode():
        out = tree.model_(torch.from_numpy(tree.encoder_.transform(x))).double().numpy()
    assert_allclose(tree.predict(x), tree.target_.answers(out), rtol=1e-5)
    assert tree.tree_.leaves.kind == "doubled"


def test_a_new_kind_of_leaf_is_saved(doubled: Any, tmp_path: Path) -> None:
    tree, x = doubled
    prunus.save(tree, tmp_path / "tree.prunus")
    again = prunus.load(tmp_path / "tree.prunus")
    assert_array_equal(again.predict(x), tree.predict(x))
    assert isinstance(again.model_.head, DoubledHead)


def test_a_new_kind_of_leaf_is_written_to_onnx_and_shown(doubled: Any, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    tree, x = doubled
    session = onnxruntime.InferenceSession(prunus.export_onnx(tree, tmp_path / "tree.onnx"))
    (values,) = session.run(["variable"], {"X": x})
    assert_allclose(values, tree.predict(x), rtol=1e-4)
    assert "value: " in prunus.export_text(tree)


@pytest.mark.parametrize("name", SPLITS)
def test_splits_have_their_names(name: str) -> None:
    assert split_name(build_split(name, 3, 2)) == name


@pytest.mark.parametrize("name", LEAVES)
def test_leaves_have_their_names(name: str) -> None:
    assert leaf_name(build_head(name, 3, 2, 1)) == name
    assert LEAVES[name].training_defaults.learning_rate > 0


def test_hidden_layers_and_dropout_are_those_of_networks() -> None:
    head = build_head("mlp", 3, 2, 1, hidden=(5, 4), dropout=0.25)
    assert head.options()["hidden"] == [5, 4]
    assert head.options()["dropout"] == 0.25


def test_a_subclass_is_not_of_a_kind_since_it_may_compute_something_else() -> None:
    class Mine(LinearSplit):
        pass

    split = Mine(3, 2)
    assert split_name(split) is None
    splits = read_splits(TreeModel(TreeLayer(split, 2), ConstantHead(3, 2, 1)))
    assert splits.layers is None
    assert splits.function is not None
    assert torch.equal(splits.function(torch.ones(1, 3)), split(torch.ones(1, 3)))


def test_a_head_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputTypeError, match="got Linear"):
        read_leaves(TreeModel(TreeLayer(LinearSplit(3, 2), 2), nn.Linear(3, 1)))
