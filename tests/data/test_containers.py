"""The same table in any container gives the same matrix."""

import importlib
import json
import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import prunus
from prunus.data import TableEncoder
from prunus.data.columns import Coded
from prunus.data.tables import read_table

TABLE: dict[str, list[Any]] = {
    "size": [1.5, 2.5, None, 4.0, 9.0],
    "count": [3, 1, 4, 1, 5],
    "color": ["red", None, "green", "blue", "red"],
    "side": ["left", "right", "left", "left", "left"],
    "ok": [True, False, False, True, True],
    "perhaps": [True, None, False, None, False],
    "day": [date(2024, 1, day) for day in (1, 2, 3, 5, 30)],
    "when": [datetime(2024, 1, 1, 0, 0, 0, micro) for micro in (0, 1, 2, 3, 5)],
    "length": [timedelta(seconds=k) for k in (5, 3, 60, 4, 2)],
    "price": [Decimal("1.25"), None, Decimal("7.5"), Decimal("3"), Decimal("4")],
    "clock": [time(1), time(2, 30), time(0, 0, 1), None, time(5)],
    "empty": [None] * 5,
}
MATRIX = np.random.default_rng(0).normal(size=(1001, 7)) * 3


def as_objects() -> npt.NDArray[np.object_]:
    return np.array(list(TABLE.values()), dtype=object).T


def test_numpy_pandas_polars_and_pyarrow_agree() -> None:
    frames = (
        as_objects(),
        pd.DataFrame(TABLE),
        pd.DataFrame(TABLE, dtype=object),
        pl.DataFrame(TABLE),
        pa.table(TABLE),
    )
    encoders = [TableEncoder().fit(frame) for frame in frames]
    expected = encoders[0].transform(frames[0])
    for encoder in encoders:
        for frame in frames:
            np.testing.assert_array_equal(encoder.transform(frame), expected)
    assert all(encoder.columns_ == encoders[1].columns_ for encoder in encoders[2:])


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("count", "Int64"),
        ("count", "uint8"),
        ("count", pd.ArrowDtype(pa.int16())),
        ("count", pd.SparseDtype(float)),
        ("size", "Float64"),
        ("size", "float32"),
        ("size", pd.ArrowDtype(pa.float64())),
        ("color", "category"),
        ("color", "string"),
        ("color", "string[python]"),
        ("color", pd.ArrowDtype(pa.string())),
        ("color", pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        ("ok", "boolean"),
        ("perhaps", "boolean"),
        ("perhaps", pd.ArrowDtype(pa.bool_())),
        ("day", "datetime64[s]"),
        ("day", pd.ArrowDtype(pa.date32())),
        ("when", "datetime64[ns]"),
        ("when", pd.ArrowDtype(pa.timestamp("us"))),
        ("length", "timedelta64[ms]"),
        ("length", pd.ArrowDtype(pa.duration("us"))),
        ("price", pd.ArrowDtype(pa.decimal128(5, 2))),
        ("clock", pd.ArrowDtype(pa.time64("us"))),
    ],
)
def test_dtypes_of_pandas_agree(name: str, dtype: Any) -> None:
    expected = TableEncoder().fit(pd.DataFrame({name: pd.Series(TABLE[name], dtype=object)}))
    frame = pd.DataFrame({name: pd.Series(TABLE[name]).astype(dtype)})
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_ == expected.columns_
    np.testing.assert_array_equal(encoder.transform(frame), expected.transform(pl.DataFrame({name: TABLE[name]})))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("count", pl.Int128),
        ("count", pl.UInt8),
        ("size", pl.Float32),
        ("color", pl.Categorical),
        ("color", pl.Enum(["red", "green", "blue", "never"])),
        ("color", pl.Binary),
        ("when", pl.Datetime("ns")),
    ],
)
def test_dtypes_of_polars_agree(name: str, dtype: Any) -> None:
    expected = TableEncoder().fit(pl.DataFrame({name: TABLE[name]}))
    assert TableEncoder().fit(pl.DataFrame({name: TABLE[name]}).cast(dtype)).columns_ == expected.columns_


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("count", pa.uint8()),
        ("count", pa.float16()),
        ("size", pa.float32()),
        ("size", pa.decimal128(5, 2)),
        ("size", pa.decimal256(30, 2)),
        ("color", pa.large_string()),
        ("color", pa.string_view()),
        ("color", pa.binary()),
        ("color", pa.dictionary(pa.int8(), pa.string())),
        ("day", pa.date64()),
        ("day", pa.timestamp("s")),
        ("when", pa.timestamp("ns")),
        ("length", pa.duration("ms")),
        ("clock", pa.time32("s")),
        ("clock", pa.time64("ns")),
    ],
    ids=str,
)
def test_types_of_pyarrow_agree(name: str, kind: Any) -> None:
    expected = TableEncoder().fit(pl.DataFrame({name: TABLE[name]}))
    table = pa.table({name: pa.array(TABLE[name]).cast(kind)})
    assert TableEncoder().fit(table).columns_ == expected.columns_
    in_chunks = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    np.testing.assert_array_equal(expected.transform(in_chunks), expected.transform(table.to_batches()[0]))


