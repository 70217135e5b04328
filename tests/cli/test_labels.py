"""Class labels and dates are what the file says, in every command that reads a table for a model."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prunus
from prunus.cli import columns
from prunus.cli.reading import InputTable
from prunus.cli.targets import read_classes
from prunus.estimators import format as estimators_format
from tests.cli.tables import QUICK, SOFT, Shell, csv, write

EPOCHS = ("--kind", "soft", "--max-epochs", "30", "--quiet")


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
        ["-3", "4"],
        ["a", "A"],
    ],
)
def test_labels_of_text_are_the_fields(shell: Shell, tmp_path: Path, labels: list[str]) -> None:
    data = write(tmp_path / "t.csv", table_of(labels) + "1,\n")  # one target is empty
    model = tmp_path / "m.prunus"
    shell("fit", data, "--target", "y", "--out", model, *EPOCHS)
    assert {str(label) for label in prunus.load(model).classes_} == set(labels)
    assert set(map(str, shell.json("predict", model, data)["prediction"])) <= set(labels)
    assert shell.json("evaluate", model, data, "--target", "y")["rows_without_target"] == 1
    shell("show", model, "--data", data, "--target", "y", "--html", tmp_path / "m.html", "--quiet")


def test_texts_that_are_numbers_or_missing_values(shell: Shell, tmp_path: Path) -> None:
    def classes(labels: list[str], *options: str) -> list[Any]:
        data = write(tmp_path / "t.csv", table_of(labels) + "1,\n")
        shell("fit", data, "--target", "y", "--out", tmp_path / "m.prunus", "--force", *options, *SOFT)
        found: list[Any] = prunus.load(tmp_path / "m.prunus").classes_.tolist()
        return found

    assert classes(["1", "2"]) == [1, 2]
    assert classes(["NA", "DE", "FR"]) == ["DE", "FR"]
    assert classes(["NA", "DE", "FR"], "--na-values", "") == ["DE", "FR", "NA"]
    assert classes(["NA", "DE", "FR"], "--na-values", ",DE", "--na-values", "none") == ["FR", "NA"]
    assert classes(["007", "7"]) == ["007", "7"]
    said = shell.mistake(
        "evaluate", tmp_path / "m.prunus", write(tmp_path / "u.csv", table_of(["07"])), "--target", "y"
    )
    assert "must contain the classes of" in said
    assert "'007', '7', got '07'" in said
    data = write(tmp_path / "t.csv", table_of(["007", "7", "1e1"]))
    command = ("fit", data, "--target", "y", "--task", "regression", "--out", tmp_path / "r.prunus", *SOFT)
    assert shell.json(*command)["task"] == "regression"


OF_PARQUET: list[tuple[Any, list[Any] | None, list[str]]] = [
    (np.array([2**63, 2**63 + 2**40], dtype=np.uint64), [str(2**63), str(2**63 + 2**40)], [str(2**63)]),
    (pd.array([2**53, 2**53 + 1, None], dtype="Int64"), [2**53, 2**53 + 1], [str(2**53), str(2**53 + 1)]),
    (np.array([1.0, 2.0]), [1, 2], ["1", "2"]),
    (np.array([True, False]), [False, True], ["True", "False"]),
    (np.array([0.5, 1.0, np.nan]), None, ["0.5", "1.0"]),  # numbers, but clusters may be compared with them
    (pd.to_datetime(["2021-02-01", "2021-02-02"]), None, ["2021-02-01 00:00:00", "2021-02-02 00:00:00"]),
]


@pytest.mark.parametrize(("values", "labels", "classes"), OF_PARQUET)
def test_labels_of_parquet_are_its_values(
    shell: Shell, tmp_path: Path, values: Any, labels: list[Any] | None, classes: list[str]
) -> None:
    given, found = read_classes(InputTable("t.parquet", pd.DataFrame({"y": values})), "y")
    assert found.tolist()[: len(classes)] == classes
    assert given.sum() == 2
    if labels is None:
        return
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


@pytest.mark.parametrize("labels", [["007", "7"], ["1.0", "1"], ["1e3", "1000"], ["true", "True"], ["0.5", "1.5"]])
def test_clusters_are_compared_with_the_classes_of_the_file(shell: Shell, tmp_path: Path, labels: list[str]) -> None:
    data = write(tmp_path / "t.csv", table_of(labels).replace(",7", ", 7 "))
    command = ("cluster", data, "--target", "y", "--out", tmp_path / "c.prunus", "--n-clusters", 2, "--keep", "x")
    found = shell.json(*command, "--max-epochs", "30", "--quiet")["scores"]
    assert (found["adjusted_rand"], found["dendrogram_purity"]) == (1, 1)  # broke: 007 and 7 were one class
    assert shell.json("evaluate", tmp_path / "c.prunus", data, "--target", "y")["adjusted_rand"] == 1


def days(order: str) -> pd.DataFrame:
    """Dates of 2021 whose order the values tell, and whether they are in the first half of the year."""
    found = pd.date_range("2021-01-01", "2021-12-31", freq="3D")
    text = found.strftime("%d/%m/%Y" if order == "day-first" else "%m/%d/%Y")
    halves = ["early" if day.month <= 6 else "late" for day in found]
    return pd.DataFrame({"when": text, "n": range(len(text)), "y": halves})


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model for each order of day and month."""
    folder = tmp_path_factory.mktemp("dates")
    found = {order: folder / f"{order}.prunus" for order in columns.ORDERS}
    for order, out in found.items():
        data = csv(folder / f"{order}.csv", days(order))
        assert prunus.cli.main(["fit", data, "--target", "y", "--drop", "n", "--out", str(out), *EPOCHS]) == 0
    return found


