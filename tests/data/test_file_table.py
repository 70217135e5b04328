"""Tables in files: what can be read, and what is said about files that cannot."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from pyarrow import parquet

from prunus import PrunusError
from prunus.data import FileTable, OutputColumn, TableEncoder
from prunus.data.chunks import ValidationRows
from prunus.data.statistics import TableStatistics
from tests.data.file_tables import FORMATS, TABLE, numbered, rows_of, write
from tests.subprocesses import run_without


def learned(table: FileTable, **options: Any) -> list[OutputColumn]:
    """The columns of an encoder that has seen all rows."""
    statistics = TableStatistics(TableEncoder(**options))
    for chunk in table.batches():
        with chunk.errors():
            statistics.add(chunk.X, chunk.weight)
    return statistics.encoder().columns_


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_read_in_order(tmp_path: Path, form: str) -> None:
    write(numbered(250), tmp_path / f"a.{form}")
    write(numbered(50, 250), tmp_path / f"b.{form}")
    write(numbered(0), tmp_path / f"c.{form}")  # empty files are skipped
    table = FileTable(tmp_path, target="y", weight="w")
    assert (len(table), table.columns) == (300, ["row", "size", "color"])
    assert rows_of(table) == rows_of(table, ahead=0) == list(range(300))
    chunks = list(table.batches())
    y, weight = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("y", "weight"))
    assert_array_equal(y, np.arange(300) % 5)
    assert y.dtype.kind == "i"
    assert_array_equal(weight, 1.0 + np.arange(300) % 2)
    assert chunks[0].X.column_names == table.columns
    with pytest.raises(ValueError, match=f"at least one row, got none in .*c.{form}"):
        len(FileTable(tmp_path / f"c.{form}"))


def test_formats_agree_on_hashes_and_encoders(tmp_path: Path) -> None:
    frame = numbered(300).to_pandas()
    expected = TableEncoder().fit(frame[["row", "size", "color"]], sample_weight=frame["w"]).columns_
    tables = [FileTable(write(numbered(300), tmp_path / f"a.{form}"), target="y", weight="w") for form in FORMATS]
    hashes = [np.concatenate([chunk.hashes for chunk in table.batches()]) for table in tables]
    for table, found in zip(tables, hashes, strict=True):
        assert_array_equal(found, hashes[0])
        assert learned(table) == expected
    every_kind = FileTable(write(pa.table(TABLE), tmp_path / "kinds.parquet", rows=2))
    encoder = TableEncoder(pieces=2).fit(pd.DataFrame(TABLE))
    assert learned(every_kind, pieces=2) == encoder.columns_
    encoded = np.concatenate([encoder.transform(chunk.X) for chunk in every_kind.batches()])
    assert_array_equal(encoded, encoder.transform(pd.DataFrame(TABLE)))
    by_color = FileTable(tmp_path / "a.parquet", target="color")
    colors = [label for chunk in by_color.batches() if chunk.y is not None for label in chunk.y.tolist()]
    assert colors == numbered(300)["color"].to_pylist()


@pytest.mark.parametrize(
    "paths",
    [
        lambda folder: str(folder),
        lambda folder: folder / "*.parquet",
        lambda folder: folder / "**" / "[ab].parquet",
        lambda folder: [folder / "a.parquet", str(folder / "b.parquet")],
        lambda folder: (folder / "a.parquet").as_uri().replace("a.parquet", ""),
        lambda _: ["a.parquet", "b.parquet"],  # and is read from another folder
    ],
    ids=["folder", "pattern", "folders", "list", "address", "relative"],
)
def test_places_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: Callable[[Path], Any]) -> None:
    write(numbered(10), tmp_path / "a.parquet")
    write(numbered(10, 10), tmp_path / "b.parquet")
    (tmp_path / "_temporary").mkdir()
    for other in ("_SUCCESS", "notes.txt", "_temporary/c.parquet"):
        (tmp_path / other).touch()
    monkeypatch.chdir(tmp_path)
    table = FileTable(paths(tmp_path))
    monkeypatch.chdir(Path(__file__).parent)
    assert [Path(path).name for path in table.paths] == ["a.parquet", "b.parquet"]
    assert rows_of(table) == list(range(20))


def test_file_systems_of_fsspec_and_other_processes(tmp_path: Path) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    tables = []
    for form in FORMATS:
        path = write(numbered(120), tmp_path / f"a.{form}")
        tables.append(FileTable(path, target="y"))
        memory.pipe(f"/tables/{form}/part.{form}", path.read_bytes())
        for address in (f"memory://tables/{form}", f"memory://tables/{form}/p*.{form}"):
            assert rows_of(pickle.loads(pickle.dumps(FileTable(address)))) == list(range(120))
    script = """
