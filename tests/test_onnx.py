"""Estimators written as ONNX files predict in onnxruntime what they predict in Python."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from onnxruntime import InferenceSession  # type: ignore[import-untyped]
from sklearn.exceptions import NotFittedError
from torch import nn

import prunus
from prunus import ArgminTreeClusterer, export_onnx
from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import KINDS, as_pandas, classifier, labels, mixed, regressor, table, values
from tests.subprocesses import run_without
from tests.tolerances import ROUNDING

X = table()
ROWS = table(1000, seed=5) * 2
SAME = ROUNDING[torch.float32]
HARD = pytest.mark.parametrize("hard", [False, True])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tree.onnx"


def run(path: Path, inputs: Any) -> dict[str, npt.NDArray[Any]]:
    """Outputs by name; of an array that is the only input, or of a dict."""
    session = InferenceSession(path)
    found = session.run(None, inputs if isinstance(inputs, dict) else {"X": inputs})
    return dict(zip([output.name for output in session.get_outputs()], found, strict=True))


def columns(frame: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
    """Columns of a frame as inputs: text, or numbers, with times in seconds."""
    return {str(name): _column(frame[name])[:, None] for name in frame}


def _column(series: Any) -> npt.NDArray[Any]:
    if series.dtype.kind == "M":
        seconds = (series - pd.Timestamp(0)).dt.total_seconds()
        return np.asarray(seconds, dtype=np.float64)
    if series.dtype.name in ("category", "object", "str"):
        return np.array(["" if pd.isna(value) else str(value) for value in series], dtype=object)
    return np.asarray(series, dtype=np.float64)


def assert_classes(tree: Any, path: Path, x: Any, inputs: Any = None, *, hard: bool = False) -> None:
    found = run(path, x if inputs is None else inputs)
    expected = tree.predict_proba(x, hard=hard)
    assert_allclose(found["probabilities"], expected, rtol=0, atol=SAME)
    best, second = np.sort(expected, axis=1)[:, :-3:-1].T
    clear = best - second > 2 * SAME
    assert clear.any()
    assert_array_equal(found["label"][clear], tree.predict(x, hard=hard)[clear])


def assert_values(tree: Any, path: Path, x: Any, inputs: Any = None, *, hard: bool = False) -> None:
    expected = tree.predict(x, hard=hard)
    found = run(path, x if inputs is None else inputs)["variable"]
    assert found.shape == expected.shape
    assert_allclose(found, expected, rtol=0, atol=SAME * max(1.0, np.abs(expected).max()))


@HARD
@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_classes_and_values(split: str, leaf: str, hard: bool, path: Path) -> None:
    tree = classifier(split=split, leaf=leaf, depth=3, pruning_strength=3.0).fit(X, labels(X, "abc"))
    assert export_onnx(tree, path, hard=hard) == path
    onnx.checker.check_model(path, full_check=True)
    assert_classes(tree, path, ROWS, hard=hard)
    numbers = regressor(split=split, leaf=leaf, depth=3, max_epochs=20)
    for y in (values(X), values(X)[:, None], np.column_stack((values(X), 1e6 + X[:, 0]))):
        assert_values(numbers.fit(X, y), export_onnx(numbers, path, hard=hard), ROWS, hard=hard)


@pytest.mark.parametrize("split", ["linear", "elu", "mlp", "sparse_mlp"])
def test_clusters(split: str, path: Path) -> None:
    tree = ArgminTreeClusterer(depth=3, n_clusters=3, split=split, max_epochs=3, random_state=0).fit(X)
    found = run(export_onnx(tree, path), ROWS)
    assert_array_equal(found["label"], tree.predict(ROWS))
    assert_allclose(found["routes"], tree.transform(ROWS), rtol=0, atol=SAME)
    found = run(export_onnx(tree, path, hard=True), ROWS)
    assert_array_equal(found["label"], tree.predict(ROWS))
    assert_array_equal(found["routes"], tree.decision_path(ROWS).toarray() * tree.node_mass_)


NAMES = [(3, 7), ("no", "yes"), (False, True), (0.0, 2.0), ("é", "日本", "")]


@HARD
@pytest.mark.parametrize("leaf", ["constant", "linear"])
@pytest.mark.parametrize("opset", [13, 17, 19, 21])
def test_opsets_numbers_of_rows_and_labels(opset: int, leaf: str, hard: bool, path: Path) -> None:
    for names in NAMES:
        tree = classifier(leaf=leaf, max_epochs=2).fit(X, labels(X, names))
        model = onnx.load(export_onnx(tree, path, opset=opset, hard=hard))
        assert [(used.domain, used.version) for used in model.opset_import] == [("", opset)]
        onnx.checker.check_model(model, full_check=True)
        assert_classes(tree, path, ROWS, hard=hard)
        assert [type(label) for label in run(path, ROWS)["label"][:1].tolist()] == [type(names[0])]
        for rows in (0, 1):
            assert run(path, ROWS[:rows])["label"].shape == (rows,)


def test_values_far_from_zero_keep_their_digits(path: Path) -> None:
    tree = regressor(max_epochs=30).fit(X, 1.7e9 + values(X))
    assert_allclose(run(export_onnx(tree, path), ROWS)["variable"], tree.predict(ROWS), rtol=0, atol=1e-4)


def pieces(x: Any) -> Any:
    return np.repeat(x, 5, axis=0) + np.tile(np.linspace(0, 0.1, 5), len(x))[:, None]


def missing(x: Any) -> Any:
    x = x.copy()
    x[::5, 1] = np.nan
    return x


def with_constants(x: Any) -> Any:
    return np.column_stack((x, np.full(len(x), 7.0), x[:, 0] > 0))


TABLES: dict[str, tuple[Any, dict[str, Any]]] = {
    "no split": (lambda x: x, {"depth": 0}),
    "one split": (lambda x: x, {"depth": 1}),
    "deep": (lambda x: x, {"depth": 7}),
    "all is pruned": (lambda x: x, {"pruning_strength": 1e9}),
    "pieces": (pieces, {"pieces": 8}),
    "large numbers with small steps": (lambda x: 1.7e9 + x, {"max_epochs": 30}),
    "missing numbers": (missing, {}),
    "constant columns": (with_constants, {}),
    "more columns than are decorrelated": (lambda x: np.tile(x, 800)[:20], {"max_epochs": 1}),
}


@HARD
@pytest.mark.parametrize("leaf", ["constant", "additive", "linear"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_numbers(name: str, leaf: str, hard: bool, path: Path) -> None:
    make, options = TABLES[name]
    x = make(X)
    tree = regressor(**{"leaf": leaf} | options).fit(x, values(np.nan_to_num(x)))
    rows = make(ROWS)
    if name == "missing numbers":
        rows[::7, 0] = np.nan  # not missing in fit
    assert_values(tree, export_onnx(tree, path, hard=hard), rows, hard=hard)


def test_pruned_nodes_are_left_out(path: Path) -> None:
    x = table(60, 20)
    tree = regressor(depth=6, leaf="linear", pruning_strength=20.0).fit(x, values(x))
    soft, hard = (export_onnx(tree, path, hard=hard).stat().st_size for hard in (False, True))
    assert hard < 0.85 * soft


def test_infinities_count_as_very_large(path: Path) -> None:
    tree = regressor().fit(X, values(X))
    export_onnx(tree, path)
    found = run(path, np.array([[np.inf, -np.inf, 0.0]]))["variable"]
    assert_allclose(found, tree.predict(np.array([[1e30, -1e30, 0.0]])), rtol=SAME)


@HARD
@pytest.mark.parametrize("leaf", ["constant", "linear"])
def test_a_mixed_frame(leaf: str, hard: bool, path: Path) -> None:
    frame = as_pandas(mixed(200))
    tree = classifier(leaf=leaf).fit(frame, frame["count"] % 3)
    rows = as_pandas(mixed(1000, seed=3))
    assert_classes(tree, export_onnx(tree, path, hard=hard), rows, columns(rows), hard=hard)
    onnx.checker.check_model(path, full_check=True)
    inputs = {port.name: (port.type, port.shape) for port in InferenceSession(path).get_inputs()}
    assert list(inputs) == ["size", "count", "color", "member", "since"]
    assert inputs["size"] == ("tensor(double)", ["n", 1])
    assert inputs["color"] == ("tensor(string)", ["n", 1])


def test_times_alone_are_one_input_in_seconds(path: Path) -> None:
    frame = as_pandas(mixed(200)).drop(columns="color")
    tree = regressor().fit(frame, frame["count"])
    inputs = np.concatenate(list(columns(frame).values()), axis=1)
    assert_values(tree, export_onnx(tree, path), frame, inputs)


@pytest.mark.parametrize("colors", [["red", "blue"], ["red", "blue", "green"], ["red", "blue", None], ["red"]])
def test_categories_missing_and_unseen(colors: list[str | None], path: Path) -> None:
    frame = pd.DataFrame({"color": colors * 10, "size": np.arange(10.0 * len(colors))})
    tree = regressor(max_epochs=20).fit(frame, np.arange(len(frame)) % len(colors))
    rows = pd.DataFrame({"color": ["red", "blue", "violet", None], "size": [1.0, 2.0, 3.0, 4.0]})
    assert_values(tree, export_onnx(tree, path), rows, columns(rows))


def test_rare_categories(path: Path) -> None:
    names = [f"level {i}" for i in range(50) for _ in range(50 - i)]
    frame = pd.DataFrame({"name": [*names, *[None] * 40]})
    tree = regressor(max_epochs=20).fit(frame, np.arange(len(frame)) % 7)
    assert {column.kind for column in tree.encoder_.columns_} == {"category", "infrequent", "missing"}
    rows = pd.DataFrame({"name": ["level 0", "level 49", "unseen", None, "level 9"]})
    assert_values(tree, export_onnx(tree, path), rows, columns(rows))


@HARD
@pytest.mark.parametrize("with_empty", [False, True])
def test_effects_of_levels(hard: bool, with_empty: bool, path: Path) -> None:
    random = np.random.default_rng(0)
    codes = random.integers(60, size=600)
    towns = [None if c == 7 else "" if c == 8 and with_empty else f"town {c}" for c in codes]
    frame = pd.DataFrame({"size": random.normal(size=600), "town": np.array(towns, dtype=object)})
    if with_empty:
        frame = frame[frame["town"].notna()].reset_index(drop=True)
    y = random.normal(size=60)[codes][: len(frame)] if not with_empty else frame["town"].str.len() + frame["size"]
    tree = regressor(leaf="linear", max_epochs=20).fit(frame, y)
    assert "effect" in {column.kind for column in tree.encoder_.columns_}
    rows = pd.concat([frame[:50], pd.DataFrame({"size": [1.0], "town": ["unseen"]})], ignore_index=True)
    onnx.checker.check_model(export_onnx(tree, path, hard=hard), full_check=True)
    assert_values(tree, path, rows, columns(rows), hard=hard)


@HARD
@pytest.mark.parametrize("with_text", [False, True])
def test_weekdays_months_and_hours(hard: bool, with_text: bool, path: Path) -> None:
    random = np.random.default_rng(0)
    sold = pd.Series(pd.Timestamp("2021-11-01") + pd.to_timedelta(random.integers(0, 26_000, size=1500), unit="h"))
    y = 2.0 * (sold.dt.day_of_week >= 5) + np.cos(sold.dt.month / 2) + np.sin(sold.dt.hour / 4)
    frame = pd.DataFrame({"size": random.normal(size=1500), "sold": sold})
    frame.loc[::20, "sold"] = pd.NaT
    if with_text:
        frame["color"] = random.choice(["red", "green", "blue"], size=1500)
    tree = regressor(leaf="linear", max_epochs=20).fit(frame, y)
    assert {column.unit for column in tree.encoder_.columns_} == {None, "weekday", "month", "hour"}
    edges = ["1900-02-28", "1900-03-01", "1969-12-31 23:59:59.999999", "2000-02-29 23:00", "2025-01-01", "2100-03-01"]
    rows = pd.concat([frame[:50], frame[: len(edges)].assign(sold=pd.to_datetime(edges, format="ISO8601"))])
    inputs: Any = columns(rows)
    onnx.checker.check_model(export_onnx(tree, path, hard=hard), full_check=True)
    assert_values(tree, path, rows, inputs if with_text else np.concatenate(list(inputs.values()), axis=1), hard=hard)


def test_categories_that_are_numbers_go_by_their_text(path: Path) -> None:
    frame = pd.DataFrame({"size": pd.Series([1.0, 2.0, 30.5] * 10).astype("category")})
    tree = regressor(max_epochs=20).fit(frame, np.arange(30) % 3)
    inputs = {"size": np.array([["1"], ["2"], ["30.5"]], dtype=object)}
    assert_values(tree, export_onnx(tree, path), frame[:3], inputs)


def test_columns_named_like_outputs_or_values_within(path: Path) -> None:
    frame = pd.DataFrame({"label": ["a", "b"] * 10, "": ["c", "d"] * 10, "label_": X[:20, 0], "value_0": X[:20, 1]})
    tree = classifier().fit(frame, labels(X[:20]))
    inputs = columns(frame)
    inputs["label__"], inputs["_"] = inputs.pop("label"), inputs.pop("")
    assert_classes(tree, export_onnx(tree, path), frame, inputs)


def test_an_array_of_objects_has_an_input_for_each_column(path: Path) -> None:
    rows = np.array([[1.5, "red"], [2.5, "blue"], [np.nan, "red"], [0.5, "blue"]] * 5, dtype=object)
    tree = classifier(max_epochs=20).fit(rows, rows[:, 1].astype(str))
    inputs = {"x0": rows[:, :1].astype(np.float64), "x1": rows[:, 1:]}
    assert_classes(tree, export_onnx(tree, path), rows, inputs)


@pytest.mark.parametrize("opset", [12, 10_000, True, 19.0, "19", 18])
def test_opsets_that_cannot_be_written(opset: Any, path: Path) -> None:
    frame = as_pandas(mixed())  # categories are compared as text, from opset 19 on
    tree = regressor().fit(frame, frame["count"])
    with pytest.raises(InputValueError, match=r"opset must be an integer from 19 \(categories .* text\) to .*, got "):
        export_onnx(tree, path, opset=opset)


def test_the_file_says_what_it_is(path: Path) -> None:
    path.write_text("something else")
    frame = pd.DataFrame(X, columns=["a", "b", "ü"])
    tree = classifier().fit(frame, labels(X, ("no", "yes")))
    model = onnx.load(export_onnx(tree, str(path), hard=True))
    assert (model.producer_name, model.producer_version) == ("prunus", prunus.__version__)
    notes = {note.key: note.value for note in model.metadata_props}
    assert (notes["kind"], json.loads(notes["hard"])) == ("ArgminTreeClassifier", True)
    assert json.loads(notes["feature_names"]) == ["a", "b", "ü"]
    assert json.loads(notes["classes"]) == ["no", "yes"]
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_exported(path: Path) -> None:
    tree = regressor().fit(X, values(X))
    own = regressor(split=lambda features, depth: nn.Linear(features, 2**depth - 1)).fit(X, values(X))
    attempts: list[tuple[Any, Path, type[Exception], str]] = [
        (tree, path.parent / "no" / "tree.onnx", FileNotFoundError, r"there is no folder .*; make it first"),
        (tree, path.parent, IsADirectoryError, r"is a folder; name a file in it, such as .*tree"),
        (own, path, InputTypeError, "split must be one of prunus for export_onnx, got Linear"),
        ("tree", path, InputTypeError, "estimator must be one of prunus, got str"),
        (classifier(), path, NotFittedError, "Call 'fit'"),
    ]
    for model, place, error, message in attempts:
        with pytest.raises(error, match=message):
            export_onnx(model, place)
    assert not path.exists()


def test_without_the_package_onnx() -> None:
    script = """
import json
from prunus import ArgminTreeRegressor, export_onnx
tree = ArgminTreeRegressor(depth=1, max_epochs=1).fit([[0.0], [1.0]], [0.0, 1.0])
try:
    export_onnx(tree, "tree.onnx")
except ImportError as error:
    print(json.dumps(str(error)))
"""
    assert run_without(("onnx",), script) == "export_onnx needs the package onnx: pip install 'prunus[onnx]'"
