"""Python functions: which values they take, and how they are written."""

import ast
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from prunus import ArgminTreeClusterer, export_python, export_sql
from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values
from tests.render.running import clear, function, in_sqlite, rows
from tests.tolerances import CURVES

X = table(200)
SAME = CURVES
FAR = 1e-4
"""Values near 1.7e9, of which single precision keeps this much of the difference."""


def hard(**options: Any) -> Any:
    return regressor(routing="hard", **options)


def test_a_row_is_a_dict_from_names_to_values() -> None:
    tree = hard(leaf="linear").fit(pd.DataFrame(X, columns=["a", "b b", "class"]), values(X))
    predict = function(export_python(tree))
    row = dict(zip(["a", "b b", "class"], X[0].tolist(), strict=True))
    assert predict(row) == pytest.approx(tree.predict(pd.DataFrame([row]))[0], rel=SAME)


def test_columns_without_names_are_numbered() -> None:
    tree = hard(leaf="linear").fit(X, values(X))
    assert "number('x0')" in export_python(tree)


def test_missing_values_are_none_nan_or_not_in_the_row() -> None:
    x = X.copy()
    x[::5, 1] = np.nan
    tree = hard(leaf="linear").fit(x, values(X))
    predict = function(export_python(tree))
    found = {predict({"x0": 1.0, "x2": 2.0, **also}) for also in ({}, {"x1": None}, {"x1": float("nan")})}
    assert len(found) == 1
    assert found.pop() == pytest.approx(tree.predict([[1.0, np.nan, 2.0]])[0], rel=SAME)


@pytest.mark.parametrize("kind", [int, np.float32, Decimal, str, bool])
def test_numbers_of_other_types(kind: Any) -> None:
    predict = function(export_python(hard(leaf="linear").fit(X, values(X))))
    assert predict({"x0": kind(1), "x1": kind(1), "x2": 0.0}) == predict({"x0": 1.0, "x1": 1.0, "x2": 0.0})


def test_dates_of_the_standard_library_and_seconds() -> None:
    days = pd.date_range("2020-01-01", periods=200)
    tree = hard(leaf="linear").fit(pd.DataFrame({"day": days}), np.arange(200.0) ** 1.5)
    predict = function(export_python(tree))
    day = datetime(2020, 3, 1, 12, 30)
    there = day.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=5)))
    wanted = tree.predict(pd.DataFrame({"day": [day]}))[0]
    for value in (day, day.replace(tzinfo=UTC), there, pd.Timestamp(day), day.replace(tzinfo=UTC).timestamp()):
        assert predict({"day": value}) == pytest.approx(wanted, rel=SAME)
    assert predict({"day": date(2020, 3, 1)}) == predict({"day": datetime(2020, 3, 1)})
    assert predict({"day": pd.NaT}) == predict({})


def test_durations_times_of_day_and_seconds() -> None:
    frame = pd.DataFrame({"long": pd.to_timedelta(np.arange(200.0) * 60, unit="s")})
    predict = function(export_python(hard(leaf="linear").fit(frame, np.arange(200.0))))
    assert predict({"long": timedelta(hours=1)}) == predict({"long": 3600}) == predict({"long": time(1)})


def test_categories_go_by_their_text() -> None:
    frame = pd.DataFrame({"size": pd.Series([1.0, 2.0, 30.5] * 40).astype("category")})
    tree = hard(leaf="linear").fit(frame, np.arange(120) % 3)
    predict = function(export_python(tree))
    assert predict({"size": 1}) == predict({"size": 1.0}) == predict({"size": "1"}) == predict({"size": np.float64(1)})
    assert predict({"size": 1}) != predict({"size": 2})


def test_large_numbers_with_small_steps_keep_their_digits() -> None:
    tree = hard(leaf="linear", max_epochs=20).fit(1.7e9 + X, 1.7e9 + values(X))
    predict = function(export_python(tree))
    found = [predict({f"x{j}": float(v) for j, v in enumerate(row)}) for row in 1.7e9 + X]
    assert_allclose(found, tree.predict(1.7e9 + X), rtol=0, atol=FAR)


def test_a_constant_tree_has_the_very_numbers_of_predict() -> None:
    tree = hard(depth=3, leaf="constant", max_epochs=20).fit(X, values(X))
    assert set(tree.predict(X)) >= {function(export_python(tree))({"x0": v, "x1": 0.0}) for v in (-1.0, 1.0)}


def test_several_outputs_are_a_list() -> None:
    tree = hard(leaf="additive").fit(X, np.column_stack((values(X), X[:, 0])))
    found = function(export_python(tree))({"x0": 0.1, "x1": 0.2, "x2": 0.3})
    assert_allclose(found, tree.predict([[0.1, 0.2, 0.3]])[0], atol=SAME)
    assert isinstance(found, list)


