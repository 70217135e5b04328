"""Weights of rows and of classes."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from prunus import ArgminTreeClusterer
from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import LEAVES, Floats, as_pandas, classifier, labels, mixed, regressor, table, values
from tests.tolerances import SAME_TRAINING

X = table(30)
V, ABC = values(X), labels(X, "abc")


def whole(n: int = len(X), *, seed: int = 3) -> Floats:
    """Whole numbers from 0 to 3."""
    return np.random.default_rng(seed).integers(0, 4, size=n).astype(float)


def repeated(rows: Any, weight: Floats) -> Any:
    return np.repeat(rows, weight.astype(int), axis=0)


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("make", [regressor, classifier])
def test_a_row_of_weight_two_is_the_row_twice(make: Any, leaf: str) -> None:
    weight, y = whole(), V if make is regressor else ABC
    weighted = make(leaf=leaf).fit(X, y, sample_weight=weight)
    twice = make(leaf=leaf).fit(repeated(X, weight), repeated(y, weight))
    for hard in (False, True):
        for method in ("predict", "predict_proba") if make is classifier else ("predict",):
            assert_array_equal(getattr(weighted, method)(X, hard=hard), getattr(twice, method)(X, hard=hard))


def test_a_row_of_weight_two_is_the_row_twice_in_a_mixed_frame() -> None:
    frame = as_pandas(mixed())
    weight, y = whole(len(frame)), frame["count"].to_numpy(dtype=float)
    twice = frame.iloc[repeated(np.arange(len(frame)), weight)]
    weighted = regressor().fit(frame, y, sample_weight=weight)
    assert_array_equal(weighted.predict(frame), regressor().fit(twice, repeated(y, weight)).predict(frame))


def test_a_row_of_weight_zero_is_not_there_but_its_class_is() -> None:
    weight = np.arange(len(X)) % 2
    x = X.copy()
    x[weight == 0] *= 1e6
    without = regressor().fit(X[weight == 1], V[weight == 1])
    assert_array_equal(regressor().fit(x, V, sample_weight=weight).predict(X), without.predict(X))
    tree = classifier().fit(X, ABC, sample_weight=ABC != "b")
    assert tree.classes_.tolist() == ["a", "b", "c"]
    assert "b" not in tree.predict(X)


def test_equal_weights_are_none_and_only_ratios_matter() -> None:
    for factor in (1.0, 0.25, 64.0):
        weighted = regressor().fit(X, V, sample_weight=np.full(len(X), factor))
        assert_array_equal(weighted.predict(X), regressor().fit(X, V).predict(X))
    weight = np.where(X[:, 0] > 0, 1.0, 0.5)
    for estimator in (regressor(), ArgminTreeClusterer(depth=2, max_epochs=2, random_state=0)):
        plain = estimator.fit(X, V, weight).predict(X)
        for factor in (1e308, 1e-308):
            assert_allclose(estimator.fit(X, V, weight * factor).predict(X), plain, rtol=1e-5)
    tiny = np.where(np.arange(len(X)) == 0, 5e-324, 1e-30)  # counts as zero beside others
    tree = ArgminTreeClusterer(depth=3, max_epochs=2, random_state=0).fit(X, sample_weight=tiny)
    assert len(tree.labels_) == len(X)


def test_the_order_of_rows_does_not_matter_and_weights_may_be_a_list() -> None:
    order = np.random.default_rng(0).permutation(len(X))
    expected = regressor().fit(X, V, sample_weight=whole()).predict(X)
    assert_array_equal(regressor().fit(X[order], V[order], sample_weight=whole()[order]).predict(X), expected)
    assert_array_equal(regressor().fit(X, V, sample_weight=whole().tolist()).predict(X), expected)


@pytest.mark.parametrize("names", ["ab", (4, 2), (False, True)])
def test_class_weights_are_weights_of_rows(names: Any) -> None:
    y = labels(X, names)
    of_rows = classifier().fit(X, y, sample_weight=np.where(y == names[0], 3.0, 0.5) * whole())
    of_classes = classifier(class_weight={names[0]: 3.0, names[1]: 0.5}).fit(X, y, sample_weight=whole())
    huge = classifier(class_weight={names[0]: 1e308, names[1]: 1e308 / 6}).fit(X, y, whole() * 1e307)
    for tree in (of_classes, huge):
        assert_allclose(tree.predict_proba(X), of_rows.predict_proba(X), rtol=SAME_TRAINING)


def test_classes_without_a_weight_and_balanced_ones() -> None:
    some, all_of_them = ({"b": 4.0}, {"a": 1.0, "b": 4.0, "c": 1.0})
    assert_array_equal(*(classifier(class_weight=w).fit(X, ABC).predict_proba(X) for w in (some, all_of_them)))
    y = np.where(np.arange(len(X)) < 3, "rare", "common")
    weight = np.where(y == "rare", len(X) / 6, len(X) / 54)
    balanced, weighted = classifier(class_weight="balanced").fit(X, y), classifier().fit(X, y, sample_weight=weight)
    assert_allclose(balanced.predict_proba(X), weighted.predict_proba(X), rtol=SAME_TRAINING)
    known = ABC != "b"  # validation rows may lack a class that has a weight
    tree = classifier(class_weight={"a": 1.0, "b": 4.0}).fit(X, ABC, eval_set=(X[known], ABC[known]))
    assert len(tree.history_["valid_loss"]) == 5


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (np.ones(3), InputValueError, r"shape \(30,\), got sample_weight.shape=\(3,\)"),
        (np.zeros(len(X)), InputValueError, "not zero for all rows"),
        (-np.ones(len(X)), InputValueError, "not negative"),
        (np.full(len(X), np.nan), InputValueError, "finite"),
        (["heavy"] * len(X), InputTypeError, "sample_weight must be an array of numbers"),
        ([10**400] * len(X), InputValueError, "sample_weight"),
        (torch.ones(len(X)).requires_grad_(), InputValueError, "sample_weight"),
    ],
)
def test_weights_that_are_refused(weight: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        regressor().fit(X, V, sample_weight=weight)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({0: -1.0}, InputValueError, "finite and not negative"),
        ({0: np.nan}, InputValueError, "finite"),
        ({0: 0, 1: 0}, InputValueError, "leave a row with a positive weight"),
        ({"no": 1.0, "yes": 2.0}, ValueError, "are not in class_weight"),
    ],
)
def test_class_weights_that_are_refused(weights: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        classifier(class_weight=weights).fit(X, labels(X))
