"""Targets: what is read from y, how it is scaled, and what becomes of outputs."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.targets import (
    Classes,
    Columns,
    Numbers,
    PathRows,
    Target,
    target_from_record,
    target_to_record,
)

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


def test_a_class_that_is_not_known_is_named() -> None:
    with pytest.raises(InputValueError, match=r"y must contain only the classes \['a', 'b', 'c'\], got 'd'"):
        Classes.of(LABELS).read(["a", "b", "c", "d", "a", "b"], X)


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


def test_answers_have_the_shape_of_y() -> None:
    assert Numbers.of([1.0, 2.0]).answers(np.zeros((4, 1))).shape == (4,)
    assert Numbers.of([[1.0], [2.0]]).answers(np.zeros((4, 1))).shape == (4, 1)


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
    [Classes.of(LABELS), Classes.of([1.0, 2.0]), numbers(), Columns.asked_for([1], ENCODER)],
    ids=["labels", "numbers as labels", "numbers", "columns"],
)
def test_a_target_comes_back_as_it_was(target: Target) -> None:
    again: Any = target_from_record(*target_to_record(target))
    assert type(again) is type(target)
    for name, value in vars(target).items():
        if name not in ("class_weight", "asked"):
            assert_array_equal(getattr(again, name), value)
