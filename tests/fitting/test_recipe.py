"""Options of training that are left to the estimators."""

import numpy as np
import torch

from prunus import ArgminTreeClassifier, ArgminTreeRegressor
from prunus.fitting.recipe import FEW, SMALL, default_recipe
from prunus.nn import Whiten
from tests.estimators.problems import LEAVES


def test_few_samples_with_classes_keep_some_correlations() -> None:
    for leaf in LEAVES:
        assert default_recipe(FEW, leaf, classes=True) == default_recipe(FEW, leaf)
        for n in (100, 1_000, FEW - 1):
            assert 0 < default_recipe(n, leaf, classes=True).decorrelation < default_recipe(n, leaf).decorrelation


def test_values_of_nodes_do_not_decay_with_few_samples_of_classes() -> None:
    classes = default_recipe(SMALL, "constant", classes=True)
    assert classes.no_decay == ("head.weight",)
    assert classes.weight_decay > default_recipe(SMALL, "constant").weight_decay
    for other in (default_recipe(SMALL, "linear", classes=True), default_recipe(SMALL - 1, "constant", classes=True)):
        assert other.no_decay == ()


def test_too_few_samples_to_hold_some_out_are_trained_for_a_fixed_time() -> None:
    assert default_recipe(SMALL - 1, "constant").early_stopping_rounds is None
    assert default_recipe(SMALL, "constant").early_stopping_rounds is not None


def test_inputs_of_a_classifier_with_few_rows_stay_correlated_in_part() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(400, 1)) + 0.3 * random.normal(size=(400, 2))
    rows = torch.from_numpy(x).float()
    correlations = [float(rows.T.corrcoef()[0, 1])]
    for estimator in (ArgminTreeClassifier(max_epochs=1), ArgminTreeRegressor(max_epochs=1)):
        inputs = estimator.fit(x, x[:, 0] > 0).model_.inputs
        assert isinstance(inputs, Whiten)
        correlations.append(float(inputs(rows).T.corrcoef()[0, 1]))
    of_table, of_classifier, of_regressor = correlations
    assert of_table - 0.1 > of_classifier > of_regressor + 0.3
    assert abs(of_regressor) < 0.1
