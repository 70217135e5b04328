"""Models in files: what is saved comes back to the bit, and what is no model is said to be none."""

import json
import pickletools
import re
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from safetensors.torch import load_file, save_file
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import prunus
from prunus.errors import InputTypeError, ModelFileError
from prunus.io import _checksum
from prunus.nn import (
    AdditiveHead,
    ConstantHead,
    ELUSplit,
    LinearHead,
    LinearSplit,
    MLPHead,
    MLPSplit,
    SparseMLPSplit,
    TreeLayer,
    TreeModel,
    Whiten,
)
from prunus.targets import Classes
from tests.estimators.problems import KINDS, as_pandas, classifier, labels, mixed, regressor, table, values

X = table()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tree.prunus"


def again(model: Any, path: str | Path) -> Any:
    """The model, saved and loaded."""
    prunus.save(model, path)
    return prunus.load(path)


def header_of(path: Path) -> Any:
    """The header of a safetensors file: its length in eight bytes, then JSON."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length])


def rewritten(path: Path, **changes: Any) -> Path:
    """The file with another header of ours, and the checksum of that."""
    text = json.dumps(json.loads(header_of(path)["__metadata__"]["prunus"]) | changes)
    tensors = load_file(path)
    save_file(tensors, path, metadata={"prunus": text, "sha256": _checksum(text, tensors)})
    return path


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_a_classifier(split: str, leaf: str, path: Path) -> None:
    tree = classifier(split=split, leaf=leaf, depth=3, pruning_strength=3.0).fit(X, labels(X, "abc"))
    loaded = again(tree, path)
    for hard in (False, True):
        assert_array_equal(loaded.predict_proba(X, hard=hard), tree.predict_proba(X, hard=hard))
        assert_array_equal(loaded.predict(X, hard=hard), tree.predict(X, hard=hard))
    assert_array_equal(loaded.apply(X), tree.apply(X))
    assert_array_equal(loaded.decision_function(X), tree.decision_function(X))


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_a_regressor(split: str, leaf: str, path: Path) -> None:
    tree = regressor(split=split, leaf=leaf).fit(X, values(X))
    loaded = again(tree, path)
    for hard in (False, True):
        assert_array_equal(loaded.predict(X, hard=hard), tree.predict(X, hard=hard))


def test_several_outputs(path: Path) -> None:
    tree = regressor().fit(X, np.column_stack((values(X), X[:, 0])))
    assert_array_equal(again(tree, path).predict(X), tree.predict(X))


def test_a_column_of_values_stays_a_column(path: Path) -> None:
    assert again(regressor().fit(X, values(X)[:, None]), path).predict(X).shape == (60, 1)


def test_a_mixed_frame(path: Path) -> None:
    frame = as_pandas(mixed())
    tree = regressor().fit(frame, frame["count"])
    loaded = again(tree, path)
    assert_array_equal(loaded.predict(frame), tree.predict(frame))
    assert_array_equal(loaded.feature_names_in_, tree.feature_names_in_)
    assert loaded.n_features_in_ == 5


def test_all_that_was_learned(path: Path) -> None:
    tree = classifier().fit(X, labels(X), eval_set=(X, labels(X)))
    loaded = again(tree, path)
    assert loaded.history_ == tree.history_
    assert (loaded.n_iter_, loaded.best_iteration_) == (tree.n_iter_, tree.best_iteration_)
    for name in ("node_mass_", "kept_nodes_", "feature_importances_"):
        assert_array_equal(getattr(loaded, name), getattr(tree, name))
    for name in ("mass", "kept", "share", "weight", "bias"):
        assert_array_equal(getattr(loaded.tree_, name), getattr(tree.tree_, name))
    fitted = {name for name in vars(tree) if name.endswith("_")}
    assert {name for name in vars(loaded) if name.endswith("_")} == fitted


@pytest.mark.parametrize("names", [(3, 7), ("no", "yes"), (False, True), (0.0, 2.0), ("é", "日本")])
def test_labels_of_any_kind(names: Any, path: Path) -> None:
    tree = classifier().fit(X, labels(X, names))
    loaded = again(tree, path)
    assert_array_equal(loaded.classes_, tree.classes_)
    assert loaded.predict(X).dtype == tree.predict(X).dtype


def test_labels_that_are_objects(path: Path) -> None:
    tree = classifier().fit(X, labels(X, "ab").astype(object))
    loaded = again(tree, path)
    assert loaded.classes_.dtype == object
    assert_array_equal(loaded.predict(X), tree.predict(X))


def test_options(path: Path) -> None:
    options: dict[str, Any] = {
        "depth": np.int64(1),
        "pruning_strength": np.float64(0.1),
        "split": "elu",
        "leaf": "linear",
        "max_epochs": 3,
        "learning_rate": 0.1,
        "early_stopping_rounds": None,
        "class_weight": {0: 1.0, 1: 2},
        "verbose": True,
    }
    tree = classifier(**options).fit(X, labels(X))
    assert again(tree, path).get_params() == tree.get_params()


@pytest.mark.parametrize("names", ["ab", (False, True), (1.0, 2.0)])
def test_weights_of_classes(names: Any, path: Path) -> None:
    weights = {names[0]: 1.0, np.array(list(names))[1]: 2.0}
    assert again(classifier(class_weight=weights).fit(X, labels(X, names)), path).class_weight == weights


def test_paths_and_devices_become_text(path: Path) -> None:
    tree = regressor(checkpoint=path.with_name("fit.ckpt"), device=torch.device("cpu")).fit(X, values(X))
    loaded = again(tree, path)
    assert (loaded.checkpoint, loaded.device) == (str(path.with_name("fit.ckpt")), "cpu")


def test_a_loaded_tree_is_fitted_on(path: Path) -> None:
    tree = regressor(warm_start=True).fit(X, values(X))
    loaded = again(tree, path)
    assert_array_equal(loaded.fit(X, values(X)).predict(X), tree.fit(X, values(X)).predict(X))


def test_a_loaded_tree_is_saved(path: Path) -> None:
    tree = regressor().fit(X, values(X))
    assert_array_equal(again(again(tree, path), path).predict(X), tree.predict(X))


SPLITS = {
    "linear": LinearSplit(3, 2),
    "elu": ELUSplit(3, 2),
    "mlp": MLPSplit(3, 2),
    "dropout": MLPSplit(3, 2, hidden=(5, 4), dropout=0.25),
    "nothing hidden": MLPSplit(3, 2, hidden=()),
    "few columns": LinearSplit(3, 2, 2),
    "sparse_mlp": SparseMLPSplit(3, 2, hidden=5, sparsity=0.25),
}
HEADS = {
    "additive": AdditiveHead(3, 2, 2),
    "constant": ConstantHead(3, 2, 2),
    "linear": LinearHead(3, 2, 2),
    "curved": LinearHead(3, 2, 2, curved=[1]),
    "mlp": MLPHead(3, 2, 2),
    "dropout": MLPHead(3, 2, 2, hidden=(5, 4), dropout=0.25),
    "nothing hidden": MLPHead(3, 2, 2, hidden=()),
}


@pytest.mark.parametrize(("split", "head"), list(zip(SPLITS.values(), HEADS.values(), strict=True)))
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_a_model(split: nn.Module, head: nn.Module, scale: float, path: Path) -> None:
    model = TreeModel(TreeLayer(split, 2, 0.5, batch_size=20, final_scale=scale), head)
    x = torch.from_numpy(X).float()
    model.solve_masses(x)
    loaded = again(model, path)
    assert torch.equal(loaded(x), model.eval()(x))
    assert str(loaded) == str(model)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_model_in_any_precision(dtype: torch.dtype, path: Path) -> None:
    x = torch.from_numpy(X).to(dtype)
    tree = TreeLayer(LinearSplit(3, 2), 2)
    model = TreeModel(tree, LinearHead(3, 2, 1), Whiten(3).fit(x.float())).to(dtype).eval()
    loaded = again(model, path)
    assert torch.equal(loaded(x), model(x))


def test_a_loaded_model_can_be_trained(path: Path) -> None:
    model = again(TreeModel(TreeLayer(LinearSplit(3, 2), 2), LinearHead(3, 2, 1)), path)
    assert not model.training
    model.train()(torch.from_numpy(X).float()).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_the_file_is_safetensors(path: Path) -> None:
    prunus.save(classifier().fit(X, labels(X)), path)
    header = header_of(path)
    ours = json.loads(header["__metadata__"]["prunus"])
    assert (ours["format"], ours["kind"], ours["prunus"]) == (2, "ArgminTreeClassifier", prunus.__version__)
    assert {"model.tree.a", "tree.kept"} < set(header)


def test_there_is_no_pickle_inside(path: Path) -> None:
    prunus.save(classifier(split="mlp").fit(X, labels(X)), path)
    with pytest.raises(ValueError, match=r"opcode|literal|codec|pickle"):
        list(pickletools.genops(path.read_bytes()))
    assert b"__reduce__" not in path.read_bytes()


def test_nothing_else_is_left(path: Path) -> None:
    prunus.save(regressor().fit(X, values(X)), path)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_is_replaced(path: Path) -> None:
    path.write_text("old")
    assert again(regressor().fit(X, values(X)), str(path)).n_iter_ == 5


def fails_to_write(tensors: Any, file: Path, metadata: Any) -> None:  # noqa: ARG001
    file.write_bytes(b"half of it")
    raise OSError("No space left on device")


def test_a_file_is_replaced_only_when_all_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = regressor().fit(X, values(X))
    prunus.save(tree, path)
    monkeypatch.setattr("prunus.io.save_file", fails_to_write)
    with pytest.raises(OSError, match="No space left"):
        prunus.save(regressor(depth=1).fit(X, values(X)), path)
    assert_array_equal(prunus.load(path).predict(X), tree.predict(X))
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(f"there is no folder {path.parent / 'new'} to save in")):
        prunus.save(regressor().fit(X, values(X)), path.parent / "new" / "tree.prunus")


def test_a_folder_is_not_replaced(path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        prunus.save(regressor().fit(X, values(X)), path.parent)
    assert not list(path.parent.iterdir())


def test_an_estimator_that_is_not_fitted(path: Path) -> None:
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        prunus.save(regressor(), path)
    assert not path.exists()


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), nn.Linear(1, 1), None, {"a": 1}])
def test_what_is_not_ours(model: Any, path: Path) -> None:
    with pytest.raises(
        InputTypeError, match="ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor or TreeModel, got"
    ):
        prunus.save(model, path)


class Mine(LinearSplit):
    """A split of one's own."""


