"""Rows that are held out, or given, to validate on, and what depends on them."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from prunus.errors import InputValueError
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values
from tests.tolerances import SAME_TRAINING

X, Y = table(), labels(table())
NOISE = np.where(np.arange(len(X)) % 3 == 0, 1 - Y, Y)
"""Labels of which a third are wrong: from some epoch on the validation loss rises."""


def test_validation_rows_may_come_in_several_forms() -> None:
    expected = classifier().fit(X, Y, eval_set=(X, Y)).history_["valid_loss"]
    assert len(expected) == 5
    given: list[Any] = [[(X, Y)], (X, Y, None), (X, Y, np.ones(len(X)))]
    for eval_set in given:
        found = classifier().fit(X, Y, eval_set=eval_set).history_["valid_loss"]
        assert found == pytest.approx(expected, rel=SAME_TRAINING)
    frame = as_pandas(mixed())
    tree = regressor().fit(frame, frame["count"], eval_set=(frame[:9], frame["count"][:9]))
    assert len(tree.history_["valid_loss"]) == 5


def test_validation_rows_of_another_form_are_refused_with_the_cure() -> None:
    wrong: list[Any] = [[X, Y], (X,), (), [], [(X, Y), (X, Y)], {"X": X, "y": Y}, X, [[X, Y]], (X, Y, None, None)]
    for eval_set in wrong:
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


@pytest.mark.parametrize("weight", [None, np.linspace(1, 3, len(X))], ids=["equal", "weighted"])
def test_the_validation_loss_is_that_of_the_predictions(weight: Any) -> None:
    tree = classifier().fit(X, Y, eval_set=(X, NOISE, weight))
    log_proba = tree.predict_log_proba(X)[np.arange(len(X)), NOISE]
    expected = -np.average(log_proba, weights=weight)
    assert tree.history_["valid_loss"][tree.best_iteration_] == pytest.approx(expected, rel=SAME_TRAINING)


def test_training_stops_when_validation_does_not_improve_and_keeps_the_best_epoch() -> None:
    tree = classifier(max_epochs=200, early_stopping_rounds=3).fit(X, Y, eval_set=(X, NOISE))
    losses = tree.history_["valid_loss"]
    assert tree.n_iter_ == len(losses) == len(tree.history_["train_loss"]) < 200
    assert tree.best_iteration_ == int(np.argmin(losses)) == tree.n_iter_ - 4
    tree = classifier(max_epochs=40, early_stopping_rounds=None).fit(X, Y, eval_set=(X, NOISE))
    assert 0 < tree.best_iteration_ < tree.n_iter_ - 1 == 39
    stopped = classifier(max_epochs=40, callbacks=[lambda record: record["epoch"] > tree.best_iteration_])
    assert_array_equal(stopped.fit(X, Y).predict_proba(X), tree.predict_proba(X))


def test_early_stopping_holds_rows_out_with_all_classes_in_proportion() -> None:
    x = table(100)
    y = np.where(np.arange(100) % 10 == 0, "rare", "common")
    rows: list[int] = []
    rare: list[int] = []

    def squares(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        rows.append(len(output))
        return (output - target).square().mean(1)

    def entropy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        rare.append(int(target.sum()))
        return torch.nn.functional.cross_entropy(output, target, reduction="none")

    options: dict[str, Any] = {"early_stopping_rounds": 2, "batch_size": 100, "max_epochs": 1}
    regressor(validation_fraction=0.3, loss=squares, **options).fit(x, values(x))
    classifier(validation_fraction=0.2, loss=entropy, **options).fit(x, y)
    assert (rows, rare) == ([70, 30], [8, 2])


def test_which_rows_are_trained_on() -> None:
    given, none = (classifier(early_stopping_rounds=rounds).fit(X, Y, eval_set=(X, Y)) for rounds in (50, None))
    assert_array_equal(given.predict_proba(X), none.predict_proba(X))
    for tree in (classifier(early_stopping_rounds=None).fit(X, Y), classifier().fit(X, Y)):
        assert "valid_loss" not in tree.history_
        assert tree.best_iteration_ == tree.n_iter_ - 1 == 4
        assert tree.validation_rows_ is None, "few rows are all trained on by default"
    x = table(300)
    assert len(classifier(max_epochs=2).fit(x, labels(x)).history_["valid_loss"]) == 2
    names = {"epoch", "train_loss", "valid_loss", "learning_rate", "active_nodes", "seconds", "engine"}
    assert set(given.history_) == names
    assert {len(entries) for entries in given.history_.values()} == {5}
    assert given.history_["epoch"] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("rows", [np.arange(350), np.r_[0:350, 0:30]], ids=["different rows", "equal rows"])
@pytest.mark.parametrize("weight", [None, np.arange(380) % 3])
def test_the_rows_that_a_fit_has_held_out_are_known(rows: Any, weight: Any) -> None:
    x = table(350, 2)[rows]
    y, weight = x[:, 0] * x[:, 1], None if weight is None else weight[: len(rows)]
    tree = regressor(max_epochs=2, random_state=3, early_stopping_rounds=2, learning_rate=0.1)
    held_out = tree.fit(x, y, sample_weight=weight).validation_rows_
    assert held_out is not None
    if weight is not None:
        held_out = held_out[weight[held_out] > 0]
    error = (tree.predict(x[held_out]) - y[held_out]) ** 2 / tree.target_.deviation**2
    mean = np.average(error, weights=None if weight is None else weight[held_out])
    assert_allclose(mean, min(tree.history_["valid_loss"]), rtol=1e-3)
