"""Forests: what trees learn side by side, how they are averaged, and what they have not seen."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import prunus
from prunus import ArgminForestClassifier, ArgminForestRegressor
from prunus.errors import InputTypeError, InputValueError
from prunus.fitting import choosing
from prunus.fitting.training_options import nested
from tests.estimators.problems import as_pandas, as_polars, labels, mixed, table, values
from tests.tolerances import ROUNDING

X = table(400)
Y, CLASSES = values(X), labels(X, "abc")
SAME = ROUNDING[torch.float64]
QUICK: Any = {"n_trees": 3, "depth": 2, "leaf": "constant", "pieces": 0, "max_epochs": 5, "random_state": 0}


def classifier(**options: Any) -> ArgminForestClassifier:
    return ArgminForestClassifier().set_params(**nested(QUICK | options))


def regressor(**options: Any) -> ArgminForestRegressor:
    return ArgminForestRegressor().set_params(**nested(QUICK | options))


@pytest.mark.parametrize("hard", [False, True])
def test_probabilities_are_means_over_the_trees(hard: bool) -> None:
    forest = classifier().fit(X, CLASSES)
    expected = np.mean([tree.predict_proba(X, hard=hard) for tree in forest.estimators_], axis=0)
    assert_allclose(forest.predict_proba(X, hard=hard), expected, rtol=SAME, atol=SAME)
    assert_array_equal(forest.predict(X, hard=hard), forest.classes_[expected.argmax(1)])
    assert_allclose(forest.predict_log_proba(X, hard=hard), np.log(expected), rtol=SAME, atol=SAME)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
def test_values_are_means_over_the_trees(loss: str) -> None:
    forest = regressor(loss=loss).fit(X, np.abs(Y))
    expected = np.mean([tree.predict(X) for tree in forest.estimators_], axis=0)
    assert_allclose(forest.predict(X), expected, rtol=SAME, atol=SAME)


def test_several_outputs_are_predicted_in_the_shape_of_y() -> None:
    forest = regressor().fit(X, np.stack((Y, -Y), axis=1))
    assert forest.predict(X).shape == (400, 2)
    assert forest.predict_quantiles(X, [0.1, 0.5, 0.9]).shape == (400, 2, 3)


def test_large_tables_are_predicted_in_chunks() -> None:
    forest, many = regressor(n_trees=2).fit(X, Y), np.tile(X, (50, 1))
    assert_array_equal(forest.predict(many), np.tile(forest.predict(X), 50))
    assert_array_equal(forest.apply(many), np.tile(forest.apply(X), (50, 1)))


def test_quantiles_are_those_of_the_trees() -> None:
    forest = regressor().fit(X, Y)
    found = forest.predict_quantiles(X, [0.0, 0.5, 1.0])
    each = np.stack([tree.predict(X) for tree in forest.estimators_])
    assert_allclose(found, np.stack((each.min(0), np.median(each, axis=0), each.max(0)), axis=1), rtol=SAME, atol=SAME)


@pytest.mark.parametrize("wrong", [0.5, [1.5], [-0.1], ["a"], [[0.5]], [float("nan")]])
def test_quantiles_must_be_a_list_of_shares(wrong: Any) -> None:
    with pytest.raises((InputValueError, InputTypeError), match="quantiles must be a list of numbers from 0 to 1"):
        regressor(n_trees=1).fit(X, Y).predict_quantiles(X, wrong)


def test_paths_and_importances_are_those_of_the_trees() -> None:
    forest = classifier().fit(X, CLASSES)
    assert_array_equal(forest.apply(X), np.stack([tree.apply(X) for tree in forest.estimators_], axis=1))
    expected = np.mean([tree.feature_importances_ for tree in forest.estimators_], axis=0)
    assert_allclose(forest.feature_importances_, expected, rtol=SAME, atol=SAME)


@pytest.mark.parametrize("options", [{}, {"routing": "hard"}, {"leaf": "mlp", "bootstrap": True, "max_features": 2}])
def test_results_do_not_depend_on_the_number_of_threads(options: dict[str, Any]) -> None:
    first, second = (regressor(n_jobs=n_jobs, **options).fit(X, Y) for n_jobs in (1, 2))
    assert_array_equal(first.predict(X), second.predict(X))
    assert not np.array_equal(first.estimators_[0].predict(X), first.estimators_[1].predict(X))


def test_the_number_of_threads_of_torch_stays() -> None:
    before = torch.get_num_threads()
    regressor(leaf="mlp", n_jobs=2).fit(X, Y)
    assert torch.get_num_threads() == before


def test_trees_share_the_encoder_and_the_target_and_work_on_their_own() -> None:
    frame = as_pandas(mixed(40))
    forest = classifier().fit(frame, labels(X[:40], "ab"))
    for tree in forest.estimators_:
        assert isinstance(tree, prunus.ArgminTreeClassifier)
        assert tree.encoder_ is forest.encoder_
        assert tree.target_ is forest.target_
        assert (tree.n_jobs, tree.callbacks) == (None, None)
        assert len(prunus.export_text(tree).splitlines()) > 1
        assert_array_equal(pickle.loads(pickle.dumps(tree)).predict(frame), tree.predict(frame))


@pytest.mark.parametrize("convert", [as_pandas, as_polars])
def test_categories_dates_and_missing_values(convert: Any) -> None:
    frame = convert(mixed(60))
    forest = regressor(max_features=0.6).fit(frame, values(X[:60]))
    assert np.isfinite(forest.predict(frame)).all()
    assert_array_equal(forest.feature_names_in_, ["size", "count", "color", "member", "since"])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"leaf": "linear"},
        {"leaf": "additive", "pieces": 4},
        {"leaf": "mlp", "split": "mlp"},
        {"split": "sparse_mlp"},
        {"max_split_features": 2},
        {"routing": "hard"},
        {"routing": "hard", "leaf": "linear"},
    ],
    ids=str,
)
def test_columns_that_a_tree_does_not_see_have_no_effect(options: dict[str, Any]) -> None:
    x = table(400, columns=4)
    forest = regressor(max_features=2, **options).fit(x, values(x))
    for tree in forest.estimators_:
        unseen = tree.feature_importances_ == 0
        assert unseen.sum() == 2
        assert_array_equal(tree.predict(np.where(unseen, 7.0, x)), tree.predict(x))
    assert (forest.feature_importances_ > 0).sum() > 2


def test_columns_that_a_tree_does_not_see_have_no_effect_in_wide_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.fitting.train.noise_columns", lambda *_: None)  # it would leave out most columns
    x = table(40, columns=2100)  # this many are not decorrelated
    (tree,) = regressor(n_trees=1, max_features=2000).fit(x, values(x)).estimators_
    unseen = tree.feature_importances_ == 0
    assert unseen.sum() == 100
    assert_array_equal(tree.predict(np.where(unseen, 7.0, x)), tree.predict(x))


def test_columns_that_a_tree_does_not_see_have_no_effect_on_a_split_of_ones_own() -> None:
    forest = regressor(max_features=2, split=lambda inputs, depth: torch.nn.Linear(inputs, 2**depth - 1)).fit(X, Y)
    for tree in forest.estimators_:
        changed = [np.array_equal(tree.predict(X + 7.0 * np.eye(3)[i]), tree.predict(X)) for i in range(3)]
        assert sum(changed) == 1


def test_a_warm_start_keeps_the_trees_and_adds_new_ones() -> None:
    forest = classifier(n_trees=2, warm_start=True).fit(X, CLASSES)
    before = list(forest.estimators_)
    forest.set_params(n_trees=4).fit(X, CLASSES)
    assert [tree is old for tree, old in zip(forest.estimators_, before, strict=False)] == [True, True]
    assert all(tree.encoder_ is forest.encoder_ for tree in forest.estimators_)
    assert_array_equal(forest.predict_proba(X), classifier(n_trees=4).fit(X, CLASSES).predict_proba(X))


def test_a_warm_start_without_new_trees_changes_nothing() -> None:
    forest = regressor(warm_start=True, random_state=None).fit(X, Y)
    expected = forest.predict(X)
    assert_array_equal(forest.fit(X, Y).predict(X), expected)
    with pytest.raises(InputValueError, match="n_trees must be at least 3, the number of trees of the last fit"):
        forest.set_params(n_trees=2).fit(X, Y)


def test_without_a_warm_start_nothing_of_the_last_fit_stays() -> None:
    forest = regressor(bootstrap=True, oob_score=True, n_trees=20).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    forest.set_params(oob_score=False, n_trees=2).fit(X[:, :2], Y)
    assert len(forest.estimators_) == 2
    assert forest.n_features_in_ == 2
    assert not {"feature_names_in_", "oob_score_", "oob_prediction_"} & set(vars(forest))


@pytest.mark.parametrize("routing", ["soft", "hard"])
def test_an_interrupted_fit_is_resumed(routing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_interrupted: Any, record: Any) -> None:
        if record["epoch"] == 12:
            raise KeyboardInterrupt

    options = {"max_epochs": 20, "routing": routing, "random_state": None, "n_jobs": 2}
    forest = regressor(checkpoint=tmp_path / "run", **options)
    with monkeypatch.context() as patch:
        patch.setattr("prunus.fitting.forest._stop_if", interrupt)
        with pytest.raises(KeyboardInterrupt):
            forest.fit(X, Y)
    assert not hasattr(forest, "estimators_")
    assert (tmp_path / "run.0").exists()
    resumed = forest.fit(X, Y)
    assert not list(tmp_path.iterdir())
    assert all(tree.checkpoint is None and "keeps_checkpoint" not in vars(tree) for tree in resumed.estimators_)
    whole = regressor(checkpoint=tmp_path / "other", **options).fit(X, Y)
    assert_array_equal(resumed.predict(X), whole.predict(X))


@pytest.mark.parametrize("options", [{"n_trees": 7}, {"n_trees": 8, "bootstrap": True}], ids=str)
@pytest.mark.filterwarnings("ignore:.* no out-of-bag prediction")
@pytest.mark.parametrize("routing", ["soft", "hard"])
def test_out_of_bag_predictions_do_not_know_the_target_of_their_row(options: dict[str, Any], routing: str) -> None:
    random = np.random.default_rng(0)
    x, noise = random.normal(size=(320, 4)), random.normal(size=320)  # nothing can be learned
    options = {"max_epochs": 40, "depth": 4, "leaf": "linear", "weight_decay": 0.0, "routing": routing} | options
    forest = regressor(oob_score=True, **options).fit(x, noise)
    assert forest.oob_score_ < min(0.0, forest.score(x, noise) - 0.03)
    assert forest.oob_prediction_.shape == (320,)


def test_out_of_bag_predictions_are_means_over_the_trees_that_have_not_trained_on_a_row() -> None:
    weight = np.where(np.arange(400) < 5, 0.0, 1.0)
    forest = classifier(n_trees=7, oob_score=True).fit(X, CLASSES, sample_weight=weight)
    found, each = forest.oob_decision_function_, [tree.predict_proba(X) for tree in forest.estimators_]
    assert_allclose(found[:5], np.mean(each, axis=0)[:5], rtol=SAME, atol=SAME)  # rows without weight are in no bag
    single = [min(np.abs(row - tree[i]).max() for tree in each) < SAME for i, row in enumerate(found)]
    assert sum(single[5:]) == 395 - (7 * 60 - 395)  # seven trees hold out 60 rows each, and so a few rows twice
    assert forest.oob_score_ == np.mean(forest.classes_[found.argmax(1)] == CLASSES)
    assert_array_equal(forest.out_of_bag(X, CLASSES, weight), found)


def test_equal_rows_are_in_the_same_bags() -> None:
    twice = np.concatenate((X[:200], X[:200]))
    forest = regressor(n_trees=20, bootstrap=True, oob_score=True).fit(twice, np.tile(Y[:200], 2))
    assert_array_equal(forest.oob_prediction_[:200], forest.oob_prediction_[200:])


def test_rows_that_all_trees_have_trained_on_have_no_out_of_bag_prediction() -> None:
    with pytest.warns(UserWarning, match="rows have no out-of-bag prediction"):
        forest = regressor(n_trees=2, oob_score=True).fit(X, Y)
    assert np.isnan(forest.oob_prediction_).sum() == 400 - 2 * 60


@pytest.mark.parametrize("options", [{"early_stopping_rounds": None}, {"eval_set": (X, Y)}], ids=["all", "eval_set"])
def test_without_rows_that_are_left_out_there_is_no_out_of_bag_score(options: dict[str, Any]) -> None:
    given = {name: options.pop(name) for name in ("eval_set",) if name in options}
    with pytest.raises(InputValueError, match="oob_score must be False if every tree trains on all rows"):
        regressor(oob_score=True, **options).fit(X, Y, **given)


def test_all_trees_validate_on_the_rows_of_an_eval_set() -> None:
    far = (X + 100.0, Y + 1000.0)
    losses = [tree.history_["valid_loss"][0] for tree in regressor().fit(X, Y, eval_set=far).estimators_]
    assert min(losses) > 1000
    with pytest.raises(InputValueError, match="X has 2 features, but ArgminForestRegressor is expecting 3 features"):
        regressor().fit(X, Y, eval_set=(X[:, :2], Y))


def test_weights_of_classes_matter() -> None:
    rare = np.where(CLASSES == "c", "c", "a")
    heavy = classifier(class_weight={"a": 1.0, "c": 50.0}).fit(X, rare)
    assert (heavy.predict(X) == "c").sum() > (classifier().fit(X, rare).predict(X) == "c").sum()


def test_clone_pickle_and_search() -> None:
    forest = classifier(bootstrap=True, max_features=2).fit(X, CLASSES)
    again = clone(forest)
    assert not hasattr(again, "estimators_")
    assert_array_equal(again.fit(X, CLASSES).predict_proba(X), forest.predict_proba(X))
    assert_array_equal(pickle.loads(pickle.dumps(forest)).predict_proba(X), forest.predict_proba(X))
    search = GridSearchCV(classifier(n_trees=1), {"n_trees": [1, 2]}, cv=2).fit(X, CLASSES)
    assert len(search.best_estimator_.estimators_) == search.best_params_["n_trees"]


@pytest.mark.parametrize(
    ("option", "wrong"),
    [("n_trees", 0), ("max_features", 0), ("max_features", 0.0), ("max_features", 1.5), ("bootstrap", "yes")],
)
def test_wrong_options(option: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"The '{option}' parameter"):
        regressor(**{option: wrong}).fit(X, Y)


def test_a_fit_that_fails_leaves_the_forest_as_it_was() -> None:
    forest = regressor().fit(X, Y)
    expected = forest.predict(X)
    with pytest.raises(InputValueError):
        forest.fit(X[:, :2], np.where(Y > 0, Y, np.nan))
    assert_array_equal(forest.predict(X), expected)


def test_a_forest_that_is_not_fitted_says_so() -> None:
    for ask in (regressor().predict, regressor().apply, classifier().predict_proba):
        with pytest.raises(NotFittedError):
            ask(X)


@pytest.mark.parametrize("function", [prunus.export_text, prunus.tree_summary, prunus.plot_tree, prunus.export_dict])
def test_pictures_want_a_single_tree(function: Any) -> None:
    with pytest.raises(InputTypeError, match=r"must be a single tree, .* Pass forest.estimators_\[k\]"):
        function(regressor(n_trees=1).fit(X, Y))


def test_options_are_chosen_once_for_all_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "SOFT", (choosing.Candidate("linear", 2, 0), choosing.Candidate("additive", 2, 4)))
    monkeypatch.setattr(choosing, "ALMOST", 1e9)
    forest = regressor(n_trees=4, leaf="auto", depth="auto", pieces="auto").fit(X, Y)
    kinds = [(tree.leaf, tree.pieces) for tree in forest.estimators_]
    assert set(kinds) == {("linear", 0), ("additive", 4)}
    assert kinds[:2] == kinds[2:]
    assert kinds[0][0] == forest.chosen_["leaf"]
    without = next(tree for tree in forest.estimators_ if tree.leaf == "linear")
    pieces = [column.piece for column in forest.encoder_.columns_]
    assert any(pieces)
    assert not without.tree_.weight[:, pieces].any()
    assert_allclose(forest.predict(X), np.mean([tree.predict(X) for tree in forest.estimators_], 0), rtol=SAME)
    assert len(forest.set_params(n_trees=6, warm_start=True).fit(X, Y).estimators_) == 6
