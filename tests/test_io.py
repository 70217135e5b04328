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
from prunus.fitting.training_options import nested
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
FRAME = as_pandas(mixed())


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
def test_predictions_come_back(split: str, leaf: str, path: Path) -> None:
    tree = classifier(split=split, leaf=leaf, depth=3, pruning_strength=3.0).fit(X, labels(X, "abc"))
    numbers = regressor(split=split, leaf=leaf).fit(X, np.column_stack((values(X), X[:, 0])))
    loaded, loaded_numbers = again(tree, path), again(numbers, path)
    for hard in (False, True):
        assert_array_equal(loaded.predict_proba(X, hard=hard), tree.predict_proba(X, hard=hard))
        assert_array_equal(loaded.predict(X, hard=hard), tree.predict(X, hard=hard))
        assert_array_equal(loaded_numbers.predict(X, hard=hard), numbers.predict(X, hard=hard))
    assert_array_equal(loaded.apply(X), tree.apply(X))
    assert_array_equal(loaded.decision_function(X), tree.decision_function(X))


def test_frames_and_columns_come_back(path: Path) -> None:
    tree = regressor().fit(FRAME, FRAME["count"])
    loaded = again(again(tree, path), path)
    assert_array_equal(loaded.predict(FRAME), tree.predict(FRAME))
    assert_array_equal(loaded.feature_names_in_, tree.feature_names_in_)
    assert loaded.n_features_in_ == 5
    assert again(regressor().fit(X, values(X)[:, None]), path).predict(X).shape == (60, 1)


def test_all_that_was_learned(path: Path) -> None:
    tree = classifier(warm_start=True).fit(X, labels(X), eval_set=(X, labels(X)))
    loaded = again(tree, path)
    assert loaded.history_ == tree.history_
    assert (loaded.n_iter_, loaded.best_iteration_) == (tree.n_iter_, tree.best_iteration_)
    for name in ("node_mass_", "kept_nodes_", "feature_importances_"):
        assert_array_equal(getattr(loaded, name), getattr(tree, name))
    for name in ("mass", "kept", "share", "weight", "bias"):
        assert_array_equal(getattr(loaded.tree_, name), getattr(tree.tree_, name))
    assert {name for name in vars(loaded) if name.endswith("_")} == {name for name in vars(tree) if name.endswith("_")}
    assert_array_equal(loaded.fit(X, labels(X)).predict_proba(X), tree.fit(X, labels(X)).predict_proba(X))


OBJECTS = np.array(["a", "b"], dtype=object)


@pytest.mark.parametrize("names", [(3, 7), ("no", "yes"), (False, True), (0.0, 2.0), ("é", "日本"), OBJECTS], ids=str)
def test_labels_and_their_weights(names: Any, path: Path) -> None:
    weights = {names[0]: 1.0, np.array(list(names))[1]: 2.0}
    y = labels(X, names).astype(object) if names is OBJECTS else labels(X, names)
    tree = classifier(class_weight=weights).fit(X, y)
    loaded = again(tree, path)
    assert_array_equal(loaded.classes_, tree.classes_)
    assert loaded.predict(X).dtype == tree.predict(X).dtype == loaded.classes_.dtype
    assert loaded.class_weight == weights


def test_options(path: Path) -> None:
    options: dict[str, Any] = {"depth": np.int64(1), "pruning_strength": np.float64(0.1), "split": "elu"}
    options |= {"max_epochs": 3, "early_stopping_rounds": None, "class_weight": {0: 1.0, 1: 2}, "verbose": True}
    tree = classifier(**options).fit(X, labels(X))
    assert again(tree, path).get_params() == tree.get_params()
    checkpoint = path.with_name("fit.ckpt")
    loaded = again(regressor(checkpoint=checkpoint, device=torch.device("cpu")).fit(X, values(X)), path)
    assert (loaded.training_options.checkpoint, loaded.device) == (str(checkpoint), "cpu")