def test_a_column_of_pyarrow_without_gaps_is_not_copied() -> None:
    numbers = np.arange(10.0, dtype=np.float32)
    column = read_table(pa.table({"x": numbers}).slice(2, 7)).column(0)
    assert isinstance(column, np.ndarray)
    assert np.shares_memory(column, numbers)


def test_levels_that_are_in_no_row_are_not_read() -> None:
    levels = pa.array([f"level {k}" for k in range(1000)])
    column = pa.DictionaryArray.from_arrays(pa.array([5, None, 999, 5], pa.int32()), levels)
    coded = read_table(pa.table({"x": column})).column(0)
    assert isinstance(coded, Coded)
    assert (coded.codes.tolist(), coded.values) == ([0, -1, 1, 0], ["level 5", "level 999"])


def test_nested_columns_of_pyarrow_are_errors() -> None:
    with pytest.raises(TypeError, match="got a 'list' in column 'x'"):
        TableEncoder().fit(pa.table({"x": [[1], [2]]}))


def test_times_in_a_zone_are_instants() -> None:
    zone = ZoneInfo("Europe/Berlin")
    local = [datetime(2024, 1, day, 12, tzinfo=zone) for day in (1, 2, 9)]
    expected = TableEncoder().fit(np.array([[moment] for moment in local], dtype=object)).columns_
    assert expected[0].center == local[1].timestamp()
    arrow = pd.Series(local).astype(pd.ArrowDtype(pa.timestamp("us", tz="Europe/Berlin")))
    for series in (pd.Series(local), arrow, pl.Series(local)):
        frame = pl.DataFrame({"x0": series}) if isinstance(series, pl.Series) else pd.DataFrame({"x0": series})
        assert TableEncoder().fit(frame).columns_ == expected


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "i1", "u2", "i4", "u8", "i8", "?", ">f8"])
def test_every_numeric_dtype_of_numpy(dtype: str) -> None:
    array = MATRIX.astype(dtype)
    encoder = TableEncoder().fit(array)
    np.testing.assert_array_equal(encoder.transform(array), encoder.transform(array.astype(float)))


@pytest.mark.parametrize(
    "change",
    [np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2], lambda x: x[::-1].copy()[::-1]],
    ids=["fortran", "strided", "reversed"],
)
def test_the_layout_does_not_matter(change: Callable[[Any], Any]) -> None:
    encoder = TableEncoder().fit(change(MATRIX))
    assert encoder.columns_ == TableEncoder().fit(MATRIX).columns_
    np.testing.assert_array_equal(encoder.transform(change(MATRIX)), encoder.transform(MATRIX))


