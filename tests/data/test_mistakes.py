"""Errors say what must hold, what was given and what to do, with scikit-learn's messages where it has some."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from prunus import PrunusError
from prunus.data import TableEncoder

FRAME = pd.DataFrame({"size": [1.0, 2.0, 4.0], "color": ["red", "blue", "green"]})
FITTED = TableEncoder().fit(FRAME)


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (np.zeros(3), ValueError, "Expected 2D array, got 1D array instead(.|\n)*Reshape your data"),
        (np.float64(3), ValueError, "Expected 2D array, got scalar array"),
        (np.zeros((2, 2, 2)), ValueError, "Found array with dim 3, while dim <= 2 is required"),
        (np.zeros((0, 3)), ValueError, r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1"),
        (np.zeros((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required."),
        (pd.DataFrame({"a": []}), ValueError, r"Found array with 0 sample\(s\)"),
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
    with pytest.raises(error, match=words) as caught:
        TableEncoder().fit(table)
    assert isinstance(caught.value, PrunusError)


def test_another_number_of_columns() -> None:
    encoder = TableEncoder().fit(np.eye(4))
    with pytest.raises(ValueError, match="X has 3 features, but TableEncoder is expecting 4 features as input"):
        encoder.transform(np.eye(3))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (FRAME[["size"]], "seen at fit time, yet now missing:\n- color"),
        (FRAME.assign(extra=1), "unseen at fit time:\n- extra"),
        (FRAME[["color", "size"]], "must be in the same order"),
        (pl.DataFrame({"color": ["a"], "size": [1.0]}), "must be in the same order"),
    ],
)
def test_other_names_of_columns(frame: Any, words: str) -> None:
    with pytest.raises(ValueError, match="The feature names should match") as caught:
        FITTED.transform(frame)
    assert words in str(caught.value)


@pytest.mark.parametrize("table", [FRAME, pl.DataFrame({"size": [1.0, 2.0], "color": ["a", "b"]})], ids=type)
def test_infinity_in_transform(table: Any) -> None:
    infinite = table.assign(size=np.inf) if isinstance(table, pd.DataFrame) else table.with_columns(size=pl.lit(np.inf))
    with pytest.raises(ValueError, match=r"infinity .* column 'size'"):
        FITTED.transform(infinite)


def test_infinity_beside_nan_in_a_matrix() -> None:
    encoder = TableEncoder().fit(np.eye(3))
    with pytest.raises(ValueError, match=r"infinity .* column 'x2'"):
        encoder.transform(np.array([[np.nan, 1.0, -np.inf]]))


@pytest.mark.parametrize(
    "column",
    [
        [1.0, "abc", "def"],
        pd.Series(["abc", "def", None]),
        pd.Series(["abc", "def", None], dtype="category"),
        [None, "abc", 1.0],
    ],
    ids=["objects", "strings", "category", "after missing"],
)
def test_text_in_a_column_of_numbers(column: Any) -> None:
    with pytest.raises(ValueError, match=r"'size' must hold numbers, as in fit, got .*'abc'"):
        FITTED.transform(FRAME.assign(size=column))


def test_dates_in_a_column_of_numbers_and_the_reverse() -> None:
    dates = FRAME.assign(size=pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"]))
    with pytest.raises(ValueError, match=r"'size' must hold numbers, as in fit, got .*2020-01-01"):
        FITTED.transform(dates)
    with pytest.raises(ValueError, match=r"'size' must hold datetimes, as in fit, got 1\.0"):
        TableEncoder().fit(dates).transform(FRAME)


@pytest.mark.parametrize(
    ("weight", "error", "words"),
    [
        ([1.0, 2.0], ValueError, r"must have shape \(3,\)"),
        ([0.0, 0.0, 0.0], ValueError, "not zero for all rows"),
        ([1.0, -1.0, 1.0], ValueError, "not negative"),
        ([1.0, np.nan, 1.0], ValueError, "finite"),
        (["a", "b", "c"], TypeError, "array of numbers"),
    ],
)
def test_weights_that_cannot_be_used(weight: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        TableEncoder().fit(FRAME, sample_weight=weight)


@pytest.mark.parametrize("options", [{"max_categories": 0}, {"max_categories": 1.5}, {"clip": 0.0}, {"clip": np.inf}])
def test_options_that_cannot_be_used(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        TableEncoder(**options).fit(FRAME)


@pytest.mark.parametrize(
    "out",
    [np.zeros((3, 4)), np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32, order="F")],
    ids=["dtype", "shape", "order"],
)
def test_an_output_that_cannot_be_used(out: Any) -> None:
    with pytest.raises(ValueError, match="out must be a writeable C-contiguous float32 array"):
        FITTED.transform(FRAME, out=out)


def test_transform_before_fit() -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        TableEncoder().transform(FRAME)


def test_a_failed_fit_changes_nothing() -> None:
    encoder = TableEncoder().fit(FRAME)
    state = encoder.get_state()
    with pytest.raises(ValueError, match="infinity"):
        encoder.fit(np.array([[1.0], [np.inf]]))
    assert encoder.get_state() == state
