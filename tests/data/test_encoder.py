"""How numbers, categories and missing values become columns, and what is said about tables that cannot be encoded."""

import enum
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from prunus import PrunusError
from prunus.data import TableEncoder
from prunus.data.spread import measure, piece_edges, quantiles

ROWS = 20_000
RNG = np.random.default_rng(0)
MISSING = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, Decimal("nan"), np.datetime64("NaT")]
FRAME = pd.DataFrame({"size": [1.0, 2.0, 4.0], "color": ["red", "blue", "green"]})
FITTED = TableEncoder().fit(FRAME)


class Color(enum.Enum):
    RED, GREEN, BLUE = range(3)


def column(*values: object) -> np.ndarray:
    return np.array([[value] for value in values], dtype=object)


def labels(encoder: TableEncoder) -> list[str]:
    return [output.label.removeprefix("x0 ") for output in encoder.columns_]


def encode(x: npt.ArrayLike, **options: float) -> npt.NDArray[np.float32]:
    table = np.asarray(x).reshape(-1, 1)
    return TableEncoder(**options).fit(table).transform(table)[:, 0]  # type: ignore[arg-type]


def test_columns_say_how_the_output_was_made() -> None:
    table = RNG.lognormal(sigma=2.0, size=(500, 3))
    encoder = TableEncoder().fit(table)
    for j, output in enumerate(encoder.columns_):
        assert (output.feature, output.name, output.kind) == (j, f"x{j}", "number")
        expected = np.clip((table[:, j] - output.center) / output.scale, output.low, output.high)
        assert_array_equal(encoder.transform(table)[:, j], expected.astype(np.float32))


def test_the_bulk_of_numbers_has_the_same_spread_whatever_the_tails_are() -> None:
    z = encode(RNG.normal(loc=100.0, scale=7.0, size=ROWS))
    assert abs(np.median(z)) < 1e-6
    assert z.std() == pytest.approx(1.0, abs=0.05)
    for sigma in (1.0, 2.0, 3.0):
        z = encode(RNG.lognormal(sigma=sigma, size=ROWS))
        assert np.mean(np.abs(z) < 0.01) < 0.03
        assert np.mean(np.abs(z) == 5.0) < 0.15
    x = np.where(RNG.uniform(size=ROWS) < 0.95, 0.0, RNG.uniform(0.1, 1.0, size=ROWS))
    z = encode(np.append(x, 1e9))[:-1]  # an outlier beside few numbers that are not zero
    assert np.abs(z[x > 0]).min() > 0.1
    assert np.abs(z).max() < 5.0
    cauchy = RNG.standard_cauchy(size=ROWS)
    assert [np.abs(encode(cauchy, clip=clip)).max() for clip in (5.0, 2.5)] == [5.0, 2.5]


@pytest.mark.parametrize("row", [7, 60_000, 299_999])  # most are not in the sample for the quantiles
def test_a_single_different_row_is_five_units_away(row: int) -> None:
    x = np.arange(300_000) == row
    for z in (encode(x), encode(4.0 * x)):
        assert (float(z[row]), int(np.count_nonzero(z))) == (5.0, 1)


@pytest.mark.parametrize("value", [0.0, 0.1, -3e300])
def test_a_constant_column_is_zero_now_and_later(value: float) -> None:
    encoder = TableEncoder().fit(np.full((50, 1), value))
    assert encoder.columns_[0].scale == 1.0
    assert not encoder.transform(np.array([[value], [value + 1.0], [np.nan]])).any()
    assert not encode(np.nextafter(0.3, [0.0, 1.0, 1.0])).any()  # rounding errors


def test_large_and_extreme_numbers() -> None:
    small = np.linspace(0.0, 1.0, 101)
    for large in (1e9, -1e9):
        assert_allclose(encode(large + small), encode(small), atol=1e-5)
    z = encode([-1.7e308, 1.7e308, 0.0, 1.0, 5e-324])
    assert np.isfinite(z).all()
    assert z[0] < 0 < z[1]
    assert np.isfinite(encode([0.0, 5e-324, 1e-323])).all()


