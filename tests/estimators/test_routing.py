"""Metadata reach the estimators through scikit-learn's tools."""

from collections.abc import Iterator

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.estimators.problems import classifier, labels, regressor, table, values

X = table()
WEIGHT = np.linspace(0.5, 2, len(X))


@pytest.fixture(autouse=True)
def _routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_weights_in_a_pipeline() -> None:
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = make_pipeline(scaler, regressor().set_fit_request(sample_weight=True))
    expected = regressor().fit(scaler.fit_transform(X), values(X), sample_weight=WEIGHT)
    pipe.fit(X, values(X), sample_weight=WEIGHT)
    assert_array_equal(pipe.predict(X), expected.predict(scaler.transform(X)))


def test_weights_in_a_grid_search() -> None:
    tree = classifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(tree, {"depth": [1]}, cv=2).fit(X, labels(X), sample_weight=WEIGHT)
    expected = classifier(depth=1).fit(X, labels(X), sample_weight=WEIGHT)
    assert_array_equal(search.predict_proba(X), expected.predict_proba(X))


def test_weights_that_nobody_asked_for() -> None:
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        GridSearchCV(classifier(), {"depth": [1]}, cv=2).fit(X, labels(X), sample_weight=WEIGHT)


def test_validation_rows_in_a_pipeline() -> None:
    pipe = make_pipeline(StandardScaler(), classifier().set_fit_request(eval_set=True))
    assert "valid_loss" in pipe.fit(X, labels(X), eval_set=(X, labels(X)))[-1].history_


def test_validation_rows_in_a_grid_search() -> None:
    search = GridSearchCV(classifier().set_fit_request(eval_set=True), {"depth": [1]}, cv=2, error_score="raise")
    assert "valid_loss" in search.fit(X, labels(X), eval_set=[(X, labels(X))]).best_estimator_.history_


def test_weights_go_by_while_validation_rows_are_not_asked_for() -> None:
    tree = classifier().set_fit_request(sample_weight=True, eval_set=False).set_score_request(sample_weight=False)
    scores = cross_validate(tree, X, labels(X), params={"sample_weight": WEIGHT}, cv=2)["test_score"]
    assert scores.shape == (2,)


def test_hard_predictions_through_a_pipeline() -> None:
    pipe = make_pipeline(StandardScaler(), regressor().set_predict_request(hard=True)).fit(X, values(X))
    assert_array_equal(pipe.predict(X, hard=True), pipe[-1].predict(pipe[0].transform(X), hard=True))
