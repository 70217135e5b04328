"""Reading tables: separators, encodings, dates, formats, and files that are not tables."""

import argparse
import contextlib
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prunus.cli.columns import drop_useless
from prunus.cli.errors import CliError
from prunus.cli.reading import InputTable, read_input
from tests.cli.tables import frame, write


def read(path: object, text_columns: Any = (), **options: Any) -> InputTable:
    defaults = {"separator": None, "no_header": False, "dates": None, "na_values": None}
    return read_input(str(path), argparse.Namespace(**(defaults | options)), text_columns)


def rows(source: InputTable) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = source.frame.to_dict("list")
    return found


AB = {"a": [1, 2], "b": ["x", "y"]}
LONG = "x" * 200_000


OF_LINES: list[tuple[str, Any, Any, list[str]]] = []
"""The first row may have several lines, however they end."""
for end in ("\n", "\r", "\r\n"):
    OF_LINES += [
        (f'"a{end}b",c\n"x{end}y",1\nz,2\n', {}, {f"a{end}b": [f"x{end}y", "z"], "c": [1, 2]}, []),
        (f'\n"x{end}y",1\nz,2\n', {"no_header": True}, {"x0": [f"x{end}y", "z"], "x1": [1, 2]}, []),
    ]


@pytest.mark.parametrize(
    ("text", "options", "expected", "notes"),
    [
        ("a,b\n1,x\n2,y\n", {}, AB, []),
        ("a;b\n1;x\n2;y\n", {}, AB, ["fields are separated by semicolons"]),
        ("a\tb\n1\tx\n2\ty\n", {}, AB, ["fields are separated by tabs"]),
        ("a|b\n1|x\n2|y\n", {}, AB, ["fields are separated by bars"]),
        ("a   b\n1   x\n2   y\n", {}, AB, ["fields are separated by spaces"]),
        ("\n a , b\r\n\r\n1, x\r\n 2,y \r\n", {}, AB, []),
        ('\ufeffa,"b"\n1,"x"\n2,"y"\n', {}, AB, []),
        ('a, "b"\n1, "x"\n2, "y"\n', {}, AB, []),
        ('a,b\n1,"x, ""y""\nz"\n2,w\n', {}, {"a": [1, 2], "b": ['x, "y"\nz', "w"]}, []),
        (f'a,b\n1,{LONG}\n2,"y"\n', {}, {"a": [1, 2], "b": [LONG, "y"]}, []),
        ("1,x\n2,y\n", {"no_header": True}, {"x0": [1, 2], "x1": ["x", "y"]}, []),
        ("code,day\n01,2024-12-31\n", {"text": {"code", "day"}}, {"code": ["01"], "day": ["2024-12-31"]}, []),
        (
            ' a  b \n1  "x  y"\n 2 z  \n',
            {"separator": " "},
            {"a": [1, 2], "b": ["x  y", "z"]},
            ["fields are separated by spaces"],
        ),
        (
            "a;b\n1,5;x\n-2;y\n",
            {},
            {"a": [1.5, -2.0], "b": ["x", "y"]},
            ["fields are separated by semicolons", "numbers have decimal commas"],
        ),
        (
            "a\n" + "1\n2\n" * 10 + "3x\n",
            {},
            {"a": ["1", "2"] * 10 + ["3x"]},
            ["column 'a' is read as text: '3x' in line 22 is not a number"],
        ),
        *OF_LINES,
    ],
    ids=range(21),
)
def test_delimited_text(tmp_path: Path, text: str, options: Any, expected: dict[str, Any], notes: list[str]) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    source = read(tmp_path / "t.csv", **{"text_columns" if k == "text" else k: v for k, v in options.items()})
    assert rows(source) == expected
    assert source.notes == notes
    lines = text.count("\n") == len(source.frame) + (not options.get("no_header"))
    assert source.place(0).startswith("line") or not lines