def test_a_weight_of_two_is_a_row_twice_and_of_zero_none() -> None:
    parts = RNG.normal(size=(60, 2)), RNG.poisson(0.3, size=(60, 2)), RNG.choice([1.0, np.nan], (60, 1))
    x, weight = np.concatenate(parts, 1), RNG.integers(0, 4, size=60)
    weighted = TableEncoder().fit(x, sample_weight=weight)
    repeated = TableEncoder().fit(np.repeat(x, weight, axis=0)[RNG.permutation(weight.sum())])
    assert [output.center for output in weighted.columns_] == [output.center for output in repeated.columns_]
    assert_allclose(weighted.transform(x), repeated.transform(x), rtol=1e-6)
    equal = TableEncoder().fit(x, sample_weight=np.full(60, 0.5))
    assert_allclose(equal.transform(x), TableEncoder().fit(x).transform(x))
    table = np.array([[1.0, "a"], [2.0, "b"], [3.0, "c"], [None, "d"]], dtype=object)
    ignored = TableEncoder().fit(table, sample_weight=[1, 1, 1, 0])
    assert labels(ignored) == ["x0", "x1 = a", "x1 = b", "x1 = c"]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 101])
def test_quantiles_are_those_with_equal_weights(n: int) -> None:
    shares = [0.0, 0.25, 0.5, 0.7, 0.75, 1.0]
    for values in (2, 1000):
        x = np.random.default_rng(n).integers(0, values, size=n).astype(float)
        assert quantiles(x, None, shares).tolist() == quantiles(x, np.ones(n), shares).tolist()
        assert quantiles(x, None, [0.5]) == np.median(x)
    assert measure(np.array([4.0, 1.0, 3.0]), np.array([1.0, 1.0, 2.0])).center == 3.0


def test_dates_numbers_of_python_and_booleans() -> None:
    start = datetime(2024, 2, 29, 12, tzinfo=UTC)
    table = column(*(start + timedelta(milliseconds=7 * k) for k in range(101)))
    encoder = TableEncoder().fit(table)
    assert (encoder.columns_[0].kind, encoder.columns_[0].center) == ("datetime", table[50, 0].timestamp())
    assert_allclose(encoder.transform(table)[:, 0], encode(np.arange(101)), atol=1e-4)
    mixed = column(1, 2.5, Decimal("3.25"), np.float32(4.0), True)
    encoder = TableEncoder().fit(mixed)
    assert encoder.columns_ == TableEncoder().fit(mixed.astype(np.float64)).columns_
    assert_array_equal(encoder.transform(mixed), encoder.transform(mixed.astype(np.float64)))
    flags = np.array([[True], [False], [False], [False]])
    encoder = TableEncoder().fit(flags)
    assert encoder.columns_[0].kind == "boolean"
    assert_array_equal(encoder.transform(flags)[:, 0], [2.0, 0.0, 0.0, 0.0])
    assert TableEncoder().fit(flags.astype(object)).columns_ == encoder.columns_
    assert_array_equal(encoder.transform(flags.astype(int)), encoder.transform(flags))


def test_several_threads_describe_a_large_table_as_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(0).normal(size=(300, 7))
    table[::9, 2] = np.nan
    weight = np.random.default_rng(1).random(300)
    expected = TableEncoder(pieces=4).fit(table, sample_weight=weight)
    monkeypatch.setattr("prunus.data.encoder._MANY_VALUES", 1)
    monkeypatch.setattr("prunus.data.encoder.get_num_threads", lambda: 3)
    assert TableEncoder(pieces=4).fit(table, sample_weight=weight).columns_ == expected.columns_
    table[5, 4] = np.inf
    with pytest.raises(ValueError, match=r"infinity .* column 'x4'"):
        TableEncoder().fit(table)


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_a_missing_number_has_an_indicator_and_a_missing_category_is_a_level(missing: object) -> None:
    table = column(1.0, missing, 3.0, 8.0)
    encoder = TableEncoder().fit(table)
    assert labels(encoder) == ["x0", "is missing"]
    assert encoder.columns_[0].center == 3.0
    assert encoder.transform(table)[1].tolist() == [0.0, 2.0]
    assert not encoder.transform(table)[[0, 2, 3], 1].any()
    table = column("a", missing, "b", "b")
    encoder = TableEncoder().fit(table)
    assert labels(encoder) == ["= a", "= b", "is missing"]
    assert_array_equal(encoder.transform(table) > 0, [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0]])


