"""Rows are held out by a hash of their values, which nothing else changes."""

import datetime
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from numpy.testing import assert_array_equal

from prunus.data.chunks import held_out, row_hashes
from tests.data.file_tables import TABLE

TABLES = pa.table({name: TABLE[name] for name in TABLE if name not in ("length", "price", "clock", "empty")})


def test_neither_container_nor_chunks_nor_the_order_of_columns_matter() -> None:
    expected = row_hashes(pd.DataFrame(TABLE, dtype=object))
    for change in (pd.DataFrame, pl.DataFrame, pa.table):
        assert_array_equal(row_hashes(change(TABLE)), expected)
    assert np.unique(expected).size == 5
    whole = row_hashes(TABLES)
    assert_array_equal(np.concatenate([row_hashes(TABLES.slice(i, 2)) for i in range(0, 5, 2)]), whole)
    assert_array_equal(row_hashes(TABLES.select(TABLES.column_names[::-1])), whole)


def test_types_of_equal_values_do_not_matter_nor_does_a_csv_file() -> None:
    expected = row_hashes(pa.table({"x": pa.array([1, 0, None], pa.int8())}))
    for column in (pa.array([1.0, -0.0, None]), pa.array([True, False, None]), pa.array([1, 0, np.nan], pa.float32())):
        assert_array_equal(row_hashes(pa.table({"x": column})), expected)
    days = [datetime.date(2024, 1, 1), None]
    moments = pa.array(days, pa.date32()).cast(pa.timestamp("us"))
    assert_array_equal(row_hashes(pa.table({"x": days})), row_hashes(pa.table({"x": moments})))
    rng = np.random.default_rng(0)
    table = TABLES.append_column("single", pa.array(rng.normal(size=5).astype(np.float32)))
    table = table.append_column("double", pa.array(rng.normal(size=5) * 1e9))
    pyarrow.csv.write_csv(table, file := io.BytesIO())
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    again = pyarrow.csv.read_csv(io.BytesIO(file.getvalue()), convert_options=options)
    assert_array_equal(row_hashes(again), row_hashes(table))


def test_every_value_matters() -> None:
    expected = row_hashes(TABLES)
    for name in TABLES.column_names:
        changed = TABLES.drop_columns([name]).append_column(name, TABLES[name].take(pa.array([1, 2, 3, 4, 0])))
        same = [a == b for a, b in zip(changed[name].to_pylist(), TABLES[name].to_pylist(), strict=True)]
        assert_array_equal(row_hashes(changed) == expected, same)
    n, rng = 50_000, np.random.default_rng(0)
    for table in (
        np.arange(n, dtype=np.float64)[:, None] + 2.0**40,
        rng.integers(0, 2, size=(n, 30)).astype(np.float32),
        rng.integers(0, 600, size=(n, 2)),
    ):
        assert np.unique(row_hashes(table)).size == np.unique(table, axis=0).shape[0]
    assert np.unique(row_hashes(pa.table({"text": [f"user {k}" for k in range(n)]}))).size == n
    texts = ["", "a", "b", "ab", "ba", "aab", "aba", "a\0", "\0a", "é"]
    assert np.unique(row_hashes(pa.table({"x": texts, "y": texts[::-1]}))).size == len(texts)


def test_hashes_are_the_same_on_all_machines() -> None:
    table = pa.table({"size": [1.5, None, 7.0], "color": ["red", "blue", None]})
    assert row_hashes(table).tolist() == [1113525280685694879, 13097684370890858328, 14573540433729455338]


def test_the_fraction_is_held_out_and_seeds_choose_independently() -> None:
    hashes = row_hashes(np.arange(100_000)[:, None])
    chosen = {fraction: held_out(hashes, fraction, seed=3) for fraction in (0.0, 0.1, 0.5, 1.0)}
    assert all(rows.mean() == pytest.approx(fraction, abs=0.005) for fraction, rows in chosen.items())
    assert not (chosen[0.1] & ~chosen[0.5]).any()
    one, other = held_out(hashes, 0.2, 0), held_out(hashes, 0.2, 1)
    assert other[one].mean() == pytest.approx(0.2, abs=0.01)
