"""Trees that use weekdays, months and hours of dates, as code."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import export_python, export_sql
from tests.estimators.problems import classifier, regressor
from tests.render.running import clear, function, in_duckdb, in_sqlite, rows
from tests.tolerances import CURVES

RANDOM = np.random.default_rng(0)
SOLD = pd.Series(pd.Timestamp("2021-11-01") + pd.to_timedelta(RANDOM.integers(0, 3 * 365 * 24, size=1500), unit="h"))
FRAME = pd.DataFrame({"month": RANDOM.normal(size=1500), "sold": SOLD})
Y = (
    2.0 * (SOLD.dt.day_of_week >= 5) + np.cos(SOLD.dt.month / 2) + np.sin(SOLD.dt.hour / 4) + 0.3 * FRAME["month"]
).to_numpy() + 0.2 * RANDOM.normal(size=1500)
FRAME.loc[::20, "sold"] = pd.NaT
EDGES = [
    *("1900-02-28", "1900-03-01", "1969-12-31 23:59:59.999999", "1970-01-01", "2000-02-29 23:00", "2024-02-29"),
    *("2024-12-31 23:59:59", "2025-01-01", "2100-02-28 12:00", "2100-03-01"),
]
NEW = pd.concat(
    [FRAME[:60], pd.DataFrame({"month": 0.1, "sold": pd.to_datetime(EDGES, format="ISO8601")})], ignore_index=True
)


def units(tree: Any) -> set[Any]:
    return {column.unit for column in tree.encoder_.columns_} - {None}


@pytest.mark.parametrize(
    "options", [{"leaf": "linear"}, {"leaf": "additive", "pieces": 3}, {"max_split_features": 1}, {"leaf": "constant"}]
)
def test_numbers(options: dict[str, Any]) -> None:
    tree = regressor(routing="hard", max_epochs=20, **options).fit(FRAME, Y)
    assert units(tree) == {"weekday", "month", "hour"}
    new = NEW[clear(tree, NEW)]
    expected = tree.predict(new)
    predict = function(export_python(tree))
    assert_allclose([predict(row) for row in rows(new)], expected, rtol=0, atol=CURVES)
    statement = export_sql(tree, "t")
    assert_allclose([row[0] for row in in_sqlite(statement, new)], expected, rtol=0, atol=CURVES)


def test_other_databases() -> None:
    duckdb = pytest.importorskip("duckdb")
    tree = regressor(routing="hard", leaf="linear", max_epochs=20).fit(FRAME, Y)
    new = NEW[clear(tree, NEW)]
    found = [row[0] for row in in_duckdb(duckdb, export_sql(tree, "t"), new)]
    assert_allclose(found, tree.predict(new), atol=CURVES)


def test_classes() -> None:
    tree = classifier(routing="hard", leaf="linear", max_epochs=20).fit(FRAME, np.where(Y > 1.0, "a", "b"))
    assert units(tree)
    new = NEW[clear(tree, NEW)]
    predict = function(export_python(tree))
    assert [predict(row) for row in rows(new)] == tree.predict(new).tolist()
    assert [row[0] for row in in_sqlite(export_sql(tree, "t"), new)] == tree.predict(new).tolist()


def test_a_split_of_weekdays_names_them() -> None:
    sold = pd.Series(pd.date_range("2023-01-01", periods=800))
    frame = pd.DataFrame({"sold": sold})
    tree = regressor(routing="hard", depth=1, leaf="constant", max_epochs=50).fit(
        frame, 5.0 * (sold.dt.day_of_week == 6).to_numpy()
    )
    assert "weekday_of_sold" in export_python(tree)
    assert "'Sunday'" in export_sql(tree, "t")
    assert_allclose([row[0] for row in in_sqlite(export_sql(tree, "t"), frame)], tree.predict(frame), atol=CURVES)


def test_dates_with_a_zone_are_taken_in_utc() -> None:
    tree = regressor(routing="hard", leaf="linear", max_epochs=20).fit(FRAME, Y)
    predict = function(export_python(tree))
    late = datetime(2023, 6, 3, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    same = late.astimezone(UTC).replace(tzinfo=None)
    assert predict({"month": 0.1, "sold": late}) == predict({"month": 0.1, "sold": same})
    assert_allclose(
        predict({"month": 0.1, "sold": late}), tree.predict(NEW[:1].assign(month=0.1, sold=same)), atol=CURVES
    )