def test_missing_values_do_not_change_what_a_column_is() -> None:
    for present in (True, np.datetime64("2020-01-01"), "a", 1):
        others = [TableEncoder().fit(column(present, other)) for other in (present, None, float("nan"))]
        assert len({other.columns_[0].kind for other in others}) == 1
    table = np.array([[1.0, "a", True], [2.0, "b", False], [4.0, "c", True]], dtype=object)
    encoder = TableEncoder().fit(table)
    assert "missing" not in {output.kind for output in encoder.columns_}
    assert not encoder.transform(np.array([[None, None, None]], dtype=object)).any()
    table = np.array([[np.nan, 1.0, 2.0], [1.0, 2.0, np.nan], [2.0, 2.0, 4.0]])
    assert labels(TableEncoder().fit(table)) == ["x0", "x1", "x2", "is missing", "x2 is missing"]
    masked = np.ma.MaskedArray([[7.0, 1.0, 2.0], [1.0, 2.0, 7.0], [2.0, 2.0, 4.0]], mask=np.isnan(table))
    assert TableEncoder().fit(masked).columns_ == TableEncoder().fit(table).columns_


@pytest.mark.parametrize("dtype", ["float", "str", "string", "category", "object"])
def test_a_column_without_values_is_zero(dtype: str) -> None:
    empty = pd.DataFrame({"a": pd.Series([None] * 3, dtype=dtype), "b": [0.0, 1.0, 2.0]})
    encoder = TableEncoder().fit(empty)
    assert not encoder.transform(empty)[:, [0, 2]].any()
    assert np.isfinite(encoder.transform(pd.DataFrame({"a": [3.0], "b": [4.0]}))).all()
    numbers = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [0.0, 1.0, 2.0]})
    encoder = TableEncoder().fit(numbers)
    assert_array_equal(encoder.transform(empty), encoder.transform(numbers.assign(a=np.nan)))


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ("bcac", {}, ["= a", "= b", "= c"]),
        (["yes", "no", "yes"], {}, ["= no"]),  # two levels need one column, that of the rarer one
        ([*"aaabbbccd", None], {"max_categories": 2}, ["= a", "= b", "is missing", "is infrequent"]),
        ("dcba", {"max_categories": 2}, ["= a", "= b", "is infrequent"]),
        ([1, "many", 2.5, 1.0, "1"], {}, ["= 1", "= 2.5", "= many"]),
        (Color, {}, ["= Color.BLUE", "= Color.GREEN", "= Color.RED"]),
        *((text, {}, [f"= {value}" for value in sorted(text)]) for text in (["", "b", "c"], [" a", "b", "c"])),
        *(
            (text, {}, [f"= {value}" for value in sorted(text)])
            for text in (["\ud800", "b", "ä"], ["nan", "None", "b"])
        ),
    ],
    ids=repr,
)
def test_levels_have_columns_in_the_order_of_their_names(values: Any, options: Any, expected: list[str]) -> None:
    encoder = TableEncoder(**options).fit(column(*values))
    assert labels(encoder) == expected
    for i, output in enumerate(encoder.columns_):
        if output.category is not None and len(expected) > 1:
            value = next(value for value in values if str(value) == output.category)
            assert np.flatnonzero(encoder.transform(column(value))[0]).tolist() == [i]


def test_weights_of_levels_and_levels_that_are_new() -> None:
    encoder = TableEncoder(max_categories=1).fit(column(*"aabc"), sample_weight=[1, 1, 5, 1])
    assert labels(encoder) == ["= b", "is infrequent"]
    encoder = TableEncoder(max_categories=2).fit(column(*"aaabbbccd", None))
    assert_array_equal(encoder.transform(column("a", "c", "d", "new", None)).argmax(1), [0, 3, 3, 3, 2])
    assert not TableEncoder().fit(column(*"abc")).transform(column("new")).any()
    assert not TableEncoder().fit(column("a", "a")).transform(column("a", "b", None)).any()
    table = column(*("a" * 50 + "b" * 30 + "c" * 20))
    assert_allclose(np.sqrt(np.square(TableEncoder().fit(table).transform(table)).mean(axis=0)), 1.0, rtol=1e-6)
    assert TableEncoder().fit(column(*("a" * 500 + "b" * 499 + "c"))).transform(column("c")).max() == 5.0