def test_texts_for_missing_values(tmp_path: Path) -> None:
    found = read(write(tmp_path / "t.csv", "a,b\n1,x\n?,NA\nNA,None\n , \n")).frame
    assert found["a"].isna().tolist() == found["b"].isna().tolist() == [False, True, True, True]
    assert found["a"].dtype == float
    data = write(tmp_path / "t.csv", "a,b\n1.5,2\nnan,\n")
    assert read(data, na_values=["nan,"]).frame.isna().sum().tolist() == [1, 1]
    found = read(data, na_values=[""]).frame
    assert found["a"].tolist() == ["1.5", "nan"]
    assert found["b"].isna().tolist() == [False, True]


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("town\nKöln\nBonn\n".encode("cp1252"))
    source = read(tmp_path / "t.csv")
    assert rows(source) == {"town": ["Köln", "Bonn"]}
    assert "Windows-1252" in source.notes[0]
    (tmp_path / "t.csv").write_bytes("town,n\nKöln,1\n".encode("utf-16"))
    assert rows(read(tmp_path / "t.csv")) == {"town": ["Köln"], "n": [1]}


@pytest.mark.parametrize(
    ("dates", "first"),
    [
        (["2024-12-31", "2024-01-02"], "2024-12-31"),
        (["2024-12-31 10:30", "2024-01-02 00:00"], "2024-12-31 10:30"),
        (["2024/12/31", "2024/01/02"], "2024-12-31"),
        (["31.12.2024", "2.1.2024"], "2024-12-31"),
        (["12/31/2024", "1/2/2024"], "2024-12-31"),
        (["31/12/2024 10:30", "1/2/2024 00:00"], "2024-12-31 10:30"),
    ],
)
def test_dates_are_notes(tmp_path: Path, dates: list[str], first: str) -> None:
    source = read(write(tmp_path / "t.csv", "n,when\n" + "".join(f"1,{date}\n" for date in [*dates, ""])))
    assert source.frame["when"][0] == pd.Timestamp(first)
    assert source.frame["when"].isna().tolist() == [False, False, True]
    assert "column 'when' holds dates" in source.notes


def test_dates_whose_order_is_unclear_are_not_guessed(tmp_path: Path) -> None:
    data = write(tmp_path / "t.csv", "n,when\n1,3/4/2025\n1,5/6/2025\n")
    source = read(data)
    assert source.frame["when"][0] == "3/4/2025"
    assert "use --dates day-first or month-first" in source.notes[0]
    assert read(data, dates="day-first").frame["when"][0] == pd.Timestamp("2025-04-03")


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "feather"])
def test_formats_are_recognized_by_their_first_bytes(tmp_path: Path, suffix: str) -> None:
    path, table = tmp_path / f"table.{suffix}", frame(5)
    if suffix.startswith("csv"):
        table.to_csv(path, index=False)
    else:
        getattr(table, f"to_{suffix}")(path)
    path.rename(tmp_path / "table")
    assert rows(read(tmp_path / "table")) == table.to_dict("list")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\xff\xfe", "is empty"),
        (gzip.compress(b" \n", mtime=0), "is empty"),
        (b"a,b\n", "has no rows, only names of columns"),
        (b"a,b\n1,2\n\n3\n", "line 4: 1 field instead of 2"),
        (b"a,b\n1,2\n3,4,5\n", "line 3: 3 fields instead of 2"),
        (b"a,b,a\n1,2,3\n", "line 1: fields 1 and 3 are both named 'a'; rename one"),
        (b"1,2\n3,4\n", "line 1: these are numbers, not names of columns"),
        (b'a,b\n1,2\n3,"x\n4,5\n', "line 3: a field in quotes must end with a quote"),
        (b'a,b\n1,"x""\n4,5\n', "line 2: a field in quotes must end with a quote"),
        (b"a," + b"b" * 200_000 + b"\n1,2\n", "line 1: a field must have at most 131,072 characters here"),
        (b"\x00\x01\x02", "neither text nor Parquet or Feather"),
        (b"PK\x03\x04...", "a zip archive or an Excel file"),
        (b"\xff\xfea\x00,\x00\x00\xd8", "is text in UTF-16, but damaged or cut off"),
        (b"PAR1...", "is damaged or cut off"),
        (b"ARROW1..", "is damaged or cut off"),
        (b"FEA1" + b"\0" * 40 + b"FEA1", "must be Feather of version 2, got version 1"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:12], "is compressed, but damaged or cut off"),
        (b'{"a": 1}\n{"a": {"b": 2}}\n', "line 2: column 'a' must contain single values, got an object"),
        (b'[{"a": 1},\n{"a": [2]}]\n', "row 2: column 'a' must contain single values, got a list"),
        (b'{\n"a": 1\n}\n', "line 1: each line must be a whole JSON object"),
        (b'{"a": 1}\n7\n', "line 2: a row must be a JSON object, got 7"),
        (b'[{"a": 1}, 7]', "row 2: a row must be a JSON object, got 7"),
        (b'[{"a": 1}, ', "must be a list of JSON objects"),
        (b'{"a":' * 100_000, "line 1: each line must be a whole JSON object"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_not_a_table_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(CliError) as caught:
        read(path)
    assert "t.csv" in str(caught.value)
    assert message in str(caught.value)


def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CliError, match="there is no file"):
        read(tmp_path / "t.csv")
    with pytest.raises(CliError, match="is a folder"):
        read(tmp_path)
    monkeypatch.setattr("prunus.cli.formats.ALWAYS_UNPACKED", 1 << 20)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * (1 << 20)))
    with pytest.raises(CliError, match="unpack it yourself and name the unpacked file"):
        read(tmp_path / "t.csv.gz")