import pickle, sys
for table in pickle.load(sys.stdin.buffer):
    print(len(table), sum(chunk.n_rows for chunk in table.batches()))
"""
    done = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(tables), capture_output=True, check=True)
    assert done.stdout.split() == [b"120", b"120"] * len(FORMATS)


def test_making_a_table_reads_no_rows_and_prints_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write(numbered(1250), tmp_path / f"a.{form}") for form in FORMATS]
    wide = write(pa.table({f"c{i}": [1.0] for i in range(40)}), tmp_path / "wide.parquet")

    def fail(*_: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patched:
        for name in ("ParquetPart.read", "ArrowPart.read", "CsvPart.read", "ArrowPart.count", "CsvPart.count"):
            patched.setattr(f"prunus.data.formats.{name}", fail)
        table, _, by_csv, _ = (FileTable(path, target="y", weight="w") for path in paths)
        columns = "columns 'row', 'size', 'color', target 'y', weight 'w'"
        assert repr(table) == f"FileTable of 1 file with 1,250 rows, {columns}"
        assert repr(by_csv) == f"FileTable of 1 file with {columns}"
        assert repr(FileTable([wide, wide])) == "FileTable of 2 files with 2 rows, 40 columns"
    assert (len(by_csv), "1,250 rows" in repr(by_csv)) == (1250, True)


def test_columns_can_be_chosen_and_may_be_in_any_order(tmp_path: Path) -> None:
    write(numbered(10), tmp_path / "a.parquet")
    write(numbered(10, 10).select(["w", "y", "color", "size", "row"]), tmp_path / "b.parquet")
    write(numbered(5, 20).select(["row", "w", "y", "color", "size"]), tmp_path / "c.arrow")
    table = FileTable(tmp_path, target="y", columns=["size", "row"])
    assert [chunk.X.column_names for chunk in table.batches()] == [["size", "row"]] * 3
    assert rows_of(table) == list(range(25))
    lists = tmp_path / "lists" / "a.parquet"  # columns that nobody uses may hold anything
    write(numbered(3).append_column("list", pa.array([[1], [2], []])), lists)
    with pytest.raises(TypeError, match=r"got list<.*> in column 'list' of '.*a.parquet'"):
        FileTable(lists)
    assert rows_of(FileTable(lists, columns=["row"])) == [0, 1, 2]
    for index in (["u", "v"], pd.Index([7, 8], name="key"), None):
        pd.DataFrame({"row": [0, 1], "y": [1, 2]}, index=index).to_parquet(tmp_path / "indexed.parquet")
        indexed = FileTable(tmp_path / "indexed.parquet", target="y")
        assert (indexed.columns, rows_of(indexed)) == (["row"], [0, 1])


def test_types_of_one_family_may_change(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"row": pa.array([1, 2], pa.int8()), "c": ["a", "b"]}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"row": [2.5], "c": pa.array(["b"]).dictionary_encode()}), tmp_path / "b.parquet")
    parquet.write_table(pa.table({"row": pa.nulls(1), "c": pa.nulls(1)}), tmp_path / "c.parquet")
    frame = pd.DataFrame({"row": [1, 2, 2.5, None], "c": ["a", "b", "b", None]})
    assert learned(FileTable(tmp_path)) == TableEncoder().fit(frame).columns_
    rows = FileTable(tmp_path).draw(4, seed=0)
    assert rows.X.column("row").to_pylist() == [1, 2, 2.5, None]
    assert rows.X.column("c").to_pylist() == ["a", "b", "b", None]


def changed(name: str, values: Any) -> Any:
    return numbered(5).drop_columns([name]).append_column(name, pa.array(values))


SAME = {"b.parquet": numbered(5)}
LETTERS = changed("size", list("abcde"))
MISTAKES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "paths must name at least one file, got none for"),
    ({"b.parquet": numbered(5).drop_columns(["size"])}, {}, "same columns, got none named 'size' in .*b.parquet"),
    ({"b.parquet": numbered(5).append_column("new", pa.array(range(5)))}, {}, "got 'new' in .*b.parquet"),
    ({"b.parquet": LETTERS}, {}, "'size' must hold the same .* text in .*b.parquet' after number"),
    ({"b.csv": LETTERS}, {}, "'size' must hold the same .* text in .*b.csv' after number"),
    ({"b.parquet": b"PAR1 is not enough"}, {}, "Cannot read .*b.parquet"),
    ({"b.parquet": b""}, {}, "Cannot read .*b.parquet"),
    ({"b.arrow": b"ARROW1 is not enough"}, {}, "Cannot read .*b.arrow"),
    ({"b.feather": b"FEA1 is old"}, {}, "b.feather' must be a file of Arrow's IPC format"),
    ({"b.csv": b""}, {}, "first line of .*b.csv' must have the names"),
    ({"b.csv": b"row,size,color,y,w\n1,2\n"}, {}, "Cannot read .*b.csv.*Expected 5 columns, got 2"),
    ({"b.csv": b"row,row\n1,2\n"}, {}, "must be unique, got 'row' more than once in .*b.csv"),
    ({"b.csv.gz": b"not compressed at all"}, {}, "Cannot read .*b.csv.gz"),
    (SAME, {"target": "price"}, "target must be a column of .*a.parquet', got 'price'"),
    (SAME, {"weight": "price"}, "weight must be a column of .*a.parquet', got 'price'"),
    (SAME, {"weight": "color"}, "weight must be a column of numbers, got text in .*a.parquet"),
    (SAME, {"target": "y", "weight": "y"}, "different columns, got 'y' for both"),
    (SAME, {"columns": ["row", "row"]}, "columns must be different .*got 'row'"),
    (SAME, {"columns": []}, "must have a column besides target and weight"),
    (SAME, {"target": 3}, "target must be the name of a column, got int"),
    (SAME, {"memory_limit": 0}, "memory_limit must be a positive number of bytes, got 0"),
    ({"b.parquet": changed("w", [1.0, -1, 1, 1, 1])}, {"weight": "w"}, "'w' must be .* not negative.*b.parquet"),
]


@pytest.mark.parametrize(("files", "options", "words"), MISTAKES, ids=[words[:40] for _, _, words in MISTAKES])
def test_mistakes(tmp_path: Path, files: dict[str, Any], options: dict[str, Any], words: str) -> None:
    if files:
        write(numbered(5), tmp_path / "a.parquet")
    for name, content in files.items():
        if isinstance(content, bytes):
            (tmp_path / name).write_bytes(content)
        else:
            write(content, tmp_path / name)
    with pytest.raises(PrunusError, match=words) as caught:
        list(map(attrgetter("weight"), FileTable(tmp_path, **options).batches()))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ("nowhere.parquet", "paths must name files that exist, got 'nowhere.parquet'"),
        (__file__, "Names of files must end in .parquet, .arrow, .csv or the like, got .*test_file_table.py"),
        ([], "paths must name at least one file, got an empty list"),
        (3, "paths must be a path or a list of paths, got int"),
        ([3], "paths must be a path or a list of paths, got list"),
        ("nothing://here/a.parquet", "Cannot read 'nothing://here/a.parquet'"),
    ],
)
def test_paths_that_cannot_be_used(paths: Any, words: str) -> None:
    with pytest.raises(PrunusError, match=words):
        FileTable(paths)


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_files_are_errors_that_name_the_file(tmp_path: Path, form: str) -> None:
    path = write(numbered(2000), tmp_path / f"a.{form}", rows=500)
    content = path.read_bytes()
    path.write_bytes(content[: 2 * (len(content) // 3)] if form != "csv" else content[:-20] + b"\n1,2,3\n")
    with pytest.raises(PrunusError, match=rf"a\.{form}"):
        rows_of(FileTable(path))


def test_infinities_are_errors_that_name_the_file_and_pyarrow_is_needed_only_for_files(tmp_path: Path) -> None:
    write(numbered(5), tmp_path / "a.parquet")
    write(changed("size", [1.0, np.inf, 1.0, 1.0, 1.0]), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"infinity .* column 'size'.*b\.parquet"):
        learned(FileTable(tmp_path))
    script = """
