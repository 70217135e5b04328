"""Every row comes once an epoch, in an order that seed and epoch choose, from memory of bounded size."""

import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from pyarrow import parquet

from prunus.data import FileTable
from prunus.data.chunks import Chunk
from prunus.data.shuffling import buffer_rows, read_ahead, shuffle_rows
from tests.data.file_tables import FORMATS, numbered, rows_of, write


def row_numbers(chunk: Chunk) -> tuple[npt.NDArray[Any]]:
    return (chunk.X.column("row").to_numpy(),)


def order(table: FileTable, seed: int = 0, epoch: int = 0, rows: int = 150, **options: Any) -> list[int]:
    chunks = table.shuffled(row_numbers, seed=seed, epoch=epoch, buffer_rows=rows, chunk_rows=64, **options)
    return [int(row) for (part,) in chunks for row in part]


@pytest.fixture
def table(tmp_path: Path) -> FileTable:
    return FileTable(write(numbered(1000), tmp_path / "a.parquet"))


@pytest.mark.parametrize("form", FORMATS)
def test_every_row_comes_once(tmp_path: Path, form: str) -> None:
    write(numbered(777), tmp_path / f"a.{form}")
    write(numbered(223, 777), tmp_path / f"b.{form}")
    table = FileTable(tmp_path)
    for rows in (1, 150, 10_000):
        assert sorted(found := order(table, rows=rows)) == list(range(1000))
    assert found != list(range(1000))


