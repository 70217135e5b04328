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
from pyarrow import parquet

from prunus import PrunusError
from prunus.data import FileTable, TableEncoder
from prunus.data.chunks import ValidationRows
from prunus.data.statistics import TableStatistics
from tests.data.file_tables import FORMATS, numbered, rows_of, write
from tests.data.test_containers import TABLE
from tests.subprocesses import run_without


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_read_in_order(tmp_path: Path, form: str) -> None:
    write(numbered(250), tmp_path / f"a.{form}")
    write(numbered(50, 250), tmp_path / f"b.{form}")
    table = FileTable(tmp_path, target="y", weight="w")
    assert len(table) == 300
    assert table.columns == ["row", "size", "color"]
    assert rows_of(table) == rows_of(table, ahead=0) == list(range(300))
    chunks = list(table.batches())
    y, weight = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("y", "weight"))
    np.testing.assert_array_equal(y, np.arange(300) % 5)
    assert y.dtype.kind == "i"
    np.testing.assert_array_equal(weight, 1.0 + np.arange(300) % 2)
    assert chunks[0].X.column_names == table.columns


def test_formats_agree_on_hashes_and_encoders(tmp_path: Path) -> None:
    tables = [FileTable(write(numbered(300), tmp_path / f"a.{form}"), target="y", weight="w") for form in FORMATS]
    hashes = [np.concatenate([chunk.hashes for chunk in table.batches()]) for table in tables]
    encoders = []
    for table, found in zip(tables, hashes, strict=True):
        np.testing.assert_array_equal(found, hashes[0])
        statistics = TableStatistics()
        for chunk in table.batches():
            statistics.add(chunk.X, chunk.weight)
        encoders.append(statistics.encoder().columns_)
    frame = numbered(300).to_pandas()
    expected = TableEncoder().fit(frame[["row", "size", "color"]], sample_weight=frame["w"]).columns_
    assert all(columns == expected for columns in encoders)


def test_all_kinds_of_columns_of_parquet_are_encoded_as_in_memory(tmp_path: Path) -> None:
    table = FileTable(write(pa.table(TABLE), tmp_path / "a.parquet", rows=2))
    statistics = TableStatistics(TableEncoder(pieces=2))
    for chunk in table.batches():
        statistics.add(chunk.X)
    expected = TableEncoder(pieces=2).fit(pd.DataFrame(TABLE))
    assert statistics.encoder().columns_ == expected.columns_
    np.testing.assert_array_equal(
        np.concatenate([expected.transform(chunk.X) for chunk in table.batches()]),
        expected.transform(pd.DataFrame(TABLE)),
    )