import json
from prunus.data import FileTable
try:
    FileTable("a.parquet")
except Exception as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""
    kind, message = run_without(("pyarrow",), script)
    assert kind == "InputValueError"
    assert "pip install 'prunus[tables]'" in message


def test_validation_rows_depend_neither_on_files_nor_on_processes(tmp_path: Path) -> None:
    write(numbered(1000), tmp_path / "one" / "a.parquet", rows=1000)
    write(numbered(400), tmp_path / "two" / "a.csv")
    write(numbered(600, 400), tmp_path / "two" / "b.arrow", rows=130)
    chosen = []
    for folder in ("one", "two"):
        validation, table = ValidationRows(0.3, seed=1), FileTable(tmp_path / folder, columns=["row", "color"])
        masks = [np.concatenate([validation.mask(chunk) for chunk in table.batches()]) for _ in range(2)]
        assert_array_equal(masks[0], masks[1])
        chosen.append(masks[0])
    assert_array_equal(chosen[0], chosen[1])
    assert chosen[0].mean() == pytest.approx(0.3, abs=0.06)
    parts = [ValidationRows(0.3, seed=1) for _ in range(2)]
    for k, part in enumerate(parts):
        for chunk in table.batches(part=(k, 2)):
            part.mask(chunk)
    merged = parts[0].merge(pickle.loads(pickle.dumps(parts[1])))
    assert merged.known.keys() == validation.known.keys()
    assert_array_equal(np.concatenate([merged.mask(chunk) for chunk in table.batches()]), chosen[1])
    with pytest.raises(ValueError, match="same fraction and seed"):
        merged.merge(ValidationRows(0.2, seed=1))
    with pytest.raises(ValueError, match="fraction must be"):
        ValidationRows(1.0)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """CSV files are cut into blocks of 64 bytes."""
    monkeypatch.setattr("prunus.data.formats._BLOCK", 64)
    monkeypatch.setattr("prunus.data.formats._LONGEST", 1024)


