"""scikit-learn's own checks of forests: all of them, with no failure expected."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from prunus import ArgminForestClassifier, ArgminForestRegressor

TREES: Any = {"n_trees": 2, "leaf": "constant", "depth": 4, "pieces": 0}
ALL = [ArgminForestClassifier(**TREES), ArgminForestRegressor(**TREES)]
OTHERS: list[dict[str, Any]] = [
    {"bootstrap": True},
    {"max_features": 0.9},
    {"leaf": "linear"},
    {"routing": "hard"},
    {"leaf": "auto", "depth": "auto", "pieces": "auto", "max_epochs": 20},
]


@parametrize_with_checks(ALL)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
def test_with_constant_leaves(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [type(estimator)(**(TREES | options)) for estimator in ALL for options in OTHERS]
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_with_other_options(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", ALL, ids=["classifier", "regressor"])
def test_the_checks_include_that_weights_are_repetitions(estimator: Any) -> None:
    checks = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
    assert "check_sample_weight_equivalence_on_dense_data" in checks
