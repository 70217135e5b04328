"""Every row comes once an epoch, in an order that seed and epoch choose, from memory of bounded size."""

import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from prunus.data import FileTable
from prunus.data.chunks import Chunk
from prunus.data.shuffling import buffer_rows, read_ahead, shuffle_rows
from tests.data.file_tables import FORMATS, numbered, write


def row_numbers(chunk: Chunk) -> tuple[npt.NDArray[Any]]:
    return (chunk.X.column("row").to_numpy(),)


def order(table: FileTable, seed: int = 0, epoch: int = 0, rows: int = 150, **options: Any) -> list[int]:
    chunks = table.shuffled(row_numbers, seed=seed, epoch=epoch, buffer_rows=rows, chunk_rows=64, **options)
    return [int(row) for (part,) in chunks for row in part]


@pytest.mark.parametrize("form", FORMATS)
def test_every_row_comes_once(tmp_path: Path, form: str) -> None:
    write(numbered(777), tmp_path / f"a.{form}")
    write(numbered(223, 777), tmp_path / f"b.{form}")
    table = FileTable(tmp_path)
    for rows in (1, 150, 10_000):
        found = order(table, rows=rows)
        assert sorted(found) == list(range(1000))
    assert found != list(range(1000))


def test_the_order_depends_on_seed_and_epoch_alone(tmp_path: Path) -> None:
    table = FileTable(write(numbered(1000), tmp_path / "a.parquet"))
    assert order(table) == order(table) == order(FileTable(table.paths), ahead=0)
    assert len({tuple(order(table, seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4


def test_rows_are_well_mixed(tmp_path: Path) -> None:
    table = FileTable(write(numbered(20_000), tmp_path / "a.parquet", rows=500))
    found = np.array(order(table, rows=4000))
    assert abs(np.corrcoef(found, np.arange(20_000))[0, 1]) < 0.25
    assert np.mean(np.abs(np.diff(found)) == 1) < 0.01
    groups_in_chunks = [np.unique(part // 500).size for part in np.split(found[:19_968], 312)]
    assert min(groups_in_chunks) >= 4


@pytest.mark.parametrize("of", [2, 3])
def test_parts_are_disjoint_and_cover_all(tmp_path: Path, of: int) -> None:
    table = FileTable(write(numbered(1000), tmp_path / "a.parquet"))
    in_order = [row for k in range(of) for c in table.batches(part=(k, of)) for row in row_numbers(c)[0].tolist()]
    shuffled = [row for k in range(of) for row in order(table, seed=5, epoch=2, part=(k, of))]
    assert sorted(in_order) == sorted(shuffled) == list(range(1000))


def test_long_batches_of_arrow_are_several_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.data.formats._LONGEST_GROUP", 300)
    table = FileTable(write(numbered(1000), tmp_path / "a.arrow", rows=1000))
    assert [group.rows for group in table.groups] == [300, 300, 300, 100]
    assert [row for chunk in table.batches() for row in row_numbers(chunk)[0].tolist()] == list(range(1000))
    assert sorted(row for k in range(4) for row in order(table, part=(k, 4))) == list(range(1000))


def test_parts_that_cannot_be_read(tmp_path: Path) -> None:
    table = FileTable(write(numbered(1000), tmp_path / "a.parquet", rows=500))
    with pytest.raises(ValueError, match="read in 3 parts must have as many groups of rows, got 2"):
        order(table, part=(0, 3))
    with pytest.raises(ValueError, match=r"part must be \(k, of\)"):
        list(table.batches(part=(2, 2)))


def test_rows_can_be_left_out(tmp_path: Path) -> None:
    table = FileTable(write(numbered(1000), tmp_path / "a.parquet"))

    def some(chunk: Chunk) -> tuple[npt.NDArray[Any], ...]:
        rows = row_numbers(chunk)[0]
        return rows[rows >= 300], (rows[rows >= 300] / 2)[:, None]

    chunks = list(table.shuffled(some, seed=0, epoch=0, buffer_rows=200, chunk_rows=128))
    assert [len(rows) for rows, _ in chunks] == [128] * 5 + [60]
    assert sorted(int(row) for rows, _ in chunks for row in rows) == list(range(300, 1000))
    assert all((rows / 2 == halves[:, 0]).all() for rows, halves in chunks)


def test_errors_of_the_thread_reach_the_reader(tmp_path: Path) -> None:
    write(numbered(500), tmp_path / "a.parquet")
    table = FileTable(tmp_path, columns=["size", "row"], weight="w")
    path = tmp_path / "a.parquet"
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"Cannot read '.*a.parquet'"):
        order(table)


def test_arrays_that_change_are_errors() -> None:
    items = [(np.zeros(5),), (np.zeros(5, dtype=int),)]
    with pytest.raises(TypeError, match="same dtype and width, got int64"):
        list(shuffle_rows(items, 3, 2, np.random.default_rng(0)))


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


def test_a_table_that_fits_takes_only_what_it_needs(tmp_path: Path) -> None:
    table = FileTable(write(numbered(1000), tmp_path / "a.parquet"))
    tracemalloc.start()
    assert len(order(table, rows=10**9)) == 1000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6


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
    tracemalloc.start()
    taken = sum(len(x) for x, _, _ in table.shuffled(encode, seed=0, epoch=1, buffer_rows=count, chunk_rows=4096))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken == rows
    assert (4 * columns + 16) * min(count, rows) < peak < limit / 2
    assert pa.total_allocated_bytes() < 1e6


def test_a_limit_that_is_too_small_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"memory_limit must be at least 1\.43e\+08 bytes for 30 columns, got 1e\+06"):
        buffer_rows(1e6, 30)
    assert buffer_rows(1.43e8, 30) >= 65_536