def test_dates_are_read_as_in_training(shell: Shell, models: dict[str, Path], tmp_path: Path) -> None:
    assert set(models) == set(estimators_format.DATE_ORDERS)
    for order, half in (("day-first", "late"), ("month-first", "early")):
        one = write(tmp_path / "one.csv", f"when,y\n02/12/2021,{half}\n")
        assert shell("predict", models[order], one) == f"prediction\n{half}\n"  # broke: the order was unclear
        assert shell.json("evaluate", models[order], one)["accuracy"] == 1
        shell("show", models[order], "--data", one, "--html", tmp_path / f"{order}.html", "--quiet")
        for text in ("2021-12-02", "2021/12/02", "2021-12-02 10:30"):  # they need no order
            data = write(tmp_path / "one.csv", f"when\n{text}\n")
            assert shell("predict", models[order], data) == "prediction\nlate\n"


def test_dates_in_another_order_are_refused(shell: Shell, models: dict[str, Path], tmp_path: Path) -> None:
    command = ("predict", models["day-first"], write(tmp_path / "t.csv", "when\n01/02/2021\n12/25/2021\n"))
    assert shell.mistake(*command) == (  # broke: both rows were read month-first
        f"prunus predict: {tmp_path / 't.csv'}, line 3: column 'when' must contain dates that are day-first, as in "
        "training, got '12/25/2021'; correct it, or use --dates month-first"
    )
    assert shell(*command, "--dates", "month-first") == "prediction\nearly\nlate\n"
    said = shell.mistake(*command, "--dates", "day-first")
    assert "line 3: column 'when' must contain dates that are day-first, as --dates says, got '12/25/2021'" in said
    tree = prunus.load(models["day-first"])
    del tree.date_orders_  # a model without an order asks for it
    prunus.save(tree, tmp_path / "m.prunus")
    asked = ("predict", tmp_path / "m.prunus", write(tmp_path / "one.csv", "when\n02/12/2021\n"))
    assert "line 2: column 'when' must contain dates, as in training, got '02/12/2021'" in shell.mistake(*asked)
    assert shell(*asked, "--dates", "day-first") == "prediction\nlate\n"
    learn = ("fit", csv(tmp_path / "t.csv", days("day-first")), "--target", "y", "--out", tmp_path / "n.prunus")
    said = shell(*learn, "--dates", "month-first", "--keep", "n", *SOFT)
    assert "'when' holds dates, but is read as text: they are not month-first, as --dates says" in said


@pytest.mark.parametrize(
    ("texts", "orders"),
    [
        (["13/02/2021", "01/02/2021"], {"when": "day-first"}),
        (["02.13.2021", "01.02.2021"], {"when": "month-first"}),
        (["01/01/2021", "02/02/2021"], {}),  # the day is the month: either order will do
        (["2021/13/02", "2021/01/02"], {}),
        (["2021-02-13", "2021-01-02"], {}),
        (["01/02/2021", "02/01/2021"], {}),  # the order is unclear
        (["a", "b"], {}),
    ],
)
def test_only_an_order_that_was_found_is_kept(
    shell: Shell, tmp_path: Path, texts: list[str], orders: dict[str, str]
) -> None:
    table = pd.DataFrame({"when": texts * 10, "x": [0.5, 1.5] * 10, "y": ["a", "b"] * 10, "also": ["13/02/2021"] * 20})
    shell("fit", csv(tmp_path / "t.csv", table), "--target", "y", "--out", tmp_path / "m.prunus", *SOFT)
    assert prunus.load(tmp_path / "m.prunus").date_orders_ == orders  # the constant column is no feature


def test_searches_and_clusters_keep_the_order_and_another_fit_forgets_it(
    shell: Shell, models: dict[str, Path], tmp_path: Path
) -> None:
    data, one = csv(tmp_path / "t.csv", days("day-first")), write(tmp_path / "one.csv", "when,n\n01/02/2021,3\n")
    for name, *words in (("tune", "--target", "y", "--trials", "1"), ("cluster", "--drop", "y")):
        out = tmp_path / f"{name}.prunus"
        shell(name, data, *words, "--out", out, *QUICK)
        assert prunus.load(out).date_orders_ == {"when": "day-first"}
        assert shell("predict", out, one).count("\n") == 2
    tree = prunus.load(models["day-first"])
    tree.fit(pd.DataFrame({"when": [0.0, 1.0, 2.0, 3.0]}), ["a", "b", "a", "b"])
    assert not hasattr(tree, "date_orders_")
    assert not hasattr(tree, "target_name_")