MODELS = [
    (LinearSplit(3, 2), AdditiveHead(3, 2, 2)),
    (ELUSplit(3, 2), ConstantHead(3, 2, 2)),
    (MLPSplit(3, 2), LinearHead(3, 2, 2)),
    (MLPSplit(3, 2, hidden=(5, 4), dropout=0.25), LinearHead(3, 2, 2, curved=[1])),
    (MLPSplit(3, 2, hidden=()), MLPHead(3, 2, 2)),
    (LinearSplit(3, 2, 2), MLPHead(3, 2, 2, hidden=(5, 4), dropout=0.25)),
    (SparseMLPSplit(3, 2, hidden=5, sparsity=0.25), MLPHead(3, 2, 2, hidden=())),
]


@pytest.mark.parametrize(("split", "head"), MODELS)
def test_a_model_of_torch(split: nn.Module, head: nn.Module, path: Path) -> None:
    model = TreeModel(TreeLayer(split, 2, 0.5, batch_size=20, final_scale=30.0), head)
    x = torch.from_numpy(X).float()
    model.solve_masses(x)
    loaded = again(model, path)
    assert torch.equal(loaded(x), model.eval()(x))
    assert str(loaded) == str(model)
    assert not loaded.training
    loaded.train()(x).sum().backward()
    assert all(parameter.grad is not None for parameter in loaded.parameters())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_model_in_any_precision(dtype: torch.dtype, path: Path) -> None:
    x = torch.from_numpy(X).to(dtype)
    inputs = Whiten(3).fit(x.float())
    model = TreeModel(TreeLayer(LinearSplit(3, 2), 2), LinearHead(3, 2, 1), inputs).to(dtype).eval()
    assert torch.equal(again(model, path)(x), model(x))


def test_the_file_is_safetensors_without_a_pickle(path: Path) -> None:
    prunus.save(classifier(split="mlp").fit(X, labels(X)), path)
    header = header_of(path)
    ours = json.loads(header["__metadata__"]["prunus"])
    assert (ours["format"], ours["kind"], ours["prunus"]) == (2, "ArgminTreeClassifier", prunus.__version__)
    assert {"model.tree.a", "tree.kept"} < set(header)
    with pytest.raises(ValueError, match=r"opcode|literal|codec|pickle"):
        list(pickletools.genops(path.read_bytes()))
    assert b"__reduce__" not in path.read_bytes()
    assert list(path.parent.iterdir()) == [path]


def test_a_file_is_replaced_only_when_all_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(tensors: Any, file: Path, metadata: Any) -> None:  # noqa: ARG001
        file.write_bytes(b"half of it")
        raise OSError("No space left on device")

    path.write_text("old")
    tree = regressor().fit(X, values(X))
    prunus.save(tree, str(path))
    monkeypatch.setattr("prunus.io.save_file", fails)
    with pytest.raises(OSError, match="No space left"):
        prunus.save(regressor(depth=1).fit(X, values(X)), path)
    assert_array_equal(prunus.load(path).predict(X), tree.predict(X))
    assert list(path.parent.iterdir()) == [path]


class Mine(LinearSplit):
    """A split of one's own."""


class MyHead(ConstantHead):
    """A head of one's own."""