@pytest.mark.parametrize(
    "paths",
    [
        lambda folder: folder,
        lambda folder: str(folder),
        lambda folder: folder / "*.parquet",
        lambda folder: folder / "**" / "[ab].parquet",
        lambda folder: [folder / "a.parquet", str(folder / "b.parquet")],
        lambda folder: (folder / "a.parquet").as_uri().replace("a.parquet", ""),
    ],
    ids=["folder", "text", "pattern", "folders", "list", "address"],
)
def test_places_of_files(tmp_path: Path, paths: Callable[[Path], Any]) -> None:
    write(numbered(10), tmp_path / "a.parquet")
    write(numbered(10, 10), tmp_path / "b.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "c.parquet").touch()
    table = FileTable(paths(tmp_path))
    assert [Path(path).name for path in table.paths] == ["a.parquet", "b.parquet"]
    assert rows_of(table) == list(range(20))


def test_relative_paths_are_opened_from_other_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(numbered(10), tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    table = FileTable("a.parquet")
    monkeypatch.chdir(Path(__file__).parent)
    assert rows_of(table) == list(range(10))


def test_file_systems_of_fsspec(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for form in FORMATS:
        path = write(numbered(120), tmp_path / f"a.{form}")
        memory.pipe(f"/tables/{form}/part.{form}", path.read_bytes())
        for address in (f"memory://tables/{form}", f"memory://tables/{form}/p*.{form}"):
            table = pickle.loads(pickle.dumps(FileTable(address)))
            assert rows_of(table) == list(range(120))


def test_pickled_tables_are_read_by_another_process(tmp_path: Path) -> None:
    tables = [FileTable(write(numbered(250), tmp_path / f"a.{form}"), target="y") for form in FORMATS]
    script = """
import pickle, sys
for table in pickle.load(sys.stdin.buffer):
    print(len(table), sum(chunk.n_rows for chunk in table.batches()))
"""
    done = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(tables), capture_output=True, check=True)
    assert done.stdout.split() == [b"250", b"250"] * len(FORMATS)


def test_what_is_printed_fits_a_line(tmp_path: Path) -> None:
    table = FileTable(write(numbered(1250), tmp_path / "a.parquet"), target="y", weight="w")
    columns = "columns 'row', 'size', 'color', target 'y', weight 'w'"
    assert repr(table) == f"FileTable of 1 file with 1,250 rows, {columns}"
    by_csv = FileTable(write(numbered(1250), tmp_path / "a.csv"), target="y", weight="w")
    assert repr(by_csv) == f"FileTable of 1 file with {columns}"
    assert len(by_csv) == 1250
    assert "1,250 rows" in repr(by_csv)
    wide = write(pa.table({f"c{i}": [1.0] for i in range(40)}), tmp_path / "wide.parquet")
    assert repr(FileTable([wide, wide])) == "FileTable of 2 files with 2 rows, 40 columns"


def test_making_a_table_reads_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write(numbered(50), tmp_path / f"{form}" / f"a.{form}") for form in FORMATS]

    def fail(*_: object) -> None:
        raise AssertionError

    for kind in ("formats.ParquetPart", "formats.ArrowPart", "formats.CsvPart"):
        monkeypatch.setattr(f"prunus.data.{kind}.read", fail)
        if kind != "formats.ParquetPart":
            monkeypatch.setattr(f"prunus.data.{kind}.count", fail)
    for path in paths:
        assert FileTable(path, target="y").target == "y"


def test_columns_can_be_chosen_and_may_be_in_any_order(tmp_path: Path) -> None:
    write(numbered(10), tmp_path / "a.parquet")
    write(numbered(10, 10).select(["w", "y", "color", "size", "row"]), tmp_path / "b.parquet")
    write(numbered(5, 20).select(["row", "w", "y", "color", "size"]), tmp_path / "c.arrow")
    table = FileTable(tmp_path, target="y", columns=["size", "row"])
    assert [chunk.X.column_names for chunk in table.batches()] == [["size", "row"]] * 3
    assert rows_of(table) == list(range(25))


def test_columns_that_nobody_uses_may_hold_anything(tmp_path: Path) -> None:
    parquet.write_table(numbered(3).append_column("list", pa.array([[1], [2], []])), tmp_path / "a.parquet")
    with pytest.raises(TypeError, match=r"got list<.*> in column 'list' of '.*a.parquet'"):
        FileTable(tmp_path)
    assert rows_of(FileTable(tmp_path, columns=["row"])) == [0, 1, 2]


@pytest.mark.parametrize("index", [["u", "v"], pd.Index([7, 8], name="key"), None], ids=["unnamed", "named", "none"])
def test_the_index_of_a_frame_is_no_column(tmp_path: Path, index: Any) -> None:
    pd.DataFrame({"row": [0, 1], "y": [1, 2]}, index=index).to_parquet(tmp_path / "a.parquet")
    table = FileTable(tmp_path, target="y")
    assert table.columns == ["row"]
    assert rows_of(table) == [0, 1]


def test_types_of_one_family_may_change(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"row": pa.array([1, 2], pa.int8()), "c": ["a", "b"]}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"row": [2.5], "c": pa.array(["b"]).dictionary_encode()}), tmp_path / "b.parquet")
    parquet.write_table(pa.table({"row": pa.nulls(1), "c": pa.nulls(1)}), tmp_path / "c.parquet")
    table = FileTable(tmp_path)
    statistics = TableStatistics()
    for chunk in table.batches():
        statistics.add(chunk.X)
    frame = pd.DataFrame({"row": [1, 2, 2.5, None], "c": ["a", "b", "b", None]})
    assert statistics.encoder().columns_ == TableEncoder().fit(frame).columns_


def test_a_target_of_text(tmp_path: Path) -> None:
    table = FileTable(write(numbered(30), tmp_path / "a.parquet", rows=8), target="color")
    found = [label for chunk in table.batches() if chunk.y is not None for label in chunk.y.tolist()]
    assert found == numbered(30)["color"].to_pylist()


def test_empty_parts_are_skipped(tmp_path: Path) -> None:
    for form in FORMATS:
        write(numbered(0), tmp_path / f"a.{form}")
        write(numbered(3), tmp_path / f"b.{form}")
    assert len(FileTable(tmp_path)) == 12


def without(name: str) -> Any:
    return numbered(5).drop_columns([name])


def changed(name: str, values: Any) -> Any:
    return without(name).append_column(name, pa.array(values))