def test_text_is_compared_by_its_text_whatever_holds_it() -> None:
    encoder = TableEncoder().fit(column("1", "2", "True"))
    expected = encoder.transform(column("1", "2", "x"))
    assert_array_equal(encoder.transform(np.array([[1], [2], [3]])), expected)
    assert_array_equal(encoder.transform(np.array([[1.0], [2.0], [np.nan]])), expected)
    assert_array_equal(encoder.transform(np.array([[True]])), encoder.transform(column("True")))
    rows = [["a", "x"], ["b", "y"], ["c", "x"]]
    encoder = TableEncoder().fit(np.array(rows, dtype=object))
    for table in (rows, np.array(rows), np.array(rows).astype("S")):
        assert TableEncoder().fit(table).columns_ == encoder.columns_
        assert_array_equal(TableEncoder().fit(table).transform(table), encoder.transform(rows))
    mixed = TableEncoder().fit([[1.5, "a"], [2, "b"], [3, "c"]])
    assert [output.kind for output in mixed.columns_] == ["number", "category", "category", "category"]
    grades = pd.DataFrame({"x0": pd.Categorical([1, 3, 2, None], categories=[1, 2, 3, 4])})
    assert labels(TableEncoder().fit(grades)) == ["= 1", "= 2", "= 3", "is missing"]
    bins = pd.DataFrame({"x0": pd.cut(pd.Series([0.5, 1.5, 2.5]), [0, 1, 2, 3])})
    assert labels(TableEncoder().fit(bins)) == ["= (0, 1]", "= (1, 2]", "= (2, 3]"]


def test_edges_of_pieces() -> None:
    x = np.random.default_rng(0).exponential(size=1000)
    assert np.histogram(x, piece_edges(x, None, 4))[0].tolist() == pytest.approx([250] * 4, abs=2)
    frequent = np.concatenate((np.zeros(500), np.arange(100.0, 600.0)))
    assert piece_edges(frequent, None, 2).tolist() == [0.0, 100.0, 349.5, 599.0]
    x, weight = np.array([1.0, 2.0, 4.0, 8.0, np.nan]), np.array([1, 3, 1, 2, 2])
    assert_array_equal(piece_edges(x, weight.astype(float), 3), piece_edges(np.repeat(x, weight), None, 3))


