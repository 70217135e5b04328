"""Options that are "auto": which candidates compete, which one is chosen, and what becomes of the choice."""

import pickle
from threading import Lock
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from prunus import ArgminForestRegressor, ArgminTreeClassifier, ArgminTreeRegressor
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


def options(chosen: dict[str, Any]) -> dict[str, Any]:
    return {name: chosen[name] for name in ("leaf", "depth", "pieces", "weight_decay")}


def auto_classifier(**others: Any) -> ArgminTreeClassifier:
    return classifier(**AUTO | others)


def auto_regressor(**others: Any) -> ArgminTreeRegressor:
    return regressor(**AUTO | others)


@pytest.mark.parametrize(
    "fixed", [{"leaf": "linear"}, {"depth": 3}, {"pieces": 4, "depth": 5}, {"weight_decay": 0.5}, {"routing": "hard"}]
)
def test_candidates_are_different_and_keep_what_is_given(fixed: dict[str, Any]) -> None:
    found = candidates(FitOptions.of(auto_regressor(**fixed)))
    assert len(found) == len(set(found)) > 1
    kept = {name: value for name, value in fixed.items() if name in choosing.CHOSEN}
    assert all(candidate._asdict().items() >= kept.items() for candidate in found)
    assert "weight_decay" not in fixed or {candidate.decay for candidate in found} == {1.0}


def test_candidates_of_hard_trees_have_leaves_of_hard_trees() -> None:
    for columns in (1, None):
        found = candidates(FitOptions.of(auto_regressor(routing="hard", max_split_features=columns)))
        assert "mlp" not in {candidate.leaf for candidate in found}


def test_all_candidates_compete() -> None:
    chosen = auto_regressor(hidden_layer_sizes=(4,)).fit(X, V).chosen_
    assert len(chosen["candidates"]) == len(choosing.SOFT)


@pytest.mark.usefixtures("few")
def test_the_best_candidate_is_first_and_trained() -> None:
    tree = auto_regressor().fit(X, V)
    best, *others = tree.chosen_["candidates"]
    assert options(tree.chosen_) == options(best)
    assert [other["loss"] for other in others] == sorted(other["loss"] for other in others)
    assert all(np.isfinite(candidate["loss"]) for candidate in (best, *others))
    again = regressor(**options(best), max_epochs=4).fit(X, V)
    assert_array_equal(tree.predict(X), again.predict(X))
    assert tree.get_params()["leaf"] == "auto"


@pytest.mark.usefixtures("few")
def test_a_candidate_that_suits_the_table_is_chosen() -> None:
    steep = regressor(leaf="auto", depth=0, pieces=0, max_epochs=60).fit(X, X @ [1.0, -2.0, 3.0])
    assert steep.chosen_["leaf"] != "constant"
    assert steep.score(X, X @ [1.0, -2.0, 3.0]) > 0.8


@pytest.mark.usefixtures("few")
def test_the_choice_depends_on_the_seed_and_not_on_the_number_of_threads() -> None:
    first, second = (auto_classifier(n_jobs=jobs).fit(X, Y) for jobs in (1, 2))
    assert first.chosen_ == second.chosen_
    assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    other = auto_classifier(random_state=1).fit(X, Y)
    assert other.chosen_["candidates"] != first.chosen_["candidates"]


@pytest.mark.usefixtures("few")
def test_a_random_state_is_drawn_from_as_without_a_choice() -> None:
    states = [np.random.RandomState(3) for _ in range(2)]
    auto_classifier(random_state=states[0]).fit(X, Y)
    classifier(random_state=states[1]).fit(X, Y)
    assert states[0].randint(2**31) == states[1].randint(2**31)


@pytest.mark.usefixtures("few")
def test_candidates_are_compared_on_the_eval_set() -> None:
    on_few, on_more = (auto_regressor().fit(X, V, eval_set=(X[:n], V[:n])) for n in (5, 50))
    assert on_few.chosen_["candidates"][0]["loss"] != on_more.chosen_["candidates"][0]["loss"]
    assert "valid_loss" in on_few.history_


