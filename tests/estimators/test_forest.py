"""Forests: what trees learn side by side, how they are averaged, what they have not seen, and their files."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from onnxruntime import InferenceSession  # type: ignore[import-untyped]
from safetensors.torch import load_file, save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import prunus
from prunus import ArgminForestClassifier, ArgminForestRegressor
from prunus.errors import InputTypeError, InputValueError, ModelFileError
from prunus.fitting import choosing
from prunus.io import _checksum, _read
from tests.estimators.problems import as_pandas, as_polars, labels, made, mixed, table, values
from tests.tolerances import ROUNDING

X = table(400)
Y, CLASSES = values(X), labels(X, "abc")
SAME = ROUNDING[torch.float64]
QUICK: Any = {"n_trees": 3, "depth": 2, "leaf": "constant", "pieces": 0, "max_epochs": 5, "random_state": 0}
KINDS: list[dict[str, Any]] = [
    {},
    {"routing": "hard"},
    {"leaf": "mlp", "split": "mlp", "hidden_layer_sizes": (8,)},
    {"leaf": "linear", "bootstrap": True, "max_features": 2},
]


def classifier(**options: Any) -> ArgminForestClassifier:
    return made(ArgminForestClassifier, QUICK | options)


def regressor(**options: Any) -> ArgminForestRegressor:
    return made(ArgminForestRegressor, QUICK | options)


def own_split(inputs: int, depth: int) -> torch.nn.Module:
    return torch.nn.Linear(inputs, 2**depth - 1)


@pytest.mark.parametrize("hard", [False, True])
def test_probabilities_paths_and_importances_are_those_of_the_trees(hard: bool) -> None:
    forest = classifier().fit(X, CLASSES)
    expected = np.mean([tree.predict_proba(X, hard=hard) for tree in forest.estimators_], axis=0)
    assert_allclose(forest.predict_proba(X, hard=hard), expected, rtol=SAME, atol=SAME)
    assert_array_equal(forest.predict(X, hard=hard), forest.classes_[expected.argmax(1)])
    assert_allclose(forest.predict_log_proba(X, hard=hard), np.log(expected), rtol=SAME, atol=SAME)
    assert_array_equal(forest.apply(X), np.stack([tree.apply(X) for tree in forest.estimators_], axis=1))
    importances = np.mean([tree.feature_importances_ for tree in forest.estimators_], axis=0)
    assert_allclose(forest.feature_importances_, importances, rtol=SAME, atol=SAME)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
def test_values_and_quantiles_are_those_of_the_trees(loss: str) -> None:
    forest = regressor(loss=loss).fit(X, np.abs(Y))
    each = np.stack([tree.predict(X) for tree in forest.estimators_])
    assert_allclose(forest.predict(X), each.mean(0), rtol=SAME, atol=SAME)
    found = forest.predict_quantiles(X, [0.0, 0.5, 1.0])
    assert_allclose(found, np.stack((each.min(0), np.median(each, axis=0), each.max(0)), axis=1), rtol=SAME, atol=SAME)
    many = np.tile(X, (50, 1))  # are predicted in chunks
    assert_array_equal(forest.predict(many), np.tile(forest.predict(X), 50))
    assert_array_equal(forest.apply(many), np.tile(forest.apply(X), (50, 1)))


def test_several_outputs_are_predicted_in_the_shape_of_y() -> None:
    forest = regressor().fit(X, np.stack((Y, -Y), axis=1))
    assert forest.predict(X).shape == (400, 2)
    assert forest.predict_quantiles(X, [0.1, 0.5, 0.9]).shape == (400, 2, 3)


@pytest.mark.parametrize("options", [{}, {"routing": "hard"}, {"leaf": "mlp", "bootstrap": True, "max_features": 2}])
def test_results_do_not_depend_on_the_number_of_threads(options: dict[str, Any]) -> None:
    before = torch.get_num_threads()
    first, second = (regressor(n_jobs=n_jobs, **options).fit(X, Y) for n_jobs in (1, 2))
    assert_array_equal(first.predict(X), second.predict(X))
    assert not np.array_equal(first.estimators_[0].predict(X), first.estimators_[1].predict(X))
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("convert", [as_pandas, as_polars])
def test_trees_share_the_encoder_and_the_target_and_work_on_their_own(convert: Any) -> None:
    frame = convert(mixed(60))
    forest = classifier(max_features=0.6).fit(frame, labels(X[:60], "ab"))
    assert_array_equal(forest.feature_names_in_, ["size", "count", "color", "member", "since"])
    assert np.isfinite(forest.predict_proba(frame)).all()
    for tree in forest.estimators_:
        assert isinstance(tree, prunus.ArgminTreeClassifier)
        assert tree.encoder_ is forest.encoder_
        assert tree.target_ is forest.target_
        assert (tree.n_jobs, tree.callbacks) == (None, None)
        assert len(prunus.export_text(tree).splitlines()) > 1
        assert_array_equal(pickle.loads(pickle.dumps(tree)).predict(frame), tree.predict(frame))


@pytest.mark.parametrize(
    "options",
    [{}, {"leaf": "linear"}, {"leaf": "additive", "pieces": 4}, {"leaf": "mlp", "split": "mlp"},
     {"split": "sparse_mlp"}, {"max_split_features": 2}, {"routing": "hard"}, {"routing": "hard", "leaf": "linear"}],
    ids=str,
)  # fmt: skip
def test_columns_that_a_tree_does_not_see_have_no_effect(options: dict[str, Any]) -> None:
    x = table(400, columns=4)
    forest = regressor(max_features=2, **options).fit(x, values(x))
    for tree in forest.estimators_:
        unseen = tree.feature_importances_ == 0
        assert unseen.sum() == 2
        assert_array_equal(tree.predict(np.where(unseen, 7.0, x)), tree.predict(x))
    assert (forest.feature_importances_ > 0).sum() > 2


def test_columns_that_a_tree_does_not_see_have_no_effect_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for tree in regressor(max_features=2, split=own_split).fit(X, Y).estimators_:
        assert sum(np.array_equal(tree.predict(X + 7.0 * np.eye(3)[i]), tree.predict(X)) for i in range(3)) == 1
    monkeypatch.setattr("prunus.fitting.train.noise_columns", lambda *_: None)  # it would leave out most columns
    x = table(40, columns=2100)  # this many are not decorrelated
    (tree,) = regressor(n_trees=1, max_features=2000).fit(x, values(x)).estimators_
    unseen = tree.feature_importances_ == 0
    assert unseen.sum() == 100
    assert_array_equal(tree.predict(np.where(unseen, 7.0, x)), tree.predict(x))


def test_a_warm_start_keeps_the_trees_and_adds_new_ones() -> None:
    forest = classifier(n_trees=2, warm_start=True).fit(X, CLASSES)
    before = list(forest.estimators_)
    forest.set_params(n_trees=4).fit(X, CLASSES)
    assert [tree is old for tree, old in zip(forest.estimators_, before, strict=False)] == [True, True]
    assert all(tree.encoder_ is forest.encoder_ for tree in forest.estimators_)
    assert_array_equal(forest.predict_proba(X), classifier(n_trees=4).fit(X, CLASSES).predict_proba(X))
    same = regressor(warm_start=True, random_state=None).fit(X, Y)
    expected = same.predict(X)
    assert_array_equal(same.fit(X, Y).predict(X), expected)
    with pytest.raises(InputValueError, match="n_trees must be at least 3, the number of trees of the last fit"):
        same.set_params(n_trees=2).fit(X, Y)


def test_without_a_warm_start_nothing_of_the_last_fit_stays_unless_a_fit_fails() -> None:
    forest = regressor(bootstrap=True, oob_score=True, n_trees=20).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    forest.set_params(oob_score=False, n_trees=2).fit(X[:, :2], Y)
    assert len(forest.estimators_) == forest.n_features_in_ == 2
    assert not {"feature_names_in_", "oob_score_", "oob_prediction_"} & set(vars(forest))
    expected = forest.predict(X[:, :2])
    with pytest.raises(InputValueError):
        forest.fit(X, np.where(Y > 0, Y, np.nan))
    assert_array_equal(forest.predict(X[:, :2]), expected)


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
    assert all(
        tree.training_options.checkpoint is None and "keeps_checkpoint" not in vars(tree)
        for tree in resumed.estimators_
    )
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
    twice = np.concatenate((X[:200], X[:200]))  # equal rows are in the same bags
    same = regressor(n_trees=20, bootstrap=True, oob_score=True).fit(twice, np.tile(Y[:200], 2))
    assert_array_equal(same.oob_prediction_[:200], same.oob_prediction_[200:])
    with pytest.warns(UserWarning, match="rows have no out-of-bag prediction"):
        few = regressor(n_trees=2, oob_score=True).fit(X, Y)
    assert np.isnan(few.oob_prediction_).sum() == 400 - 2 * 60


def test_eval_sets_and_weights_of_classes_reach_all_trees() -> None:
    far = (X + 100.0, Y + 1000.0)
    losses = [tree.history_["valid_loss"][0] for tree in regressor().fit(X, Y, eval_set=far).estimators_]
    assert min(losses) > 1000
    with pytest.raises(InputValueError, match="X has 2 features, but ArgminForestRegressor is expecting 3 features"):
        regressor().fit(X, Y, eval_set=(X[:, :2], Y))
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


def test_mistakes() -> None:
    wrong: list[tuple[str, Any]] = [("n_trees", 0), ("bootstrap", "yes")]
    for option, value in wrong + [("max_features", bad) for bad in (0, 0.0, 1.5)]:
        with pytest.raises(ValueError, match=f"The '{option}' parameter"):
            regressor(**{option: value}).fit(X, Y)
    for given in ({"early_stopping_rounds": None}, {"eval_set": (X, Y)}):
        fits: dict[str, Any] = {"eval_set": given.pop("eval_set")} if "eval_set" in given else {}
        with pytest.raises(InputValueError, match="oob_score must be False if every tree trains on all rows"):
            regressor(oob_score=True, **given).fit(X, Y, **fits)
    for ask in (regressor().predict, regressor().apply, classifier().predict_proba):
        with pytest.raises(NotFittedError):
            ask(X)
    forest = regressor(n_trees=1).fit(X, Y)
    for quantiles in (0.5, [1.5], [-0.1], ["a"], [[0.5]], [float("nan")]):
        with pytest.raises((InputValueError, InputTypeError), match="quantiles must be a list of numbers from 0 to 1"):
            forest.predict_quantiles(X, quantiles)
    for function in (prunus.export_text, prunus.tree_summary, prunus.plot_tree, prunus.export_dict):
        with pytest.raises(InputTypeError, match=r"must be a single tree, .* Pass forest.estimators_\[k\]"):
            function(forest)


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


@pytest.mark.parametrize("options", [*KINDS, {"loss": "poisson"}], ids=str)
def test_files_and_onnx_predict_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    x, same = X[:60], ROUNDING[torch.float32]
    forests: list[Any] = [regressor(**options).fit(x, np.abs(Y[:60]))]
    forests += [classifier(**options).fit(x, CLASSES[:60])] if "loss" not in options else []
    for forest in forests:
        prunus.save(forest, tmp_path / "forest.prunus")
        loaded: Any = prunus.load(tmp_path / "forest.prunus")
        assert loaded.get_params() == forest.get_params()
        assert [one.get_params() for one in loaded.estimators_] == [one.get_params() for one in forest.estimators_]
        assert_array_equal(loaded.apply(x), forest.apply(x))
        for hard in (False, True):
            session = InferenceSession(prunus.export_onnx(forest, tmp_path / "forest.onnx", hard=hard))
            assert_array_equal(loaded.predict(x, hard=hard), forest.predict(x, hard=hard))
            if hasattr(forest, "classes_"):
                probabilities = forest.predict_proba(x, hard=hard)
                assert_array_equal(loaded.predict_proba(x, hard=hard), probabilities)
                label, found = session.run(["label", "probabilities"], {"X": x})
                assert_allclose(found, probabilities, rtol=0, atol=same)
                assert_array_equal(label, forest.predict(x, hard=hard))
            else:
                (found,) = session.run(["variable"], {"X": x})
                assert_allclose(found, forest.predict(x, hard=hard), rtol=same, atol=same)


def test_what_a_file_of_a_forest_holds(tmp_path: Path) -> None:
    path, frame = tmp_path / "forest.prunus", as_pandas(mixed(60))
    forest = regressor(warm_start=True).fit(frame, Y[:60])
    forest.target_name_, forest.date_orders_ = "price", {"since": "day-first"}
    prunus.save(forest, path)
    loaded: Any = prunus.load(path)
    assert all(tree.encoder_ is loaded.encoder_ and tree.target_ is loaded.target_ for tree in loaded.estimators_)
    assert_array_equal(loaded.feature_names_in_, frame.columns)
    assert (loaded.target_name_, loaded.date_orders_) == ("price", {"since": "day-first"})
    header, tensors = _read(path)
    assert all("encoder" not in tree for tree in header["trees"])
    assert sorted(name for name in tensors if "target" in name) == ["target.deviation", "target.mean"]
    expected, found = (one.set_params(n_trees=4).fit(frame, Y[:60]) for one in (forest, loaded))
    assert_array_equal(found.predict(frame), expected.predict(frame))
    with pytest.raises(NotFittedError):
        prunus.save(ArgminForestRegressor(), path)
    with pytest.raises(InputTypeError, match="the split must be one of prunus"):
        prunus.export_onnx(regressor(split=own_split).fit(X, Y), tmp_path / "forest.onnx")


def cut_weights(tensors: Any) -> None:
    tensors["trees.2.tree.splits.0.weight"] = tensors["trees.2.tree.splits.0.weight"][:, :2].clone()


@pytest.mark.parametrize(
    "damage",
    [
        lambda _, tensors: tensors.pop("trees.1.tree.mass"),
        lambda _, tensors: cut_weights(tensors),
        lambda _, tensors: tensors.update({"trees.3.tree.mass": tensors["trees.0.tree.mass"].clone()}),
        lambda record, _: record.update(trees=[]),
        lambda record, _: record.update(kind="ArgminForestClassifier"),
        lambda record, _: record["trees"].pop(),
        lambda record, _: record["fitted"].update(seed="7"),
        lambda record, _: record["fitted"].update(more=1),
        lambda record, _: record["fitted"].update(target_name_=1),
    ],
)
def test_a_damaged_file_is_refused(damage: Callable[[Any, Any], Any], tmp_path: Path) -> None:
    path = tmp_path / "forest.prunus"
    prunus.save(regressor().fit(X[:60], Y[:60]), path)
    (record, _), tensors = _read(path), load_file(path)
    damage(record, tensors)
    text = json.dumps(record)
    save_file(tensors, path, metadata={"prunus": text, "sha256": _checksum(text, tensors)})
    with pytest.raises(ModelFileError, match="damaged"):
        prunus.load(path)
