"""The same table in any container gives the same matrix."""

import importlib
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import prunus
from prunus.data import TableEncoder
from prunus.data.columns import Coded
from prunus.data.tables import read_table
from tests.data.file_tables import TABLE

MATRIX = np.random.default_rng(0).normal(size=(1001, 7)) * 3
OBJECTS = np.array(list(TABLE.values()), dtype=object).T
CONTAINERS = [OBJECTS, pd.DataFrame(TABLE), pl.DataFrame(TABLE), MATRIX]


def test_numpy_pandas_polars_and_pyarrow_agree() -> None:
    frames = (*CONTAINERS[:3], pd.DataFrame(TABLE, dtype=object), pa.table(TABLE))
    encoders = [TableEncoder().fit(frame) for frame in frames]
    expected = encoders[0].transform(frames[0])
    for encoder in encoders:
        for frame in frames:
            assert_array_equal(encoder.transform(frame), expected)
    assert all(encoder.columns_ == encoders[1].columns_ for encoder in encoders[2:])
    assert encoders[1].feature_names_in_.tolist() == list(TABLE)
    again = encoders[1].fit(pd.DataFrame(MATRIX))
    assert not hasattr(again, "feature_names_in_")
    assert (again.n_features_in_, again.columns_[0].name) == (7, "x0")
    pd.testing.assert_frame_equal(frames[1], pd.DataFrame(TABLE))  # the input is not changed


PANDAS: dict[str, list[Any]] = {
    "count": ["Int64", "uint8", pd.ArrowDtype(pa.int16()), pd.SparseDtype(float)],
    "size": ["Float64", "float32", pd.ArrowDtype(pa.float64())],
    "color": ["category", "string", "string[python]", pd.ArrowDtype(pa.string())],
    "ok": ["boolean"],
    "perhaps": ["boolean", pd.ArrowDtype(pa.bool_())],
    "day": ["datetime64[s]", pd.ArrowDtype(pa.date32())],
    "when": ["datetime64[ns]", pd.ArrowDtype(pa.timestamp("us"))],
    "length": ["timedelta64[ms]", pd.ArrowDtype(pa.duration("us"))],
    "price": [pd.ArrowDtype(pa.decimal128(5, 2))],
    "clock": [pd.ArrowDtype(pa.time64("us"))],
}
PANDAS["color"].append(pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))
POLARS: dict[str, list[Any]] = {
    "count": [pl.Int128, pl.UInt8],
    "size": [pl.Float32],
    "color": [pl.Categorical, pl.Enum(["red", "green", "blue", "never"]), pl.Binary],
    "when": [pl.Datetime("ns")],
}
ARROW: dict[str, list[Any]] = {
    "count": [pa.uint8(), pa.float16()],
    "size": [pa.float32(), pa.decimal128(5, 2), pa.decimal256(30, 2)],
    "color": [pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string())],
    "day": [pa.date64(), pa.timestamp("s")],
    "when": [pa.timestamp("ns")],
    "length": [pa.duration("ms")],
    "clock": [pa.time32("s"), pa.time64("ns")],
}


@pytest.mark.parametrize("name", [name for name in TABLE if name != "empty"])
def test_types_of_frames_agree(name: str) -> None:
    expected = TableEncoder().fit(pl.DataFrame({name: TABLE[name]}))
    matrix = expected.transform(pl.DataFrame({name: TABLE[name]}))
    assert TableEncoder().fit(pd.DataFrame({name: TABLE[name]}, dtype=object)).columns_ == expected.columns_
    tables = [pd.DataFrame({name: pd.Series(TABLE[name]).astype(dtype)}) for dtype in PANDAS.get(name, [])]
    tables += [pl.DataFrame({name: TABLE[name]}).cast(dtype) for dtype in POLARS.get(name, [])]
    for kind in ARROW.get(name, []):
        table = pa.table({name: pa.array(TABLE[name]).cast(kind)})
        tables += [table, pa.concat_tables([table.slice(0, 2), table.slice(2)]), table.to_batches()[0]]
    for table in tables:
        encoder = TableEncoder().fit(table)
        assert encoder.columns_ == expected.columns_, type(table)
        assert_array_equal(encoder.transform(table), matrix)


def test_columns_of_pyarrow() -> None:
    numbers = np.arange(10.0, dtype=np.float32)
    column = read_table(pa.table({"x": numbers}).slice(2, 7)).column(0)
    assert isinstance(column, np.ndarray)
    assert np.shares_memory(column, numbers)
    levels = pa.array([f"level {k}" for k in range(1000)])  # most are in no row
    coded = pa.DictionaryArray.from_arrays(pa.array([5, None, 999, 5], pa.int32()), levels)
    found = read_table(pa.table({"x": coded})).column(0)
    assert isinstance(found, Coded)
    assert (found.codes.tolist(), found.values) == ([0, -1, 1, 0], ["level 5", "level 999"])
    with pytest.raises(TypeError, match="got a 'list' in column 'x'"):
        TableEncoder().fit(pa.table({"x": [[1], [2]]}))