def with_odd_labels() -> Any:
    tree = classifier().fit(X, labels(X))
    tree.target_ = Classes(np.array([("a", 1), ("b", 2)], dtype=[("name", "U1"), ("number", int)]))
    return tree


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (regressor, NotFittedError, "Call 'fit'"),
        *((lambda other=other: other, InputTypeError, "ArgminTreeRegressor or TreeModel, got")
          for other in (DecisionTreeClassifier(), nn.Linear(1, 1), None, {"a": 1})),
        (lambda: regressor(split=Mine).fit(X, values(X)), InputTypeError, r"got Mine\. Use pickle, or store"),
        (lambda: TreeModel(TreeLayer(LinearSplit(3, 2), 2), MyHead(3, 2, 1)), InputTypeError, r"got MyHead\. Use"),
        (with_odd_labels, InputTypeError, "must be numbers, booleans or strings"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved(make: Any, error: type[Exception], message: str, path: Path) -> None:
    with pytest.raises(error, match=message):
        prunus.save(make(), path)
    assert not path.exists()


def test_folders_that_cannot_be_written_or_read(path: Path) -> None:
    tree = regressor().fit(X, values(X))
    with pytest.raises(FileNotFoundError, match=re.escape(f"there is no folder {path.parent / 'new'} to save in")):
        prunus.save(tree, path.parent / "new" / "tree.prunus")
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        prunus.save(tree, path.parent)
    with pytest.raises(FileNotFoundError, match=re.escape(f"there is no file {path}")):
        prunus.load(path)
    with pytest.raises(ModelFileError, match="is a folder"):
        prunus.load(path.parent)


def squared(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - target).square()


CODE = {"loss": squared, "optimizer": torch.optim.Adam, "callbacks": [print], "random_state": np.random.RandomState(0)}


@pytest.mark.parametrize("option", CODE)
def test_options_that_are_code_are_left_out_with_a_warning(option: str, path: Path, capfd: Any) -> None:
    tree = regressor(**{option: CODE[option]}).fit(X, values(X))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prunus.save(tree, path)
    (warning,) = caught
    assert f"are not stored: {next(iter(nested({option: None})))}." in str(warning.message)
    assert warning.filename == __file__
    loaded = prunus.load(path)
    assert_array_equal(loaded.predict(X), tree.predict(X))
    kept = nested({option: None})
    defaults = prunus.ArgminTreeRegressor().set_params(training__dropout=0.0).get_params()
    assert all(loaded.set_params(training__dropout=0.0).get_params()[name] == defaults[name] for name in kept)
    capfd.readouterr()


OTHERS = [b"", b"\0" * 100, b"some text, and no model\n" * 9, b"{}", b"cos\nsystem\n(S'false'\ntR."]


@pytest.mark.parametrize("content", OTHERS)
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


@pytest.mark.parametrize("text", [None, "[]", "{}", '{"format": "1"}', "null", "no json"])
def test_safetensors_of_others(text: str | None, path: Path) -> None:
    save_file({"a": torch.zeros(1)}, path, metadata=None if text is None else {"prunus": text})
    with pytest.raises(ModelFileError, match="is a safetensors file, but not" if text is None else "prunus"):
        prunus.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 3, "prunus": "9.1"}, r"written by prunus 9.1, with format 3.*pip install --upgrade prunus"),
        ({"format": 1}, "has format 1, and prunus reads format 2: fit again"),
        ({"kind": "Forest"}, "contains a 'Forest', which this version of prunus does not know"),
        *(({"kind": kind}, "tree.prunus") for kind in (None, "os.system", "TreeLayer", "__class__")),
        *(({part: {}}, "tree.prunus") for part in ("model", "encoder", "fitted", "tree")),
        ({"model": None}, "tree.prunus"),
        ({"encoder": []}, "tree.prunus"),
        ({"params": {"size": 3}}, "tree.prunus"),
        ({"target": {"task": "classes", "labels": {"dtype": "no dtype", "values": []}}}, "tree.prunus"),
        ({"target": {"task": "numbers", "one_dimensional": True}}, "tree.prunus"),
    ],
    ids=str,
)
def test_damaged_records(changes: dict[str, Any], message: str, path: Path) -> None:
    prunus.save(classifier().fit(X, labels(X)), path)
    with pytest.raises(ModelFileError, match=message):
        prunus.load(rewritten(path, **changes))


ORDERS = [None, ["day-first"], {"when": "year-first"}, {"when": ["day-first"]}, {"x": "day-first"}]


@pytest.mark.parametrize("changes", [*({"date_orders_": order} for order in ORDERS), {"target_name_": 1}], ids=str)
def test_what_a_model_knows_of_its_file_is_checked(changes: dict[str, Any], path: Path) -> None:
    frame = pd.DataFrame({"when": X[:, 0], "z": X[:, 1]})
    tree = classifier().fit(frame, labels(X))
    tree.target_name_, tree.date_orders_ = "y", {"when": "day-first"}
    loaded = again(tree, path)
    assert (loaded.target_name_, loaded.date_orders_) == ("y", {"when": "day-first"})
    fitted = json.loads(header_of(path)["__metadata__"]["prunus"])["fitted"]
    with pytest.raises(ModelFileError, match=f"is damaged: .*{next(iter(changes))} must"):
        prunus.load(rewritten(path, fitted=fitted | changes))
