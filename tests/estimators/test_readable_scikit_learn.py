"""scikit-learn's own checks of readable trees: all of them, with no failure expected."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from prunus import ReadableTreeClassifier, ReadableTreeRegressor

ALL = [ReadableTreeClassifier(), ReadableTreeRegressor()]
OTHERS = [type(estimator)(max_leaf_nodes="auto", max_split_features=1) for estimator in ALL]
OTHERS += [type(estimator)(max_leaf_nodes=4, max_leaf_features=2) for estimator in ALL]


@parametrize_with_checks(ALL)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
def test_with_default_options(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@parametrize_with_checks(OTHERS)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_with_other_options(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", ALL, ids=["classifier", "regressor"])
def test_the_checks_include_that_weights_are_repetitions(estimator: Any) -> None:
    checks = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
    assert "check_sample_weight_equivalence_on_dense_data" in checks
