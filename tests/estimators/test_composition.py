"""Estimators as parts of scikit-learn's own tools."""

import pickle
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingRegressor
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.estimators.problems import KINDS, as_pandas, classifier, labels, mixed, regressor, table, values

X = table()


def test_pipeline() -> None:
    y = labels(X)
    pipe = make_pipeline(StandardScaler(), classifier(max_epochs=30)).fit(X, y)
    assert pipe.score(X, y) > 0.8


def test_pipeline_that_hands_on_frames() -> None:
    scaler = StandardScaler().set_output(transform="pandas")
    frame = as_pandas(mixed())[["count", "member"]].astype(float)
    pipe = make_pipeline(scaler, regressor()).fit(frame, frame["count"])
    assert pipe[-1].feature_names_in_.tolist() == ["count", "member"]


def test_grid_search() -> None:
    search = GridSearchCV(regressor(), {"depth": [0, 2], "leaf": ["constant", "linear"]}, cv=2).fit(X, values(X))
    assert search.best_params_["leaf"] == "linear"


def test_cross_validation() -> None:
    assert cross_val_score(regressor(leaf="linear", max_epochs=30), X, values(X), cv=3).mean() > 0.3


@pytest.mark.slow
def test_cross_validation_in_processes() -> None:
    assert_array_equal(*(cross_val_score(classifier(), X, labels(X), cv=2, n_jobs=jobs) for jobs in (1, 2)))


def test_calibration() -> None:
    calibrated = CalibratedClassifierCV(classifier(), cv=2).fit(X, labels(X, "abc"))
    assert_array_equal(calibrated.classes_, ["a", "b", "c"])


def test_calibration_with_weights() -> None:
    weight = np.linspace(1, 2, len(X))
    assert CalibratedClassifierCV(classifier(), cv=2).fit(X, labels(X), sample_weight=weight).score(X, labels(X)) > 0.5


def test_permutation_importance() -> None:
    tree = regressor(max_epochs=30).fit(X, X[:, 1])
    assert permutation_importance(tree, X, X[:, 1], n_repeats=2, random_state=0).importances_mean.argmax() == 1


@pytest.mark.parametrize("routing", ["soft", "hard"])
def test_importances_count_what_leaves_do(routing: str) -> None:
    """They were shares in the splits: a column that only linear models use was fourth, and the first to predict."""
    x = np.random.default_rng(0).uniform(size=(600, 5))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    tree = regressor(leaf="linear", routing=routing, max_epochs=60).fit(x, y)
    permuted = permutation_importance(tree, x, y, n_repeats=5, random_state=0).importances_mean
    assert tree.feature_importances_.argmax() == permuted.argmax() == 3
    assert np.corrcoef(tree.feature_importances_, permuted)[0, 1] > 0.95


def test_selection_by_importances() -> None:
    x = table(200)
    selection = SelectFromModel(regressor(depth=1, max_epochs=30), max_features=1).fit(x, x[:, 1])
    assert selection.get_support().tolist() == [False, True, False]


def test_bagging() -> None:
    bag = BaggingClassifier(classifier(max_epochs=30), n_estimators=2, random_state=0)
    assert bag.fit(X, labels(X)).score(X, labels(X)) > 0.7


def test_stacking() -> None:
    stack = StackingRegressor([("tree", regressor()), ("models", regressor(leaf="linear"))], cv=2)
    assert stack.fit(X, values(X)).score(X, values(X)) > 0.3


def test_several_outputs_of_classes() -> None:
    y = np.column_stack((labels(X), 1 - labels(X)))
    assert MultiOutputClassifier(classifier()).fit(X, y).predict(X).shape == y.shape


def test_a_clone_has_the_options_and_nothing_else() -> None:
    tree = classifier(split="mlp", class_weight={0: 2.0}, callbacks=[print]).set_params(callbacks=None)
    copy = clone(tree.fit(X, labels(X)))
    assert copy.get_params() == tree.get_params()
    assert not hasattr(copy, "tree_")


def test_options_are_left_as_they_were_given() -> None:
    tree = classifier(max_epochs="auto", batch_size="auto", learning_rate="auto", weight_decay="auto")
    before = tree.get_params()
    assert tree.fit(X, labels(X)).get_params() == before


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_pickle(split: str, leaf: str) -> None:
    tree = classifier(split=split, leaf=leaf, max_epochs=2).fit(X, labels(X))
    again = pickle.loads(pickle.dumps(tree))
    for hard in (False, True):
        assert_array_equal(again.predict_proba(X, hard=hard), tree.predict_proba(X, hard=hard))


def test_joblib(tmp_path: Path) -> None:
    tree = regressor().fit(X, values(X))
    joblib.dump(tree, tmp_path / "tree.joblib")
    assert_array_equal(joblib.load(tmp_path / "tree.joblib", mmap_mode="r").predict(X), tree.predict(X))


def test_a_pickled_tree_can_be_fitted_on() -> None:
    tree = pickle.loads(pickle.dumps(regressor(warm_start=True).fit(X, values(X))))
    assert tree.fit(X, values(X)).n_iter_ == 10


def test_read_only_memory_maps(tmp_path: Path) -> None:
    maps: list[Any] = []
    for name, array in (("x", X), ("y", values(X)), ("weight", np.linspace(1, 2, len(X)))):
        np.save(tmp_path / f"{name}.npy", array)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    x, y, weight = maps
    assert not x.flags.writeable
    tree = regressor().fit(x, y, sample_weight=weight)
    assert_array_equal(tree.predict(x), regressor().fit(X, values(X), np.linspace(1, 2, len(X))).predict(X))
