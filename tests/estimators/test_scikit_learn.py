"""scikit-learn's own checks of estimators: all of them, with no failure expected."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator, parametrize_with_checks

from prunus import (
    ArgminForestClassifier,
    ArgminForestRegressor,
    ArgminTreeClassifier,
    ArgminTreeClusterer,
    ArgminTreeRegressor,
    ReadableTreeClassifier,
    ReadableTreeRegressor,
)

SMALL: Any = {"n_trees": 2, "leaf": "constant", "depth": 4, "pieces": 0}
AUTO: Any = {"leaf": "auto", "depth": "auto", "pieces": "auto", "hidden_layer_sizes": (4,), "max_epochs": 2}
DEFAULT: list[Any] = [
    *(kind() for kind in (ArgminTreeClassifier, ArgminTreeRegressor, ArgminTreeClusterer)),
    *(kind() for kind in (ReadableTreeClassifier, ReadableTreeRegressor)),
    *(kind(**SMALL) for kind in (ArgminForestClassifier, ArgminForestRegressor)),
]
OTHERS: list[Any] = [
    ArgminTreeClassifier(leaf="mlp"),
    ArgminTreeClassifier(**AUTO),
    ArgminTreeClassifier(routing="hard", leaf="linear", max_split_features=2, max_leaf_nodes=5),
    ArgminTreeRegressor(leaf="linear"),
    ArgminTreeRegressor(routing="hard", leaf="additive", max_split_features=1),
    ArgminTreeClusterer(routing="hard"),
    ArgminTreeClusterer(leaf="mlp"),
    ArgminForestClassifier(**SMALL | {"bootstrap": True, "leaf": "linear"}),
    ArgminForestRegressor(**SMALL | {"max_features": 0.9, "routing": "hard"}),
    ArgminForestRegressor(**SMALL | AUTO),
    ReadableTreeClassifier(max_leaf_nodes=4, max_leaf_features=2),
    ReadableTreeRegressor(max_leaf_nodes="auto", max_split_features=1),
]
"""A sample of options, with each value that the battery could trip over once."""


@parametrize_with_checks(DEFAULT)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
def test_with_default_options(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", OTHERS, ids=str)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_with_other_options(estimator: Any) -> None:
    check_estimator(estimator)


def test_the_checks_include_that_weights_are_repetitions() -> None:
    for estimator in DEFAULT:
        checks = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
        assert "check_sample_weight_equivalence_on_dense_data" in checks
