"""What cannot be used is refused by an error of prunus that names it, whichever library has noticed it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import prunus
from prunus.errors import InputTypeError, InputValueError, TrainingError
from tests.estimators.problems import classifier, labels, regressor, table, values

X = table(20)
Y = values(X)
RAGGED = [[1.0], [1.0, 2.0]]


@pytest.mark.parametrize("x", [RAGGED, torch.from_numpy(X).requires_grad_()], ids=["ragged", "with gradients"])
def test_tables_that_numpy_cannot_read(x: Any) -> None:
    with pytest.raises(InputValueError, match="X must be an array or a table whose rows have the same length: "):
        regressor().fit(x, Y)


@pytest.mark.parametrize(
    "y", [["a"] * 20, torch.from_numpy(Y).requires_grad_(), iter(Y)], ids=["text", "torch", "iter"]
)
def test_targets_that_are_no_numbers(y: Any) -> None:
    with pytest.raises((InputValueError, InputTypeError), match="y must be an array of numbers: "):
        regressor().fit(X, y)


@pytest.mark.parametrize("y", [RAGGED, torch.from_numpy(Y).requires_grad_(), {"a": 1}], ids=["ragged", "torch", "dict"])
def test_targets_that_are_no_classes(y: Any) -> None:
    with pytest.raises((InputValueError, InputTypeError), match="y must be an array of classes: "):
        classifier().fit(X, y)


def test_validation_classes_of_another_type() -> None:
    days = labels(X, range(15)).astype("M8[D]")
    with pytest.raises(InputTypeError, match="y must be an array of the classes"):
        classifier().fit(X, days, eval_set=(X, days.astype(str)))


@pytest.mark.parametrize("weight", [[10**400] * 20, torch.ones(20).requires_grad_()], ids=["huge", "with gradients"])
def test_weights_that_numpy_cannot_read(weight: Any) -> None:
    with pytest.raises(InputValueError, match="sample_weight"):
        regressor().fit(X, Y, weight)


@pytest.mark.parametrize("factor", [1e308, 1e-308])
def test_only_ratios_of_weights_matter(factor: float) -> None:
    weight = np.where(X[:, 0] > 0, 1.0, 0.5)
    for estimator in (regressor(), prunus.ArgminTreeClusterer(depth=2, max_epochs=2, random_state=0)):
        plain = estimator.fit(X, Y, weight).predict(X)
        np.testing.assert_allclose(estimator.fit(X, Y, weight * factor).predict(X), plain, rtol=1e-5)


def test_weights_of_classes_may_be_huge() -> None:
    y = labels(X, "ab")
    huge = classifier(class_weight={"a": 1e308, "b": 5e307}).fit(X, y, np.full(20, 1e308))
    plain = classifier(class_weight={"a": 2.0, "b": 1.0}).fit(X, y)
    np.testing.assert_allclose(huge.predict_proba(X), plain.predict_proba(X), rtol=1e-5)


def test_weights_that_are_tiny_beside_others_count_as_zero() -> None:
    weight = np.where(np.arange(20) == 0, 5e-324, 1e-30)
    tree = prunus.ArgminTreeClusterer(depth=3, max_epochs=2, random_state=0).fit(X, sample_weight=weight)
    assert len(tree.labels_) == 20


@pytest.mark.parametrize("option", ["weight_decay", "learning_rate"])
def test_a_last_step_that_diverges_is_noticed(option: str) -> None:
    tree = classifier(leaf="additive", max_epochs=1, **{option: 1e308})
    with pytest.raises(TrainingError, match=r"training has diverged|loss became"):
        tree.fit(X, labels(X))


def test_a_step_beyond_single_precision_of_sparse_splits_is_noticed() -> None:
    with pytest.raises(TrainingError):
        regressor(split="sparse_mlp", learning_rate=1e308).fit(X, Y)


@pytest.mark.parametrize("name", ["learning_rate", "weight_decay"])
def test_numbers_that_are_too_large_for_floats(name: str) -> None:
    with pytest.raises(InputValueError, match=f"{name} must be finite"):
        regressor(**{name: 10**400}).fit(X, Y)


def test_a_batch_may_be_larger_than_any_table() -> None:
    tree = regressor(batch_size=10**400).fit(X, Y)
    np.testing.assert_array_equal(tree.predict(X), regressor(batch_size=10**6).fit(X, Y).predict(X))


def test_partial_fit_checks_options_each_time() -> None:
    tree = regressor().partial_fit(X, Y).set_params(pruning_strength=[1])
    with pytest.raises(ValueError, match="'pruning_strength' parameter"):
        tree.partial_fit(X, Y)


def test_targets_of_clusters_must_be_a_list() -> None:
    with pytest.raises(InputTypeError, match="targets must be a list"):
        prunus.ArgminTreeClusterer(targets=np.array(0)).fit(X)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda output, _: output.detach(), "without gradients"),
        (lambda output, _: 1j * output, "real floating point numbers"),
    ],
    ids=["detached", "complex"],
)
def test_losses_that_cannot_be_minimized(loss: Any, message: str) -> None:
    with pytest.raises((InputValueError, InputTypeError), match=message):
        regressor(loss=loss).fit(X, Y)


def test_an_optimizer_must_be_one() -> None:
    with pytest.raises(InputTypeError, match=r"must return a torch.optim.Optimizer, got 7"):
        regressor(optimizer=lambda *_, **__: 7).fit(X, Y)


def test_a_callback_must_return_one_answer() -> None:
    with pytest.raises(InputTypeError, match="a callback must return True, False or None"):
        regressor(callbacks=[lambda _: np.array([1, 2])]).fit(X, Y)


def test_a_checkpoint_with_a_null_character_is_refused() -> None:
    with pytest.raises(InputValueError, match="no null character"):
        regressor(checkpoint="a\0b").fit(X, Y)


def test_a_series_without_numbers_is_no_target() -> None:
    with pytest.raises(InputValueError, match="y must be an array of numbers"):
        regressor().fit(X, pd.Series(["a"] * 20, dtype="category"))
