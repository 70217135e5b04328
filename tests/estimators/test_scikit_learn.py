"""scikit-learn's own checks of estimators: all of them, with no failure expected."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor

ALL = [ArgminTreeClassifier(), ArgminTreeRegressor(), ArgminTreeClusterer()]


@parametrize_with_checks(ALL)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
def test_with_default_options(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [type(estimator)(leaf=leaf) for estimator in ALL for leaf in ("linear", "mlp")]
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_with_other_leaves(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


HARD = [type(estimator)(routing="hard") for estimator in ALL]
HARD += [ArgminTreeClassifier(routing="hard", leaf="linear", max_split_features=2, max_leaf_nodes=5)]
HARD += [ArgminTreeRegressor(routing="hard", leaf="additive", max_split_features=1)]


@parametrize_with_checks(HARD)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_with_hard_routing(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", ALL, ids=["classifier", "regressor", "clusterer"])
def test_the_checks_include_that_weights_are_repetitions(estimator: Any) -> None:
    checks = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
    assert "check_sample_weight_equivalence_on_dense_data" in checks
