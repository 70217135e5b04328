"""Rows in memory and in files are asked in the same way."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from prunus import PrunusError
from prunus.data import FileTable, TableEncoder
from prunus.data.chunks import Chunk
from prunus.data.source import Scan, open_eval_set, open_source, scan
from tests.data.file_tables import numbered, write

PARTS = numbered(500), numbered(400, 500)
FRAME = pa.concat_tables(PARTS).to_pandas()
COLUMNS = ["row", "size", "color"]


class Totals:
    """The number of rows, and of those that are held out."""

    def __init__(self) -> None:
        self.rows = self.held = 0

    def add(self, chunk: Chunk, weight: Any, held: Any) -> None:
        self.rows, self.held = self.rows + chunk.n_rows, self.held + int(held[weight > 0].sum())

    def merge(self, other: "Totals") -> None:
        self.rows, self.held = self.rows + other.rows, self.held + other.held

    def without_validation(self) -> "Totals":
        other = Totals()
        other.rows = self.rows
        return other


class Workers:
    """Processes that do their tasks one after the other."""

    def __init__(self, size: int) -> None:
        self.size = size

    def share_out(self, tasks: Any, work: Any) -> list[Any]:
        return [found for task in tasks for found in work([task])]


@pytest.fixture
def table(tmp_path: Path) -> FileTable:
    write(PARTS[0], tmp_path / "a.parquet")
    write(PARTS[1], tmp_path / "b.csv")
    return FileTable(tmp_path, target="y", weight="w", memory_limit=20_000)


def test_all_rows_are_mapped_in_order(table: FileTable) -> None:
    row: Any = lambda rows: np.asarray(rows["row"])  # noqa: E731
    for source in (open_source(FRAME[COLUMNS]), open_source(table)):
        assert source.n_rows == 900
        assert_array_equal(source.map(row, 70), np.arange(900))
        assert sum(chunk.n_rows for chunk in source.chunks(70)) == 900
    assert max(chunk.n_rows for chunk in open_source(table).chunks(70)) == 70
    assert open_source([[1.0], [2.0]]).n_rows == 2

    def fail(_: Any) -> Any:
        raise PrunusError("wrong")

    with pytest.raises(PrunusError, match=r"wrong \(in '.*a.parquet'\)"):
        open_source(table).map(fail, 70)


def test_files_become_rows_in_memory_if_they_fit(table: FileTable) -> None:
    source = open_source(table)
    assert source.large is table
    assert open_source(FileTable(table.paths)).large is None
    loaded = source.loaded()
    assert loaded.large is None
    assert loaded.loaded() is loaded
    assert_array_equal(loaded.y, FRAME["y"])
    assert_array_equal(loaded.weight, FRAME["w"])
    encoder = TableEncoder().fit(FRAME[COLUMNS])
    assert_array_equal(encoder.transform(loaded.X), encoder.transform(FRAME[COLUMNS]))


def test_validation_rows_may_be_in_files(table: FileTable) -> None:
    given = (FRAME[COLUMNS], FRAME["y"])
    assert open_eval_set(given, most=9, seed=0) is given
    assert open_eval_set(None, most=9, seed=0) is None
    for entry in (table, [table], (table,)):
        X, y, weight = open_eval_set(entry, most=100_000, seed=0)  # noqa: N806
        assert len(y) == len(weight) == X.num_rows == 900
    y = open_eval_set(FileTable(table.paths, target="y", columns=COLUMNS), most=9, seed=0)[1]
    assert len(y) == 900  # it fits


@pytest.mark.parametrize("processes", [1, 3])
def test_a_scan_knows_all_rows(table: FileTable, processes: int) -> None:
    found: Scan[Totals] = scan(table, 0.2, Totals, Workers(processes))
    assert found.encoder(pieces=3).columns_ == TableEncoder(pieces=3).fit(FRAME[COLUMNS], None, FRAME["w"]).columns_
    assert found.valid is not None
    held = set(found.valid.X.column("row").to_pylist())
    assert (found.targets.rows, found.targets.held) == (900, len(held))
    assert 120 < len(held) < 240
    assert set(found.sample.X.column("row").to_pylist()) == set(range(900)) - held
    kept = [found.chosen(chunk, chunk.weight) for chunk in table.batches()]
    assert sum(int(rows.sum()) for rows in kept if rows is not None) == 900 - len(held)
    everything = found.without_validation()
    assert (everything.valid, everything.targets.held) == (None, 0)
    assert all(everything.chosen(chunk, chunk.weight) is None for chunk in table.batches())


def test_mistakes(table: FileTable, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"y must be None if X is a FileTable.*FileTable\(\.\.\., target="):
        open_source(table, FRAME["y"])
    with pytest.raises(TypeError, match=r"sample_weight must be None if X is a FileTable"):
        open_source(table, None, FRAME["w"])
    plain = FileTable(table.paths)
    with pytest.raises(ValueError, match="X must be a FileTable with a target, got none"):
        open_source(plain, needs_target=True)
    with pytest.raises(ValueError, match="eval_set must be a FileTable with a target, got none"):
        open_eval_set(plain, most=9, seed=0)
    with pytest.raises(ValueError, match=r"'color', the target, must have a value in each row, got none \(in .*\)"):
        open_source(FileTable(table.paths, target="color")).loaded()
    zero = write(numbered(50).drop_columns(["w"]).append_column("w", [[0.0] * 50]), tmp_path / "zero" / "a.parquet")
    with pytest.raises(ValueError, match="rows of positive weight to train on, got none"):
        scan(FileTable(zero, weight="w"), 0.2, Totals, Workers(1))
    with pytest.raises(ValueError, match="more rows to draw some of them"):
        table.draw(0, seed=0)


def test_frames_and_arrays_know_their_rows() -> None:
    assert [open_source(X).n_rows for X in (np.zeros((3, 2)), pd.DataFrame({"a": [1, 2]}), 3)] == [3, 2, 0]
