"""How numbers are centered, scaled and cut."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pytest

from prunus.data import TableEncoder
from prunus.data.spread import measure, quantiles

ROWS = 20_000
RNG = np.random.default_rng(0)


def encode(column: npt.ArrayLike, **options: float) -> npt.NDArray[np.float32]:
    table = np.asarray(column).reshape(-1, 1)
    return TableEncoder(**options).fit(table).transform(table)[:, 0]  # type: ignore[arg-type]


def test_normal_numbers_become_standard_normal() -> None:
    z = encode(RNG.normal(loc=100.0, scale=7.0, size=ROWS))
    assert abs(np.median(z)) < 1e-6
    assert z.std() == pytest.approx(1.0, abs=0.05)


def test_columns_say_how_the_output_was_made() -> None:
    table = RNG.lognormal(sigma=2.0, size=(500, 3))
    encoder = TableEncoder().fit(table)
    for j, column in enumerate(encoder.columns_):
        assert (column.feature, column.name, column.kind) == (j, f"x{j}", "number")
        expected = np.clip((table[:, j] - column.center) / column.scale, column.low, column.high)
        np.testing.assert_array_equal(encoder.transform(table)[:, j], expected.astype(np.float32))


@pytest.mark.parametrize("sigma", [1.0, 2.0, 3.0])
def test_a_heavy_tail_does_not_squeeze_the_bulk(sigma: float) -> None:
    z = encode(RNG.lognormal(sigma=sigma, size=ROWS))
    assert np.mean(np.abs(z) < 0.01) < 0.03
    assert np.mean(np.abs(z) == 5.0) < 0.15


def test_an_outlier_does_not_squeeze_the_few_numbers_that_are_not_zero() -> None:
    x = np.where(RNG.uniform(size=ROWS) < 0.95, 0.0, RNG.uniform(0.1, 1.0, size=ROWS))
    z = encode(np.append(x, 1e9))[:-1]
    assert np.abs(z[x > 0]).min() > 0.1
    assert np.abs(z).max() < 5.0


def test_rare_numbers_are_five_units_away() -> None:
    z = encode(np.arange(1000) == 7)
    assert sorted(set(z.tolist())) == [0.0, 5.0]
    z = encode((np.arange(1000) == 7).astype(float))
    assert sorted(set(z.tolist())) == [0.0, 5.0]


@pytest.mark.parametrize("value", [0.0, 0.1, -3e300])
def test_a_constant_column_is_zero_now_and_later(value: float) -> None:
    encoder = TableEncoder().fit(np.full((50, 1), value))
    assert encoder.columns_[0].scale == 1.0
    assert not encoder.transform(np.array([[value], [value + 1.0], [np.nan]])).any()


def test_rounding_errors_are_constant() -> None:
    assert not encode(np.nextafter(0.3, [0.0, 1.0, 1.0])).any()


@pytest.mark.parametrize("row", range(0, 300_000, 60_000))  # most are not in the sample for the quantiles
def test_a_single_different_row_among_many_is_found(row: int) -> None:
    x = np.zeros(300_000)
    x[row] = 4.0
    z = encode(x)
    assert z[row] == 5.0
    assert np.count_nonzero(z) == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_small_differences_between_large_numbers_survive(sign: int) -> None:
    small = np.linspace(0.0, 1.0, 101)
    np.testing.assert_allclose(encode(sign * 1e9 + small), encode(small), atol=1e-5)


def test_extreme_numbers_stay_finite() -> None:
    z = encode([-1.7e308, 1.7e308, 0.0, 1.0, 5e-324])
    assert np.isfinite(z).all()
    assert z[0] < 0 < z[1]
    assert np.isfinite(encode([0.0, 5e-324, 1e-323])).all()


def test_numbers_are_cut_at_clip() -> None:
    x = RNG.standard_cauchy(size=ROWS)
    assert np.abs(encode(x)).max() == 5.0
    assert np.abs(encode(x, clip=2.5)).max() == 2.5


def test_a_weight_of_two_is_a_row_twice_and_of_zero_none() -> None:
    x = np.concatenate(
        [RNG.normal(size=(60, 2)), RNG.poisson(0.3, size=(60, 2)), RNG.choice([1.0, np.nan], (60, 1))], 1
    )
    weight = RNG.integers(0, 4, size=60)
    weighted = TableEncoder().fit(x, sample_weight=weight)
    repeated = TableEncoder().fit(np.repeat(x, weight, axis=0)[RNG.permutation(weight.sum())])
    assert [column.center for column in weighted.columns_] == [column.center for column in repeated.columns_]
    np.testing.assert_allclose(weighted.transform(x), repeated.transform(x), rtol=1e-6)


def test_equal_weights_change_nothing() -> None:
    x = RNG.normal(size=(101, 2))
    np.testing.assert_allclose(
        TableEncoder().fit(x, sample_weight=np.full(101, 0.5)).transform(x), TableEncoder().fit(x).transform(x)
    )


def test_rows_of_weight_zero_are_ignored() -> None:
    table = np.array([[1.0, "a"], [2.0, "b"], [3.0, "c"], [None, "d"]], dtype=object)
    encoder = TableEncoder().fit(table, sample_weight=[1, 1, 1, 0])
    assert [column.label for column in encoder.columns_] == ["x0", "x1 = a", "x1 = b", "x1 = c"]


def test_median_of_an_even_number_is_the_middle() -> None:
    assert measure(np.array([4.0, 1.0, 2.0, 3.0])).center == 2.5
    assert measure(np.array([4.0, 1.0, 3.0]), np.array([1.0, 1.0, 2.0])).center == 3.0


def test_dates_are_seconds_and_keep_their_differences() -> None:
    start = datetime(2024, 2, 29, 12, tzinfo=UTC)
    times = [start + timedelta(milliseconds=7 * k) for k in range(101)]
    table = np.array(times, dtype=object).reshape(-1, 1)
    encoder = TableEncoder().fit(table)
    assert encoder.columns_[0].kind == "datetime"
    assert encoder.columns_[0].center == times[50].timestamp()
    np.testing.assert_allclose(encoder.transform(table)[:, 0], encode(np.arange(101)), atol=1e-4)


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "us", "ns"])
def test_dates_are_the_same_in_every_unit(unit: str) -> None:
    days = np.array(["2020-01-01", "2021-06-05", "NaT", "1950-01-01"], dtype="M8[D]").reshape(-1, 1)
    expected = TableEncoder().fit(days.astype(object)).transform(days.astype(object))
    table = days.astype(f"M8[{unit}]")
    np.testing.assert_array_equal(TableEncoder().fit(table).transform(table), expected)


def test_durations_are_seconds() -> None:
    encoder = TableEncoder().fit(np.array([[timedelta(hours=1)], [timedelta(hours=3)]], dtype=object))
    assert (encoder.columns_[0].kind, encoder.columns_[0].center) == ("duration", 7200.0)


def test_objects_that_are_all_numbers_are_numbers() -> None:
    table = np.array([[1], [2.5], [Decimal("3.25")], [np.float32(4.0)], [True]], dtype=object)
    plain = table.astype(np.float64)
    encoder = TableEncoder().fit(table)
    assert [column.kind for column in encoder.columns_] == ["number"]
    np.testing.assert_array_equal(encoder.transform(table), TableEncoder().fit(plain).transform(plain))


def test_booleans_are_one_column() -> None:
    table = np.array([[True], [False], [False], [False]])
    encoder = TableEncoder().fit(table)
    assert [column.kind for column in encoder.columns_] == ["boolean"]
    np.testing.assert_array_equal(encoder.transform(table)[:, 0], [2.0, 0.0, 0.0, 0.0])
    as_objects = TableEncoder().fit(table.astype(object))
    assert as_objects.columns_ == encoder.columns_
    np.testing.assert_array_equal(encoder.transform(table.astype(int)), encoder.transform(table))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 101])
@pytest.mark.parametrize("values", [2, 1000])
def test_quantiles_without_weights_are_those_with_equal_weights(n: int, values: int) -> None:
    x = np.random.default_rng(n).integers(0, values, size=n).astype(float)
    shares = [0.0, 0.25, 0.5, 0.7, 0.75, 1.0]
    assert quantiles(x, None, shares).tolist() == quantiles(x, np.ones(n), shares).tolist()
    assert quantiles(x, None, [0.5]) == np.median(x)


def test_several_threads_describe_a_large_table_as_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(0).normal(size=(300, 7))
    table[::9, 2] = np.nan
    weight = np.random.default_rng(1).random(300)
    expected = TableEncoder(pieces=4).fit(table, sample_weight=weight)
    monkeypatch.setattr("prunus.data.encoder._MANY_VALUES", 1)
    monkeypatch.setattr("prunus.data.encoder.get_num_threads", lambda: 3)
    assert TableEncoder(pieces=4).fit(table, sample_weight=weight).columns_ == expected.columns_
    table[5, 4] = np.inf
    with pytest.raises(ValueError, match=r"infinity .* in column 'x4'"):
        TableEncoder().fit(table)