def test_a_read_only_file_is_read_in_place(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", MATRIX)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    encoder = TableEncoder().fit(mapped)
    z = encoder.transform(mapped)
    np.testing.assert_array_equal(z, TableEncoder().fit(MATRIX).transform(MATRIX))
    assert z.flags.c_contiguous
    assert z.flags.writeable
    assert z.dtype == np.float32


@pytest.mark.parametrize("table", [as_objects(), pd.DataFrame(TABLE), pl.DataFrame(TABLE), MATRIX], ids=type)
def test_a_row_alone_is_encoded_to_the_same_bits(table: Any) -> None:
    encoder = TableEncoder().fit(table)
    together = encoder.transform(table)
    for i in range(5):
        np.testing.assert_array_equal(encoder.transform(table[i : i + 1])[0], together[i])


@pytest.mark.parametrize("width", [1, 3, 28, 600])
def test_chunks_are_encoded_like_the_whole_table(width: int) -> None:
    rng = np.random.default_rng(width)
    table = rng.normal(size=(300_000 // width + 7, width))
    table[rng.integers(len(table), size=9), rng.integers(width, size=9)] = np.nan
    encoder = TableEncoder().fit(table)
    frame = pl.DataFrame(table, nan_to_null=True)
    halves = [encoder.transform(part) for part in np.array_split(table, 2)]
    np.testing.assert_array_equal(encoder.transform(table), np.concatenate(halves))
    np.testing.assert_array_equal(encoder.transform(frame), np.concatenate(halves))


def test_frames_are_scaled_alike_with_and_without_the_compiled_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.standard_cauchy(size=(3000, 5)) * 10.0 ** np.arange(-160, 161, 80)
    frame = pd.DataFrame(numbers, columns=list("abcde")).assign(color=TABLE["color"] * 600, size=TABLE["size"] * 600)
    for part in (frame, frame[list("abcde")]):
        encoder = TableEncoder(pieces=3).fit(part)
        expected = encoder.transform(part)
        with monkeypatch.context() as without:
            without.setattr("prunus.data.plan._core", None)
            np.testing.assert_array_equal(encoder.transform(part), expected)


def test_output_can_be_written_in_place() -> None:
    encoder = TableEncoder().fit(pd.DataFrame(TABLE))
    out = np.full((5, len(encoder.columns_)), np.nan, dtype=np.float32)
    assert encoder.transform(pd.DataFrame(TABLE), out=out) is out
    np.testing.assert_array_equal(out, encoder.transform(pl.DataFrame(TABLE)))


def test_the_input_is_not_changed() -> None:
    array, frame = MATRIX.copy(), pd.DataFrame(TABLE)
    TableEncoder().fit(array).transform(array)
    TableEncoder().fit(frame).transform(frame)
    np.testing.assert_array_equal(array, MATRIX)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(TABLE))


def test_names_are_kept_if_they_are_text() -> None:
    encoder = TableEncoder().fit(pd.DataFrame(TABLE))
    assert encoder.feature_names_in_.tolist() == list(TABLE)
    assert encoder.n_features_in_ == len(TABLE)
    encoder.fit(pd.DataFrame(MATRIX))
    assert not hasattr(encoder, "feature_names_in_")
    assert encoder.columns_[0].name == "x0"


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


@pytest.mark.parametrize("table", [as_objects(), pd.DataFrame(TABLE), pl.DataFrame(TABLE), MATRIX], ids=type)
def test_the_state_survives_json(table: Any) -> None:
    encoder = TableEncoder(max_categories=3, clip=2.5).fit(table)
    again = TableEncoder.from_state(json.loads(json.dumps(encoder.get_state(), allow_nan=False)))
    assert again.get_state() == encoder.get_state()
    np.testing.assert_array_equal(again.transform(table), encoder.transform(table))


def test_a_state_from_the_future_is_refused() -> None:
    state = TableEncoder().fit(MATRIX).get_state() | {"format": sys.maxsize}
    with pytest.raises(ValueError, match="newer version"):
        TableEncoder.from_state(state)


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
    np.testing.assert_array_equal(encoder.transform(frame), encoder.transform(matrix))
    assert frame.lookups[0] < 2 * 600
