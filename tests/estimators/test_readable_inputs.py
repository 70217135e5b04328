"""Tables of all kinds and sizes that readable trees take, and mistakes that they tell of."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prunus import ReadableTreeClassifier, ReadableTreeRegressor, export_text
from prunus.errors import InputTypeError, InputValueError, PrunusError
from tests.estimators.problems import labels, table, values

X = table(120, 3)
Y = values(X)
KINDS = [ReadableTreeRegressor, ReadableTreeClassifier]


def regressor(**options: Any) -> ReadableTreeRegressor:
    return ReadableTreeRegressor(**{"max_leaf_nodes": 4, "random_state": 0, **options})


def classifier(**options: Any) -> ReadableTreeClassifier:
    return ReadableTreeClassifier(**{"max_leaf_nodes": 4, "random_state": 0, **options})


def test_one_class_is_always_predicted() -> None:
    tree = classifier().fit(X, ["only"] * len(X))
    assert tree.get_n_leaves() == 1
    assert set(tree.predict(X)) == {"only"}
    assert tree.predict_proba(X).tolist() == [[1.0]] * len(X)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_make_one_leaf(n: int) -> None:
    tree = regressor().fit(X[:n], Y[:n])
    assert tree.get_n_leaves() == 1
    assert tree.predict(X[:n]) == pytest.approx(Y[:n].mean(), abs=0.5 * (np.ptp(Y[:n]) or 1e-9))
    assert tree.family_[0].n_leaves == 1
    if n > 1:
        shares = classifier().fit(X[:n], np.arange(n)).predict_proba(X[:1])[0]
        assert shares == pytest.approx(np.full(n, 1 / n), abs=0.01)


@pytest.mark.parametrize(
    "rows", [np.ones((60, 3)), np.full((60, 2), np.nan), np.full((60, 1), "same", dtype=object)], ids=str
)
def test_columns_that_do_not_vary_make_one_leaf(rows: Any) -> None:
    tree = regressor().fit(rows, Y[:60])
    assert tree.get_n_leaves() == 1
    assert "No split was worth keeping" in export_text(tree)


def test_constant_values_make_one_leaf() -> None:
    tree = regressor().fit(X, np.full(len(X), 0.1))
    assert (tree.get_n_leaves(), set(tree.predict(X))) == (1, {0.1})


def test_a_column_without_values_is_not_used() -> None:
    rows = np.column_stack((np.full(len(X), np.nan), X))
    tree = regressor().fit(rows, Y)
    assert tree.feature_importances_[0] == 0
    assert tree.score(rows, Y) == pytest.approx(regressor().fit(X, Y).score(X, Y), abs=0.1)


def test_rows_without_values_have_a_side_at_each_split() -> None:
    rows = X.copy()
    rows[::4] = np.nan
    tree = regressor().fit(rows, np.where(np.arange(len(X)) % 4 == 0, 50.0, Y))
    assert "missing" in export_text(tree)
    assert tree.predict(np.full((1, 3), np.nan)) == pytest.approx(50, abs=2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_levels(kind: Any) -> None:
    random = np.random.default_rng(0)
    codes = random.integers(0, 1000, 3000)
    frame = pd.DataFrame({"town": [f"town {code}" for code in codes], "size": random.normal(size=3000)})
    high = codes % 3 == 0
    tree = kind(max_leaf_nodes=3, random_state=0).fit(frame, high if kind is ReadableTreeClassifier else 1.0 * high)
    assert tree.get_n_leaves() <= 3
    unseen = frame[:2].assign(town="elsewhere")
    assert np.isfinite(np.asarray(tree.predict(unseen), dtype=float)).all()


def test_many_columns() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(150, 2000))
    tree = regressor(max_leaf_nodes=2, max_split_features=1).fit(rows, 3.0 * (rows[:, 1234] > 0))
    assert [split.terms[0].feature for split in tree.record_.splits.values()] == [1234]
    assert tree.score(rows, 3.0 * (rows[:, 1234] > 0)) > 0.95


def test_strings_booleans_dates_and_durations() -> None:
    n = np.arange(200)
    frame = pd.DataFrame(
        {
            "color": np.array(["red", "blue"])[n % 2],
            "member": n % 3 == 0,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(n, unit="D"),
            "took": pd.to_timedelta(n % 7, unit="h"),
        }
    )
    targets = {
        "color is red": 1.0 * (n % 2 == 0),
        "member is true": 1.0 * (n % 3 == 0),
        "since >= 2020-03-21": 1.0 * (n >= 80),
        "took >= 14400 s": 1.0 * (n % 7 >= 4),
    }
    for words, y in targets.items():
        tree = regressor(max_leaf_nodes=2, max_split_features=1).fit(frame, y)
        assert tree.score(frame, y) == 1
        (column, *_) = words.split()
        assert column in export_text(tree)


def test_numbers_of_any_size() -> None:
    plain = regressor().fit(X, Y).score(X, Y)
    for scale in (1e-300, 1e-30, 1e30, 1e300):
        tree = regressor().fit(X * scale, Y)
        assert tree.score(X * scale, Y) == pytest.approx(plain, abs=0.1)
    for shift in (1e6, 1e9, 1e12):
        tree = regressor().fit(X, Y + shift)
        assert tree.score(X, Y + shift) == pytest.approx(plain, abs=0.1)


@pytest.mark.parametrize("option", ["max_depth", "depth"])
@pytest.mark.parametrize("kind", KINDS)
def test_options_of_other_trees_suggest_the_one_that_is_meant(kind: Any, option: str) -> None:
    message = f"{kind.__name__} has no option '{option}'. Use 'max_leaf_nodes'"
    with pytest.raises(InputTypeError, match=message):
        kind(**{option: 3})
    with pytest.raises(InputValueError, match=message):
        kind().set_params(**{option: 3})


@pytest.mark.parametrize(
    "options",
    [
        {"max_leaf_nodes": 0},
        {"max_leaf_nodes": "all"},
        {"max_leaf_nodes": 2.5},
        {"max_split_features": 0},
        {"max_leaf_features": -1},
        {"min_samples_leaf": 0},
        {"min_samples_leaf": 0.1},
        {"random_state": "seed"},
        {"n_jobs": 1.5},
        {"n_jobs": 0},
    ],
    ids=str,
)
def test_wrong_options(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=name):
        regressor(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("rows", "y", "message"),
    [
        (X[:0], Y[:0], "0 sample"),
        (X[:, :0], Y, "0 feature"),
        (X[0], Y[:3], "2D array"),
        (np.where(X > 1, np.inf, X), Y, "infin"),
        (X, np.where(Y > 1, np.nan, Y), "NaN"),
        (X, np.where(Y > 1, np.inf, Y), "infin"),
        (X, Y[:50], "120"),
        (X, None, "y"),
        (X, Y * 1e300, "y must have a finite variance"),
    ],
)
def test_wrong_rows(rows: Any, y: Any, message: str) -> None:
    with pytest.raises((PrunusError, ValueError), match=message):
        regressor().fit(rows, y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(120), "sample_weight must .* at least one non-zero number"),
        (-np.ones(120), "egative"),
        (np.ones(7), "sample_weight"),
        (np.full(120, np.nan), "NaN"),
    ],
)
def test_wrong_weights(weight: Any, message: str) -> None:
    with pytest.raises((PrunusError, ValueError), match=message):
        regressor().fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("n", [0, 99, True, 2.5, "2", None])
def test_sizes_that_are_not_in_the_family(n: Any) -> None:
    tree = regressor().fit(X, Y)
    with pytest.raises(
        InputValueError,
        match=re.escape(f"n must be a number of leaves in family_, 1 to {len(tree.family_)}, got {n!r}"),
    ):
        tree.with_leaves(n)


def test_other_columns_are_told_of() -> None:
    tree = regressor().fit(X, Y)
    with pytest.raises(InputValueError, match="X has 2 features, but ReadableTreeRegressor is expecting 3"):
        tree.predict(X[:, :2])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = regressor().fit(frame, Y)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame[["b", "a", "c"]])
    with pytest.raises(ValueError, match="infin"):
        tree.predict(np.full((1, 3), np.inf))


def test_classes_of_regression_are_refused() -> None:
    with pytest.raises(ValueError, match="continuous"):
        classifier().fit(X, Y)


def test_two_columns_that_say_the_same() -> None:
    tree = classifier().fit(np.column_stack((X[:, 0], X[:, 0])), labels(X, ("no", "yes")))
    assert all(
        len({term.feature for term in split.terms}) == len(split.terms) for split in tree.record_.splits.values()
    )
