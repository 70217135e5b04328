"""Class labels are what the file says, from ``fit`` to ``predict`` and ``evaluate``."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prunus
from prunus.cli.reading import Source
from prunus.cli.targets import read_classes
from tests.cli.tables import SOFT, Shell, write


def table_of(labels: list[str], rows: int = 30) -> str:
    """A table whose target is told by its feature."""
    lines = [f"{i % len(labels)},{labels[i % len(labels)]}" for i in range(rows)]
    return "\n".join(["x,y", *lines, ""])


@pytest.mark.parametrize(
    "labels",
    [
        ["007", "7"],
        ["10000000000000000000", "20000000000000000000"],
        ["9007199254740992", "9007199254740993", "9007199254740994"],
        ["true", "false"],
        ["1.0", "2.0"],
        ["1e3", "+5"],
        ["0", "1"],
        ["-3", "4"],
        ["a", "A"],
    ],
)
def test_labels_of_text_are_the_fields(shell: Shell, tmp_path: Path, labels: list[str]) -> None:
    data = write(tmp_path / "t.csv", table_of(labels) + "1,\n")  # one target is empty
    model = tmp_path / "m.prunus"
    shell("fit", data, "--target", "y", "--out", model, "--kind", "soft", "--max-epochs", "30", "--quiet")
    assert {str(label) for label in prunus.load(model).classes_} == set(labels)
    found = pd.read_csv(io.StringIO(shell("predict", model, data)), dtype=str)
    assert set(found["prediction"]) <= set(labels)
    assert shell.json("evaluate", model, data, "--target", "y")["rows_without_target"] == 1
    shell("show", model, "--data", data, "--target", "y", "--html", tmp_path / "m.html", "--quiet")


def test_whole_numbers_that_print_as_written_are_numbers(shell: Shell, tmp_path: Path) -> None:
    data = write(tmp_path / "t.csv", table_of(["1", "2"]))
    shell("fit", data, "--target", "y", "--out", tmp_path / "m.prunus", *SOFT)
    assert prunus.load(tmp_path / "m.prunus").classes_.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (np.array([2**63, 2**63 + 2**40], dtype=np.uint64), [str(2**63), str(2**63 + 2**40)]),
        (pd.array([2**53, 2**53 + 1, None], dtype="Int64"), [2**53, 2**53 + 1]),
        (np.array([1.0, 2.0]), [1, 2]),
        (np.array([True, False]), [False, True]),
    ],
)
def test_labels_of_parquet_are_its_values(shell: Shell, tmp_path: Path, values: Any, labels: list[Any]) -> None:
    picked = values[np.arange(30) % len(values)]
    table = pa.Table.from_pandas(pd.DataFrame({"x": np.arange(30) % 2, "y": picked}))
    pq.write_table(table.replace_schema_metadata(), tmp_path / "t.parquet")  # as programs other than pandas write it
    shell("fit", tmp_path / "t.parquet", "--target", "y", "--out", tmp_path / "m.prunus", *SOFT)
    assert prunus.load(tmp_path / "m.prunus").classes_.tolist() == labels
    shell("evaluate", tmp_path / "m.prunus", tmp_path / "t.parquet", "--target", "y")


@pytest.mark.parametrize(("classes", "labels"), [([1, 2], ["1.0", "2.0"]), ([True, False], ["true", "false"])])
def test_models_that_learned_other_labels_before_still_evaluate(
    shell: Shell, tmp_path: Path, classes: list[Any], labels: list[str]
) -> None:
    tree = prunus.ArgminTreeClassifier(depth=1, max_epochs=1)
    tree.fit(pd.DataFrame({"x": [0, 1] * 10}), np.array(classes * 10))
    prunus.save(tree, tmp_path / "m.prunus")
    data = write(tmp_path / "t.csv", table_of(labels))
    assert shell.json("evaluate", tmp_path / "m.prunus", data, "--target", "y")["rows"] == 30


def test_an_unknown_class_is_named(shell: Shell, tmp_path: Path) -> None:
    shell("fit", write(tmp_path / "t.csv", table_of(["007", "7"])), "--target", "y", "--out", tmp_path / "m.p", *SOFT)
    said = shell.mistake("evaluate", tmp_path / "m.p", write(tmp_path / "u.csv", table_of(["07"])), "--target", "y")
    assert "must contain the classes of" in said
    assert "'007', '7', got '07'" in said


def test_regression_targets_are_numbers(shell: Shell, tmp_path: Path) -> None:
    data = write(tmp_path / "t.csv", table_of(["007", "7", "1e1"]))
    record = shell.json("fit", data, "--target", "y", "--task", "regression", "--out", tmp_path / "m.prunus", *SOFT)
    assert record["task"] == "regression"


def test_usual_texts_for_missing_values_can_be_values(shell: Shell, tmp_path: Path) -> None:
    data = write(tmp_path / "t.csv", table_of(["NA", "DE", "FR"]) + "1,\n")
    command = ("fit", data, "--target", "y", "--out", tmp_path / "m.prunus", "--force", *SOFT)
    shell(*command)
    assert prunus.load(tmp_path / "m.prunus").classes_.tolist() == ["DE", "FR"]
    shell(*command, "--na-values", "")
    assert prunus.load(tmp_path / "m.prunus").classes_.tolist() == ["DE", "FR", "NA"]
    shell(*command, "--na-values", ",DE", "--na-values", "none")
    assert prunus.load(tmp_path / "m.prunus").classes_.tolist() == ["FR", "NA"]


def test_a_target_of_lists_is_refused(shell: Shell, tmp_path: Path) -> None:
    pd.DataFrame({"x": [0, 1] * 9, "y": [[1], [2, 3]] * 9}).to_parquet(tmp_path / "t.parquet")
    said = shell.mistake("fit", tmp_path / "t.parquet", "--target", "y", "--out", tmp_path / "m.prunus", *SOFT)
    assert "row 1: the target column 'y' must contain single values, got a" in said


@pytest.mark.parametrize("labels", [["007", "7"], ["1.0", "1"], ["1e3", "1000"], ["true", "True"], ["0.5", "1.5"]])
def test_clusters_are_compared_with_the_classes_of_the_file(shell: Shell, tmp_path: Path, labels: list[str]) -> None:
    data = write(tmp_path / "t.csv", table_of(labels).replace(",7", ", 7 "))
    command = ("cluster", data, "--target", "y", "--out", tmp_path / "c.prunus", "--n-clusters", 2, "--keep", "x")
    found = shell.json(*command, "--max-epochs", "30", "--quiet")["scores"]
    assert (found["adjusted_rand"], found["dendrogram_purity"]) == (1, 1)  # broke: 007 and 7 were one class
    assert shell.json("evaluate", tmp_path / "c.prunus", data, "--target", "y")["adjusted_rand"] == 1


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (pd.array([2**53, 2**53 + 1, None], dtype="Int64"), [str(2**53), str(2**53 + 1)]),
        (np.array([1.0, 2.0]), ["1", "2"]),
        (np.array([0.5, 1.0, np.nan]), ["0.5", "1.0"]),
        (np.array([True, False]), ["True", "False"]),
        (pd.to_datetime(["2021-02-01", "2021-02-02"]), ["2021-02-01 00:00:00", "2021-02-02 00:00:00"]),
    ],
)
def test_classes_of_parquet_are_texts(values: Any, classes: list[str]) -> None:
    given, found = read_classes(Source("t.parquet", pd.DataFrame({"y": values})), "y")
    assert found.tolist() == classes
    assert given.sum() == 2


def test_clusters_are_not_compared_with_an_empty_column(shell: Shell, folder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "t.csv", "size,color,price,y\n1,red,2,\n2,blue,3,\n")
    said = shell.mistake("evaluate", folder / "clusters.prunus", data, "--target", "y")
    assert "the target column 'y' is empty; name another one" in said
