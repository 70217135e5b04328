"""Tables and targets as they come: mixed columns, missing values, other containers, and mistakes."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.exceptions import DataConversionWarning, NotFittedError

from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import as_pandas, as_polars, classifier, labels, mixed, regressor, table, values

X, V = table(), values(table())
COLUMNS = mixed()
COUNT = np.array(COLUMNS["count"], dtype=float)
TEXT, ABC = labels(X, ["no", "yes"]), labels(X, "abc")
SOME = [None if one else "a" for one in labels(X)]
HARD = pytest.mark.parametrize("hard", [False, True])


@pytest.mark.parametrize("frame", [as_pandas(COLUMNS), as_polars(COLUMNS)], ids=["pandas", "polars"])
@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
def test_a_mixed_frame_is_learned_from(frame: Any, leaf: str) -> None:
    tree = regressor(leaf=leaf, max_epochs=60).fit(frame, COUNT)
    assert tree.score(frame, COUNT) > 0.7
    assert tree.feature_names_in_.tolist() == list(COLUMNS)
    unseen = as_polars(COLUMNS | {"color": ["violet"] * len(COUNT)})
    for other in (unseen, as_polars({name: [None] * 3 for name in COLUMNS})):
        assert np.isfinite(tree.predict(other)).all()


@HARD
def test_pandas_and_polars_give_the_same_predictions(hard: bool) -> None:
    first, second = as_pandas(COLUMNS), as_polars(COLUMNS)
    of_pandas, of_polars = (classifier().fit(frame, COLUMNS["member"]) for frame in (first, second))
    for other in (of_polars.predict_proba(second, hard=hard), of_pandas.predict_proba(second, hard=hard)):
        assert_array_equal(of_pandas.predict_proba(first, hard=hard), other)


def test_missing_numbers_can_be_what_matters() -> None:
    x = X.copy()
    x[::2, 1] = np.nan
    y = np.arange(len(x)) % 2
    assert classifier(max_epochs=60, leaf="linear").fit(x, y).score(x, y) == 1.0


def test_lists_of_mixed_rows_and_tensors() -> None:
    rows: list[list[Any]] = [[1.5, "red"], [2.5, "blue"], [None, "red"], [0.5, "blue"]] * 3
    tree = classifier(max_epochs=60).fit(rows, [row[1] for row in rows])
    assert tree.predict([[1.0, "blue"], [1.0, "red"]]).tolist() == ["blue", "red"]
    tensors = regressor().fit(torch.from_numpy(X), torch.from_numpy(V))
    assert_array_equal(tensors.predict(torch.from_numpy(X)), regressor().fit(X, V).predict(X))
    for dtype in (np.float32, np.int64, np.int8, bool):
        x = (X > 0).astype(dtype)
        assert regressor().fit(x, V).predict(x).shape == (len(x),)


@HARD
def test_order_in_memory_does_not_matter(hard: bool) -> None:
    tree = classifier().fit(X, ABC)
    for x in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        assert_array_equal(tree.predict_proba(x, hard=hard), tree.predict_proba(X, hard=hard))


@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
def test_few_rows_and_columns(leaf: str) -> None:
    for rows in (1, 2):
        tree = regressor(leaf=leaf, max_epochs=100).fit(X[:rows], [3.0, 4.0][:rows])
        assert np.abs(tree.predict(X[:rows]) - [3.0, 4.0][:rows]).max() < 0.5
    x = X[:, :1]
    assert classifier(leaf=leaf, max_epochs=60).fit(x, x[:, 0] > 0).score(x, x[:, 0] > 0) > 0.9
    wide = table(20, 2_500)  # more columns than are decorrelated
    assert classifier(leaf=leaf, max_epochs=2).fit(wide, labels(wide)).predict(wide).shape == (20,)


def test_columns_that_are_constant_or_empty() -> None:
    tree = classifier().fit(np.ones((8, 2)), [0, 0, 0, 0, 0, 0, 1, 1])
    assert tree.predict([[1.0, 1.0], [5.0, -7.0]]).tolist() == [0, 0]
    assert tree.feature_importances_.tolist() == [0.0, 0.0]
    wide, moved = (np.column_stack((X, np.full(len(X), value))) for value in (7.0, 107.0))
    numbers = regressor(max_epochs=30).fit(wide, V)
    assert numbers.feature_importances_[-1] == 0.0
    assert_array_equal(numbers.predict(moved), numbers.predict(wide))
    empty = np.column_stack((X, np.full(len(X), np.nan)))
    assert np.isfinite(regressor().fit(empty, V).predict(empty)).all()


@HARD
def test_names_of_columns(hard: bool) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    tree = regressor().fit(frame, V)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but ArgminTreeRegressor was fitted w"):
        tree.predict(X, hard=hard)
    with pytest.raises(InputValueError, match="must be in the same order as they were in fit"):
        tree.predict(frame[["b", "a", "c"]], hard=hard)
    for kind in (pd.DataFrame, pl.DataFrame):
        named = regressor().fit(kind({"a": X[:, 0], "b": X[:, 1]}), V)
        with pytest.raises(InputValueError, match=r"(?s)Feature names unseen at fit time:\n- c\n.*now missing:\n- b"):
            named.predict(kind({"a": X[:, 0], "c": X[:, 1]}), hard=hard)
    tree.fit(X, V)
    assert not hasattr(tree, "feature_names_in_")
    assert tree.n_features_in_ == 3


METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "apply", "decision_path")


@pytest.mark.parametrize("method", METHODS)
def test_methods_refuse_other_tables_and_estimators_that_are_not_fitted(method: str) -> None:
    tree = classifier().fit(X, ABC)
    with pytest.raises(InputValueError, match="X has 2 features, but ArgminTreeClassifier is expecting 3 features"):
        getattr(tree, method)(X[:, :2])
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        getattr(classifier(), method)(X)
    for unfitted in (lambda: classifier().score(X, ABC), regressor().get_depth, regressor().get_n_leaves):
        with pytest.raises(NotFittedError, match="Call 'fit'"):
            unfitted()


@HARD
def test_tables_that_are_refused(hard: bool) -> None:
    with pytest.raises(InputTypeError, match=r"Use '\.toarray\(\)'"):
        classifier().fit(csr_array(X), ABC)
    with pytest.raises(InputValueError, match=r"Reshape your data either using array\.reshape\(-1, 1\)"):
        classifier().fit(X[:, 0], ABC)
    for odd in ([[1.0], [1.0, 2.0]], torch.from_numpy(X).requires_grad_()):
        with pytest.raises(InputValueError, match="X must be an array or a table whose rows have the same length: "):
            regressor().fit(odd, V)
    tree = regressor().fit(X, V)
    with pytest.raises(InputValueError, match="X has 4 features, but ArgminTreeRegressor is expecting 3 features"):
        tree.predict(table(columns=4), hard=hard)
    x = X.copy()
    x[4, 1] = np.inf
    with pytest.raises(InputValueError, match=r"infinity.*in column 'x1'"):
        tree.predict(x, hard=hard)


@pytest.mark.parametrize("names", [(0, 1), (-3, 7), (True, False), ("no", "yes"), (0.0, 2.0), (5, 9, 11), "abcdef"])
def test_labels_come_back_as_they_were(names: Any) -> None:
    y = labels(X, names)
    tree = classifier().fit(X, y)
    assert_array_equal(tree.classes_, np.unique(y))
    assert tree.predict(X).dtype == tree.classes_.dtype == y.dtype
    assert set(tree.predict(X).tolist()) <= set(names)


def test_containers_and_names_do_not_matter() -> None:
    expected = classifier().fit(X, TEXT)
    series = pd.Series(TEXT, index=np.arange(len(X))[::-1])
    given: list[Any] = [TEXT.astype(object), TEXT.tolist(), series, series.astype("string"), series.astype("category")]
    for y in [*given, pl.Series(TEXT), pl.Series(TEXT).cast(pl.Categorical)]:
        assert_array_equal(classifier().fit(X, y).predict(X), expected.predict(X))
    for y in (labels(X), labels(X, (4, 10))):
        assert_array_equal(classifier().fit(X, y).predict_proba(X), expected.predict_proba(X))
    numbers = regressor().fit(X, V).predict(X)
    for y in (V.tolist(), V.astype(object), pd.Series(V, index=series.index), pl.Series(V), torch.from_numpy(V)):
        assert_array_equal(regressor().fit(X, y).predict(X), numbers)
    assert_array_equal(regressor().fit(X, V[:, None]).predict(X), numbers[:, None])


def test_many_classes_and_few() -> None:
    x = table(200)
    y = labels(x, range(10))
    tree = classifier(depth=4, max_epochs=60, leaf="linear").fit(x, y)
    assert tree.predict_proba(x).shape == (200, 10)
    assert tree.score(x, y) > 0.5
    tree = classifier().fit(X, ["only"] * len(X))
    assert set(tree.predict(X)) == set(tree.predict(X, hard=True)) == {"only"}
    assert_array_equal(tree.predict_proba(X), np.ones((len(X), 1)))
    single = (np.arange(len(X)) == 3).astype(int)
    tree = classifier(early_stopping_rounds=2).fit(X, single)  # rows are held out, but cannot be in proportion
    assert tree.classes_.tolist() == [0, 1]


@HARD
def test_labels_scores_and_logarithms_are_those_of_the_probabilities(hard: bool) -> None:
    tree = classifier().fit(X, ABC)
    shares = tree.predict_proba(X, hard=hard)
    assert_allclose(shares.sum(1), 1.0, rtol=1e-12)
    assert_allclose(tree.predict_log_proba(X, hard=hard), np.log(shares), rtol=1e-9)
    assert_array_equal(tree.predict(X, hard=hard), tree.classes_[shares.argmax(1)])
    assert_array_equal(tree.predict(X), tree.classes_[tree.decision_function(X).argmax(1)])
    two = classifier().fit(X, TEXT)
    assert_array_equal(two.predict(X) == "yes", two.decision_function(X) > 0)


def test_several_values() -> None:
    y = np.column_stack((V, X[:, 0] - 100, np.ones(len(X))))
    tree = regressor(max_epochs=60, leaf="linear").fit(X, y)
    for hard in (False, True):
        assert tree.predict(X, hard=hard).shape == y.shape
        assert_allclose(tree.predict(X, hard=hard)[:, 2], 1.0, rtol=1e-6)
    assert tree.score(X, y) > 0.5


@pytest.mark.parametrize(("shift", "scale"), [(1e6, 1.0), (0.0, 1e-9), (-5.0, 1e12), (3.5, 0.0)])
def test_units_of_values_do_not_matter(shift: float, scale: float) -> None:
    plain = regressor().fit(X, V).predict(X)
    assert_allclose(regressor().fit(X, shift + scale * V).predict(X), shift + scale * plain, rtol=1e-5)


ODD: list[Any] = [np.where(labels(X) == 1, np.nan, 0.0), np.array(SOME, dtype=object), pd.Series(SOME), pl.Series(SOME)]
ODD.append(pd.Series([None if one else 1 for one in labels(X)], dtype="Int64"))
RAGGED, GRADIENTS = [[1.0], [1.0, 2.0]], torch.from_numpy(V).requires_grad_()


@pytest.mark.parametrize(
    ("make", "y", "message"),
    [
        *((make, None, "requires y to be passed, but the target y is None") for make in (classifier, regressor)),
        *((make, labels(X)[:-1], r"inconsistent numbers of samples: \[59, 60\]") for make in (classifier, regressor)),
        *((classifier, y, f"y contains NaN or None, first in row {labels(X).argmax()}: leave out") for y in ODD),
        *((regressor, np.where(V > 0, odd, 0.0), "Input y contains (NaN|infinity)") for odd in (np.nan, np.inf)),
        (regressor, 1e200 * V, "y must have a finite variance"),
        (classifier, V, "Unknown label type: continuous"),
        (regressor, TEXT, "could not convert string to float"),
        (classifier, np.column_stack((labels(X), labels(X))), "y should be a 1d array"),
        (regressor, np.zeros((len(X), 1, 1)), "dim 3"),
        *((regressor, y, "y must be an array of numbers: ") for y in (["a"] * 60, GRADIENTS, iter(V))),
        (regressor, pd.Series(["a"] * 60, dtype="category"), "y must be an array of numbers"),
        *((classifier, y, "y must be an array of classes: ") for y in (RAGGED, GRADIENTS, {"a": 1})),
    ],
)  # fmt: skip
def test_targets_that_are_refused(make: Any, y: Any, message: str) -> None:
    with pytest.raises((ValueError, InputTypeError), match=message):
        make().fit(X, y)


def test_targets_that_are_warned_of_or_differ_in_type() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        classifier().fit(X, labels(X)[:, None])
    days = labels(X, range(15)).astype("M8[D]")
    with pytest.raises(InputTypeError, match="y must be an array of the classes"):
        classifier().fit(X, days, eval_set=(X, days.astype(str)))
