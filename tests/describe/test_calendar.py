"""Weekdays, months and hours of dates in explanations, pictures and on the page."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from prunus import ArgminTreeRegressor, export_rules, export_text
from prunus.describe import explain_rows, tree_summary
from prunus.describe.functions import grouped, leaf_curves, parted, read_curve, split_column
from prunus.render import plot_curves
from prunus.render.as_dict import export_dict
from tests.render.problems import dates, of_frame

FRAME, Y, NEW = dates()


def tree(**options: Any) -> Any:
    return of_frame(FRAME, Y, **options)


@pytest.fixture(scope="module")
def sundays() -> Any:
    """A tree whose only split is by the weekday."""
    sold = pd.Series(pd.date_range("2023-01-01", periods=800))
    frame = pd.DataFrame({"sold": sold})
    options: Any = {"routing": "hard", "depth": 1, "leaf": "constant", "max_epochs": 50, "random_state": 0}
    return ArgminTreeRegressor(**options, max_split_features=1).fit(frame, 5.0 * (sold.dt.day_of_week == 6).to_numpy())


def test_each_unit_has_a_curve_of_its_own() -> None:
    encoder = tree(max_epochs=1).encoder_
    parts = parted(encoder.columns_)
    assert list(parts) == [(0, None), (0, "weekday"), (0, "month"), (0, "hour"), (1, None)]
    weight = np.random.default_rng(1).normal(size=(2, len(encoder.columns_)))
    curves = {part: read_curve([encoder.columns_[i] for i in own], weight[:, own]) for part, own in parts.items()}
    assert curves[0, "weekday"].title == "weekday of sold"
    assert curves[0, "hour"].points == tuple(map(str, range(24)))
    levels = {"weekday": NEW["sold"].dt.day_name(), "month": NEW["sold"].dt.month_name(), "hour": NEW["sold"].dt.hour}
    expected = encoder.transform(NEW).astype(float)
    for (_, unit), own in list(parts.items())[1:4]:
        told = [None if pd.isna(level) else str(level).removesuffix(".0") for level in levels[str(unit)]]
        found = [curves[0, unit].at(level) for level in told]
        assert_allclose(found, expected[:, own] @ weight[:, own].T, atol=1e-5)


def test_curves_of_leaves_add_up() -> None:
    encoder = tree(max_epochs=1).encoder_
    shared = np.random.default_rng(1).normal(size=(1, len(encoder.columns_)))
    told = leaf_curves(encoder.columns_, shared)
    row = NEW.iloc[[41]]
    values = {None: float(np.datetime64("2000-02-29", "s").astype(int)), "weekday": "Tuesday", "month": "February"}
    values["hour"] = "0"
    found = sum(curve.at(0.5 if curve.name == "size" else values[curve.unit])[0] for curve in told.curves)
    assert found + told.offset[0] == pytest.approx((encoder.transform(row).astype(float) @ shared[0]).item(), abs=1e-5)


def test_a_split_of_one_unit_is_told_by_its_levels() -> None:
    columns = tree(max_epochs=1).encoder_.columns_
    own = [columns[i] for i in grouped(columns)[0]]
    weight = np.array([1.0 if column.category in ("Saturday", "Sunday") else 0.0 for column in own])
    split = split_column(own, weight, -0.5)
    assert split is not None
    assert (split.title, split.right, split.missing_left) == ("weekday of sold", ("Saturday", "Sunday"), True)
    with_month = weight + [column.category == "May" for column in own]
    assert split_column(own, with_month, -0.5) is None
    with_time = weight + [column.kind == "datetime" for column in own]
    assert split_column(own, with_time, -0.5) is None
    is_missing = np.array([float(column.kind == "missing") for column in own])
    only_missing = split_column(own, is_missing, -0.5)
    assert only_missing is not None
    assert (only_missing.unit, only_missing.missing_left) == (None, False)


def test_splits_rules_and_sentences_name_weekdays(sundays: Any) -> None:
    root = tree_summary(sundays).nodes[0]
    assert root.column is not None
    assert root.column.title == "weekday of sold"
    text = export_text(sundays)
    assert "weekday of sold is Sunday" in text
    assert "weekday of sold is not Sunday" in text
    assert "if weekday of sold is Sunday: value 5" in export_rules(sundays)
    assert "if weekday of sold is not Sunday: value " in export_rules(sundays)
    assert "weekday of day is Sunday" in export_rules(sundays, feature_names=["day"])
    (told,) = explain_rows(sundays, pd.DataFrame({"sold": pd.to_datetime(["2024-05-05"])}))
    assert told.path[0].sentence.startswith("weekday of sold = Sunday: ")
    found = export_dict(sundays)["tree"]["column"]
    assert (found["name"], found["unit"]) == ("sold", "weekday")


def test_rules_join_conditions_of_each_unit() -> None:
    frame = pd.DataFrame({"sold": pd.date_range("2021-01-01", periods=1200)})
    both = (frame["sold"].dt.day_of_week == 6) & (frame["sold"].dt.month == 5)
    y = 3.0 * (frame["sold"].dt.day_of_week == 6) + 2.0 * (frame["sold"].dt.month == 5) + 4.0 * both
    options: Any = {"routing": "hard", "depth": 2, "leaf": "constant", "max_epochs": 50, "random_state": 0}
    rules = export_rules(ArgminTreeRegressor(**options, max_split_features=1).fit(frame, y.to_numpy()))
    assert "weekday of sold is Sunday" in rules
    assert "month of sold is May" in rules


def test_sentences_name_only_levels_that_a_row_has() -> None:
    found = tree(leaf="linear", routing="hard")
    told = explain_rows(found, NEW[41:42], max_features=100)[0].text()
    assert "month of sold is February" in told
    assert "sold is a Tuesday" in told
    assert "Sunday" not in told
    assert "March" not in told


def test_plain_types_and_curves_are_made() -> None:
    found = tree(leaf="additive", depth=1)
    plain = export_dict(found)
    assert {curve.get("unit") for curve in plain["curves"]} == {None, "weekday", "month", "hour"}
    assert "month of sold is May" in json.dumps(plain)
    assert "weekday of sold: from " in export_text(found)
    axes = plot_curves(found, X=FRAME, axes=Figure().subplots(1, 5))
    titles = [ax.get_title() for ax in axes]
    assert set(titles) == {"sold", "size", "weekday of sold", "month of sold", "hour of sold"}
    assert len(axes[titles.index("hour of sold")].get_xticks()) == 24
    renamed = plot_curves(found, feature_names=["day", "size"], axes=Figure().subplots(1, 5))
    assert "weekday of day" in {ax.get_title() for ax in renamed}


def test_the_curve_of_levels_that_do_not_all_occur_has_a_value_for_others() -> None:
    found = tree(leaf="additive", depth=1)
    own = [c for c in found.encoder_.columns_ if c.unit == "weekday"]
    assert read_curve(own, np.ones((1, 7))).other is None
    assert read_curve(own[:5], np.ones((1, 5))).other == (0.0,)
    assert read_curve([replace(c, name="day") for c in own[:5]], np.ones((1, 5))).title == "weekday of day"
