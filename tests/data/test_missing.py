"""Missing values of all types."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prunus.data import TableEncoder

MISSING_VALUES = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, Decimal("nan"), np.datetime64("NaT")]


@pytest.mark.parametrize("missing", MISSING_VALUES, ids=repr)
def test_a_missing_number_is_zero_and_has_an_indicator(missing: object) -> None:
    table = np.array([[1.0], [missing], [3.0], [8.0]], dtype=object)
    encoder = TableEncoder().fit(table)
    assert [column.label for column in encoder.columns_] == ["x0", "x0 is missing"]
    assert encoder.columns_[0].center == 3.0
    z = encoder.transform(table)
    assert z[1, 0] == 0.0
    np.testing.assert_array_equal(z[:, 1], [0.0, 2.0, 0.0, 0.0])


@pytest.mark.parametrize("missing", MISSING_VALUES, ids=repr)
def test_a_missing_category_is_a_level(missing: object) -> None:
    table = np.array([["a"], [missing], ["b"], ["b"]], dtype=object)
    encoder = TableEncoder().fit(table)
    assert [column.label for column in encoder.columns_] == ["x0 = a", "x0 = b", "x0 is missing"]
    np.testing.assert_array_equal(encoder.transform(table) > 0, [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0]])


@pytest.mark.parametrize("present", [True, np.datetime64("2020-01-01"), "a", 1], ids=repr)
def test_a_missing_value_does_not_change_what_a_column_is(present: object) -> None:
    kinds = []
    for values in ([present, present], [present, None], [present, float("nan")]):
        encoder = TableEncoder().fit(np.array([[value] for value in values], dtype=object))
        kinds.append(encoder.columns_[0].kind)
    assert len(set(kinds)) == 1


def test_a_value_missing_for_the_first_time_is_zero() -> None:
    table = np.array([[1.0, "a", True], [2.0, "b", False], [4.0, "c", True]], dtype=object)
    encoder = TableEncoder().fit(table)
    assert not any(column.kind == "missing" for column in encoder.columns_)
    assert not encoder.transform(np.array([[None, None, None]], dtype=object)).any()


@pytest.mark.parametrize("dtype", [float, object])
def test_a_column_without_values_is_zero(dtype: type) -> None:
    table: Any = np.full((5, 2), np.nan, dtype=dtype)
    table[:, 1] = range(5)
    encoder = TableEncoder().fit(table)
    z = encoder.transform(table)
    assert not z[:, 0].any()
    assert not z[:, 2].any()
    assert np.isfinite(encoder.transform(np.array([[3.0, 4.0]]))).all()


def test_indicators_follow_all_other_columns() -> None:
    table = np.array([[np.nan, 1.0, 2.0], [1.0, 2.0, np.nan], [2.0, 2.0, 4.0]])
    labels = [column.label for column in TableEncoder().fit(table).columns_]
    assert labels == ["x0", "x1", "x2", "x0 is missing", "x2 is missing"]


def test_masked_numbers_are_missing() -> None:
    table = np.array([[1.0], [np.nan], [3.0]])
    masked = np.ma.MaskedArray(np.array([[1], [7], [3]]), mask=np.isnan(table))
    encoder = TableEncoder().fit(table)
    assert TableEncoder().fit(masked).columns_ == encoder.columns_
    np.testing.assert_array_equal(encoder.transform(masked), encoder.transform(table))
