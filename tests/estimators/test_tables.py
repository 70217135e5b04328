"""Tables as they come: mixed columns, missing values, other containers, and mistakes."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import as_pandas, as_polars, classifier, labels, mixed, regressor, table, values

X = table()
COLUMNS = mixed()
COUNT = np.array(COLUMNS["count"], dtype=float)


@pytest.mark.parametrize("frame", [as_pandas(COLUMNS), as_polars(COLUMNS)], ids=["pandas", "polars"])
@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
def test_a_mixed_frame_is_learned_from(frame: Any, leaf: str) -> None:
    tree = regressor(leaf=leaf, max_epochs=60).fit(frame, COUNT)
    assert tree.score(frame, COUNT) > 0.7


@pytest.mark.parametrize("hard", [False, True])
def test_pandas_and_polars_give_the_same_predictions(hard: bool) -> None:
    first, second = as_pandas(COLUMNS), as_polars(COLUMNS)
    of_pandas, of_polars = (classifier().fit(frame, COLUMNS["member"]) for frame in (first, second))
    assert_array_equal(of_pandas.predict_proba(first, hard=hard), of_polars.predict_proba(second, hard=hard))
    assert_array_equal(of_pandas.predict_proba(first, hard=hard), of_pandas.predict_proba(second, hard=hard))


def test_unseen_categories_are_predicted() -> None:
    tree = regressor().fit(as_pandas(COLUMNS), COUNT)
    unseen = as_polars(COLUMNS | {"color": ["violet"] * len(COUNT)})
    assert np.isfinite(tree.predict(unseen)).all()


def test_values_that_are_missing_only_later_are_predicted() -> None:
    tree = regressor().fit(as_pandas(COLUMNS), COUNT)
    missing = as_polars({name: [None] * 3 for name in COLUMNS})
    assert np.isfinite(tree.predict(missing)).all()


def test_missing_numbers_can_be_what_matters() -> None:
    x = X.copy()
    x[::2, 1] = np.nan
    y = np.arange(len(x)) % 2
    assert classifier(max_epochs=60, leaf="linear").fit(x, y).score(x, y) == 1.0


def test_lists_of_mixed_rows() -> None:
    rows: list[list[Any]] = [[1.5, "red"], [2.5, "blue"], [None, "red"], [0.5, "blue"]] * 3
    tree = classifier(max_epochs=60).fit(rows, [row[1] for row in rows])
    assert tree.predict([[1.0, "blue"], [1.0, "red"]]).tolist() == ["blue", "red"]


def test_tensors() -> None:
    tree = regressor().fit(torch.from_numpy(X), torch.from_numpy(values(X)))
    assert_array_equal(tree.predict(torch.from_numpy(X)), regressor().fit(X, values(X)).predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
def test_arrays_of_other_types(dtype: Any) -> None:
    x = (X > 0).astype(dtype)
    assert_array_equal(regressor().fit(x, values(X)).predict(x).shape, (len(x),))


def test_order_in_memory_does_not_matter() -> None:
    tree = classifier().fit(X, labels(X))
    for hard in (False, True):
        expected = tree.predict_proba(X, hard=hard)
        assert_array_equal(tree.predict_proba(np.asfortranarray(X), hard=hard), expected)
        assert_array_equal(tree.predict_proba(np.repeat(X, 2, axis=1)[:, ::2], hard=hard), expected)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
def test_one_and_two_rows(rows: int, leaf: str) -> None:
    tree = regressor(leaf=leaf, max_epochs=100).fit(X[:rows], [3.0, 4.0][:rows])
    assert np.abs(tree.predict(X[:rows]) - [3.0, 4.0][:rows]).max() < 0.5


def test_one_column() -> None:
    x = X[:, :1]
    assert classifier(max_epochs=60).fit(x, x[:, 0] > 0).score(x, x[:, 0] > 0) > 0.9


def test_columns_that_are_constant() -> None:
    tree = classifier().fit(np.ones((8, 2)), [0, 0, 0, 0, 0, 0, 1, 1])
    assert tree.predict([[1.0, 1.0], [5.0, -7.0]]).tolist() == [0, 0]
    assert tree.feature_importances_.tolist() == [0.0, 0.0]


def test_a_constant_column_more_changes_nothing_that_matters() -> None:
    wide = np.column_stack((X, np.full(len(X), 7.0)))
    tree = regressor(max_epochs=30).fit(wide, values(X))
    assert tree.feature_importances_[-1] == 0.0
    moved = np.column_stack((X, np.full(len(X), 107.0)))
    assert_array_equal(tree.predict(moved), tree.predict(wide))


def test_a_column_with_no_value_at_all() -> None:
    wide = np.column_stack((X, np.full(len(X), np.nan)))
    assert np.isfinite(regressor().fit(wide, values(X)).predict(wide)).all()


@pytest.mark.parametrize("columns", [2_500])
def test_more_columns_than_are_decorrelated(columns: int) -> None:
    x = table(20, columns)
    assert classifier(max_epochs=2).fit(x, labels(x)).predict(x).shape == (20,)


@pytest.mark.parametrize("frame", [as_pandas(COLUMNS), as_polars(COLUMNS)], ids=["pandas", "polars"])
def test_names_of_columns_are_kept(frame: Any) -> None:
    assert regressor().fit(frame, COUNT).feature_names_in_.tolist() == list(COLUMNS)


def test_a_table_without_names_has_none() -> None:
    tree = regressor().fit(as_pandas(COLUMNS), COUNT).fit(X, values(X))
    assert not hasattr(tree, "feature_names_in_")
    assert tree.n_features_in_ == 3


@pytest.mark.parametrize("hard", [False, True])
def test_an_array_after_a_frame_is_warned_of(hard: bool) -> None:
    tree = regressor().fit(pd.DataFrame(X, columns=["a", "b", "c"]), values(X))
    with pytest.warns(
        UserWarning, match="X does not have valid feature names, but ArgminTreeRegressor was fitted with"
    ):
        tree.predict(X, hard=hard)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_other_names_are_refused(kind: Any) -> None:
    tree = regressor().fit(kind({"a": X[:, 0], "b": X[:, 1]}), values(X))
    with pytest.raises(InputValueError, match=r"(?s)Feature names unseen at fit time:\n- c\n.*now missing:\n- b"):
        tree.predict(kind({"a": X[:, 0], "c": X[:, 1]}))


def test_names_in_another_order_are_refused() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(InputValueError, match="must be in the same order as they were in fit"):
        regressor().fit(frame, values(X)).predict(frame[["b", "a", "c"]])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "apply", "decision_path"])
def test_another_number_of_columns_is_refused(method: str) -> None:
    tree = classifier().fit(X, labels(X))
    with pytest.raises(InputValueError, match="X has 2 features, but ArgminTreeClassifier is expecting 3 features"):
        getattr(tree, method)(X[:, :2])


def test_another_number_of_columns_is_refused_by_hard_predictions() -> None:
    with pytest.raises(InputValueError, match="X has 4 features, but ArgminTreeRegressor is expecting 3 features"):
        regressor().fit(X, values(X)).predict(table(columns=4), hard=True)


def test_sparse_tables_are_refused_with_the_cure() -> None:
    with pytest.raises(InputTypeError, match=r"Use '\.toarray\(\)'"):
        classifier().fit(csr_array(X), labels(X))


def test_one_dimension_is_refused_with_the_cure() -> None:
    with pytest.raises(InputValueError, match=r"Reshape your data either using array\.reshape\(-1, 1\)"):
        classifier().fit(X[:, 0], labels(X))


@pytest.mark.parametrize("hard", [False, True])
def test_infinities_are_refused_by_column(hard: bool) -> None:
    tree = regressor().fit(X, values(X))
    x = X.copy()
    x[4, 1] = np.inf
    with pytest.raises(InputValueError, match=r"infinity.*in column 'x1'"):
        tree.predict(x, hard=hard)


@pytest.mark.parametrize(
    "method",
    ["predict", "predict_proba", "predict_log_proba", "decision_function", "apply", "decision_path", "score"],
)
def test_an_estimator_that_is_not_fitted_says_so(method: str) -> None:
    rows = (X, labels(X)) if method == "score" else (X,)
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        getattr(classifier(), method)(*rows)


@pytest.mark.parametrize("method", ["get_depth", "get_n_leaves"])
def test_a_tree_that_is_not_there_has_no_size(method: str) -> None:
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        getattr(regressor(), method)()
