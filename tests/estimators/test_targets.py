"""What is to be predicted: labels and values of all kinds, and those that cannot be used."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import DataConversionWarning

from prunus.errors import InputValueError
from tests.estimators.problems import classifier, labels, regressor, table, values

X = table()
TEXT = labels(X, ["no", "yes"])
SOME = [None if one else "a" for one in labels(X)]


@pytest.mark.parametrize("names", [(0, 1), (-3, 7), (True, False), ("no", "yes"), (0.0, 2.0), (5, 9, 11), "abcdef"])
def test_labels_come_back_as_they_were(names: Any) -> None:
    y = labels(X, names)
    tree = classifier().fit(X, y)
    assert_array_equal(tree.classes_, np.unique(y))
    assert tree.predict(X).dtype == tree.classes_.dtype == y.dtype
    assert set(tree.predict(X).tolist()) <= set(names)


@pytest.mark.parametrize(
    "y",
    [
        TEXT.astype(object),
        TEXT.tolist(),
        pd.Series(TEXT, index=np.arange(len(X))[::-1]),
        pd.Series(TEXT, dtype="string"),
        pd.Series(TEXT, dtype="category"),
        pl.Series(TEXT),
        pl.Series(TEXT).cast(pl.Categorical),
    ],
    ids=["objects", "list", "series", "strings", "categories", "polars", "polars-categories"],
)
def test_text_in_any_container(y: Any) -> None:
    assert_array_equal(classifier().fit(X, y).predict(X), classifier().fit(X, TEXT).predict(X))


def test_names_of_classes_do_not_matter() -> None:
    assert_array_equal(*(classifier().fit(X, y).predict_proba(X) for y in (TEXT, labels(X), labels(X, (4, 10)))))


def test_many_classes() -> None:
    x = table(200)
    y = labels(x, range(10))
    tree = classifier(depth=4, max_epochs=60, leaf="linear").fit(x, y)
    assert tree.predict_proba(x).shape == (200, 10)
    assert tree.score(x, y) > 0.5


def test_a_single_class() -> None:
    tree = classifier().fit(X, ["only"] * len(X))
    assert set(tree.predict(X)) == set(tree.predict(X, hard=True)) == {"only"}
    assert_array_equal(tree.predict_proba(X), np.ones((len(X), 1)))


def test_a_class_of_one_row() -> None:
    y = np.zeros(len(X), dtype=int)
    y[3] = 1
    tree = classifier(early_stopping_rounds=2).fit(X, y)  # rows are held out, but cannot be in proportion
    assert tree.classes_.tolist() == [0, 1]


def test_probabilities_add_up_to_one() -> None:
    tree = classifier().fit(X, labels(X, "abc"))
    for hard in (False, True):
        assert_allclose(tree.predict_proba(X, hard=hard).sum(1), 1.0, rtol=1e-12)


def test_logarithms_are_those_of_the_probabilities() -> None:
    tree = classifier().fit(X, labels(X, "abc"))
    for hard in (False, True):
        assert_allclose(tree.predict_log_proba(X, hard=hard), np.log(tree.predict_proba(X, hard=hard)), rtol=1e-9)


def test_the_label_is_the_likeliest_one() -> None:
    tree = classifier().fit(X, labels(X, "abc"))
    for hard in (False, True):
        likeliest = tree.predict_proba(X, hard=hard).argmax(1)
        assert_array_equal(tree.predict(X, hard=hard), tree.classes_[likeliest])


def test_the_decision_function_of_two_classes_is_positive_for_the_second() -> None:
    tree = classifier().fit(X, TEXT)
    assert_array_equal(tree.predict(X) == "yes", tree.decision_function(X) > 0)


def test_the_decision_function_of_several_classes_is_largest_for_the_label() -> None:
    tree = classifier().fit(X, labels(X, "abc"))
    assert_array_equal(tree.predict(X), tree.classes_[tree.decision_function(X).argmax(1)])


def test_several_values() -> None:
    y = np.column_stack((values(X), X[:, 0] - 100, np.ones(len(X))))
    tree = regressor(max_epochs=60, leaf="linear").fit(X, y)
    for hard in (False, True):
        assert tree.predict(X, hard=hard).shape == y.shape
        assert_allclose(tree.predict(X, hard=hard)[:, 2], 1.0, rtol=1e-6)
    assert tree.score(X, y) > 0.5


def test_a_column_of_values_stays_a_column() -> None:
    flat = regressor().fit(X, values(X)).predict(X)
    assert_array_equal(regressor().fit(X, values(X)[:, None]).predict(X), flat[:, None])


@pytest.mark.parametrize(
    "y",
    [
        values(X).tolist(),
        values(X).astype(object),
        pd.Series(values(X), index=np.arange(len(X))[::-1]),
        pl.Series(values(X)),
        torch.from_numpy(values(X)),
    ],
    ids=["list", "objects", "series", "polars", "tensor"],
)
def test_values_in_any_container(y: Any) -> None:
    assert_array_equal(regressor().fit(X, y).predict(X), regressor().fit(X, values(X)).predict(X))


@pytest.mark.parametrize(("shift", "scale"), [(1e6, 1.0), (0.0, 1e-9), (-5.0, 1e12)])
def test_units_of_values_do_not_matter(shift: float, scale: float) -> None:
    plain = regressor().fit(X, values(X)).predict(X)
    assert_allclose(regressor().fit(X, shift + scale * values(X)).predict(X), shift + scale * plain, rtol=1e-5)


def test_values_that_are_all_the_same() -> None:
    tree = regressor().fit(X, np.full(len(X), 3.5))
    assert_array_equal(tree.predict(X), np.full(len(X), 3.5))


@pytest.mark.parametrize("tree", [classifier(), regressor()], ids=["classifier", "regressor"])
def test_no_targets(tree: Any) -> None:
    with pytest.raises(InputValueError, match="requires y to be passed, but the target y is None"):
        tree.fit(X, None)


@pytest.mark.parametrize("tree", [classifier(), regressor()], ids=["classifier", "regressor"])
def test_too_few_targets(tree: Any) -> None:
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[59, 60\]"):
        tree.fit(X, labels(X)[:-1])


@pytest.mark.parametrize(
    "y",
    [
        np.where(labels(X) == 1, np.nan, 0.0),
        np.array(SOME, dtype=object),
        pd.Series(SOME),
        pd.Series([None if one else 1 for one in labels(X)], dtype="Int64"),
        pl.Series(SOME),
    ],
    ids=["numbers", "objects", "pandas", "nullable", "polars"],
)
def test_missing_labels_are_refused_by_row(y: Any) -> None:
    with pytest.raises(InputValueError, match=f"y contains NaN or None, first in row {labels(X).argmax()}: leave out"):
        classifier().fit(X, y)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_refused(odd: float) -> None:
    with pytest.raises(ValueError, match=r"Input y contains (NaN|infinity)"):
        regressor().fit(X, np.where(labels(X) == 1, odd, 0.0))


def test_values_too_large_to_be_scaled_are_refused() -> None:
    with pytest.raises(InputValueError, match="y must have a finite variance"):
        regressor().fit(X, 1e200 * values(X))


def test_labels_that_are_measurements_are_refused() -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        classifier().fit(X, values(X))


def test_text_is_no_value() -> None:
    with pytest.raises(ValueError, match="could not convert string to float"):
        regressor().fit(X, TEXT)


def test_labels_of_two_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="y should be a 1d array"):
        classifier().fit(X, np.column_stack((labels(X), labels(X))))


def test_labels_in_one_column_are_warned_of() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        classifier().fit(X, labels(X)[:, None])


def test_values_of_three_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match="dim 3"):
        regressor().fit(X, np.zeros((len(X), 1, 1)))