def test_a_split_of_ones_own_is_refused_with_the_cure(path: Path) -> None:
    with pytest.raises(InputTypeError, match=r"got Mine. Use pickle, or store model.state_dict\(\)"):
        prunus.save(regressor(split=Mine).fit(X, values(X)), path)
    assert not path.exists()


def test_a_head_of_ones_own_is_refused_with_the_cure(path: Path) -> None:
    class Head(ConstantHead):
        pass

    with pytest.raises(InputTypeError, match=r"got Head\. Use pickle"):
        prunus.save(TreeModel(TreeLayer(LinearSplit(3, 2), 2), Head(3, 2, 1)), path)


def squared(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - target).square()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("loss", squared),
        ("optimizer", torch.optim.Adam),
        ("callbacks", [print]),
        ("random_state", np.random.RandomState(0)),
    ],
    ids=["loss", "optimizer", "callbacks", "random_state"],
)
def test_options_that_are_code_are_left_out_with_a_warning(option: str, value: Any, path: Path, capfd: Any) -> None:
    tree = regressor(**{option: value}).fit(X, values(X))
    with pytest.warns(UserWarning, match=f"options that are code or objects are not stored: {option}."):
        prunus.save(tree, path)
    loaded = prunus.load(path)
    assert_array_equal(loaded.predict(X), tree.predict(X))
    assert getattr(loaded, option) == getattr(prunus.ArgminTreeRegressor(), option)
    capfd.readouterr()