@pytest.mark.parametrize("names", [(3, 7), ("no", "yes"), (False, True), (0.0, 2.0), ("é", "日本", "")])
@pytest.mark.parametrize("leaf", ["constant", "linear"])
def test_labels_have_their_types(names: Any, leaf: str) -> None:
    tree = classifier(routing="hard", leaf=leaf).fit(X, labels(X, names))
    found = function(export_python(tree))({"x0": 0.1})
    assert found in names
    assert type(found) is type(names[0])


@pytest.mark.parametrize("leaf", ["constant", "linear", "additive"])
def test_one_class(leaf: str) -> None:
    tree = classifier(leaf=leaf, loss="cross_entropy").fit(X, ["only"] * len(X))
    assert function(export_python(tree, hard=True))({"x0": 0.1}) == "only"
    assert function(export_python(tree, hard=True, proba=True), "predict_proba")({"x0": 0.1}) == {"only": 1.0}
    frame = pd.DataFrame(X[:3], columns=["x0", "x1", "x2"])
    assert in_sqlite(export_sql(tree, "t", hard=True, proba=True), frame) == [("only", 1.0)] * 3


def test_exponents_are_limited() -> None:
    x = np.linspace(0, 1, 200)[:, None]
    tree = regressor(leaf="linear", loss="poisson", max_epochs=30).fit(x, np.exp(8 * x[:, 0]))
    predict = function(export_python(tree, hard=True))
    assert np.isfinite(predict({"x0": 1e300}))
    assert np.isfinite(predict({"x0": -1e300}))


def test_a_deep_tree() -> None:
    x = table(2000, 2)
    tree = hard(depth=9, pruning_strength=0.0, leaf="constant", max_epochs=1).fit(x, np.sin(9 * x[:, 0]) * x[:, 1])
    assert tree.get_depth() > 6
    predict = function(export_python(tree))
    found = [predict({"x0": a, "x1": b}) for a, b in x.tolist()]
    sure = clear(tree, x)
    assert (np.array(found)[sure] == tree.predict(x)[sure]).all()


def test_the_text_imports_nothing_and_is_one_function() -> None:
    frame = as_pandas(mixed(200))
    module = ast.parse(export_python(hard(leaf="linear").fit(frame, frame["count"])))
    assert [type(part).__name__ for part in module.body] == ["FunctionDef"]
    assert not [part for part in ast.walk(module) if isinstance(part, (ast.Import, ast.ImportFrom))]


def test_only_columns_that_matter_are_read() -> None:
    frame = as_pandas(mixed(200)).assign(constant=1.0)
    text = export_python(hard(leaf="constant", max_split_features=1, depth=1).fit(frame, frame["count"]))
    assert "number('count')" in text
    assert "constant" not in text
    assert "seconds" not in text


def test_a_soft_tree_follows_one_path_if_asked() -> None:
    frame = as_pandas(mixed(100))
    tree = regressor(leaf="linear").fit(frame, frame["count"])
    with pytest.raises(InputValueError, match=r'one that predicts along all routes\. Fit with routing="hard"'):
        export_python(tree)
    predict = function(export_python(tree, hard=True))
    assert_allclose([predict(row) for row in rows(frame)], tree.predict(frame, hard=True), rtol=SAME, atol=SAME)


def test_clusters_follow_one_path_anyway() -> None:
    tree = ArgminTreeClusterer(depth=2, max_epochs=3, leaf="mlp", random_state=0).fit(X)
    predict = function(export_python(tree))
    assert [predict({f"x{j}": v for j, v in enumerate(row)}) for row in X.tolist()] == tree.predict(X).tolist()


def test_trees_that_cannot_be_written() -> None:
    with pytest.raises(
        InputValueError, match="leaves must be constant, linear or additive for export_python, got 'mlp'"
    ):
        export_python(regressor(leaf="mlp").fit(X, values(X)), hard=True)
    with pytest.raises(InputValueError, match="splits must be linear for export_python"):
        export_python(regressor(split="mlp").fit(X, values(X)), hard=True)
    with pytest.raises(InputTypeError, match="estimator must be one of prunus, got str"):
        export_python("tree")
    with pytest.raises(NotFittedError):
        export_python(regressor())
    with pytest.raises(InputTypeError, match="hard must be True or False, got 'yes'"):
        export_python(hard().fit(X, values(X)), hard="yes")  # type: ignore[arg-type]
    with pytest.raises(InputValueError, match="proba must be False unless classes are predicted"):
        export_python(hard().fit(X, values(X)), proba=True)
