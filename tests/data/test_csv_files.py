"""CSV files are cut into blocks of rows; a column has the type that fits all of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from prunus.data import FileTable, TableEncoder
from prunus.data.statistics import TableStatistics


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.data.formats._BLOCK", 64)
    monkeypatch.setattr("prunus.data.formats._LONGEST", 1024)


def column(path: Path, text: str | bytes, name: str = "x") -> list[Any]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [value for chunk in FileTable(path).batches() for value in chunk.X.column(name).to_pylist()]


def test_blocks_are_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert column(path, "x,y\n" + "".join(f"{k},{k % 3}\n" for k in range(500))) == list(range(500))
    table = FileTable(path)
    assert len(table.groups) > 20
    assert sum(group.rows for group in table.groups) == len(table) == 500


@pytest.mark.parametrize(
    ("later", "kind"),
    [
        ("2.5", pa.float64()),
        ("many", pa.string()),
        ("", pa.int64()),
        ("true", pa.string()),
        ("2024-01-01", pa.string()),
    ],
)
def test_whole_numbers_and_then_others(tmp_path: Path, later: str, kind: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{k},0\n" for k in range(100)) + f"{later},1\n")
    table = FileTable(path)
    types = {chunk.X.schema.field("x").type for chunk in table.batches()}
    assert types == {kind}


@pytest.mark.parametrize(
    ("first", "later"),
    [("", "3"), ("", "red"), ("2024-01-01", "2024-01-02 10:00:00"), ("2024-01-02 10:00:00", "2024-01-03 10:00:00.5")],
)
def test_values_of_one_kind_are_encoded_as_a_whole(tmp_path: Path, first: str, later: str) -> None:
    path = tmp_path / "a.csv"
    text = "x,y\n" + f"{first},0\n" * 60 + f"{later},1\n" * 30
    path.write_text(text)
    statistics = TableStatistics()
    for chunk in FileTable(path).batches():
        statistics.add(chunk.X)
    values: Any = [value or None for value in [first] * 60 + [later] * 30]
    x = pd.Series(values)
    if "-" in later:
        x = pd.to_datetime(x, format="ISO8601")
    elif later == "3":
        x = x.astype(float)
    frame = pd.DataFrame({"x": x, "y": [0] * 60 + [1] * 30})
    assert statistics.encoder().columns_ == TableEncoder().fit(frame).columns_


def test_newlines_and_commas_in_quotes(tmp_path: Path) -> None:
    texts = ["plain", "two\nlines", "a, b", 'a "word"', "\n\n", ""] * 20
    lines = ['"{}",{}\n'.format(text.replace('"', '""'), k) for k, text in enumerate(texts)]
    expected = [text or None for text in texts]
    assert column(tmp_path / "a.csv", '"x","y\nz"\n' + "".join(lines)) == expected


@pytest.mark.parametrize(
    "text",
    ["\ufeffx,y\n1,2\n3,4\n", "x,y\r\n1,2\r\n3,4\r\n", "x,y\n1,2\n\n3,4", "x,y\n1,2\n3,4\n\n\n"],
    ids=["mark", "carriage returns", "no last newline", "empty lines"],
)
def test_texts_as_people_have_them(tmp_path: Path, text: str) -> None:
    assert column(tmp_path / "a.csv", text) == [1, 3]
    assert column(tmp_path / "a.csv", text, "y") == [2, 4]


def test_tabs(tmp_path: Path) -> None:
    assert column(tmp_path / "a.tsv", "x\ty\n1\ta,b\n", "y") == ["a,b"]


def test_a_missing_quote_is_an_error(tmp_path: Path) -> None:
    text = "x,y\n" + "1,2\n" * 50 + '"3,4\n' + "5,6\n" * 1000
    with pytest.raises(ValueError, match=r"A row of '.*a.csv' is too long, perhaps because a quote is missing"):
        column(tmp_path / "a.csv", text)


def test_blocks_that_change_after_counting_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,2\n" * 50)
    table = FileTable(path)
    assert len(table) == 50
    path.write_text("x,y\n" + "a,2\n" * 50)
    with pytest.raises(ValueError, match=r"Cannot read '.*a.csv'.*column #0.*'a'"):
        list(table.batches())


def test_rows_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,2\n" * 50)
    table = FileTable(path)
    assert (len(table), len(table)) == (50, 50)
    monkeypatch.setattr("prunus.data.formats.CsvPart.count", None)
    assert sum(chunk.n_rows for chunk in table.batches()) == 50
    np.testing.assert_array_equal([chunk.start for chunk in table.batches()], 0)