@pytest.mark.usefixtures("few")
def test_candidates_know_the_weights_of_rows() -> None:
    light, plain = auto_regressor().fit(X, V, np.where(V > 0, 1.0, 0.01)), auto_regressor().fit(X, V)
    assert light.chosen_["candidates"][0]["loss"] != plain.chosen_["candidates"][0]["loss"]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("target", ["count", "member"])
def test_tables_with_categories_dates_and_missing_values(target: str) -> None:
    frame = as_pandas(mixed())
    tree = (auto_regressor if target == "count" else auto_classifier)().fit(frame.drop(columns=target), frame[target])
    assert len(tree.chosen_["candidates"]) == 3
    assert tree.predict(frame.drop(columns=target)).shape == (len(frame),)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("n", [2, 3, 5, 400, 3_100])
def test_tables_of_any_length(n: int) -> None:
    x = table(n)
    tree = auto_regressor(max_epochs=2).fit(x, values(x))
    assert tree.predict(x).shape == (n,)
    assert len(tree.chosen_["candidates"]) >= 1


@pytest.mark.usefixtures("few")
def test_a_table_of_one_row_has_nothing_to_compare_candidates_on() -> None:
    tree = auto_regressor().fit([[1.0, 2.0]], [3.0])
    assert [candidate["loss"] for candidate in tree.chosen_["candidates"]] == [None]
    assert_array_equal(tree.predict([[1.0, 2.0]]), [3.0])


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "others",
    [
        {"routing": "hard"},
        {"routing": "hard", "max_split_features": 1, "depth": 3},
        {"loss": "quantile", "quantile": 0.9},
        {"loss": "poisson"},
        {"early_stopping_rounds": None},
        {"max_leaf_nodes": 3},
    ],
)
def test_regressors_with_other_options(others: dict[str, Any]) -> None:
    tree = auto_regressor(**others).fit(X, np.exp(V))
    assert len(tree.chosen_["candidates"]) == 3
    assert np.isfinite(tree.predict(X)).all()


@pytest.mark.usefixtures("few")
def test_two_outputs() -> None:
    tree = auto_regressor().fit(X, np.column_stack((V, -V)))
    assert tree.predict(X).shape == (80, 2)
    assert len(tree.chosen_["candidates"]) == 3


@pytest.mark.usefixtures("few")
def test_class_weights_count_in_the_comparison() -> None:
    rare = np.where(X[:, 0] > 1, "yes", "no")
    plain, balanced = (auto_classifier(class_weight=weight).fit(X, rare) for weight in (None, "balanced"))
    assert plain.chosen_["candidates"][0]["loss"] != balanced.chosen_["candidates"][0]["loss"]


@pytest.mark.usefixtures("few")
def test_a_class_of_one_row() -> None:
    tree = auto_classifier().fit(X, np.where(np.arange(len(X)) == 7, "c", np.where(X[:, 0] > 0, "a", "b")))
    assert tree.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.usefixtures("few")
def test_a_clone_has_the_options_and_not_the_choice() -> None:
    copied = clone(auto_classifier(tuning_seconds=9).fit(X, Y))
    assert copied.get_params()["leaf"] == copied.get_params()["depth"] == copied.get_params()["pieces"] == "auto"
    assert copied.tuning_seconds == 9
    assert not hasattr(copied, "chosen_")


@pytest.mark.usefixtures("few")
def test_a_pickle_keeps_the_choice() -> None:
    tree = auto_classifier().fit(X, Y)
    loaded = pickle.loads(pickle.dumps(tree))
    assert loaded.chosen_ == tree.chosen_
    assert_array_equal(loaded.predict_proba(X), tree.predict_proba(X))


@pytest.mark.usefixtures("few")
def test_a_grid_search_over_a_choice() -> None:
    search = GridSearchCV(classifier(max_epochs=2), {"leaf": ["auto", "constant"]}, cv=2).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.usefixtures("few")
