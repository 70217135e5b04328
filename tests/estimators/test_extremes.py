"""Values at the limits of numbers, dates and text: a tree is learned, predicts, is shown and is saved."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prunus import ArgminTreeClassifier, export_html, export_text, load, save
from prunus.errors import InputValueError
from tests.estimators.problems import regressor

N = 40
PLAIN = np.random.default_rng(0).normal(size=N)
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


def check_everything(tree: Any, x: Any, y: Any, folder: Path) -> None:
    expected = tree.predict(x)
    for predicted in (expected, tree.predict(x, hard=True)):
        assert predicted.dtype.kind != "f" or np.isfinite(predicted).all()
    assert export_text(tree)
    assert export_html(tree, folder / "tree.html", x, y).stat().st_size > 10_000
    save(tree, folder / "tree.prunus")
    np.testing.assert_array_equal(load(folder / "tree.prunus").predict(x), expected)


@pytest.mark.parametrize("pieces", [0, 3])
@pytest.mark.parametrize("x", TABLES.values(), ids=list(TABLES))
def test_extreme_tables(tmp_path: Path, x: Any, pieces: int) -> None:
    y = 3 * PLAIN
    check_everything(regressor(pieces=pieces, max_epochs=2).fit(x, y), x, y, tmp_path)


@pytest.mark.parametrize("y", [np.full(N, 1e17), np.full(N, 1e300), 1e17 + 16.0 * (np.arange(N) % 3), PLAIN * 1e150])
def test_extreme_targets(tmp_path: Path, y: Any) -> None:
    x = PLAIN[:, None]
    check_everything(regressor(max_epochs=2).fit(x, y), x, y, tmp_path)


def test_surrogates_in_labels(tmp_path: Path) -> None:
    x, y = PLAIN[:, None], np.where(PLAIN > 0, SURROGATE, "x")
    tree = ArgminTreeClassifier(depth=1, max_epochs=2, random_state=0).fit(x, y)
    check_everything(tree, x, y, tmp_path)


def test_a_target_beyond_float64_is_an_error() -> None:
    with pytest.raises(InputValueError, match="Input y contains a value too large for float64"):
        regressor().fit(PLAIN[:, None], np.array([10**400] * N, dtype=object))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "Input y contains NaN, first in row 3: leave out such rows"),
        (None, "Input y contains NaN, first in row 3: leave out such rows"),
        (-np.inf, "Input y contains infinity or a value too large for .*, first in row 3: leave out such rows"),
    ],
)
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_first_row_without_a_target_is_named(value: Any, message: str, outputs: int) -> None:
    y = np.tile(PLAIN[:, None], outputs).astype(object)
    y[3, -1] = y[7] = value
    with pytest.raises(InputValueError, match=message):
        regressor().fit(PLAIN[:, None], y if outputs > 1 else y[:, 0])


def test_labels_that_are_periods_are_an_error() -> None:
    y = pd.Series(pd.period_range("2020", periods=N, freq="M"))
    with pytest.raises(InputValueError, match="Unknown label type"):
        ArgminTreeClassifier().fit(PLAIN[:, None], y)


def test_targets_whose_variance_is_too_small_for_float64_are_scaled() -> None:
    y = PLAIN * 1e-200  # broke: they counted as constant, and predictions were off by 200 orders of magnitude
    predicted = regressor(max_epochs=2).fit(PLAIN[:, None], y).predict(PLAIN[:, None])
    assert np.abs(predicted).max() < 1e-198
