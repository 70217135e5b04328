"""Estimators as parts of scikit-learn's own tools, and metadata that reach them there."""

import pickle
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prunus.fitting.training_options import nested
from tests.estimators.problems import KINDS, as_pandas, classifier, labels, mixed, regressor, table, values

X = table()
Y, V = labels(X), values(X)
WEIGHT = np.linspace(0.5, 2, len(X))


def test_pipelines_and_searches() -> None:
    assert make_pipeline(StandardScaler(), classifier(max_epochs=30)).fit(X, Y).score(X, Y) > 0.8
    frame = as_pandas(mixed())[["count", "member"]].astype(float)
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), regressor()).fit(frame, frame["count"])
    assert pipe[-1].feature_names_in_.tolist() == ["count", "member"]
    search = GridSearchCV(regressor(), {"depth": [0, 2], "leaf": ["constant", "linear"]}, cv=2).fit(X, V)
    assert search.best_params_["leaf"] == "linear"
    assert cross_val_score(regressor(leaf="linear", max_epochs=30), X, V, cv=3).mean() > 0.3


@pytest.mark.slow
def test_cross_validation_in_processes() -> None:
    assert_array_equal(*(cross_val_score(classifier(), X, Y, cv=2, n_jobs=jobs) for jobs in (1, 2)))


def test_calibration_bagging_stacking_and_several_outputs() -> None:
    calibrated = CalibratedClassifierCV(classifier(), cv=2)
    assert_array_equal(calibrated.fit(X, labels(X, "abc")).classes_, ["a", "b", "c"])
    assert calibrated.fit(X, Y, sample_weight=WEIGHT).score(X, Y) > 0.5
    bag = BaggingClassifier(classifier(max_epochs=30), n_estimators=2, random_state=0)
    assert bag.fit(X, Y).score(X, Y) > 0.7
    stack = StackingRegressor([("tree", regressor()), ("models", regressor(leaf="linear"))], cv=2)
    assert stack.fit(X, V).score(X, V) > 0.3
    both = np.column_stack((Y, 1 - Y))
    assert MultiOutputClassifier(classifier()).fit(X, both).predict(X).shape == both.shape


@pytest.mark.parametrize("routing", ["soft", "hard"])
def test_importances_count_what_leaves_do(routing: str) -> None:
    """They were shares in the splits: a column that only linear models use was fourth, and the first to predict."""
    x = np.random.default_rng(0).uniform(size=(600, 5))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    tree = regressor(leaf="linear", routing=routing, max_epochs=60).fit(x, y)
    permuted = permutation_importance(tree, x, y, n_repeats=5, random_state=0).importances_mean
    assert tree.feature_importances_.argmax() == permuted.argmax() == 3
    assert np.corrcoef(tree.feature_importances_, permuted)[0, 1] > 0.95
    selection = SelectFromModel(regressor(depth=1, max_epochs=30, routing=routing), max_features=1).fit(x, x[:, 1])
    assert selection.get_support().tolist() == [False, True, False, False, False]


def test_a_clone_has_the_options_and_nothing_else() -> None:
    tree = classifier(split="mlp", class_weight={0: 2.0}, callbacks=[print]).set_params(callbacks=None)
    auto = dict.fromkeys(("max_epochs", "batch_size", "learning_rate", "weight_decay"), "auto")
    before = tree.set_params(**nested(auto)).get_params()
    copy = clone(tree.fit(X, Y))
    assert copy.get_params() == tree.get_params() == before
    assert not hasattr(copy, "tree_")


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_pickles_and_joblib(split: str, leaf: str, tmp_path: Path) -> None:
    tree = classifier(split=split, leaf=leaf, max_epochs=2, warm_start=True).fit(X, Y)
    joblib.dump(tree, tmp_path / "tree.joblib")
    for again in (pickle.loads(pickle.dumps(tree)), joblib.load(tmp_path / "tree.joblib", mmap_mode="r")):
        for hard in (False, True):
            assert_array_equal(again.predict_proba(X, hard=hard), tree.predict_proba(X, hard=hard))
    assert pickle.loads(pickle.dumps(tree)).fit(X, Y).n_iter_ == 4


def test_read_only_memory_maps(tmp_path: Path) -> None:
    maps: list[Any] = []
    for name, array in (("x", X), ("y", V), ("weight", WEIGHT)):
        np.save(tmp_path / f"{name}.npy", array)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    x, y, weight = maps
    assert not x.flags.writeable
    tree = regressor().fit(x, y, sample_weight=weight)
    assert_array_equal(tree.predict(x), regressor().fit(X, V, WEIGHT).predict(X))


@sklearn.config_context(enable_metadata_routing=True)  # type: ignore[untyped-decorator]
def test_weights_reach_estimators() -> None:
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = make_pipeline(scaler, regressor().set_fit_request(sample_weight=True)).fit(X, V, sample_weight=WEIGHT)
    expected: Any = regressor().fit(scaler.fit_transform(X), V, sample_weight=WEIGHT)
    assert_array_equal(pipe.predict(X), expected.predict(scaler.transform(X)))
    tree = classifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(tree, {"depth": [1]}, cv=2).fit(X, Y, sample_weight=WEIGHT)
    expected = classifier(depth=1).fit(X, Y, sample_weight=WEIGHT)
    assert_array_equal(search.predict_proba(X), expected.predict_proba(X))
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        GridSearchCV(classifier(), {"depth": [1]}, cv=2).fit(X, Y, sample_weight=WEIGHT)
    tree = classifier().set_fit_request(sample_weight=True, eval_set=False).set_score_request(sample_weight=False)
    assert cross_validate(tree, X, Y, params={"sample_weight": WEIGHT}, cv=2)["test_score"].shape == (2,)


@sklearn.config_context(enable_metadata_routing=True)  # type: ignore[untyped-decorator]
def test_validation_rows_and_hard_predictions_reach_estimators() -> None:
    pipe = make_pipeline(StandardScaler(), classifier().set_fit_request(eval_set=True))
    assert "valid_loss" in pipe.fit(X, Y, eval_set=(X, Y))[-1].history_
    search = GridSearchCV(classifier().set_fit_request(eval_set=True), {"depth": [1]}, cv=2, error_score="raise")
    assert "valid_loss" in search.fit(X, Y, eval_set=[(X, Y)]).best_estimator_.history_
    pipe = make_pipeline(StandardScaler(), regressor().set_predict_request(hard=True)).fit(X, V)
    assert_array_equal(pipe.predict(X, hard=True), pipe[-1].predict(pipe[0].transform(X), hard=True))
