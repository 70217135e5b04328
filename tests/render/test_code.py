"""Trees of all kinds as SQL statements and Python functions, which predict what the tree does."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import export_python, export_sql
from tests.estimators.problems import classifier, regressor
from tests.render.problems import EXAMPLES, dates, example, of_frame, towns
from tests.render.running import clear, function, in_duckdb, in_sqlite, rows
from tests.tolerances import CURVES

WRITTEN = [name for name in EXAMPLES if not name.startswith(("networks", "exponential", "readable"))]


def columns(tree: Any, frame: pd.DataFrame, language: str, *, proba: bool) -> list[list[Any]]:
    """Predictions and then probabilities, as exported code has them."""
    if language != "python":
        statement = export_sql(tree, "t", hard=True, proba=proba)
        run = in_sqlite if language == "sqlite" else lambda *given: in_duckdb(pytest.importorskip("duckdb"), *given)
        return [list(column) for column in zip(*run(statement, frame), strict=True)]
    predict = function(export_python(tree, hard=True))
    found = [predict(row) for row in rows(frame)]
    listed = [list(column) for column in zip(*found, strict=True)] if isinstance(found[0], list) else [found]
    if proba:
        shares = function(export_python(tree, hard=True, proba=True), "predict_proba")
        assert list(shares(rows(frame)[0])) == tree.classes_.tolist()
        listed += [list(column) for column in zip(*(shares(row).values() for row in rows(frame)), strict=True)]
    return listed


def assert_written(tree: Any, frame: pd.DataFrame, language: str, atol: float = CURVES) -> None:
    """Exported code predicts what the tree predicts along one path."""
    frame = frame[clear(tree, frame)]
    is_classes, is_cluster = hasattr(tree, "classes_"), hasattr(tree, "n_clusters_")
    found = columns(tree, frame, language, proba=is_classes)
    expected = tree.predict(frame) if is_cluster else tree.predict(frame, hard=True)
    if is_classes or is_cluster:
        assert found[0] == expected.tolist()
    else:
        expected = expected.reshape(len(frame), -1)
        assert_allclose(np.array(found).T, expected, rtol=0, atol=atol * max(1.0, np.abs(expected).max()))
    if is_classes:
        assert_allclose(np.array(found[1:]).T, tree.predict_proba(frame, hard=True), rtol=0, atol=atol)


@pytest.mark.parametrize("language", ["python", "sqlite", "duckdb"])
@pytest.mark.parametrize("name", WRITTEN)
def test_code_predicts_the_same(name: str, language: str) -> None:
    assert_written(*example(name), language)


@pytest.mark.parametrize("options", [{"leaf": "linear"}, {"leaf": "additive", "pieces": 3}, {"max_split_features": 1}])
def test_numbers_that_differ_little_are_measured_from_their_mean(options: dict[str, Any]) -> None:
    frame, y, new = towns()
    tree = of_frame(frame, 5.0 + 1e-9 * y, routing="hard", max_epochs=20, **options)
    assert "effect" in {column.kind for column in tree.encoder_.columns_}
    for language in ("python", "sqlite"):
        assert_written(tree, new, language, atol=1e-14)


@pytest.mark.parametrize("made", [dates, towns])
def test_classes_by_dates_and_many_levels(made: Any) -> None:
    frame, y, new = made()
    names = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    tree = classifier(routing="hard", leaf="linear", max_epochs=20).fit(frame, names)
    for language in ("python", "sqlite"):
        assert_written(tree, new, language)


def test_thousands_of_levels() -> None:
    codes = np.random.default_rng(1).integers(4000, size=12_000)
    frame = pd.DataFrame({"town": codes.astype(str)})
    tree = regressor(routing="hard", max_epochs=3).fit(frame, np.sin(codes) + 0.1 * np.cos(np.arange(12_000)))
    assert_written(tree, frame[:50], "sqlite")


def test_a_split_of_weekdays_names_them() -> None:
    frame = pd.DataFrame({"sold": pd.date_range("2023-01-01", periods=800)})
    sundays = 5.0 * (frame["sold"].dt.day_of_week == 6)
    tree = of_frame(frame, sundays, routing="hard", depth=1, leaf="constant", max_epochs=50, max_split_features=1)
    assert "weekday_of_sold" in export_python(tree)
    assert "'Sunday'" in export_sql(tree, "t")
    assert_written(tree, frame, "sqlite")


def test_dates_with_a_zone_are_taken_in_utc() -> None:
    frame, y, new = dates()
    tree = of_frame(frame, y, routing="hard", leaf="linear")
    predict = function(export_python(tree))
    late = datetime(2023, 6, 3, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    same = late.astimezone(UTC).replace(tzinfo=None)
    assert predict({"size": 0.1, "sold": late}) == predict({"size": 0.1, "sold": same})
    expected = tree.predict(new[:1].assign(size=0.1, sold=same))
    assert_allclose(predict({"size": 0.1, "sold": late}), expected, atol=1e2 * CURVES)