def test_columns_of_pieces_are_linear_within_and_constant_beyond() -> None:
    encoder = TableEncoder(pieces=2).fit(pd.DataFrame({"age": np.arange(9.0)}))
    assert labels(encoder) == ["age", "age from 0 to 4", "age from 4 to 8"]
    encoded = encoder.transform(pd.DataFrame({"age": [-1.0, 2.0, 5.0, 9.0]}))
    assert_allclose(encoded[:, 1:], np.array([[0, 0], [0.5, 0], [1, 0.25], [1, 1]]))
    x = np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 7.0], [4.0, 9.0]])
    encoder = TableEncoder(pieces=2).fit(x)
    flags = [output.kind == "missing" for output in encoder.columns_]
    pieces = [output.feature == 0 and output.piece for output in encoder.columns_]
    assert any(pieces)
    for table in (x, pd.DataFrame(x)):  # a missing number counts as the median
        encoded = encoder.transform(table)
        assert_array_equal(encoded[1, pieces], encoded[2, pieces])
        assert (encoded[:, flags] > 0).ravel().tolist() == [False, True, False, False]
    few = TableEncoder(pieces=8).fit(pd.DataFrame({"flag": [True, False, True], "two": [1, 2, 1]}))
    assert not any(output.piece for output in few.columns_)
    again = TableEncoder.from_state(json.loads(json.dumps(encoder.get_state())))
    assert again.pieces == 2
    assert_array_equal(again.transform(x), encoder.transform(x))


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (np.zeros(3), ValueError, "Expected 2D array, got 1D array instead(.|\n)*Reshape your data"),
        (np.float64(3), ValueError, "Expected 2D array, got scalar array"),
        (np.zeros((2, 2, 2)), ValueError, "Found array with dim 3, while dim <= 2 is required"),
        (np.zeros((0, 3)), ValueError, r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1"),
        (np.zeros((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required."),
        (pd.Series([1.0, 2.0]), ValueError, "Expected a 2-dimensional container but got"),
        (pl.Series([1.0, 2.0]), ValueError, "Expected a 2-dimensional container but got"),
        (pl.LazyFrame({"a": [1]}), TypeError, "collect"),
        (np.zeros((3, 2), dtype=complex), ValueError, "Complex data not supported"),
        (np.array([[1j], [1.0]], dtype=object), ValueError, "Complex data not supported"),
        (sparse.csr_matrix(np.eye(3)), TypeError, r"(?i)sparse.*\.toarray"),
        (np.array([[{"a": 1}], [1.0]], dtype=object), TypeError, "argument must be .* string.* number"),
        (pl.DataFrame({"a": [[1], [2]]}), TypeError, "got a 'list' in column 'a'"),
        (np.array([[1.0], [np.inf]]), ValueError, "Input X contains infinity .* column 'x0'"),
        (pl.DataFrame({"a": [1.0, -np.inf]}), ValueError, "Input X contains infinity .* column 'a'"),
        (np.array([[1.0], [10**400]], dtype=object), ValueError, "too large"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "must be unique, got 'a' more than once"),
        (pd.DataFrame([[1, 2]], columns=["a", 1]), TypeError, "only supported if all input features have string names"),
    ],
)
def test_tables_that_cannot_be_used(table: Any, error: type[Exception], words: str) -> None:
    encoder = TableEncoder().fit(FRAME)
    with pytest.raises(error, match=words) as caught:
        encoder.fit(table)
    assert isinstance(caught.value, PrunusError)
    assert encoder.get_state() == FITTED.get_state()  # a failed fit changes nothing


DATES = FRAME.assign(size=pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"]))
ABC = pd.Series(["abc", "def", None])


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (FRAME[["size"]], "match(.|\n)*seen at fit time, yet now missing:\n- color"),
        (FRAME.assign(extra=1), "match(.|\n)*unseen at fit time:\n- extra"),
        (FRAME[["color", "size"]], "match(.|\n)*must be in the same order"),
        (pl.DataFrame({"color": ["a"], "size": [1.0]}), "match(.|\n)*must be in the same order"),
        (np.eye(3), "X has 3 features, but TableEncoder is expecting 2 features as input"),
        (FRAME.assign(size=np.inf), "infinity .* column 'size'"),
        (pl.DataFrame({"size": [np.nan, np.inf], "color": ["a", "b"]}), "infinity .* column 'size'"),
        (FRAME.assign(size=[1.0, "abc", "def"]), "'size' must hold numbers, as in fit, got 'abc'"),
        (FRAME.assign(size=[None, "abc", 1.0]), "'size' must hold numbers, as in fit, got 'abc'"),
        (FRAME.assign(size=ABC), "'size' must hold numbers, as in fit, got 'abc'"),
        (FRAME.assign(size=ABC.astype("category")), "'size' must hold numbers, as in fit, got 'abc'"),
        (DATES, "'size' must hold numbers, as in fit, got .*2020-01-01"),
    ],
)
def test_tables_that_are_not_like_those_of_fit(frame: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        FITTED.transform(frame)


def test_other_mistakes() -> None:
    with pytest.raises(ValueError, match=r"'size' must hold datetimes, as in fit, got 1\.0"):
        TableEncoder().fit(DATES).transform(FRAME)
    with pytest.raises(ValueError, match=r"infinity .* column 'x2'"):
        TableEncoder().fit(np.eye(3)).transform(np.array([[np.nan, 1.0, -np.inf]]))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        TableEncoder().transform(FRAME)
    weights: list[tuple[Any, str]] = [
        ([1.0, 2.0], r"must have shape \(3,\)"),
        ([0.0, 0.0, 0.0], "not zero for all rows"),
        ([1.0, -1.0, 1.0], "not negative"),
        ([1.0, np.nan, 1.0], "finite"),
        (["a", "b", "c"], "array of numbers"),
    ]
    for weight, words in weights:
        with pytest.raises(PrunusError, match=words):
            TableEncoder().fit(FRAME, sample_weight=weight)
    options: list[dict[str, Any]] = [{"max_categories": 0}, {"max_categories": 1.5}, {"clip": 0.0}, {"clip": np.inf}]
    for option in [*options, {"pieces": -1}]:
        with pytest.raises(ValueError, match=f"{next(iter(option))} must be"):
            TableEncoder(**option).fit(FRAME)
    outs: list[Any] = [np.zeros((3, 4)), np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32, order="F")]
    for out in outs:
        with pytest.raises(ValueError, match="out must be a writeable C-contiguous float32 array"):
            FITTED.transform(FRAME, out=out)