def test_a_warm_start_and_partial_fits_keep_the_choice() -> None:
    warm = auto_regressor(warm_start=True).fit(X, V)
    first = warm.chosen_
    assert warm.fit(X[:40], V[:40]).n_iter_ == 8
    assert warm.chosen_ == first
    parts = auto_regressor().partial_fit(X, V)
    first = parts.chosen_
    assert parts.partial_fit(X[:40], V[:40]).n_iter_ == 2
    assert parts.chosen_ == first


@pytest.mark.usefixtures("few")
def test_a_warm_start_does_not_choose_after_a_fit_with_given_options() -> None:
    tree = regressor(leaf="linear", warm_start=True).fit(X, V).set_params(leaf="auto")
    with pytest.raises(InputValueError, match="must be the same as in the last fit to continue it, got 'auto'"):
        tree.fit(X, V)


@pytest.mark.usefixtures("few")
def test_a_fit_with_given_options_forgets_the_choice() -> None:
    tree = auto_regressor().fit(X, V).set_params(leaf="constant", depth=2, pieces=0)
    assert not hasattr(tree.fit(X, V), "chosen_")


@pytest.mark.usefixtures("few")
def test_a_new_fit_chooses_anew() -> None:
    frame = as_pandas(mixed())
    tree = auto_regressor().fit(frame, frame["count"])
    first = tree.chosen_
    tree.fit(X, V)
    assert tree.chosen_ != first
    assert not hasattr(tree, "feature_names_in_")


@pytest.mark.usefixtures("few")
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


def test_without_time_the_first_candidate_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "SOFT", FEW)
    tree = auto_regressor(tuning_seconds=1e-6).fit(X, V)
    assert tree.chosen_["leaf"] == FEW[0].leaf
    assert [candidate["leaf"] for candidate in tree.chosen_["candidates"]] == [FEW[0].leaf]


@pytest.mark.usefixtures("few")
def test_callbacks_see_the_training_of_the_best_alone() -> None:
    epochs: list[int] = []
    auto_regressor(callbacks=[lambda record: epochs.append(record["epoch"])]).fit(X, V)
    assert epochs == [1, 2, 3, 4]


@pytest.mark.usefixtures("few")
def test_callbacks_that_cannot_be_copied() -> None:
    class Counter:
        def __init__(self) -> None:
            self.lock, self.epochs = Lock(), 0

        def __call__(self, _record: EpochRecord) -> None:
            self.epochs += 1

    counter = Counter()
    auto_regressor(callbacks=[counter]).fit(X, V)
    assert counter.epochs == 4  # broke: a lock cannot be copied


@pytest.mark.usefixtures("few")
def test_ctrl_c_ends_the_fit() -> None:
    def interrupt(_record: EpochRecord) -> None:
        raise KeyboardInterrupt

    tree = auto_regressor(callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        tree.fit(X, V)
    assert not hasattr(tree, "chosen_")


@pytest.mark.usefixtures("few")
def test_ctrl_c_ends_the_competition(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(choosing, "_stop_if", interrupt)
    tree = auto_regressor()
    with pytest.raises(KeyboardInterrupt):
        tree.fit(X, V)
    assert not hasattr(tree, "tree_")


SMALL: dict[str, Any] = {"max_epochs": 2, "hidden_layer_sizes": (4,)}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [kind(**AUTO | SMALL) for kind in (ArgminTreeClassifier, ArgminTreeRegressor)]
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", [ArgminTreeClassifier, ArgminForestRegressor])
def test_a_time_for_choices_needs_something_to_choose(kind: Any) -> None:
    with pytest.raises(InputValueError, match="tuning_seconds must be None unless leaf, depth or pieces is 'auto'"):
        kind(depth=2, leaf="constant", pieces=0, tuning_seconds=5.0).fit(X, Y)


@pytest.mark.parametrize(("option", "loss"), [("quantile", "quantile"), ("tweedie_power", "tweedie")])
def test_options_of_other_losses_are_refused(option: str, loss: str) -> None:
    with pytest.raises(InputValueError, match=f"{option} must be .* unless loss is '{loss}', got loss='huber'"):
        ArgminTreeRegressor(loss="huber").set_params(**{option: 1.2 if option == "tweedie_power" else 0.9}).fit(X, V)