def test_the_warning_points_at_the_caller(path: Path) -> None:
    tree = regressor(loss=squared).fit(X, values(X))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prunus.save(tree, path)
    assert [warning.filename for warning in caught] == [__file__]


def test_labels_that_are_neither_text_nor_numbers_are_refused(path: Path) -> None:
    tree = classifier().fit(X, labels(X))
    tree.target_ = Classes(np.array([("a", 1), ("b", 2)], dtype=[("name", "U1"), ("number", int)]))
    with pytest.raises(InputTypeError, match="must be numbers, booleans or strings"):
        prunus.save(tree, path)


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(f"there is no file {path}")):
        prunus.load(path)


def test_a_folder(path: Path) -> None:
    with pytest.raises(ModelFileError, match="is a folder"):
        prunus.load(path.parent)


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"some text, and no model\n" * 9, b"{}"])
def test_files_of_another_kind(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=re.escape(f"{path} is not a model of prunus, or is cut off")):
        prunus.load(path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_files_that_are_cut_off(share: float, path: Path) -> None:
    prunus.save(regressor().fit(X, values(X)), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError, match="cut off"):
        prunus.load(path)


def test_a_pickle_is_not_run(path: Path) -> None:
    path.write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(ModelFileError):
        prunus.load(path)


def test_safetensors_of_others(path: Path) -> None:
    save_file({"weight": torch.zeros(2)}, path)
    with pytest.raises(ModelFileError, match="is a safetensors file, but not one of prunus"):
        prunus.load(path)


def test_a_file_of_a_newer_version(path: Path) -> None:
    prunus.save(regressor().fit(X, values(X)), path)
    with pytest.raises(ModelFileError, match=r"written by prunus 9.1, with format 3.*pip install --upgrade prunus"):
        prunus.load(rewritten(path, format=3, prunus="9.1"))


def test_a_file_of_an_older_format(path: Path) -> None:
    prunus.save(regressor().fit(X, values(X)), path)
    with pytest.raises(ModelFileError, match="has format 1, and prunus reads format 2: fit again"):
        prunus.load(rewritten(path, format=1))


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "1"}', "null", "no json"])
def test_headers_that_are_none(text: str, path: Path) -> None:
    save_file({"a": torch.zeros(1)}, path, metadata={"prunus": text})
    with pytest.raises(ModelFileError):
        prunus.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": None},
        {"model": None},
        {"model": {}},
        {"encoder": {}},
        {"encoder": []},
        {"params": {"size": 3}},
        {"target": {"task": "classes", "labels": {"dtype": "no dtype", "values": []}}},
        {"target": {"task": "numbers", "one_dimensional": True}},
        {"fitted": {}},
        {"tree": {}},
    ],
    ids=str,
)
def test_damaged_records(changes: dict[str, Any], path: Path) -> None:
    prunus.save(classifier().fit(X, labels(X)), path)
    with pytest.raises(ModelFileError, match=re.escape(str(path))):
        prunus.load(rewritten(path, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"date_orders_": None},
        {"date_orders_": ["day-first"]},
        {"date_orders_": {"when": "year-first"}},
        {"date_orders_": {"when": ["day-first"]}},
        {"date_orders_": {"x": "day-first"}},
        {"target_name_": 1},
    ],
    ids=str,
)
def test_what_a_model_knows_of_its_file_is_checked(changes: dict[str, Any], path: Path) -> None:
    frame = pd.DataFrame({"when": X[:, 0], "z": X[:, 1]})
    tree = classifier().fit(frame, labels(X))
    tree.target_name_, tree.date_orders_ = "y", {"when": "day-first"}
    loaded = again(tree, path)
    assert (loaded.target_name_, loaded.date_orders_) == ("y", {"when": "day-first"})
    fitted = json.loads(header_of(path)["__metadata__"]["prunus"])["fitted"]
    with pytest.raises(ModelFileError, match=f"is damaged: .*{next(iter(changes))} must"):
        prunus.load(rewritten(path, fitted=fitted | changes))


def test_a_kind_that_is_not_known(path: Path) -> None:
    prunus.save(regressor().fit(X, values(X)), path)
    with pytest.raises(ModelFileError, match="contains a 'Forest', which this version of prunus does not know"):
        prunus.load(rewritten(path, kind="Forest"))


@pytest.mark.parametrize("kind", ["os.system", "TreeLayer", "__class__"])
def test_a_kind_cannot_name_other_code(kind: str, path: Path) -> None:
    prunus.save(regressor().fit(X, values(X)), path)
    with pytest.raises(ModelFileError):
        prunus.load(rewritten(path, kind=kind))