def csv_column(path: Path, text: str, name: str = "x") -> list[Any]:
    path.write_text(text, newline="")
    return [value for chunk in FileTable(path).batches() for value in chunk.X.column(name).to_pylist()]


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_csv_files_are_groups_that_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    assert csv_column(path, "x,y\n" + "".join(f"{k},{k % 3}\n" for k in range(500))) == list(range(500))
    table = FileTable(path)
    assert len(table.groups) > 20
    assert sum(group.rows for group in table.groups) == len(table) == 500
    monkeypatch.setattr("prunus.data.formats.CsvPart.count", None)
    assert sum(chunk.n_rows for chunk in table.batches()) == 500
    path.write_text("x,y\n" + "a,2\n" * 600)
    with pytest.raises(ValueError, match=r"Cannot read '.*a.csv'.*column #0.*'a"):
        list(table.batches())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("first", "later", "kind"),
    [
        ("7", "2.5", pa.float64()),
        ("7", "many", pa.string()),
        ("7", "", pa.int64()),
        ("7", "true", pa.string()),
        ("7", "2024-01-01", pa.string()),
        ("", "3", pa.int64()),
        ("", "red", pa.string()),
        ("2024-01-01", "2024-01-02 10:00:00", pa.timestamp("s")),
        ("2024-01-02 10:00:00", "2024-01-03 10:00:00.5", pa.timestamp("ns")),
        ("2024-01-02", "", pa.date32()),
    ],
)
def test_a_column_of_csv_has_the_type_that_fits_all_blocks(tmp_path: Path, first: str, later: str, kind: Any) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + f"{first},0\n" * 60 + f"{later},1\n" * 30)
    table = FileTable(tmp_path)
    assert {chunk.X.schema.field("x").type for chunk in table.batches()} == {kind}
    values: Any = pd.Series([value or None for value in [first] * 60 + [later] * 30])
    if pa.types.is_temporal(kind):
        values = pd.to_datetime(values, format="ISO8601")
    elif not pa.types.is_string(kind):
        values = values.astype(float)
    assert learned(table) == TableEncoder().fit(pd.DataFrame({"x": values, "y": [0] * 60 + [1] * 30})).columns_


@pytest.mark.usefixtures("small_blocks")
def test_csv_as_people_have_it(tmp_path: Path) -> None:
    texts = ["plain", "two\nlines", "a, b", 'a "word"', "\n\n", ""] * 20
    lines = ['"{}",{}\n'.format(text.replace('"', '""'), k) for k, text in enumerate(texts)]
    expected = [text or None for text in texts]
    assert csv_column(tmp_path / "a.csv", '"x","y\nz"\n' + "".join(lines)) == expected
    for text in ("\ufeffx,y\n1,2\n3,4\n", "x,y\r\n1,2\r\n3,4\r\n", "x,y\n1,2\n\n3,4", "x,y\n1,2\n3,4\n\n\n"):
        assert csv_column(tmp_path / "a.csv", text) == [1, 3]
        assert csv_column(tmp_path / "a.csv", text, "y") == [2, 4]
    assert csv_column(tmp_path / "a.tsv", "x\ty\n1\ta,b\n", "y") == ["a,b"]
    with pytest.raises(ValueError, match=r"A row of '.*a.csv' is too long, perhaps because a quote is missing"):
        csv_column(tmp_path / "a.csv", "x,y\n" + "1,2\n" * 50 + '"3,4\n' + "5,6\n" * 1000)
