"""The checks of the training options."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prunus.errors import InputTypeError, InputValueError
from prunus.training import TrainingOptions

WHOLE = ["max_epochs", "batch_size", "early_stopping_rounds", "checkpoint_every"]
POSITIVE = ["learning_rate", "gradient_clip"]
REAL = [*POSITIVE, "weight_decay", "average"]


def with_option(name: str, value: Any) -> TrainingOptions:
    return TrainingOptions(**{name: value})


@pytest.mark.parametrize(("name", "value"), list(zip(WHOLE, [0, -3, 0, -3], strict=True)))
def test_a_whole_number_below_1_is_refused(name: str, value: int) -> None:
    with pytest.raises(InputValueError, match=f"{name} must be finite and at least 1, got {name}={value}"):
        with_option(name, value)


@pytest.mark.parametrize(("name", "value"), list(zip([*WHOLE, "seed"], [2.5, "3", True, 2.5, "3"], strict=True)))
def test_other_types_than_int_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputTypeError, match=f"{name} must be an int, got {name}={value!r}"):
        with_option(name, value)


@pytest.mark.parametrize("name", POSITIVE)
def test_zero_is_refused_where_training_would_not_move(name: str) -> None:
    with pytest.raises(InputValueError, match=f"{name} must be positive, got {name}=0"):
        with_option(name, 0.0)


@pytest.mark.parametrize(("name", "value"), list(zip(REAL, [-0.1, float("nan"), float("inf"), -0.1], strict=True)))
def test_a_number_out_of_range_is_refused(name: str, value: float) -> None:
    with pytest.raises(InputValueError, match=f"{name} must be finite and at least 0, got {name}={value}"):
        with_option(name, value)


@pytest.mark.parametrize("name", REAL)
def test_text_is_refused_for_a_number(name: str) -> None:
    with pytest.raises(InputTypeError, match=f"{name} must be a number, got {name}='0.1'"):
        with_option(name, "0.1")


def test_an_average_of_1_would_never_learn() -> None:
    with pytest.raises(InputValueError, match=r"average must be at least 0 and below 1, got average=1\.0"):
        TrainingOptions(average=1.0)


def test_an_unknown_schedule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputValueError, match=r"one of \['cosine', 'plateau', 'constant'\], got 'linear'"):
        TrainingOptions(schedule="linear")


@pytest.mark.parametrize("name", ["early_stopping_rounds", "gradient_clip", "checkpoint"])
def test_some_options_may_be_none(name: str) -> None:
    assert getattr(with_option(name, None), name) is None


def test_numbers_of_numpy_become_plain_ones() -> None:
    rate: Any = np.float64(0.25)
    epochs: Any = np.int64(3)
    options = TrainingOptions(learning_rate=rate, max_epochs=epochs)
    assert (type(options.learning_rate), type(options.max_epochs)) == (float, int)
    assert (options.learning_rate, options.max_epochs) == (0.25, 3)


def test_a_checkpoint_may_be_named_by_text() -> None:
    name: Any = "folder/run.ckpt"
    assert TrainingOptions(checkpoint=name).checkpoint == Path("folder/run.ckpt")
