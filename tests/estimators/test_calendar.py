"""Trees that learn from the weekdays, months and hours of dates."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from prunus import ArgminForestRegressor, ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, load, save
from prunus.data import outputs
from prunus.errors import ModelFileError
from tests.estimators.problems import made

KINDS: list[dict[str, Any]] = [{}, {"routing": "hard", "max_split_features": 1}, {"leaf": "additive"}]
UNITS = {"weekday", "month", "hour"}


def sales(n: int, *, effects: bool, seed: int = 0) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    """Hourly sales of two years, which may depend on weekday, season and hour."""
    random = np.random.default_rng(seed)
    sold = pd.Series(pd.Timestamp("2022-01-03") + pd.to_timedelta(random.integers(0, 730 * 24, size=n), unit="h"))
    frame = pd.DataFrame({"sold": sold, "size": random.normal(size=n)})
    y = frame["size"].to_numpy() + 0.5 * random.normal(size=n)
    if effects:
        day, hour = sold.dt.day_of_year.to_numpy(), sold.dt.hour.to_numpy()
        y += 1.5 * (sold.dt.day_of_week >= 5) + np.cos(2 * np.pi * day / 365) + np.sin(2 * np.pi * hour / 24)
    return frame, y


def tree(**options: Any) -> Any:
    given: dict[str, Any] = {"leaf": "linear", "depth": 3, "random_state": 0} | options
    return made(ArgminTreeRegressor, given)


def units(estimator: Any) -> set[Any]:
    return {column.unit for column in estimator.encoder_.columns_} - {None}


@pytest.mark.parametrize("options", KINDS)
def test_weekdays_seasons_and_hours_are_learned(options: dict[str, Any]) -> None:
    frame, y = sales(6000, effects=True)
    found = tree(**options).fit(frame[:4500], y[:4500])
    assert units(found) == UNITS
    # Without the calendar R^2 was below 0.55.
    assert found.score(frame[4500:], y[4500:]) > 0.83
    assert found.feature_importances_.shape == (2,)
    assert found.feature_importances_[0] > 0.4


def test_classifiers_and_forests_learn_them_too() -> None:
    frame, y = sales(4000, effects=True)
    found = ArgminTreeClassifier(leaf="linear", depth=2, random_state=0).fit(frame[:3000], y[:3000] > 0.5)
    assert found.score(frame[3000:], y[3000:] > 0.5) > 0.8
    forest = ArgminForestRegressor(n_trees=3, leaf="linear", depth=2, max_epochs=20, random_state=0, n_jobs=1)
    forest.fit(frame[:1500], y[:1500])
    assert units(found) == units(forest) == UNITS
    assert forest.score(frame[3000:], y[3000:]) > 0.7


@pytest.mark.parametrize("options", KINDS)
def test_dates_that_do_not_matter_change_nothing(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    frame, y = sales(600, effects=False)
    found = tree(max_epochs=20, **options).fit(frame, y)
    assert units(found) == set()
    monkeypatch.setattr(outputs, "meaningful_units", lambda *_: [])
    assert_array_equal(found.predict(frame), tree(max_epochs=20, **options).fit(frame, y).predict(frame))
    clusters = ArgminTreeClusterer(depth=1, max_epochs=2, random_state=0).fit(frame)
    assert [column.label for column in clusters.encoder_.columns_] == ["sold", "size"]


def test_files_and_further_rows_keep_the_calendar(tmp_path: Path) -> None:
    frame, y = sales(1500, effects=True)
    found = tree(max_epochs=5).fit(frame, y)
    save(found, tmp_path / "tree.prunus")
    again = load(tmp_path / "tree.prunus")
    assert again.encoder_.columns_ == found.encoder_.columns_
    assert_array_equal(again.predict(frame), found.predict(frame))
    again.set_params(warm_start=True).fit(frame[:500], y[:500])
    assert again.encoder_.columns_ == found.encoder_.columns_
    right = found.encoder_.get_state
    changes: list[tuple[str, Any]] = [("unit", "week"), ("unit", None), ("unit", []), ("category", "May")]
    for name, value in [*changes, ("category", None)]:
        state = right()
        next(column for column in state["columns"] if column["kind"] == "calendar")[name] = value
        found.encoder_.get_state = lambda state=state: state
        save(found, tmp_path / "tree.prunus")
        with pytest.raises(ModelFileError):
            load(tmp_path / "tree.prunus")
