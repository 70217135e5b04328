"""Targets: what is read from y, how it is scaled, and what becomes of outputs."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.targets import (
    Classes,
    Columns,
    LogNumbers,
    Numbers,
    PathRows,
    Target,
    TwoClasses,
    target_from_record,
    target_to_record,
)
from prunus.targets.links import LINKS, Link
from prunus.training import find_loss

X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
LABELS = np.array(["b", "a", "c", "a", "b", "a"])
VALUES = np.array([[1.0, 10.0], [3.0, 10.0], [5.0, 10.0], [1.0, 10.0], [3.0, 10.0], [5.0, 10.0]])
ENCODER = TableEncoder().fit(X)


def numbers() -> Numbers:
    return Numbers.of(VALUES).scale(VALUES, None)


def test_classes_are_numbered_in_their_order() -> None:
    target = Classes.of(LABELS)
    assert target.n_outputs == 3
    assert target.read(LABELS, X).tolist() == [1, 0, 2, 0, 1, 0]
    assert target.answers(np.eye(3)).tolist() == ["a", "b", "c"]
    assert_allclose(target.predictions(np.eye(3)).sum(1), 1.0)


def test_weights_of_classes_multiply_those_of_rows() -> None:
    target = Classes.of(LABELS, {"a": 1.0, "b": 2.0, "c": 0.5})
    weight = target.weigh(target.read(LABELS, X), np.full(6, 2.0))
    assert weight is not None
    assert weight.tolist() == [4.0, 2.0, 1.0, 2.0, 4.0, 2.0]


def test_a_correction_leads_to_the_frequencies_of_a_node() -> None:
    target = Classes.of(["a", "b"])
    wanted, outputs = np.eye(2)[(np.arange(1000) >= 900).astype(int)], np.tile([0.5, -0.2], (1000, 1))
    rows = PathRows(wanted, outputs, None, np.zeros(1000, dtype=np.int64), 1)
    corrected = outputs[:1] + target.correction(rows, is_constant=True)
    assert_allclose(target.predictions(corrected), [[0.9, 0.1]], atol=1e-3)
    assert not target.correction(rows, is_constant=False).any()


def test_numbers_are_scaled_and_back() -> None:
    target = numbers()
    scaled = target.for_loss(target.read(VALUES, X))
    assert_allclose(scaled.mean(0), 0.0, atol=1e-6)
    assert_allclose(scaled.std(0, correction=0), [1.0, 0.0], atol=1e-6)
    assert_allclose(target.predictions(scaled.double().numpy()), VALUES, rtol=1e-6)


def test_columns_are_those_that_were_asked_for() -> None:
    target = Columns.asked_for([0, -1], ENCODER)
    assert target.output_names(ENCODER) == ("x0", "x2")
    assert_array_equal(target.read(None, X), X[:, [0, 2]])
    assert_array_equal(Columns.asked_for(None, ENCODER).read(None, X), X)


def test_training_that_goes_on_keeps_classes_and_scale() -> None:
    assert Classes.of(["a", "b"]).take_over(Classes.of(LABELS)).labels.tolist() == ["a", "b", "c"]
    assert Numbers.of([[0.0, 0.0]]).take_over(numbers()).deviation[0] == numbers().deviation[0]
    with pytest.raises(InputValueError, match="targets must be the same as in the last fit"):
        Columns.asked_for([0], ENCODER).take_over(Columns.asked_for([1], ENCODER))


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_predictions_agree_wholly_with_themselves(spread: float) -> None:
    outputs = spread * np.random.default_rng(0).normal(size=(9, 2))
    assert numbers().agreement(outputs, outputs) == 1.0
    assert Classes.of(["a", "b"]).agreement(outputs, outputs) == 1.0


@pytest.mark.parametrize(
    "target",
    [
        Classes.of(LABELS),
        Classes.of([1.0, 2.0]),
        TwoClasses.of([True, False]),
        numbers(),
        LogNumbers.of(VALUES).scale(VALUES, None),
        Columns.asked_for([1], ENCODER),
    ],
    ids=["labels", "numbers as labels", "two classes", "numbers", "log numbers", "columns"],
)
def test_a_target_comes_back_as_it_was(target: Target) -> None:
    again: Any = target_from_record(*target_to_record(target))
    assert type(again) is type(target)
    for name, value in vars(target).items():
        if name not in ("class_weight", "asked"):
            assert_array_equal(getattr(again, name), value)


def test_a_link_that_a_target_cannot_have() -> None:
    arrays, record = target_to_record(numbers())
    with pytest.raises(InputValueError, match="task and link must be those of a target, got 'numbers', 'probit'"):
        target_from_record(arrays, record | {"link": "probit"})


def at_ends(wanted: Any, outputs: Any, weight: Any = None) -> PathRows:
    """Rows of which the first four end in node 1, all others in node 2."""
    ends = np.where(np.arange(len(wanted)) < 4, 1, 2)
    return PathRows(np.array(wanted)[:, None], np.array(outputs)[:, None], weight, ends, 3)


def test_the_correction_of_a_quantile_is_that_of_residuals() -> None:
    wanted = np.concatenate((np.zeros(4), 5 + np.arange(1000.0)))
    for level in (0.25, 0.9):
        found = Numbers.of(wanted, level=level).correction(at_ends(wanted, 5 * (wanted > 0)), is_constant=True)
        assert_allclose(found, [[0.0], [0.0], [1000 * level]], rtol=0.01)


def test_few_rows_hardly_move_an_extreme_quantile() -> None:
    found = Numbers.of([1.0], level=0.99).correction(at_ends(np.full(6, 8.0), np.zeros(6)), is_constant=True)
    assert 0 < found[2, 0] < found[1, 0] < 2.0


@pytest.mark.parametrize("power", [1.0, 1.3, 2.0])
def test_the_correction_of_logarithms_makes_the_loss_least(power: float) -> None:
    random = np.random.default_rng(0)
    wanted, outputs = random.gamma(2.0, size=2000), random.normal(size=2000)
    rows = at_ends(wanted, outputs)
    shift = LogNumbers.of(wanted, power=power).correction(rows, is_constant=False)[2, 0]
    loss = find_loss({1.0: "poisson", 2.0: "gamma"}.get(power, "tweedie"), tweedie_power=1.3)

    def mean_loss(change: float) -> float:
        moved, target = (torch.from_numpy(values[4:, None]) for values in (outputs + change, wanted))
        return float(loss(moved, target).mean())

    assert mean_loss(shift) < min(mean_loss(shift - 0.02), mean_loss(shift + 0.02))


def test_the_correction_of_one_logit_leads_to_the_frequencies_of_a_node() -> None:
    wanted = (np.arange(1004) >= 904).astype(float)
    target = TwoClasses.of(["a", "b"])
    found = target.correction(at_ends(wanted, np.full(1004, 0.3)), is_constant=True)
    assert_allclose(target.predictions(found[2:] + 0.3), [[0.9, 0.1]], atol=1e-3)


@pytest.mark.parametrize("link", LINKS.values(), ids=list(LINKS))
def test_a_link_and_its_inverse(link: Link) -> None:
    outputs = np.array([[0.5, -1.0, 0.5]]) - np.log(np.exp([0.5, -1.0, 0.5]).sum())
    assert_allclose(link.outputs(link.means(outputs)), outputs)


def test_predictions_that_hardly_vary_are_explained_by_their_mean() -> None:
    soft = 1e-5 * np.arange(12.0).reshape(6, 2)
    assert numbers().agreement(soft, np.zeros_like(soft)) > 0.99  # broke: far below zero
    assert numbers().agreement(soft, np.ones_like(soft)) < 0
