"""Readable trees written as ONNX files: onnxruntime finds the leaf and the numbers of the estimator for every row."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pandas as pd
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from onnxruntime import InferenceSession  # type: ignore[import-untyped]

from prunus import ReadableTreeClassifier, ReadableTreeRegressor, export_onnx
from prunus.errors import InputValueError
from prunus.search.record import Split, Term
from tests.estimators.problems import labels, table, values
from tests.estimators.random_readable import NAMES, TEST, estimators, with_nodes_as_values
from tests.estimators.readable_problems import (
    SPLITS,
    constant,
    examples,
    finding,
    fitted,
    level_of,
    record_of_two_classes,
    stones,
    tree_of,
)

X = table()
ROWS = stones(300, seed=9).assign(color=lambda rows: rows["color"].where(np.arange(len(rows)) % 11 > 0, "unseen"))
EXPONENTIAL = 1e-12
"""Exponentials of numpy and of onnxruntime differ in their last digits; everything else is the same."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tree.onnx"


def inputs_of(frame: pd.DataFrame, ports: list[Any]) -> dict[str, npt.NDArray[Any]]:
    """The columns of a frame, by the names of the inputs."""
    return {
        port.name: _column(frame.iloc[:, i], is_text=port.type == "tensor(string)")[:, None]
        for i, port in enumerate(ports)
    }


def _column(series: Any, *, is_text: bool) -> npt.NDArray[Any]:
    if series.dtype.kind == "M":
        return np.asarray((series - pd.Timestamp(0)).dt.total_seconds(), dtype=np.float64)
    if series.dtype.kind == "m":
        return np.asarray(series.dt.total_seconds(), dtype=np.float64)
    if is_text:
        return np.array(["" if pd.isna(value) else str(value) for value in series], dtype=object)
    return np.array([np.nan if pd.isna(value) else float(value) for value in series])


def run(path: Path, frame: pd.DataFrame | npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Outputs by name."""
    session = InferenceSession(path)
    inputs = inputs_of(frame, session.get_inputs()) if isinstance(frame, pd.DataFrame) else {"X": frame}
    return dict(zip([port.name for port in session.get_outputs()], session.run(None, inputs), strict=True))


def assert_same(tree: Any, path: Path, rows: Any, *, tolerance: float = EXPONENTIAL) -> None:
    found = run(export_onnx(tree, path), rows)
    if not hasattr(tree, "classes_"):
        assert_array_equal(found["variable"], tree.predict(rows))
        return
    expected = tree.predict_proba(rows)
    assert found["probabilities"].dtype == np.float64
    assert_allclose(found["probabilities"], expected, rtol=tolerance, atol=0)
    best, second = np.sort(expected, axis=1)[:, :-3:-1].T
    clear = best - second > tolerance
    assert_array_equal(found["label"][clear], tree.predict(rows)[clear])


@pytest.mark.parametrize("kind", sorted(examples()))
def test_every_form_of_leaf(kind: str, path: Path) -> None:
    assert_same(examples()[kind], path, ROWS)
    onnx.checker.check_model(path, full_check=True)


@pytest.mark.parametrize("form", sorted(SPLITS))
def test_every_form_of_split(form: str, path: Path) -> None:
    assert_same(fitted(tree_of(SPLITS[form])), path, ROWS)


def test_constant_probabilities_are_those_that_are_printed(path: Path) -> None:
    assert_same(examples()["three classes"], path, ROWS, tolerance=0)


@settings(max_examples=150, deadline=None)
@given(tree=estimators())
def test_random_trees_send_every_row_to_its_leaf(tree: Any) -> None:
    of_nodes = with_nodes_as_values(tree)
    rows = TEST[TEST[NAMES[3]].notna()]  # the empty text is one of its levels, so that none can be missing
    with TemporaryDirectory() as folder:
        leaves = run(export_onnx(of_nodes, Path(folder) / "leaves.onnx"), rows)["variable"]
        assert_array_equal(leaves, of_nodes.predict(rows))
        assert_same(tree, Path(folder) / "tree.onnx", rows)


@pytest.mark.parametrize("opset", [13, 17, 18, 19, 21])
def test_a_table_of_numbers_is_one_input(opset: int, path: Path) -> None:
    x = X.copy()
    x[::5, 1] = np.nan
    tree = ReadableTreeClassifier(max_leaf_nodes=4, random_state=0).fit(x, labels(X, "abc"))
    model = onnx.load(export_onnx(tree, path, opset=opset))
    assert [(used.domain, used.version) for used in model.opset_import] == [("", opset)]
    onnx.checker.check_model(model, full_check=True)
    assert_allclose(run(path, x)["probabilities"], tree.predict_proba(x), rtol=0, atol=0)


def test_categories_need_an_opset_that_compares_text(path: Path) -> None:
    with pytest.raises(InputValueError, match=r"from 19 \(categories are compared as text\) to"):
        export_onnx(examples()["values"], path, opset=18)


@pytest.mark.parametrize("n", [0, 1, 40])
@pytest.mark.parametrize("kind", ["values", "one leaf", "scores"])
def test_any_number_of_rows(kind: str, n: int, path: Path) -> None:
    tree = examples()[kind]
    export_onnx(tree, path)
    found = run(path, ROWS[:n])
    assert found["label" if "label" in found else "variable"].shape == (n,)


@pytest.mark.parametrize("names", [(3, 7), ("no", "yes"), (False, True), (0.0, 2.0), ("é", "")])
def test_labels_of_any_kind(names: Any, path: Path) -> None:
    frame = stones()
    y = np.array(names)[(frame["age"].to_numpy() > 50).astype(int)]
    with finding(record_of_two_classes()):
        tree = ReadableTreeClassifier(random_state=0).fit(frame, y)
    assert_same(tree, path, ROWS)
    assert [type(label) for label in run(path, ROWS)["label"][:1].tolist()] == [type(names[0])]


def test_an_empty_text_that_is_a_level_is_not_missing(path: Path) -> None:
    frame = pd.DataFrame({"color": ["", "a", "b", "a"] * 10, "size": np.arange(40.0)})
    tree = fitted(tree_of(Split((level_of("", of=0),), 0.5), constant(1), constant(2)), frame, np.arange(40.0))
    assert_same(tree, path, frame)


def test_columns_named_like_outputs_or_values_within(path: Path) -> None:
    frame = pd.DataFrame({"label": ["a", "b"] * 10, "": ["c", "d"] * 10, "label_": X[:20, 0], "value_0": X[:20, 1]})
    split = Split((Term(2, 1.0), level_of("a", of=0, weight=0.5)), 0.25)
    tree = fitted(tree_of(split, constant(0.25, 0.75), constant(0.875, 0.125)), frame, labels(X[:20]))
    assert_same(tree, path, frame)
    assert [port.name for port in InferenceSession(path).get_inputs()] == ["label__", "_", "label_", "value_0"]


def test_values_of_several_outputs_keep_their_shape(path: Path) -> None:
    y = np.column_stack((values(X), 1e9 + X[:, 0]))
    tree = ReadableTreeRegressor(max_leaf_nodes=3, random_state=0).fit(X, y)
    assert_same(tree, path, X)
