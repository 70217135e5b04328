"""Learning rate schedules."""

import math

import pytest

from prunus.training.schedules import ConstantSchedule, CosineSchedule, PlateauSchedule, make_schedule


def factors(steps: int, warmup: float = 0.03) -> list[float]:
    schedule = CosineSchedule(steps, warmup)
    return [schedule.factor(step) for step in range(steps)]


def after(losses: list[float], **options: float) -> float:
    schedule = PlateauSchedule(**{"decay": 0.1, "patience": 2} | options)  # type: ignore[arg-type]
    for loss in losses:
        schedule.end_epoch(loss)
    return schedule.factor(0)


def test_constant_stays_1() -> None:
    schedule = ConstantSchedule()
    schedule.end_epoch(1.0)
    assert [schedule.factor(step) for step in (0, 10, 10**6)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("steps", [1, 2, 33, 34, 50, 67, 100, 150, 1000])
def test_cosine_never_exceeds_the_learning_rate(steps: int) -> None:
    assert 0.9 < max(factors(steps)) <= 1  # broke: 1.11 at the end of a rise of 4.5 steps


@pytest.mark.parametrize("steps", [34, 100, 150, 1000])
def test_cosine_rises_then_falls(steps: int) -> None:
    curve = factors(steps)
    top = curve.index(max(curve))
    assert curve[: top + 1] == sorted(curve[: top + 1])
    assert curve[top:] == sorted(curve[top:], reverse=True)


def test_cosine_rises_in_a_straight_line() -> None:
    assert factors(100, warmup=0.1)[:10] == pytest.approx([0.1 * k for k in range(1, 11)])


def test_cosine_falls_along_half_a_cosine() -> None:
    expected = [0.5 * (1 + math.cos(math.pi * k / 90)) for k in range(90)]
    assert factors(100, warmup=0.1)[10:] == pytest.approx(expected)


def test_cosine_moves_even_in_the_last_step() -> None:
    assert 0 < factors(100)[-1] < 1e-3


def test_cosine_of_one_step_is_1() -> None:
    assert factors(1) == [1.0]


def test_cosine_stays_0_beyond_its_end() -> None:
    assert CosineSchedule(10).factor(25) == 0.0


@pytest.mark.parametrize(("losses", "expected"), [([1.0] * 3, 1.0), ([1.0] * 4, 0.1), ([1.0] * 7, 0.01)])
def test_plateau_falls_after_its_patience(losses: list[float], expected: float) -> None:
    assert after(losses) == pytest.approx(expected)


def test_plateau_waits_anew_after_an_improvement() -> None:
    assert after([1.0, 1.0, 1.0, 0.9, 0.9, 0.9]) == 1.0


def test_plateau_counts_a_tiny_improvement_as_none() -> None:
    assert after([1.0, 0.99999, 0.99998, 0.99997]) == 0.1


def test_plateau_counts_a_worse_loss_as_no_improvement() -> None:
    assert after([1.0, 2.0, 1.5, 1.2]) == 0.1


@pytest.mark.parametrize("scale", [1.0, -1.0, 1e-8, -1e8])
def test_plateau_works_for_losses_of_any_sign_and_size(scale: float) -> None:
    assert after([scale] * 4) == 0.1  # broke: a negative loss that stood still counted as improvement
    better = [scale - 0.1 * k * abs(scale) for k in range(9)]
    assert after(better) == 1.0


def test_plateau_of_zero_falls() -> None:
    assert after([0.0] * 4) == 0.1


def test_plateau_state_restores_it() -> None:
    first, second = PlateauSchedule(patience=2), PlateauSchedule(patience=2)
    for loss in (1.0, 1.0, 1.0):
        first.end_epoch(loss)
    second.state.update(first.state)
    for schedule in (first, second):
        schedule.end_epoch(1.0)
    assert first.factor(0) == second.factor(0) == 0.1


def test_names_make_schedules() -> None:
    made = [type(make_schedule(name, 10)) for name in ("cosine", "plateau", "constant")]
    assert made == [CosineSchedule, PlateauSchedule, ConstantSchedule]
