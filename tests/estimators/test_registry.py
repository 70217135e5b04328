"""Kinds of splits and leaves: what the registry knows, and that a new one needs a module and a line there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from onnxruntime import InferenceSession  # type: ignore[import-untyped]
from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn

import prunus
from prunus.errors import InputTypeError
from prunus.estimators.tree import ArgminTree
from prunus.nn import ConstantHead, LinearSplit, TreeLayer, TreeModel
from prunus.nn.networks import array
from prunus.nn.registry import LEAVES, SPLITS, build_head, build_split, leaf_name, read_leaves, read_splits, split_name
from prunus.tree import Leaves


class DoubledHead(ConstantHead):
    """A kind of leaf that prunus does not have: nodes predict twice their value."""

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return 2 * super().forward(x, z)

    def read(self, inputs: nn.Module) -> Leaves:  # noqa: ARG002
        return Leaves(2 * array(self.bias), constant=2 * array(self.weight.T))


def test_a_new_kind_of_leaf_predicts_is_saved_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LEAVES, "doubled", DoubledHead)
    for kind in (ArgminTree, prunus.ArgminTreeRegressor):
        monkeypatch.setitem(kind._parameter_constraints, "leaf", [StrOptions(set(LEAVES))])
    x = np.random.default_rng(0).normal(size=(60, 3))
    tree: Any = prunus.ArgminTreeRegressor(depth=2, max_epochs=5, random_state=0).set_params(leaf="doubled")
    tree.fit(x, x[:, 0])
    with torch.inference_mode():
        out = tree.model_(torch.from_numpy(tree.encoder_.transform(x))).double().numpy()
    assert_allclose(tree.predict(x), tree.target_.answers(out), rtol=1e-5)
    assert tree.tree_.leaves.kind == "doubled"
    prunus.save(tree, tmp_path / "tree.prunus")
    again: Any = prunus.load(tmp_path / "tree.prunus")
    assert_array_equal(again.predict(x), tree.predict(x))
    assert isinstance(again.model_.head, DoubledHead)
    (values,) = InferenceSession(prunus.export_onnx(tree, tmp_path / "tree.onnx")).run(["variable"], {"X": x})
    assert_allclose(values, tree.predict(x), rtol=1e-4)
    assert "value: " in prunus.export_text(tree)


def test_splits_and_leaves_have_their_names() -> None:
    for name in SPLITS:
        assert split_name(build_split(name, 3, 2)) == name
    for name, leaf in LEAVES.items():
        assert leaf_name(build_head(name, 3, 2, 1)) == name
        assert leaf.training_defaults.learning_rate > 0
    options = build_head("mlp", 3, 2, 1, hidden=(5, 4), dropout=0.25).options()
    assert (options["hidden"], options["dropout"]) == ([5, 4], 0.25)


def test_a_subclass_is_not_of_a_kind_since_it_may_compute_something_else() -> None:
    class Mine(LinearSplit):
        pass

    split = Mine(3, 2)
    assert split_name(split) is None
    splits = read_splits(TreeModel(TreeLayer(split, 2), ConstantHead(3, 2, 1)))
    assert splits.layers is None
    assert splits.function is not None
    assert torch.equal(splits.function(torch.ones(1, 3)), split(torch.ones(1, 3)))
    with pytest.raises(InputTypeError, match="got Linear"):
        read_leaves(TreeModel(TreeLayer(LinearSplit(3, 2), 2), nn.Linear(3, 1)))
