"""The rows that a fit has held out are found again."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prunus import ArgminTreeRegressor, TrainingOptions

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(350, 2)).astype(np.float32)
Y = X[:, 0] * X[:, 1]
TWICE = np.r_[0:350, 0:30]


@pytest.mark.parametrize("rows", [np.arange(350), TWICE], ids=["different rows", "equal rows"])
@pytest.mark.parametrize("weight", [None, np.arange(380) % 3])
def test_their_error_is_the_validation_loss(rows: Any, weight: Any) -> None:
    weight = None if weight is None else weight[: len(rows)]
    tree = ArgminTreeRegressor(
        max_epochs=2, random_state=3, training=TrainingOptions(early_stopping_rounds=2, learning_rate=0.1)
    )
    tree.fit(X[rows], Y[rows], sample_weight=weight)
    held_out = tree.validation_rows_
    assert held_out is not None
    if weight is not None:
        held_out = held_out[weight[held_out] > 0]
    error = (tree.predict(X[rows][held_out]) - Y[rows][held_out]) ** 2 / tree.target_.deviation**2
    mean = np.average(error, weights=None if weight is None else weight[held_out])
    assert_allclose(mean, min(tree.history_["valid_loss"]), rtol=1e-3)


def test_a_fit_to_few_rows_holds_out_none() -> None:
    tree = ArgminTreeRegressor(max_epochs=2, random_state=3).fit(X[:50], Y[:50])
    assert tree.validation_rows_ is None
