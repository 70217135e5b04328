"""Columns of text without values."""

import numpy as np
import pandas as pd
import pytest

from prunus.data import TableEncoder


@pytest.mark.parametrize("dtype", ["str", "string", "category", "object"])
def test_a_column_of_numbers_may_be_text_without_values(dtype: str) -> None:
    numbers = pd.DataFrame({"a": [1.0, 2.0, np.nan]})
    empty = pd.DataFrame({"a": pd.Series([None] * 3, dtype=dtype)})
    encoder = TableEncoder().fit(numbers)
    np.testing.assert_array_equal(encoder.transform(empty), encoder.transform(numbers.assign(a=np.nan)))
    assert TableEncoder().fit(empty).transform(empty).shape[0] == 3
