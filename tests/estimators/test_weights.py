"""Weights of rows and of classes."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.errors import InputTypeError, InputValueError
from prunus.fitting.rows import Rows, merge_rows
from tests.estimators.problems import LEAVES, Floats, as_pandas, classifier, labels, mixed, regressor, table, values
from tests.tolerances import SAME_TRAINING

X = table(30)


def whole(n: int = len(X), *, seed: int = 3) -> Floats:
    """Whole numbers from 0 to 3."""
    return np.random.default_rng(seed).integers(0, 4, size=n).astype(float)


def repeated(rows: Any, weight: Floats) -> Any:
    return np.repeat(rows, weight.astype(int), axis=0)


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_row_of_weight_two_is_the_row_twice_for_values(leaf: str) -> None:
    weight, y = whole(), values(X)
    weighted = regressor(leaf=leaf).fit(X, y, sample_weight=weight)
    twice = regressor(leaf=leaf).fit(repeated(X, weight), repeated(y, weight))
    for hard in (False, True):
        assert_array_equal(weighted.predict(X, hard=hard), twice.predict(X, hard=hard))


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_row_of_weight_two_is_the_row_twice_for_classes(leaf: str) -> None:
    weight, y = whole(), labels(X, "abc")
    weighted = classifier(leaf=leaf).fit(X, y, sample_weight=weight)
    twice = classifier(leaf=leaf).fit(repeated(X, weight), repeated(y, weight))
    for hard in (False, True):
        assert_array_equal(weighted.predict_proba(X, hard=hard), twice.predict_proba(X, hard=hard))


def test_a_row_of_weight_two_is_the_row_twice_in_a_mixed_frame() -> None:
    frame = as_pandas(mixed())
    weight, y = whole(len(frame)), frame["count"].to_numpy(dtype=float)
    twice = frame.iloc[repeated(np.arange(len(frame)), weight)]
    weighted = regressor().fit(frame, y, sample_weight=weight)
    assert_array_equal(weighted.predict(frame), regressor().fit(twice, repeated(y, weight)).predict(frame))


def test_a_row_of_weight_zero_is_not_there() -> None:
    weight = np.arange(len(X)) % 2
    x = X.copy()
    x[weight == 0] *= 1e6
    without = regressor().fit(X[weight == 1], values(X)[weight == 1])
    assert_array_equal(regressor().fit(x, values(X), sample_weight=weight).predict(X), without.predict(X))


def test_a_class_whose_rows_have_no_weight_is_still_a_class() -> None:
    y = labels(X, "abc")
    tree = classifier().fit(X, y, sample_weight=y != "b")
    assert tree.classes_.tolist() == ["a", "b", "c"]
    assert "b" not in tree.predict(X)


@pytest.mark.parametrize("factor", [1.0, 0.25, 64.0])
def test_equal_weights_are_none(factor: float) -> None:
    weighted = regressor().fit(X, values(X), sample_weight=np.full(len(X), factor))
    assert_array_equal(weighted.predict(X), regressor().fit(X, values(X)).predict(X))


def test_the_order_of_rows_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = regressor().fit(X[order], values(X)[order], sample_weight=whole()[order])
    assert_array_equal(shuffled.predict(X), regressor().fit(X, values(X), sample_weight=whole()).predict(X))


def test_weights_may_be_a_list() -> None:
    weighted = regressor().fit(X, values(X), sample_weight=whole().tolist())
    assert_array_equal(weighted.predict(X), regressor().fit(X, values(X), sample_weight=whole()).predict(X))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), r"shape \(30,\), got sample_weight.shape=\(3,\)"),
        (np.zeros(len(X)), "not zero for all rows"),
        (-np.ones(len(X)), "not negative"),
        (np.full(len(X), np.nan), "finite"),
    ],
    ids=["few", "zero", "negative", "nan"],
)
def test_weights_that_are_none_are_refused(weight: Floats, message: str) -> None:
    with pytest.raises(InputValueError, match=message):
        regressor().fit(X, values(X), sample_weight=weight)


def test_weights_of_text_are_refused() -> None:
    with pytest.raises(InputTypeError, match="sample_weight must be an array of numbers"):
        regressor().fit(X, values(X), sample_weight=["heavy"] * len(X))


@pytest.mark.parametrize("names", ["ab", (4, 2), (False, True)])
def test_class_weights_are_weights_of_rows(names: Any) -> None:
    y = labels(X, names)
    of_rows = classifier().fit(X, y, sample_weight=np.where(y == names[0], 3.0, 0.5))
    of_classes = classifier(class_weight={names[0]: 3.0, names[1]: 0.5}).fit(X, y)
    assert_allclose(of_classes.predict_proba(X), of_rows.predict_proba(X), rtol=SAME_TRAINING)


def test_class_weights_multiply_weights_of_rows() -> None:
    y = labels(X)
    both = classifier(class_weight={0: 2.0, 1: 1.0}).fit(X, y, sample_weight=whole())
    product = classifier().fit(X, y, sample_weight=whole() * (2.0 - y))
    assert_allclose(both.predict_proba(X), product.predict_proba(X), rtol=SAME_TRAINING)


def test_a_class_without_a_weight_has_weight_one() -> None:
    y = labels(X, "abc")
    some, all_of_them = ({"b": 4.0}, {"a": 1.0, "b": 4.0, "c": 1.0})
    assert_array_equal(*(classifier(class_weight=w).fit(X, y).predict_proba(X) for w in (some, all_of_them)))


def test_balanced_classes_weigh_the_same() -> None:
    y = np.where(np.arange(len(X)) < 3, "rare", "common")
    weight = np.where(y == "rare", len(X) / 6, len(X) / 54)
    balanced, weighted = classifier(class_weight="balanced").fit(X, y), classifier().fit(X, y, sample_weight=weight)
    assert_allclose(balanced.predict_proba(X), weighted.predict_proba(X), rtol=SAME_TRAINING)


def test_validation_rows_may_lack_a_class_that_has_a_weight() -> None:
    y = labels(X, "abc")
    some = y != "b"
    tree = classifier(class_weight={"a": 1.0, "b": 4.0}).fit(X, y, eval_set=(X[some], y[some]))
    assert len(tree.history_["valid_loss"]) == 5


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({0: -1.0}, "finite and not negative"),
        ({0: np.nan}, "finite"),
        ({0: 0, 1: 0}, "leave a row with a positive weight"),
    ],
)
def test_class_weights_that_are_none_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(InputValueError, match=message):
        classifier(class_weight=weights).fit(X, labels(X))


def test_weights_of_classes_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="are not in class_weight"):
        classifier(class_weight={"no": 1.0, "yes": 2.0}).fit(X, labels(X))


@pytest.mark.parametrize("n", [1, 2, 7, 200])
@pytest.mark.parametrize("values_each", [1, 3, 1000])
def test_equal_rows_are_merged_in_the_order_of_their_values(n: int, values_each: int) -> None:
    random = np.random.default_rng(n + values_each)
    rows = (random.integers(0, values_each, size=(n, 4)) - values_each // 2) * random.choice([-0.5, 0.5])
    merged, group = merge_rows(Rows(rows[:, 1:].astype(np.float32), rows[:, 0]))
    expected, count = np.unique(rows, axis=0, return_counts=True)
    assert_array_equal(np.column_stack((merged.y, merged.x)), expected)
    weight = np.full(len(expected), count[0]) if merged.weight is None else merged.weight
    assert_array_equal(weight, count)
    assert_array_equal(expected[group], rows)
