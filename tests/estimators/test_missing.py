"""Missing values have a branch of their own."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import ArgminTreeClassifier, ArgminTreeRegressor, export_python, export_rules, export_text
from prunus.describe import explain_rows
from tests.render.running import function, rows
from tests.tolerances import CURVES

NOISE = 0.3
KINDS: list[dict[str, Any]] = [
    {"routing": "hard", "max_split_features": 1, "depth": 3},
    {"routing": "hard", "max_split_features": 1, "depth": 3, "pieces": 4},
    {"routing": "hard", "leaf": "linear", "depth": 2},
    {"routing": "soft", "depth": 3},
    {"routing": "soft", "leaf": "linear", "depth": 2},
    {"leaf": "additive", "pieces": 6, "depth": 1},
]


def people(n: int, seed: int) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    random = np.random.default_rng(seed)
    columns = {"income": np.exp(random.normal(size=n)), "age": random.uniform(20, 80, size=n)}
    return pd.DataFrame(columns), NOISE * random.normal(size=n)


def missing_decides(n: int = 1000, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Missing values are random, but the target is 3 more where they are: no number has that."""
    frame, noise = people(n, seed)
    missing = np.random.default_rng(seed + 1).random(n) < 0.3
    frame["income"] = frame["income"].mask(missing)
    return frame, 3.0 * missing + 0.02 * frame["age"].to_numpy() + noise


def between_low_and_high(n: int = 1000, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """The median has the least target, and missing values have more than all numbers."""
    frame, noise = people(n, seed)
    missing = np.random.default_rng(seed + 1).random(n) < 0.2
    y = np.where(missing, 5.0, np.abs(frame["age"] - 50) / 10) + noise
    frame["age"] = frame["age"].mask(missing)
    return frame, y


def missing_at_random(n: int = 1000, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """An important number that is not known for 30 % of the rows; its squares have a mean far from that of 0."""
    frame, noise = people(n, seed)
    y = 0.1 * (frame["age"] - 30) + noise
    frame["age"] = frame["age"].mask(np.random.default_rng(seed + 1).random(n) < 0.3)
    return frame, y.to_numpy()


def tree(**options: Any) -> Any:
    return ArgminTreeRegressor(random_state=0, **options)


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("problem", [missing_decides, between_low_and_high])
def test_missing_values_are_sent_apart(problem: Any, options: dict[str, Any]) -> None:
    found = tree(**options).fit(*problem())
    frame, y = problem(seed=10)
    missing = frame.isna().any(axis=1).to_numpy()
    error = found.predict(frame) - y
    assert np.sqrt(np.mean(error[missing] ** 2)) < 1.15 * NOISE
    assert np.sqrt(np.mean(error[~missing] ** 2)) < 0.65


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_values_missing_at_random_get_the_mean_and_others_are_not_disturbed(options: dict[str, Any]) -> None:
    found = tree(**options).fit(*missing_at_random())
    frame, y = missing_at_random(seed=10)
    missing = frame["age"].isna().to_numpy()
    error = found.predict(frame) - y
    assert abs(error[missing].mean()) < 0.25
    assert np.sqrt(np.mean(error[~missing] ** 2)) < 2 * NOISE


@pytest.mark.parametrize("options", KINDS[::2], ids=str)
def test_missing_values_that_decide_a_class(options: dict[str, Any]) -> None:
    frame, _ = missing_decides()
    y = np.where(frame["income"].isna(), "not told", "told")
    found = ArgminTreeClassifier(random_state=0, **options).fit(frame, y)
    new, _ = missing_decides(seed=10)
    assert found.score(new, np.where(new["income"].isna(), "not told", "told")) > 0.99


@pytest.mark.parametrize("options", [option for option in KINDS if option.get("max_split_features")], ids=str)
def test_the_split_is_told_as_what_it_is(options: dict[str, Any]) -> None:
    found = tree(**options).fit(*missing_decides())
    text, rules = export_text(found), export_rules(found)
    assert text.startswith("|--- income is not missing\n")
    assert "\n|--- income is missing\n" in text
    assert "if income is missing and " in rules
    (told,) = explain_rows(found, pd.DataFrame({"income": [np.nan], "age": [30.0]}))
    assert told.path[0].sentence == f"income is missing: {told.path[0].side}"
    assert told.reason_texts()[0].startswith("income is missing (")


def test_where_no_missing_values_arrive_none_are_told_of() -> None:
    text = export_text(tree(routing="hard", max_split_features=1, depth=3).fit(*between_low_and_high()))
    _, below = text.split("|--- age is not missing\n")
    branch, _ = below.split("|--- age is missing\n")
    assert len(branch.splitlines()) > 3
    assert "missing" not in branch


def test_the_curve_of_a_column_tells_what_missing_values_add() -> None:
    text = export_text(tree(leaf="additive", pieces=6, depth=0).fit(*missing_decides()))
    (line,) = (line for line in text.splitlines() if line.strip().startswith("income:"))
    low, high, missing = (float(line.split(before)[1].split()[0]) for before in ("from ", " to ", ", "))
    assert line.endswith(" if missing")
    assert missing == pytest.approx(3.0, abs=0.2)
    assert -0.3 < low < high < 0.3


@pytest.mark.parametrize("leaf", ["linear", "additive"])
@pytest.mark.parametrize("pieces", [0, 6])
def test_a_number_that_is_missing_for_the_first_time_counts_as_the_median(leaf: str, pieces: int) -> None:
    frame, y = missing_at_random()
    seen = frame["age"].notna().to_numpy()
    found = tree(leaf=leaf, pieces=pieces, depth=1, routing="hard", max_epochs=50).fit(frame[seen], y[seen])
    new = pd.DataFrame({"income": [1.0, 1.0], "age": [np.nan, frame["age"].median()]})
    first, second = found.predict(new)
    assert first == pytest.approx(second, abs=1e-5)
    predict = function(export_python(found))
    assert_allclose([predict(row) for row in rows(new)], [first, second], atol=CURVES)