def test_useless_columns_are_dropped() -> None:
    table = pd.DataFrame(
        {
            "n": range(30),
            "customer_id": [7 * (i % 13) * 31 + i for i in range(30)],
            "name": [f"name {i}" for i in range(30)],
            "unit": "kg",
            "nothing": None,
            "age": [20 + i % 9 for i in range(30)],
            "size": [i / 7 for i in range(30)],
            "color": ["red", "blue", "green"] * 10,
        }
    )
    assert [entry.column for entry in drop_useless(table)] == ["n", "customer_id", "name", "unit", "nothing"]
    assert [entry.column for entry in drop_useless(table, keep=["n", "name"])] == ["customer_id", "unit", "nothing"]


def test_json(tmp_path: Path) -> None:
    for text in ('{"a": 1, "b": "x"}\n\n{"b": "y", "a": null}\n', '\ufeff[{"a": 1, "b": "x"},\n {"b": "y"}]'):
        found = read(write(tmp_path / "t.json", text)).frame
        assert found["b"].tolist() == ["x", "y"]
        assert found["a"].isna().tolist() == [False, True]
    large = 10**30  # several types are text
    source = read(write(tmp_path / "t.jsonl", f'{{"a": 1, "b": {large}}}\n{{"a": "x", "b": {large + 1}}}\n'))
    assert rows(source) == {"a": ["1", "x"], "b": [str(large), str(large + 1)]}


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_damaged_bytes_are_read_or_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    getattr(frame(50), f"to_{suffix}")(path)
    content, random = path.read_bytes(), np.random.default_rng(0)
    for _ in range(40):
        damaged = bytearray(content)
        for place in random.integers(8, len(content), 3):
            damaged[place] = random.integers(256)
        path.write_bytes(bytes(damaged))
        with contextlib.suppress(CliError):  # any other error fails, as does a crash
            read(path)


def test_wrong_notes_of_pandas_are_refused(tmp_path: Path) -> None:
    for notes in (b'{"columns": 3}', b'{"index_columns": [], "columns": [7]}', b"[" * 100_000):
        pq.write_table(pa.table({"a": [1, 2]}).replace_schema_metadata({"pandas": notes}), tmp_path / "t.parquet")
        with pytest.raises(CliError, match="what pandas has noted in it about its columns cannot be used"):
            read(tmp_path / "t.parquet")
    pd.DataFrame({"a": [1, 2]}, index=pd.RangeIndex(2, name="a")).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(CliError, match="has two columns 'a'; rename one"):
        read(tmp_path / "t.parquet")
