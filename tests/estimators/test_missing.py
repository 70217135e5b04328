"""Missing values have a branch of their own."""

from typing import Any

import numpy as np
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


def people(problem: str, n: int = 1000, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """A table with missing values.

    In "decides" they are random, but the target is 3 more where they are: no number has that. In "between" the
    median has the least target, and missing values have more than all numbers. In "random" an important number is
    not known for 30 % of the rows; its squares have a mean far from that of 0.
    """
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"income": np.exp(random.normal(size=n)), "age": random.uniform(20, 80, size=n)})
    noise = NOISE * random.normal(size=n)
    missing = np.random.default_rng(seed + 1).random(n) < (0.2 if problem == "between" else 0.3)
    y = {
        "decides": 3.0 * missing + 0.02 * frame["age"],
        "between": np.where(missing, 5.0, np.abs(frame["age"] - 50) / 10),
        "random": 0.1 * (frame["age"] - 30),
    }[problem]
    column = "income" if problem == "decides" else "age"
    frame[column] = frame[column].mask(missing)
    return frame, np.asarray(y) + noise


def tree(**options: Any) -> Any:
    return ArgminTreeRegressor(random_state=0, **options)


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("problem", ["decides", "between", "random"])
def test_missing_values_are_sent_apart(problem: str, options: dict[str, Any]) -> None:
    found = tree(**options).fit(*people(problem))
    frame, y = people(problem, seed=10)
    missing = frame.isna().any(axis=1).to_numpy()
    error = found.predict(frame) - y
    others = np.sqrt(np.mean(error[~missing] ** 2))
    if problem == "random":  # they get the mean, and others are not disturbed
        assert abs(error[missing].mean()) < 0.25
        assert others < 2 * NOISE
    else:
        assert np.sqrt(np.mean(error[missing] ** 2)) < 1.15 * NOISE
        assert others < 0.65


@pytest.mark.parametrize("options", KINDS[::2], ids=str)
def test_missing_values_that_decide_a_class(options: dict[str, Any]) -> None:
    (frame, _), (new, _) = people("decides"), people("decides", seed=10)
    told, new_told = (np.where(part["income"].isna(), "not told", "told") for part in (frame, new))
    assert ArgminTreeClassifier(random_state=0, **options).fit(frame, told).score(new, new_told) > 0.99


@pytest.mark.parametrize("options", KINDS[:2], ids=str)
def test_the_split_is_told_as_what_it_is(options: dict[str, Any]) -> None:
    found = tree(**options).fit(*people("decides"))
    text, rules = export_text(found), export_rules(found)
    assert text.startswith("|--- income is not missing\n")
    assert "\n|--- income is missing\n" in text
    assert "if income is missing and " in rules
    (told,) = explain_rows(found, pd.DataFrame({"income": [np.nan], "age": [30.0]}))
    assert told.path[0].sentence == f"income is missing: {told.path[0].side}"
    assert told.reason_texts()[0].startswith("income is missing (")


def test_where_no_missing_values_arrive_none_are_told_of() -> None:
    text = export_text(tree(**KINDS[0]).fit(*people("between")))
    _, below = text.split("|--- age is not missing\n")
    branch, _ = below.split("|--- age is missing\n")
    assert len(branch.splitlines()) > 3
    assert "missing" not in branch


def test_the_curve_of_a_column_tells_what_missing_values_add() -> None:
    text = export_text(tree(leaf="additive", pieces=6, depth=0).fit(*people("decides")))
    (line,) = (line for line in text.splitlines() if line.strip().startswith("income:"))
    low, high, missing = (float(line.split(before)[1].split()[0]) for before in ("from ", " to ", ", "))
    assert line.endswith(" if missing")
    assert missing == pytest.approx(3.0, abs=0.2)
    assert -0.3 < low < high < 0.3


@pytest.mark.parametrize(("leaf", "pieces"), [("linear", 0), ("linear", 6), ("additive", 0), ("additive", 6)])
def test_a_number_that_is_missing_for_the_first_time_counts_as_the_median(leaf: str, pieces: int) -> None:
    frame, y = people("random")
    seen = frame["age"].notna().to_numpy()
    found = tree(leaf=leaf, pieces=pieces, depth=1, routing="hard", max_epochs=50).fit(frame[seen], y[seen])
    new = pd.DataFrame({"income": [1.0, 1.0], "age": [np.nan, frame["age"].median()]})
    first, second = found.predict(new)
    assert first == pytest.approx(second, abs=1e-5)
    predict = function(export_python(found))
    assert_allclose([predict(row) for row in rows(new)], [first, second], atol=CURVES)
