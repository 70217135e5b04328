"""Columns for the weekdays, months and hours of dates."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.data import TableEncoder, outputs, statistics
from prunus.data.calendar import LEVELS, Unit, level_codes
from prunus.data.effects import EffectTargets
from prunus.data.statistics import TableStatistics

HOURS = pd.date_range("2022-01-03", "2023-12-31", freq="h")


def sample(n: int = 500, seed: int = 0) -> pd.DataFrame:
    """Rows of hourly dates over two years; some are missing."""
    random = np.random.default_rng(seed)
    sold = pd.Series(HOURS[random.integers(len(HOURS), size=n)])
    sold[random.random(n) < 0.1] = pd.NaT
    return pd.DataFrame({"size": random.normal(size=n), "sold": sold})


def units(encoder: TableEncoder) -> list[str]:
    return list(dict.fromkeys(column.unit for column in encoder.columns_ if column.unit is not None))


def labels(encoder: TableEncoder) -> list[str]:
    return [column.label for column in encoder.columns_]


def test_levels_are_those_of_the_calendar() -> None:
    days = np.arange(np.datetime64("1590-01-01"), np.datetime64("2410-01-01"))
    seconds = days.astype("M8[s]").astype(np.float64) + 3600 * (np.arange(len(days)) % 24)
    assert_array_equal(level_codes(seconds, "month"), days.astype("M8[M]").astype(int) % 12)
    assert_array_equal(level_codes(seconds, "weekday"), [day.weekday() for day in days.tolist()])
    assert_array_equal(level_codes(seconds, "hour"), np.arange(len(days)) % 24)
    for year in (1600, 1969, 2024, 9999):  # the last moment of a day belongs to it
        midnight = float(np.datetime64(f"{year}-05-01", "s").astype(np.int64))
        seconds = np.array([np.nextafter(midnight, -np.inf), midnight])
        assert level_codes(seconds, "month").tolist() == [3, 4]
        assert level_codes(seconds, "hour").tolist() == [23, 0]
        assert np.diff(level_codes(seconds, "weekday")).item() in (1, -6)


@pytest.mark.parametrize(
    ("sold", "expected"),
    [
        (pd.date_range("2024-01-01", periods=20), []),
        (pd.date_range("2024-01-01", periods=21), ["weekday"]),
        (pd.date_range("2024-01-01", "2025-05-31"), ["weekday"]),
        (pd.date_range("2024-01-01", "2025-06-01"), ["weekday", "month"]),
        (pd.date_range("2024-01-01", periods=71, freq="h"), []),
        (pd.date_range("2024-01-01", periods=72, freq="h"), ["hour"]),
        (pd.date_range("2024-01-01", periods=100, freq="7D"), ["month"]),
        (pd.date_range("2024-05-01 13:00", periods=30), ["weekday"]),
        ([*pd.date_range("2024-01-01", periods=15), pd.Timestamp("1900-01-01"), pd.Timestamp("9999-12-31")], []),
        (list(pd.to_datetime(["1961-05-01", "2004-09-01", "1987-01-01", "2019-03-01"])) * 50, []),
        (pd.date_range("2024-01-01", periods=90, freq="s"), []),
        ([pd.NaT] * 90, []),
    ],
)
def test_units_whose_levels_come_back_have_columns(sold: Any, expected: list[str]) -> None:
    assert units(TableEncoder().fit(pd.DataFrame({"sold": sold}))) == expected


def test_only_levels_that_occur_have_columns_and_labels_are_words() -> None:
    workdays = TableEncoder().fit(pd.DataFrame({"sold": pd.bdate_range("2024-01-01", periods=100)}))
    assert labels(workdays) == ["sold", *(f"sold is a {day}" for day in LEVELS["weekday"][:5])]
    encoder = TableEncoder().fit(sample())
    assert {"sold", "sold is a Sunday", "month of sold is May", "hour of sold is 13"} < set(labels(encoder))
    encoder.drop_calendar()
    assert labels(encoder) == ["size", "sold", "sold is missing"]
    assert encoder.transform(sample()).shape == (500, 3)


def test_a_row_has_its_own_levels_and_a_missing_date_has_none() -> None:
    frame = sample()
    encoder = TableEncoder(pieces=3).fit(frame)
    x, moments = encoder.transform(frame), frame["sold"].dt
    names = {"weekday": moments.day_name(), "month": moments.month_name(), "hour": moments.hour}
    for i, column in enumerate(encoder.columns_):
        if column.unit is None:
            continue
        own = names[column.unit].map(lambda level: "" if pd.isna(level) else str(level).removesuffix(".0"))
        assert_array_equal(x[:, i] != 0, (own == column.category).to_numpy())
        assert_allclose(x[x[:, i] != 0, i], 1 / max(np.sqrt((x[:, i] != 0).mean()), 0.2), rtol=1e-6)
        assert x[frame["sold"].isna().to_numpy(), i].max() == 0
    first = next(column for column in encoder.columns_ if column.kind == "calendar")
    encoded = first.encode_missing(), first.encode_value(0.0), first.encode_value(4 * 86400.0)
    assert encoded == (0.0, 0.0, first.encode(1.0))
    again = TableEncoder.from_state(json.loads(json.dumps(encoder.get_state())))
    assert again.columns_ == encoder.columns_
    assert_array_equal(again.transform(frame), x)


def test_every_kind_of_table_is_encoded_alike() -> None:
    frame = sample()
    encoder = TableEncoder().fit(frame)
    expected = encoder.transform(frame)
    east = timezone(timedelta(hours=-5))
    aware = [None if value is pd.NaT else value.replace(tzinfo=UTC).astimezone(east) for value in frame["sold"]]
    others: list[Any] = [
        pl.from_pandas(frame),
        frame.astype(object).where(frame.notna(), None),
        frame.assign(sold=aware),
        frame.assign(sold=frame["sold"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")),
        frame.assign(sold=frame["sold"].astype("datetime64[s]")),
    ]
    for other in others:
        assert_array_equal(encoder.transform(other), expected)
        assert TableEncoder().fit(other).columns_ == encoder.columns_
    days = HOURS.to_numpy()[::24].reshape(-1, 2)
    assert [column.feature for column in TableEncoder().fit(days).columns_ if column.category == "May"] == [0, 1]


def test_weights_count() -> None:
    frame = sample()
    weight = np.random.default_rng(1).integers(0, 3, size=len(frame)).astype(float)
    weighted = TableEncoder().fit(frame, sample_weight=weight)
    repeated = TableEncoder().fit(frame.loc[frame.index.repeat(weight.astype(int))])
    assert units(weighted) == ["weekday", "month", "hour"]
    assert labels(weighted) == labels(repeated)
    assert_allclose([c.scale for c in weighted.columns_], [c.scale for c in repeated.columns_], rtol=1e-6)
    holidays = np.where(frame["sold"].dt.day_name() == "Sunday", 0.0, 1.0)
    assert "sold is a Sunday" not in labels(TableEncoder().fit(frame, sample_weight=holidays))


@pytest.mark.parametrize("exact", [True, False])
def test_a_table_in_chunks_gives_the_same_columns(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not exact:
        monkeypatch.setattr(statistics, "_EXACT_ROWS", 300)
    frame = sample(3000)
    frame.loc[:120, "sold"] = pd.NaT
    parts = [TableStatistics() for _ in range(3)]
    for i in range(30):
        parts[i % 3].add(frame[100 * i : 100 * (i + 1)])
    found, expected = parts[0].merge(parts[1]).merge(parts[2]).encoder(), TableEncoder().fit(frame)
    assert labels(found) == labels(expected)
    scales = [[c.scale for c in one.columns_ if c.kind == "calendar"] for one in (found, expected)]
    assert_allclose(scales[0], scales[1], rtol=1e-12)
    assert len(scales[0]) == 7 + 12 + 24


def test_the_calendar_changes_no_other_column(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    colors = random.choice(["red", "green", "blue"], size=300)
    frame = pd.DataFrame({"size": random.normal(size=300), "color": colors, "member": random.random(300) < 0.3})
    brief = frame.assign(sold=pd.Timestamp("2024-01-01") + pd.to_timedelta(random.random(300), unit="D"))
    long = frame.assign(sold=pd.Timestamp("2024-01-01") + pd.to_timedelta(9 * np.arange(300.0), unit="h"))
    found = {name: TableEncoder(pieces=4).fit(table) for name, table in (("brief", brief), ("long", long))}
    assert (units(found["brief"]), units(found["long"])) == ([], ["weekday", "hour"])
    monkeypatch.setattr(outputs, "meaningful_units", lambda *_: [])
    short = TableEncoder(pieces=4).fit(long)
    kept = [i for i, column in enumerate(found["long"].columns_) if column.kind != "calendar"]
    assert [found["long"].columns_[i] for i in kept] == short.columns_
    assert found["long"].transform(long)[:, kept].tobytes() == short.transform(long).tobytes()


def test_units_on_which_the_target_does_not_depend_lose_their_columns() -> None:
    frame = sample(2000)
    noise = np.random.default_rng(2).normal(size=2000)
    causes: list[tuple[npt.NDArray[Any], list[Unit]]] = [
        (np.zeros(2000), []),
        ((frame["sold"].dt.day_of_week >= 5).to_numpy(), ["weekday"]),
        (((frame["sold"].dt.month == 5) | (frame["sold"].dt.hour == 13)).to_numpy(), ["month", "hour"]),
    ]
    for cause, expected in causes:
        encoder = TableEncoder().fit(frame)
        x = encoder.fit_effects(frame, EffectTargets((2.0 * cause + 0.5 * noise)[:, None]))
        assert units(encoder) == expected
        assert x.tobytes() == encoder.transform(frame).tobytes()
    several = TableEncoder().fit(frame)
    several.fit_effects(frame, EffectTargets(np.stack([noise, causes[1][0] + noise], 1), ("one", "other")))
    assert units(several) == ["weekday"]


def test_dates_of_python_far_away() -> None:
    sold = [datetime(1, 1, 1) + timedelta(days=40 * i) for i in range(400)] + [datetime(9999, 12, 31)]
    encoder = TableEncoder().fit(np.array(sold, dtype=object)[:, None])
    x = encoder.transform(np.array(sold, dtype=object)[:, None])
    months = [i for i, column in enumerate(encoder.columns_) if column.unit == "month"]
    assert [LEVELS["month"][k] for k in x[:, months].argmax(1)] == [f"{day:%B}" for day in sold]
