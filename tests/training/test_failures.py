"""A loss that is NaN or infinite ends training with an error that names the cause."""

from typing import Any

import pytest
import torch
from torch import Tensor

from prunus.errors import TrainingError
from prunus.training import Samples
from tests.training.problems import run, samples


def with_value(name: str, value: float) -> Samples:
    """Samples of which one has this value among its inputs, targets or weights."""
    good = samples(weighted=True)
    assert good.weight is not None
    values = {"x": good.x, "y": good.y, "weight": good.weight}
    values[name] = values[name].clone()
    values[name][7] = value
    return Samples(**values)


@pytest.mark.parametrize(("value", "batch_size"), [(float("nan"), 16), (float("inf"), 100)])
@pytest.mark.parametrize(("name", "word"), [("x", "inputs"), ("y", "targets"), ("weight", "sample weights")])
def test_nan_and_infinity_in_the_data_are_named(name: str, word: str, value: float, batch_size: int) -> None:
    with pytest.raises(TrainingError, match=f"training loss became .* in epoch 1, .*some of the {word} are NaN or inf"):
        run(train=with_value(name, value), batch_size=batch_size)  # broke: the learning rate was blamed


def test_nan_in_the_validation_targets_is_named() -> None:
    with pytest.raises(TrainingError, match=r"validation loss became nan in epoch 1, .*some of the targets are NaN"):
        run(valid=with_value("y", float("nan")))


@pytest.mark.parametrize(
    "options",
    [
        {"learning_rate": 1e30},
        {"learning_rate": 1e3, "optimizer": "sgd", "gradient_clip": None, "schedule": "constant"},
        {"learning_rate": 1e10, "optimizer": "sgd", "gradient_clip": None},
    ],
)
def test_a_learning_rate_that_is_too_high_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(TrainingError, match=r"the learning rate is likely too high \(learning_rate=1"):
        run(max_epochs=30, **options)


def test_a_loss_function_that_returns_nan_is_named() -> None:
    def logarithm(output: Tensor, target: Tensor) -> Tensor:
        return (output - target - 1e6).log().mean(1)

    with pytest.raises(TrainingError, match="the loss function or the model returns NaN"):
        run(loss=logarithm, batch_size=100)


def test_the_message_says_when_it_happened() -> None:
    losses = iter([1.0, 1.0, 1.0, 1.0, float("nan")])

    def loss(output: Tensor, _target: Tensor) -> Tensor:
        return output.mean(1) * 0 + next(losses, 1.0)

    with pytest.raises(TrainingError, match="training loss became nan in epoch 2, after 8 steps"):
        run(loss=loss)


def test_it_is_an_arithmetic_error() -> None:
    with pytest.raises(ArithmeticError):
        run(train=with_value("y", float("nan")))


def test_integer_targets_are_finite() -> None:
    x = torch.full((8, 3), torch.nan)
    with pytest.raises(TrainingError, match="some of the inputs are NaN"):
        run(train=Samples(x, torch.zeros(8, 1, dtype=torch.int64)))
