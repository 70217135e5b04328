"""Values at the limits of numbers, dates and text: a tree is learned, predicts, is shown and is saved."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prunus import export_html, export_text, load, save
from prunus.errors import InputValueError
from tests.estimators.problems import classifier, regressor

N = 40
PLAIN = np.random.default_rng(0).normal(size=N)
COLUMN = PLAIN[:, None]
LARGEST = np.finfo(np.float64).max
SURROGATE = "a\ud800b"


def objects(values: Any) -> Any:
    column = np.empty((N, 1), dtype=object)
    column[:, 0] = list(values)
    return column


TABLES: dict[str, Any] = {
    "largest": np.c_[np.sign(PLAIN) * LARGEST, PLAIN],
    "three large": np.c_[np.select([PLAIN > 0.5, PLAIN < -0.5], [LARGEST, -LARGEST], 0.0), PLAIN],
    "smallest": np.c_[PLAIN * 1e-310, PLAIN],
    "far dates": objects(np.arange(N).astype("M8[Y]") + 12_000),
    "far durations": objects(np.timedelta64(10**9 + i, "D") for i in range(N)),
    "periods": pd.DataFrame({"a": pd.period_range("2020", periods=N, freq="M"), "b": PLAIN}),
    "intervals": pd.DataFrame({"a": pd.interval_range(0, N), "b": PLAIN}),
    "surrogate names": pd.DataFrame(np.c_[PLAIN, PLAIN], columns=pd.Index([SURROGATE, "b"], dtype=object)),
    "surrogate levels": objects(np.where(PLAIN > 0, SURROGATE, "x")),
}
CASES: dict[str, Any] = {
    **{name: (regressor, x, 3 * PLAIN) for name, x in TABLES.items()},
    "large targets": (regressor, COLUMN, np.full(N, 1e17)),
    "larger targets": (regressor, COLUMN, np.full(N, 1e300)),
    "targets with small differences": (regressor, COLUMN, 1e17 + 16.0 * (np.arange(N) % 3)),
    "targets with large differences": (regressor, COLUMN, PLAIN * 1e150),
    "surrogate labels": (classifier, COLUMN, np.where(PLAIN > 0, SURROGATE, "x")),
}


@pytest.mark.parametrize("case", CASES)
def test_extreme_tables_and_targets(case: str, tmp_path: Path) -> None:
    make, x, y = CASES[case]
    for pieces in (0, 3):
        tree = make(pieces=pieces, max_epochs=2).fit(x, y)
        expected = tree.predict(x)
        for predicted in (expected, tree.predict(x, hard=True)):
            assert predicted.dtype.kind != "f" or np.isfinite(predicted).all()
        assert export_text(tree)
        assert export_html(tree, tmp_path / "tree.html", x, y).stat().st_size > 10_000
        save(tree, tmp_path / "tree.prunus")
        np.testing.assert_array_equal(load(tmp_path / "tree.prunus").predict(x), expected)


def test_targets_that_are_too_large_or_no_labels_are_errors() -> None:
    with pytest.raises(InputValueError, match="Input y contains a value too large for float64"):
        regressor().fit(COLUMN, np.array([10**400] * N, dtype=object))
    with pytest.raises(InputValueError, match="Unknown label type"):
        classifier().fit(COLUMN, pd.Series(pd.period_range("2020", periods=N, freq="M")))


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_first_row_without_a_target_is_named(outputs: int) -> None:
    nan, infinity = "NaN", "infinity or a value too large for .*"
    for value, words in ((np.nan, nan), (None, nan), (-np.inf, infinity)):
        y = np.tile(COLUMN, outputs).astype(object)
        y[3, -1] = y[7] = value
        with pytest.raises(InputValueError, match=f"Input y contains {words}, first in row 3: leave out such rows"):
            regressor().fit(COLUMN, y if outputs > 1 else y[:, 0])


def test_targets_whose_variance_is_too_small_for_float64_are_scaled() -> None:
    y = PLAIN * 1e-200  # broke: they counted as constant, and predictions were off by 200 orders of magnitude
    predicted = regressor(max_epochs=2).fit(COLUMN, y).predict(COLUMN)
    assert np.abs(predicted).max() < 1e-198
