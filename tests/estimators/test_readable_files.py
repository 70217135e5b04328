"""Readable trees and tables in files."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from prunus import ReadableTreeClassifier, ReadableTreeRegressor, export_text
from prunus.data import FileTable
from prunus.errors import InputTypeError, InputValueError
from tests.data.file_tables import write

N = 600
COLUMNS = ["size", "color"]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    random = np.random.default_rng(0)
    size, color = random.random(N).round(3), random.choice(np.array(["red", "blue", None]), N)
    price = (2 * size + (color == "red")).round(2)
    kind = np.where(price > 1.5, "dear", "cheap")
    return pa.table({"size": size, "color": color, "w": random.integers(1, 3, N), "price": price, "kind": kind})


@pytest.fixture(scope="module")
def folder(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    for k in range(3):
        write(rows.slice(k * N // 3, N // 3), made / f"{k}.parquet", rows=50)
    return made


@pytest.mark.parametrize(
    ("kind", "target", "methods"),
    [
        (ReadableTreeRegressor, "price", ["predict", "apply"]),
        (
            ReadableTreeClassifier,
            "kind",
            ["predict", "predict_proba", "predict_log_proba", "decision_function", "apply"],
        ),
    ],
)
def test_a_table_in_files_is_learned_and_predicted_as_a_frame_is(
    rows: pa.Table, folder: Path, kind: Any, target: str, methods: list[str]
) -> None:
    files, frame = FileTable(folder, target=target, weight="w", columns=COLUMNS), rows.to_pandas()
    tree = kind(max_leaf_nodes=4, random_state=0).fit(files)
    other = kind(max_leaf_nodes=4, random_state=0).fit(frame[COLUMNS], frame[target], frame["w"])
    assert export_text(tree) == export_text(other)
    for method in methods:
        np.testing.assert_array_equal(getattr(tree, method)(files), getattr(other, method)(frame[COLUMNS]))
    assert (tree.decision_path(files) != other.decision_path(frame[COLUMNS])).nnz == 0
    assert tree.score(files) == pytest.approx(other.score(frame[COLUMNS], frame[target], frame["w"]))


def test_a_table_beyond_its_memory_limit_is_an_error_that_says_how_much_it_takes(folder: Path) -> None:
    table = FileTable(folder, target="price", columns=COLUMNS, memory_limit=1_000)
    said = r"X must fit into memory: .* 600 rows of 2 columns take 3.8e\+04 bytes, got memory_limit=1e\+03\. Use"
    with pytest.raises(InputValueError, match=said):
        ReadableTreeRegressor().fit(table)


def test_the_target_is_a_column_of_the_files(rows: pa.Table, folder: Path) -> None:
    with pytest.raises(InputValueError, match="X must be a FileTable with a target, got none"):
        ReadableTreeRegressor().fit(FileTable(folder))
    with pytest.raises(InputTypeError, match="y must be None if X is a FileTable"):
        ReadableTreeRegressor().fit(FileTable(folder, target="price"), rows["price"])