def test_times_in_a_zone_are_instants() -> None:
    local = [datetime(2024, 1, day, 12, tzinfo=ZoneInfo("Europe/Berlin")) for day in (1, 2, 9)]
    expected = TableEncoder().fit(np.array([[moment] for moment in local], dtype=object)).columns_
    assert expected[0].center == local[1].timestamp()
    arrow = pd.Series(local).astype(pd.ArrowDtype(pa.timestamp("us", tz="Europe/Berlin")))
    for frame in (pd.DataFrame({"x0": local}), pd.DataFrame({"x0": arrow}), pl.DataFrame({"x0": pl.Series(local)})):
        assert TableEncoder().fit(frame).columns_ == expected


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "i1", "u2", "i4", "u8", "i8", "?", ">f8"])
def test_every_numeric_dtype_of_numpy(dtype: str) -> None:
    array = MATRIX.astype(dtype)
    encoder = TableEncoder().fit(array)
    assert_array_equal(encoder.transform(array), encoder.transform(array.astype(float)))


def test_the_layout_does_not_matter_and_files_are_read_in_place(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", MATRIX)
    before = MATRIX.copy()
    expected = TableEncoder().fit(MATRIX)
    for same in (
        np.asfortranarray(MATRIX),
        np.repeat(MATRIX, 2, axis=1)[:, ::2],
        MATRIX[::-1].copy()[::-1],
        np.load(tmp_path / "table.npy", mmap_mode="r"),
    ):
        encoder = TableEncoder().fit(same)
        z = encoder.transform(same)
        assert encoder.columns_ == expected.columns_
        assert_array_equal(z, expected.transform(MATRIX))
        assert (z.flags.c_contiguous, z.flags.writeable, z.dtype.name) == (True, True, "float32")
    assert_array_equal(MATRIX, before)


@pytest.mark.parametrize("table", CONTAINERS, ids=type)
def test_a_row_alone_is_encoded_to_the_same_bits_and_the_state_survives_json(table: Any) -> None:
    encoder = TableEncoder(max_categories=3, clip=2.5).fit(table)
    together = encoder.transform(table)
    for i in range(5):
        assert_array_equal(encoder.transform(table[i : i + 1])[0], together[i])
    again = TableEncoder.from_state(json.loads(json.dumps(encoder.get_state(), allow_nan=False)))
    assert again.get_state() == encoder.get_state()
    assert_array_equal(again.transform(table), together)
    out = np.full_like(together, np.nan)
    assert encoder.transform(table, out=out) is out
    assert_array_equal(out, together)
    with pytest.raises(ValueError, match="newer version"):
        TableEncoder.from_state(encoder.get_state() | {"format": sys.maxsize})


@pytest.mark.parametrize("width", [1, 3, 28, 600])
def test_chunks_are_encoded_like_the_whole_table(width: int) -> None:
    rng = np.random.default_rng(width)
    table = rng.normal(size=(300_000 // width + 7, width))
    table[rng.integers(len(table), size=9), rng.integers(width, size=9)] = np.nan
    encoder = TableEncoder().fit(table)
    halves = np.concatenate([encoder.transform(part) for part in np.array_split(table, 2)])
    assert_array_equal(encoder.transform(table), halves)
    assert_array_equal(encoder.transform(pl.DataFrame(table, nan_to_null=True)), halves)


def test_frames_are_scaled_alike_with_and_without_the_compiled_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(0).standard_cauchy(size=(3000, 5)) * 10.0 ** np.arange(-160, 161, 80)
    frame = pd.DataFrame(numbers, columns=list("abcde")).assign(color=TABLE["color"] * 600, size=TABLE["size"] * 600)
    for part in (frame, frame[list("abcde")]):
        encoder = TableEncoder(pieces=3).fit(part)
        expected = encoder.transform(part)
        with monkeypatch.context() as without:
            without.setattr("prunus.data.plan._core", None)
            assert_array_equal(encoder.transform(part), expected)


def test_neither_pandas_nor_polars_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
    for name in [name for name in sys.modules if f"{name}.".startswith("prunus.data.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(prunus, "data", None, raising=False)  # monkeypatch restores it
    imported_again = importlib.import_module("prunus.data").TableEncoder
    assert imported_again is not TableEncoder
    table = [[1.0, "a"], [None, "b"], [2.0, "c"]]
    assert imported_again().fit(table).transform(table).shape == (3, 5)


class CountedFrame(pd.DataFrame):  # type: ignore[misc]
    """A frame that counts how often its columns are looked up."""

    _metadata = ("lookups",)

    @property
    def iloc(self) -> Any:
        self.lookups[0] += 1
        return super().iloc


def test_each_column_of_a_wide_frame_is_read_once() -> None:
    matrix = np.random.default_rng(0).normal(size=(400, 600))
    matrix[3, 5] = matrix[7, 500] = np.nan
    encoder = TableEncoder(pieces=2).fit(matrix)
    frame = CountedFrame(matrix)
    frame.lookups = [0]  # broke: wide frames were cut into chunks of few rows, and all columns were read in each
    assert_array_equal(encoder.transform(frame), encoder.transform(matrix))
    assert frame.lookups[0] < 2 * 600