MISTAKES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "paths must name at least one file, got none for"),
    ({"b.parquet": without("size")}, {}, "same columns, got none named 'size' in .*b.parquet"),
    ({"b.parquet": numbered(5).append_column("new", pa.array(range(5)))}, {}, "got 'new' in .*b.parquet"),
    (
        {"b.parquet": changed("size", list("abcde"))},
        {},
        "'size' must hold the same .* text in .*b.parquet' after number",
    ),
    ({"b.csv": changed("size", list("abcde"))}, {}, "'size' must hold the same .* text in .*b.csv' after number"),
    ({"b.parquet": b"PAR1 is not enough"}, {}, "Cannot read .*b.parquet"),
    ({"b.parquet": b""}, {}, "Cannot read .*b.parquet"),
    ({"b.arrow": b"ARROW1 is not enough"}, {}, "Cannot read .*b.arrow"),
    ({"b.feather": b"FEA1 is old"}, {}, "b.feather' must be a file of Arrow's IPC format"),
    ({"b.csv": b""}, {}, "first line of .*b.csv' must have the names"),
    ({"b.csv": b"row,size,color,y,w\n1,2\n"}, {}, "Cannot read .*b.csv.*Expected 5 columns, got 2"),
    ({"b.csv": b"row,row\n1,2\n"}, {}, "must be unique, got 'row' more than once in .*b.csv"),
    ({"b.csv.gz": b"not compressed at all"}, {}, "Cannot read .*b.csv.gz"),
    ({}, {"target": "price"}, "paths must name at least one file"),
    ({"b.parquet": numbered(5)}, {"target": "price"}, "target must be a column of .*a.parquet', got 'price'"),
    ({"b.parquet": numbered(5)}, {"weight": "price"}, "weight must be a column of .*a.parquet', got 'price'"),
    ({"b.parquet": numbered(5)}, {"weight": "color"}, "weight must be a column of numbers, got text in .*a.parquet"),
    ({"b.parquet": numbered(5)}, {"target": "y", "weight": "y"}, "different columns, got 'y' for both"),
    ({"b.parquet": numbered(5)}, {"columns": ["row", "row"]}, "columns must be different .*got 'row'"),
    ({"b.parquet": numbered(5)}, {"columns": []}, "must have a column besides target and weight"),
    ({"b.parquet": numbered(5)}, {"target": 3}, "target must be the name of a column, got int"),
    (
        {"b.parquet": changed("w", [1.0, -1.0, 1.0, 1.0, 1.0])},
        {"weight": "w"},
        "'w' must be .* not negative.*b.parquet",
    ),
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
def test_tables_without_rows(tmp_path: Path, form: str) -> None:
    write(numbered(0), tmp_path / f"a.{form}")
    with pytest.raises(ValueError, match=f"at least one row, got none in .*a.{form}"):
        len(FileTable(tmp_path))


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_files_are_errors_that_name_the_file(tmp_path: Path, form: str) -> None:
    path = write(numbered(2000), tmp_path / f"a.{form}", rows=500)
    content = path.read_bytes()
    middle = len(content) // 3
    damaged = content[: 2 * middle] if form != "csv" else content[:-20] + b"\n1,2,3\n"
    path.write_bytes(damaged)
    with pytest.raises(PrunusError, match=rf"a\.{form}"):
        rows_of(FileTable(path))


def test_infinities_are_errors_that_name_the_file(tmp_path: Path) -> None:
    write(numbered(5), tmp_path / "a.parquet")
    write(changed("size", [1.0, np.inf, 1.0, 1.0, 1.0]), tmp_path / "b.parquet")
    table = FileTable(tmp_path)
    statistics = TableStatistics()

    def learn() -> None:
        for chunk in table.batches():
            with chunk.errors():
                statistics.add(chunk.X)

    with pytest.raises(ValueError, match=r"infinity .* column 'size'.*b\.parquet"):
        learn()


def test_pyarrow_is_needed_only_for_files() -> None:
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


def test_validation_rows_do_not_depend_on_files_and_groups(tmp_path: Path) -> None:
    write(numbered(1000), tmp_path / "one" / "a.parquet", rows=1000)
    write(numbered(400), tmp_path / "two" / "a.csv")
    write(numbered(600, 400), tmp_path / "two" / "b.arrow", rows=130)
    chosen = []
    for folder in ("one", "two"):
        validation = ValidationRows(0.3, seed=1)
        table = FileTable(tmp_path / folder, columns=["row", "color"])
        masks = [validation.mask(chunk) for chunk in table.batches()]
        again = [validation.mask(chunk) for chunk in table.batches()]
        np.testing.assert_array_equal(np.concatenate(masks), np.concatenate(again))
        chosen.append(np.concatenate(masks))
    np.testing.assert_array_equal(chosen[0], chosen[1])
    assert chosen[0].mean() == pytest.approx(0.3, abs=0.06)


def test_validation_rows_of_processes_are_merged(tmp_path: Path) -> None:
    table = FileTable(write(numbered(500), tmp_path / "a.parquet"))
    parts = []
    for k in range(2):
        parts.append(ValidationRows(0.2))
        for chunk in table.batches(part=(k, 2)):
            parts[k].mask(chunk)
    merged = parts[0].merge(pickle.loads(pickle.dumps(parts[1])))
    assert len(merged.known) == 5
    alone = ValidationRows(0.2)
    assert all((merged.mask(chunk) == alone.mask(chunk)).all() for chunk in table.batches())
    with pytest.raises(ValueError, match="same fraction and seed"):
        merged.merge(ValidationRows(0.3))
    with pytest.raises(ValueError, match="fraction must be"):
        ValidationRows(1.0)
