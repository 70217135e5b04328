"""Options that are "auto": which candidates compete, which one is chosen, and what becomes of the choice."""

import pickle
from threading import Lock
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from prunus import ArgminForestRegressor, ArgminTreeClassifier
from prunus.errors import InputValueError
from prunus.fitting import choosing
from prunus.fitting.choosing import Candidate, candidates
from prunus.fitting.options import FitOptions
from prunus.training import EpochRecord
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values

X = table(80)
Y, V = labels(X), values(X)
FEW = (Candidate("additive", 3, 4), Candidate("linear", 2, 0, 2.0), Candidate("constant", 3, 0, 3.0))
AUTO: dict[str, Any] = {"leaf": "auto", "depth": "auto", "pieces": "auto", "max_epochs": 4}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer and smaller candidates, where it does not matter which they are."""
    monkeypatch.setattr(choosing, "SOFT", FEW)
    monkeypatch.setattr(choosing, "HARD", FEW)


few_candidates = pytest.mark.usefixtures("few")


def options(chosen: dict[str, Any]) -> dict[str, Any]:
    return {name: chosen[name] for name in ("leaf", "depth", "pieces", "weight_decay")}


def auto_classifier(**others: Any) -> ArgminTreeClassifier:
    return classifier(**AUTO | others)


def auto_regressor(**others: Any) -> Any:
    return regressor(**AUTO | others)


def first_loss(tree: Any) -> float:
    return float(tree.chosen_["candidates"][0]["loss"])


@pytest.mark.parametrize(
    "fixed", [{"leaf": "linear"}, {"depth": 3}, {"pieces": 4, "depth": 5}, {"weight_decay": 0.5}, {"routing": "hard"}]
)
def test_candidates_are_different_and_keep_what_is_given(fixed: dict[str, Any]) -> None:
    found = candidates(FitOptions.of(auto_regressor(**fixed)))
    assert len(found) == len(set(found)) > 1
    kept = {name: value for name, value in fixed.items() if name in choosing.CHOSEN}
    assert all(candidate._asdict().items() >= kept.items() for candidate in found)
    assert "weight_decay" not in fixed or {candidate.decay for candidate in found} == {1.0}
    for columns in (1, None):
        hard = candidates(FitOptions.of(auto_regressor(**fixed | {"routing": "hard"}, max_split_features=columns)))
        assert "mlp" not in {candidate.leaf for candidate in hard}


def test_all_candidates_compete() -> None:
    chosen = auto_regressor(hidden_layer_sizes=(4,)).fit(X, V).chosen_
    assert len(chosen["candidates"]) == len(choosing.SOFT)


@few_candidates
def test_the_best_candidate_is_first_and_trained() -> None:
    tree = auto_regressor().fit(X, V)
    best, *others = tree.chosen_["candidates"]
    assert options(tree.chosen_) == options(best)
    assert [other["loss"] for other in others] == sorted(other["loss"] for other in others)
    assert all(np.isfinite(candidate["loss"]) for candidate in (best, *others))
    again = regressor(**options(best), max_epochs=4).fit(X, V)
    assert_array_equal(tree.predict(X), again.predict(X))
    assert tree.get_params()["leaf"] == "auto"
    steep = regressor(leaf="auto", depth=0, pieces=0, max_epochs=60).fit(X, X @ [1.0, -2.0, 3.0])
    assert steep.chosen_["leaf"] != "constant"
    assert steep.score(X, X @ [1.0, -2.0, 3.0]) > 0.8


@few_candidates
def test_the_choice_depends_on_the_seed_and_not_on_the_number_of_threads() -> None:
    first, second = (auto_classifier(n_jobs=jobs).fit(X, Y) for jobs in (1, 2))
    assert first.chosen_ == second.chosen_
    assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert auto_classifier(random_state=1).fit(X, Y).chosen_["candidates"] != first.chosen_["candidates"]
    states = [np.random.RandomState(3) for _ in range(2)]  # are drawn from as without a choice
    auto_classifier(random_state=states[0]).fit(X, Y)
    classifier(random_state=states[1]).fit(X, Y)
    assert states[0].randint(2**31) == states[1].randint(2**31)


@few_candidates
def test_candidates_are_compared_on_the_eval_set_with_weights() -> None:
    on_few, on_more = (auto_regressor().fit(X, V, eval_set=(X[:n], V[:n])) for n in (5, 50))
    assert first_loss(on_few) != first_loss(on_more)
    assert "valid_loss" in on_few.history_
    light = auto_regressor().fit(X, V, np.where(V > 0, 1.0, 0.01))
    assert first_loss(light) != first_loss(auto_regressor().fit(X, V))
    rare = np.where(X[:, 0] > 1, "yes", "no")
    plain, balanced = (auto_classifier(class_weight=weight).fit(X, rare) for weight in (None, "balanced"))
    assert first_loss(plain) != first_loss(balanced)


@few_candidates
@pytest.mark.parametrize("n", [1, 2, 3, 5, 400, 3_100])
def test_tables_of_any_length(n: int) -> None:
    x = table(n)
    tree = auto_regressor(max_epochs=2).fit(x, values(x))
    assert tree.predict(x).shape == (n,)
    assert len(tree.chosen_["candidates"]) >= 1
    if n == 1:  # nothing to compare candidates on
        assert [candidate["loss"] for candidate in tree.chosen_["candidates"]] == [None]
        assert_array_equal(tree.predict(x), values(x))


@few_candidates
@pytest.mark.parametrize(
    "others",
    [{"routing": "hard"}, {"routing": "hard", "max_split_features": 1, "depth": 3}, {"loss": "poisson"},
     {"loss": "quantile", "quantile": 0.9}, {"early_stopping_rounds": None}, {"max_leaf_nodes": 3}],
)  # fmt: skip
def test_other_options(others: dict[str, Any]) -> None:
    tree = auto_regressor(**others).fit(X, np.exp(V))
    assert len(tree.chosen_["candidates"]) == 3
    assert np.isfinite(tree.predict(X)).all()


@few_candidates
def test_targets_and_tables_of_all_kinds() -> None:
    frame = as_pandas(mixed())
    for auto, target in ((auto_regressor, "count"), (auto_classifier, "member")):
        tree: Any = auto().fit(frame.drop(columns=target), frame[target])
        assert len(tree.chosen_["candidates"]) == 3
        assert tree.predict(frame.drop(columns=target)).shape == (len(frame),)
    two = auto_regressor().fit(X, np.column_stack((V, -V)))
    assert two.predict(X).shape == (80, 2)
    assert len(two.chosen_["candidates"]) == 3
    single = np.where(np.arange(len(X)) == 7, "c", np.where(X[:, 0] > 0, "a", "b"))
    assert auto_classifier().fit(X, single).classes_.tolist() == ["a", "b", "c"]


@few_candidates
def test_clones_forget_the_choice_and_pickles_keep_it() -> None:
    tree = auto_classifier(tuning_seconds=9).fit(X, Y)
    copied = clone(tree)
    assert copied.get_params()["leaf"] == copied.get_params()["depth"] == copied.get_params()["pieces"] == "auto"
    assert copied.tuning_seconds == 9
    assert not hasattr(copied, "chosen_")
    loaded = pickle.loads(pickle.dumps(tree))
    assert loaded.chosen_ == tree.chosen_
    assert_array_equal(loaded.predict_proba(X), tree.predict_proba(X))
    search = GridSearchCV(classifier(max_epochs=2), {"leaf": ["auto", "constant"]}, cv=2).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@few_candidates
def test_a_warm_start_and_partial_fits_keep_the_choice() -> None:
    warm = auto_regressor(warm_start=True).fit(X, V)
    first = warm.chosen_
    assert warm.fit(X[:40], V[:40]).n_iter_ == 8
    assert warm.chosen_ == first
    parts = auto_regressor().partial_fit(X, V)
    first = parts.chosen_
    assert parts.partial_fit(X[:40], V[:40]).n_iter_ == 2
    assert parts.chosen_ == first
    given = regressor(leaf="linear", warm_start=True).fit(X, V).set_params(leaf="auto")
    with pytest.raises(InputValueError, match="must be the same as in the last fit to continue it, got 'auto'"):
        given.fit(X, V)


@few_candidates
def test_a_new_fit_chooses_anew_or_forgets_the_choice() -> None:
    frame = as_pandas(mixed())
    tree = auto_regressor().fit(frame, frame["count"])
    first = tree.chosen_
    tree.fit(X, V)
    assert tree.chosen_ != first
    assert not hasattr(tree, "feature_names_in_")
    assert not hasattr(tree.set_params(leaf="constant", depth=2, pieces=0).fit(X, V), "chosen_")


@few_candidates
def test_a_fit_that_fails_leaves_the_estimator_as_it_was() -> None:
    tree = auto_regressor().fit(X, V)
    before, learned = dict(vars(tree)), tree.predict(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        tree.fit(X, V[:10])
    with pytest.raises(ValueError, match="X has 2 features"):
        tree.fit(X, V, eval_set=(X[:, :2], V))
    assert vars(tree).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(tree).items())
    assert_array_equal(tree.predict(X), learned)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"routing": "hard", "leaf": "mlp"}, "leaf must be one of .* if routing is 'hard', got 'mlp'"),
        ({"routing": "hard", "split": "elu"}, "split must be one of .* if routing is 'hard', got 'elu'"),
        ({"split": "mlp", "max_split_features": 2}, "max_split_features must be None unless split is 'linear'"),
        ({"tuning_seconds": 0}, "tuning_seconds"),
        ({"depth": "deep"}, "depth"),
        ({"n_jobs": 0}, "n_jobs must be None or an int other than 0"),
    ],
)
def test_mistakes_are_told_of_before_candidates_are_trained(
    others: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "side_by_side", lambda *_: pytest.fail("candidates were trained"))
    with pytest.raises(ValueError, match=message):
        auto_regressor(**others).fit(X, V)


@few_candidates
def test_without_time_the_first_candidate_is_trained() -> None:
    tree = auto_regressor(tuning_seconds=1e-6).fit(X, V)
    assert [candidate["leaf"] for candidate in tree.chosen_["candidates"]] == [tree.chosen_["leaf"]] == [FEW[0].leaf]
    for kind in (ArgminTreeClassifier, ArgminForestRegressor):
        with pytest.raises(InputValueError, match="tuning_seconds must be None unless leaf, depth or pieces is 'auto'"):
            kind(depth=2, leaf="constant", pieces=0, tuning_seconds=5.0).fit(X, Y)


@few_candidates
def test_callbacks_see_the_training_of_the_best_alone() -> None:
    class Counter:
        def __init__(self) -> None:
            self.lock, self.epochs = Lock(), list[int]()  # broke: a lock cannot be copied

        def __call__(self, record: EpochRecord) -> None:
            self.epochs.append(record["epoch"])

    counter = Counter()
    auto_regressor(callbacks=[counter]).fit(X, V)
    assert counter.epochs == [1, 2, 3, 4]


@few_candidates
@pytest.mark.parametrize("where", ["fit", "competition"])
def test_ctrl_c_ends_the_fit_and_the_competition(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if where == "competition":
        monkeypatch.setattr(choosing, "_stop_if", interrupt)
    tree = auto_regressor(callbacks=[interrupt] if where == "fit" else None)
    with pytest.raises(KeyboardInterrupt):
        tree.fit(X, V)
    assert not hasattr(tree, "chosen_")
    assert not hasattr(tree, "tree_")
