"""Rows that are held out, or given, to validate on, and what depends on them."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from prunus.errors import InputValueError
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values
from tests.tolerances import SAME_TRAINING

X, Y = table(), labels(table())
NOISE = np.where(np.arange(len(X)) % 3 == 0, 1 - Y, Y)
"""Labels of which a third are wrong: from some epoch on the validation loss rises."""


@pytest.mark.parametrize("eval_set", [(X, Y), [(X, Y)], (X, Y, None), (X, Y, np.ones(len(X)))])
def test_validation_rows_may_come_as(eval_set: Any) -> None:
    expected = classifier().fit(X, Y, eval_set=(X, Y)).history_["valid_loss"]
    assert classifier().fit(X, Y, eval_set=eval_set).history_["valid_loss"] == pytest.approx(
        expected, rel=SAME_TRAINING
    )


@pytest.mark.parametrize(
    "eval_set",
    [[X, Y], (X,), (), [], [(X, Y), (X, Y)], {"X": X, "y": Y}, X, [[X, Y]], (X, Y, None, None)],
    ids=["list", "one", "none", "empty", "two", "dict", "table", "lists", "four"],
)
def test_validation_rows_of_another_form_are_refused_with_the_cure(eval_set: Any) -> None:
    with pytest.raises(InputValueError, match=r"eval_set must be a tuple \(X, y\) or \(X, y, sample_weight\)"):
        classifier().fit(X, Y, eval_set=eval_set)


@pytest.mark.parametrize(
    ("eval_set", "message"),
    [
        ((X[:, :2], Y), "X has 2 features, but ArgminTreeClassifier is expecting 3"),
        ((X, Y[:3]), r"inconsistent numbers of samples: \[3, 60\]"),
        ((X, Y + 5), r"y must contain only the classes \[0, 1\], got 5"),
        ((X, labels(X, "ab")), r"y must contain only the classes \[0, 1\], got 'a'"),
        ((X, None), "the target y is None"),
        ((X[:0], Y[:0]), r"Found array with 0 sample\(s\)"),
        ((X, Y, np.zeros(len(X))), "non-zero"),
    ],
    ids=["columns", "few", "class", "text", "none", "empty", "weight"],
)
def test_mistakes_in_validation_rows_are_named_as_such(eval_set: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        classifier().fit(X, Y, eval_set=eval_set)
    assert caught.value.__notes__ == ["The error is in eval_set."]


def test_validation_rows_of_a_mixed_frame() -> None:
    frame = as_pandas(mixed())
    tree = regressor().fit(frame, frame["count"], eval_set=(frame[:9], frame["count"][:9]))
    assert len(tree.history_["valid_loss"]) == 5


def test_the_validation_loss_is_that_of_the_predictions() -> None:
    tree = classifier().fit(X, Y, eval_set=(X, NOISE))
    log_proba = tree.predict_log_proba(X)[np.arange(len(X)), NOISE]
    assert tree.history_["valid_loss"][tree.best_iteration_] == pytest.approx(-log_proba.mean(), rel=SAME_TRAINING)


def test_validation_rows_have_weights() -> None:
    weight = np.linspace(1, 3, len(X))
    tree = classifier().fit(X, Y, eval_set=(X, NOISE, weight))
    log_proba = tree.predict_log_proba(X)[np.arange(len(X)), NOISE]
    expected = -np.average(log_proba, weights=weight)
    assert tree.history_["valid_loss"][tree.best_iteration_] == pytest.approx(expected, rel=SAME_TRAINING)


def test_training_stops_when_validation_does_not_improve() -> None:
    tree = classifier(max_epochs=200, early_stopping_rounds=3).fit(X, Y, eval_set=(X, NOISE))
    losses = tree.history_["valid_loss"]
    assert tree.n_iter_ == len(losses) == len(tree.history_["train_loss"]) < 200
    assert tree.best_iteration_ == int(np.argmin(losses)) == tree.n_iter_ - 4


def test_the_weights_of_the_best_epoch_are_kept() -> None:
    tree = classifier(max_epochs=40, early_stopping_rounds=None).fit(X, Y, eval_set=(X, NOISE))
    assert 0 < tree.best_iteration_ < tree.n_iter_ - 1 == 39
    stopped = classifier(max_epochs=40, callbacks=[lambda record: record["epoch"] > tree.best_iteration_])
    assert_array_equal(stopped.fit(X, Y).predict_proba(X), tree.predict_proba(X))


def test_without_early_stopping_all_rows_are_trained_on() -> None:
    tree = classifier(early_stopping_rounds=None).fit(X, Y)
    assert "valid_loss" not in tree.history_
    assert tree.best_iteration_ == tree.n_iter_ - 1 == 4


def test_early_stopping_holds_rows_out() -> None:
    x = table(100)
    rows: list[int] = []

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        rows.append(len(output))
        return (output - target).square().mean(1)

    regressor(early_stopping_rounds=2, validation_fraction=0.3, batch_size=100, loss=loss, max_epochs=1).fit(
        x, values(x)
    )
    assert rows == [70, 30]


def test_rows_that_are_held_out_have_all_classes_in_proportion() -> None:
    x = table(100)
    y = np.where(np.arange(100) % 10 == 0, "rare", "common")
    seen: list[int] = []

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        seen.append(int(target.sum()))
        return torch.nn.functional.cross_entropy(output, target, reduction="none")

    classifier(early_stopping_rounds=2, validation_fraction=0.2, batch_size=100, loss=loss, max_epochs=1).fit(x, y)
    assert seen == [8, 2]


def test_validation_rows_that_are_given_leave_all_rows_to_training() -> None:
    with_early, without = (classifier(early_stopping_rounds=rounds).fit(X, Y, eval_set=(X, Y)) for rounds in (50, None))
    assert_array_equal(with_early.predict_proba(X), without.predict_proba(X))


def test_few_rows_are_all_trained_on_by_default() -> None:
    assert "valid_loss" not in classifier().fit(X, Y).history_


def test_many_rows_are_validated_by_default() -> None:
    x = table(300)
    assert len(classifier(max_epochs=2).fit(x, labels(x)).history_["valid_loss"]) == 2


def test_history_has_an_entry_for_each_epoch() -> None:
    history = classifier().fit(X, Y, eval_set=(X, Y)).history_
    assert set(history) == {"epoch", "train_loss", "valid_loss", "learning_rate", "active_nodes", "seconds", "engine"}
    assert {len(entries) for entries in history.values()} == {5}
    assert history["epoch"] == [1, 2, 3, 4, 5]