def test_the_order_depends_on_seed_and_epoch_alone(table: FileTable) -> None:
    assert order(table) == order(table) == order(FileTable(table.paths), ahead=0)
    assert len({tuple(order(table, seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4


def test_rows_are_well_mixed(tmp_path: Path) -> None:
    table = FileTable(write(numbered(20_000), tmp_path / "a.parquet", rows=500))
    found = np.array(order(table, rows=4000))
    assert abs(np.corrcoef(found, np.arange(20_000))[0, 1]) < 0.25
    assert np.mean(np.abs(np.diff(found)) == 1) < 0.01
    assert min(np.unique(part // 500).size for part in np.split(found[:19_968], 312)) >= 4


def test_parts_are_disjoint_and_cover_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.data.formats._LONGEST_GROUP", 300)
    long = FileTable(write(numbered(1000), tmp_path / "a.arrow", rows=1000))
    assert [group.rows for group in long.groups] == [300, 300, 300, 100]  # long batches of Arrow are several groups
    for table in (long, FileTable(write(numbered(1000), tmp_path / "a.parquet"))):
        for of in (2, 3):
            in_order = [row for k in range(of) for row in rows_of(table, part=(k, of))]
            shuffled = [row for k in range(of) for row in order(table, seed=5, epoch=2, part=(k, of))]
            assert sorted(in_order) == sorted(shuffled) == list(range(1000))
    with pytest.raises(ValueError, match="read in 5 parts must have as many groups of rows, got 4"):
        order(long, part=(0, 5))
    with pytest.raises(ValueError, match=r"part must be \(k, of\)"):
        list(long.batches(part=(2, 2)))


def test_rows_can_be_left_out(table: FileTable) -> None:
    def some(chunk: Chunk) -> tuple[npt.NDArray[Any], ...]:
        rows = row_numbers(chunk)[0]
        return rows[rows >= 300], (rows[rows >= 300] / 2)[:, None]

    chunks = list(table.shuffled(some, seed=0, epoch=0, buffer_rows=200, chunk_rows=128))
    assert [len(rows) for rows, _ in chunks] == [128] * 5 + [60]
    assert sorted(int(row) for rows, _ in chunks for row in rows) == list(range(300, 1000))
    assert all((rows / 2 == halves[:, 0]).all() for rows, halves in chunks)


def test_errors_of_the_thread_reach_the_reader(tmp_path: Path) -> None:
    path = write(numbered(500), tmp_path / "a.parquet")
    table = FileTable(tmp_path, columns=["size", "row"], weight="w")
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"Cannot read '.*a.parquet'"):
        order(table)
    with pytest.raises(TypeError, match="same dtype and width, got int64"):
        list(shuffle_rows([(np.zeros(5),), (np.zeros(5, dtype=int),)], 3, 2, np.random.default_rng(0)))


def test_no_more_is_read_ahead_than_was_asked_for() -> None:
    made = []

    def items() -> Iterator[int]:
        for k in range(20):
            made.append(k)
            yield k

    stream = read_ahead(items(), 3)
    for k in range(5):
        assert next(stream) == k
        assert len(made) <= k + 1 + 3
    stream.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prunus-read-ahead")]


@pytest.mark.parametrize("columns", [3, 30])
def test_buffers_respect_the_limit_of_memory(tmp_path: Path, columns: int) -> None:
    limit, rows = 24e6, 300_000
    wide = pa.table({f"c{i}": np.zeros(rows, dtype=np.float32) for i in range(columns)})
    table = FileTable(write(wide, tmp_path / "a.parquet", rows=4096))

    def encode(chunk: Chunk) -> tuple[npt.NDArray[Any], ...]:
        x = np.stack([column.to_numpy() for column in chunk.X.columns], axis=1)
        return x, np.zeros(len(x)), np.zeros(len(x))

    list(table.shuffled(encode, seed=0, epoch=0, buffer_rows=10_000, chunk_rows=4096))  # imports what it needs
    count = buffer_rows(limit, columns, chunk_rows=4096)
    for most in (count, 10**9):  # a table that fits takes only what it needs
        tracemalloc.start()
        taken = sum(len(x) for x, _, _ in table.shuffled(encode, seed=0, epoch=1, buffer_rows=most, chunk_rows=4096))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert taken == rows
        assert peak < (limit / 2 if most == count else 2 * (4 * columns + 16) * rows)
    assert pa.total_allocated_bytes() < 1e6


def test_a_limit_that_is_too_small_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"memory_limit must be at least 1\.43e\+08 bytes for 30 columns, got 1e\+06"):
        buffer_rows(1e6, 30)
    assert buffer_rows(1.43e8, 30) >= 65_536


ROWS, COLUMNS, GROUP = 4_000_000, 30, 500_000
LIMIT = 400_000_000  # the table has 480 MB
SCRIPT = """
import resource, sys
import pyarrow.parquet
from prunus.data import FileTable
from prunus.data.chunks import ValidationRows
from prunus.data.shuffling import buffer_rows
from prunus.data.statistics import TableStatistics

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

path, limit = sys.argv[1], float(sys.argv[2])
before = peak()
table = FileTable(path, target="y")
statistics, validation = TableStatistics(), ValidationRows(0.1)
for chunk in table.batches():
    statistics.add(chunk.X)
    validation.mask(chunk)
encoder = statistics.encoder()

def encode(chunk):
    rows = ~validation.mask(chunk)
    return encoder.transform(chunk.X)[rows], chunk.y[rows]

rows = buffer_rows(limit, len(encoder.columns_))
count = sum(len(x) for x, _ in table.shuffled(encode, seed=0, epoch=0, buffer_rows=rows))
print(count, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is another one elsewhere")
def test_an_epoch_takes_no_more_memory_than_allowed(tmp_path: Path) -> None:
    path, rng = tmp_path / "table.parquet", np.random.default_rng(0)
    names = [*(f"c{i}" for i in range(COLUMNS)), "y"]
    with parquet.ParquetWriter(path, pa.schema([(name, pa.float32()) for name in names])) as writer:
        for _ in range(0, ROWS, GROUP):
            writer.write_table(pa.table({name: rng.random(GROUP, dtype=np.float32) for name in names}))
    command = [sys.executable, "-c", SCRIPT, str(path), str(LIMIT)]
    count, taken = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert count == pytest.approx(0.9 * ROWS, rel=0.01)
    assert taken < LIMIT
