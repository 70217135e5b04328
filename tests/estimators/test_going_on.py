"""Training that goes on: warm starts, partial_fit, and fits that were interrupted."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from prunus.errors import CheckpointError, InputValueError
from prunus.fitting.training_options import nested
from prunus.training import EpochRecord
from tests.estimators.problems import LEAVES, as_pandas, classifier, labels, mixed, regressor, table, values

X, Y = table(), labels(table())


def interrupt(record: EpochRecord) -> None:
    if record["epoch"] == 15:
        raise KeyboardInterrupt


def test_a_warm_start_goes_on() -> None:
    tree = classifier(warm_start=True)
    first = tree.fit(X, Y).history_["train_loss"]
    both = tree.fit(X, Y).history_["train_loss"]
    assert both[:5] == first
    assert both[5] < both[2]
    assert both[-1] < both[4]
    assert tree.n_iter_ == len(both) == 10
    assert tree.best_iteration_ == 9
    assert tree.history_["epoch"] == [*range(1, 11)]


def test_without_a_warm_start_training_begins_anew() -> None:
    tree = classifier().fit(X, Y)
    first = tree.predict_proba(X)
    assert_array_equal(tree.fit(X, Y).predict_proba(X), first)
    assert tree.n_iter_ == 5


def test_the_first_fit_with_a_warm_start_is_a_fit_without() -> None:
    assert_array_equal(*(classifier(warm_start=warm).fit(X, Y).predict_proba(X) for warm in (False, True)))


def test_a_history_in_which_validation_came_later() -> None:
    tree = classifier(warm_start=True).fit(X, Y).fit(X, Y, eval_set=(X, Y))
    assert all(map(math.isnan, tree.history_["valid_loss"][:5]))
    assert tree.best_iteration_ == 5 + int(np.argmin(tree.history_["valid_loss"][5:]))


def test_a_warm_start_takes_other_rows_with_the_same_columns() -> None:
    frame = as_pandas(mixed())
    tree = regressor(warm_start=True).fit(frame, frame["count"]).fit(frame[::2], frame["count"][::2])
    assert tree.n_iter_ == 10


def test_a_warm_start_refuses_other_columns() -> None:
    tree = classifier(warm_start=True).fit(X, Y)
    with pytest.raises(InputValueError, match="X has 2 features, but ArgminTreeClassifier is expecting 3"):
        tree.fit(X[:, :2], Y)


def test_a_warm_start_refuses_new_classes() -> None:
    tree = classifier(warm_start=True).fit(X, Y)
    with pytest.raises(InputValueError, match=r"y must contain only the classes \[0, 1\], got 2"):
        tree.fit(X, Y + 1)


def test_a_warm_start_refuses_more_outputs() -> None:
    tree = regressor(warm_start=True).fit(X, values(X))
    with pytest.raises(InputValueError, match=r"y must have 1 outputs, got y.shape=\(60, 2\)"):
        tree.fit(X, np.column_stack((values(X), values(X))))


@pytest.mark.parametrize(("option", "value"), [("depth", 3), ("split", "elu"), ("split", "mlp"), ("leaf", "linear")])
def test_a_warm_start_refuses_to_rebuild_the_tree(option: str, value: Any) -> None:
    tree = classifier(warm_start=True).fit(X, Y).set_params(**{option: value})
    with pytest.raises(InputValueError, match=f"{option} must be the same as in the last fit.*{value}"):
        tree.fit(X, Y)


@pytest.mark.parametrize(("option", "value"), [("hidden_layer_sizes", (4, 4)), ("dropout", 0.5)])
def test_a_warm_start_refuses_to_rebuild_a_network(option: str, value: Any) -> None:
    tree = classifier(warm_start=True, leaf="mlp", hidden_layer_sizes=(4,)).fit(X, Y)
    tree.set_params(**nested({option: value}))
    with pytest.raises(InputValueError, match=f"{option} must be the same as in the last fit"):
        tree.fit(X, Y)


def test_a_warm_start_takes_up_another_pruning_strength() -> None:
    tree = classifier(warm_start=True, pruning_strength=0).fit(X, Y)
    assert tree.set_params(pruning_strength=1e9).fit(X, Y).get_n_leaves() == 1


@pytest.mark.parametrize("leaf", LEAVES)
def test_partial_fits_improve(leaf: str) -> None:
    tree = classifier(leaf=leaf)
    for _ in range(20):
        tree.partial_fit(X, Y)
    losses = tree.history_["train_loss"]
    assert max(losses[-2:]) < losses[2] < losses[0]  # losses of networks swing a little in the end
    assert tree.n_iter_ == 20


def test_partial_fits_take_batches() -> None:
    tree = regressor(leaf="linear")
    for _ in range(20):
        for part in (slice(0, 30), slice(30, 60)):
            tree.partial_fit(X[part], values(X)[part])
    assert tree.score(X, values(X)) > 0.3


def test_a_partial_fit_knows_classes_to_come() -> None:
    tree = classifier().partial_fit(X[:9], ["b"] * 9, classes=["c", "a", "b"])
    assert tree.classes_.tolist() == ["a", "b", "c"]
    assert set(tree.partial_fit(X, labels(X, "abc")).predict(X)) <= set("abc")


def test_a_partial_fit_takes_weights() -> None:
    weight = np.arange(len(X)) % 2
    weighted = regressor().partial_fit(X, values(X), sample_weight=weight)
    assert_array_equal(weighted.predict(X), regressor().partial_fit(X[1::2], values(X)[1::2]).predict(X))


def test_a_partial_fit_refuses_new_classes() -> None:
    tree = classifier().partial_fit(X, Y)
    with pytest.raises(InputValueError, match=r"y must contain only the classes \[0, 1\], got 2"):
        tree.partial_fit(X, Y + 1)


def test_a_first_partial_fit_refuses_classes_that_were_not_announced() -> None:
    with pytest.raises(InputValueError, match=r"y must contain only the classes \[5, 6\], got 0"):
        classifier().partial_fit(X, Y, classes=[5, 6])


def test_a_later_partial_fit_refuses_other_announcements() -> None:
    tree = classifier().partial_fit(X, Y, classes=[0, 1])
    assert tree.partial_fit(X, Y, classes=[1, 0]).n_iter_ == 2
    with pytest.raises(InputValueError, match=r"classes must be those of the first call, \[0, 1\]"):
        tree.partial_fit(X, Y, classes=[0, 1, 2])


def test_classes_announced_to_a_call_that_failed_are_forgotten() -> None:
    tree = classifier()
    with pytest.raises(InputValueError, match="Expected 2D array"):
        tree.partial_fit(X[:, 0], Y, classes=[0, 1, 2])
    assert tree.fit(X, Y).classes_.tolist() == [0, 1]


def test_a_fit_after_partial_fits_begins_anew() -> None:
    tree = classifier().partial_fit(X, Y)
    assert_array_equal(tree.fit(X, Y).predict_proba(X), classifier().fit(X, Y).predict_proba(X))


def test_a_first_fit_that_is_interrupted_leaves_nothing() -> None:
    tree = classifier(max_epochs=30, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        tree.fit(X, Y)
    with pytest.raises(NotFittedError):
        tree.predict(X)


def test_a_warm_start_that_is_interrupted_leaves_the_tree_that_was_there() -> None:
    tree = classifier(warm_start=True).fit(X, Y)
    before = tree.predict_proba(X)
    with pytest.raises(KeyboardInterrupt):
        tree.set_params(callbacks=[interrupt], max_epochs=30).fit(X, Y)
    assert_array_equal(tree.predict_proba(X), before)
    assert tree.n_iter_ == 5


def test_a_fit_that_fails_leaves_the_tree_that_was_there() -> None:
    tree = classifier().fit(X, Y)
    before = tree.predict_proba(X)
    with pytest.raises(InputValueError, match="y is None"):
        tree.fit(X[:, :2], None)
    with pytest.raises(KeyboardInterrupt):
        tree.set_params(callbacks=[interrupt], max_epochs=30).fit(X[:, :2], Y)
    assert_array_equal(tree.predict_proba(X), before)


def test_a_fit_that_cannot_begin_leaves_the_tree_that_was_there() -> None:
    tree = classifier().fit(X, Y)
    before = tree.predict_proba(X)
    with pytest.raises(InputValueError, match="Expected 2D array"):
        tree.fit(X[:, 0], Y)
    assert_array_equal(tree.predict_proba(X), before)


@pytest.mark.parametrize("options", [{}, {"leaf": "mlp", "split": "mlp"}, {"early_stopping_rounds": 30}])
def test_an_interrupted_fit_goes_on_from_its_checkpoint(options: dict[str, Any], tmp_path: Path) -> None:
    checkpoint = tmp_path / "fit.ckpt"
    options = options | {"max_epochs": 25, "batch_size": 16}
    with pytest.raises(KeyboardInterrupt):
        classifier(callbacks=[interrupt], checkpoint=checkpoint, **options).fit(X, Y)
    epochs: list[float] = []
    watch = [lambda record: epochs.append(record["epoch"])]
    resumed = classifier(checkpoint=str(checkpoint), callbacks=watch, **options).fit(X, Y)
    expected = classifier(**options).fit(X, Y)
    assert epochs[0] == 11
    for hard in (False, True):
        assert_array_equal(resumed.predict_proba(X, hard=hard), expected.predict_proba(X, hard=hard))
    assert resumed.history_["train_loss"] == expected.history_["train_loss"]
    assert resumed.best_iteration_ == expected.best_iteration_


def test_a_fit_that_ended_leaves_no_checkpoint(tmp_path: Path) -> None:
    classifier(max_epochs=20, checkpoint=tmp_path / "fit.ckpt").fit(X, Y)
    assert not list(tmp_path.iterdir())


def test_warm_starts_with_a_checkpoint_go_on(tmp_path: Path) -> None:
    tree = classifier(max_epochs=10, warm_start=True, checkpoint=tmp_path / "fit.ckpt").fit(X, Y).fit(X, Y)
    expected = classifier(max_epochs=10, warm_start=True).fit(X, Y).fit(X, Y)
    assert_array_equal(tree.predict_proba(X), expected.predict_proba(X))


def test_any_seed_is_taken_up_again(tmp_path: Path) -> None:
    options: dict[str, Any] = {"random_state": None, "max_epochs": 25, "checkpoint": tmp_path / "fit.ckpt"}
    with pytest.raises(KeyboardInterrupt):
        classifier(callbacks=[interrupt], **options).fit(X, Y)
    assert classifier(**options).fit(X, Y).n_iter_ == 25


def test_a_checkpoint_of_other_rows_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_epochs": 25, "checkpoint": tmp_path / "fit.ckpt"}
    with pytest.raises(KeyboardInterrupt):
        classifier(callbacks=[interrupt], **options).fit(X, Y)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        classifier(**options).fit(X[:50], Y[:50])
