"""The checks of the training options, the schedules of learning rates, and the optimizers that they name."""

import copy
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputTypeError, InputValueError
from prunus.training import QHAdam, TrainerOptions
from prunus.training.optimizers import make_optimizer
from prunus.training.schedules import ConstantSchedule, CosineSchedule, PlateauSchedule, make_schedule
from tests.tolerances import SAME_STEPS, assert_same
from tests.training.problems import generator

NAN, INF = float("nan"), float("inf")
REFUSED: list[tuple[type[Exception], str, list[tuple[str, Any]]]] = [
    (
        InputValueError,
        "{name} must be finite and at least 1, got {name}={value}",
        [("max_epochs", 0), ("batch_size", -3), ("early_stopping_rounds", 0), ("checkpoint_every", -3), ("threads", 0)],
    ),
    (
        InputTypeError,
        "{name} must be an int, got {name}={value!r}",
        [("max_epochs", 2.5), ("batch_size", "3"), ("early_stopping_rounds", True), ("seed", "3"), ("threads", 0.5)],
    ),
    (InputValueError, "{name} must be positive, got {name}=0", [("learning_rate", 0.0), ("gradient_clip", 0.0)]),
    (
        InputValueError,
        "{name} must be finite and at least 0, got {name}={value}",
        [("learning_rate", -0.1), ("gradient_clip", NAN), ("weight_decay", INF), ("average", -0.1), ("average", NAN)],
    ),
    (
        InputTypeError,
        "{name} must be a number, got {name}='0.1'",
        [(name, "0.1") for name in ("learning_rate", "gradient_clip", "weight_decay", "average")],
    ),
    (InputValueError, "average must be at least 0 and below 1, got average=1.0", [("average", 1.0)]),
    (InputValueError, "one of ['cosine', 'plateau', 'constant'], got 'linear'", [("schedule", "linear")]),
    (InputValueError, "one of ['auto', 'native', 'fused', 'graph', 'torch'], got 'cpp'", [("engine", "cpp")]),
    (InputValueError, "one of ['float32', 'tf32'], got 'bfloat16'", [("precision", "bfloat16")]),
]


@pytest.mark.parametrize(("error", "message", "options"), REFUSED)
def test_options_that_cannot_be_are_refused(error: type[Exception], message: str, options: list[Any]) -> None:
    for name, value in options:
        with pytest.raises(error) as found:
            TrainerOptions(**{name: value})
        assert message.format(name=name, value=value) in str(found.value)


@pytest.mark.parametrize("name", ["early_stopping_rounds", "gradient_clip", "checkpoint", "threads"])
def test_some_options_may_be_none(name: str) -> None:
    assert getattr(TrainerOptions(**{name: None}), name) is None  # type: ignore[arg-type]


def test_numbers_of_numpy_become_plain_ones_and_names_paths() -> None:
    given: Any = {"learning_rate": np.float64(0.25), "max_epochs": np.int64(3), "checkpoint": "folder/run.ckpt"}
    options = TrainerOptions(**given)
    assert (type(options.learning_rate), type(options.max_epochs)) == (float, int)
    assert (options.learning_rate, options.max_epochs) == (0.25, 3)
    assert options.checkpoint == Path("folder/run.ckpt")


# Schedules.


def factors(steps: int, warmup: float = 0.03) -> list[float]:
    schedule = CosineSchedule(steps, warmup)
    return [schedule.factor(step) for step in range(steps)]


def after(losses: list[float], schedule: PlateauSchedule | None = None) -> float:
    schedule = schedule or PlateauSchedule(decay=0.1, patience=2)
    for loss in losses:
        schedule.end_epoch(loss)
    return schedule.factor(0)


def test_constant_stays_1() -> None:
    schedule = ConstantSchedule()
    schedule.end_epoch(1.0)
    assert [schedule.factor(step) for step in (0, 10, 10**6)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("steps", [1, 2, 33, 34, 50, 67, 100, 150, 1000])
def test_cosine_rises_to_the_learning_rate_and_then_falls(steps: int) -> None:
    curve = factors(steps)
    top = curve.index(max(curve))
    assert 0.9 < curve[top] <= 1  # broke: 1.11 at the end of a rise of 4.5 steps
    assert all(one <= other for one, other in pairwise(curve[: top + 1]))
    assert all(one >= other for one, other in pairwise(curve[top:]))


def test_cosine_rises_in_a_straight_line_and_falls_along_half_a_cosine() -> None:
    expected = [0.1 * k for k in range(1, 11)] + [0.5 * (1 + math.cos(math.pi * k / 90)) for k in range(90)]
    assert factors(100, warmup=0.1) == pytest.approx(expected)
    assert 0 < factors(100)[-1] < 1e-3  # it moves even in the last step
    assert CosineSchedule(10).factor(25) == 0.0


@pytest.mark.parametrize(
    ("losses", "factor"),
    [
        ([1.0, 1.0, 1.0], 1.0),
        ([1.0, 1.0, 1.0, 1.0], 0.1),
        ([1.0] * 7, 0.01),
        ([1.0, 1.0, 1.0, 0.9, 0.9, 0.9], 1.0),
        ([1.0, 0.99999, 0.99998, 0.99997], 0.1),
        ([1.0, 2.0, 1.5, 1.2], 0.1),
        ([0.0] * 4, 0.1),
        *[([scale] * 4, 0.1) for scale in (-1.0, 1e-8, -1e8)],  # broke: a negative loss that stood still improved
        *[([scale - 0.1 * k * abs(scale) for k in range(9)], 1.0) for scale in (1.0, -1.0, 1e-8, -1e8)],
    ],
)
def test_plateau_falls_when_losses_stand_still(losses: list[float], factor: float) -> None:
    assert after(losses) == pytest.approx(factor)


def test_plateau_state_restores_it() -> None:
    first, second = PlateauSchedule(patience=2), PlateauSchedule(patience=2)
    after([1.0, 1.0, 1.0], first)
    second.state.update(first.state)
    assert after([1.0], first) == after([1.0], second) == 0.1


def test_names_make_schedules() -> None:
    made = [type(make_schedule(name, 10)) for name in ("cosine", "plateau", "constant")]
    assert made == [CosineSchedule, PlateauSchedule, ConstantSchedule]


# Optimizers.


def parameters() -> list[nn.Parameter]:
    source = generator(0)
    return [nn.Parameter(torch.randn(size, generator=source, dtype=torch.float64)) for size in ((3, 2), (4,))]


def gradients(step: int, like: list[nn.Parameter]) -> list[Tensor]:
    source = generator(step)
    return [torch.randn(p.shape, generator=source, dtype=p.dtype) for p in like]


def walk(optimizer: torch.optim.Optimizer, params: list[nn.Parameter], steps: range = range(20)) -> list[Tensor]:
    """Take steps along random gradients, which are the same for each optimizer, and return the parameters."""
    for step in steps:
        for p, grad in zip(params, gradients(step, params), strict=True):
            p.grad = grad
        optimizer.step()
    return [p.detach().clone() for p in params]


def by_definition(
    theta: float, grads: list[float], *, lr: float, betas: Any, nus: Any, eps: float, decay: float
) -> float:
    """The algorithm of Ma and Yarats for a single parameter."""
    (beta1, beta2), (nu1, nu2) = betas, nus
    m = v = 0.0
    for k, g in enumerate(grads, 1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        m_hat, v_hat = m / (1 - beta1**k), v / (1 - beta2**k)
        theta *= 1 - lr * decay
        theta -= lr * ((1 - nu1) * g + nu1 * m_hat) / (math.sqrt((1 - nu2) * g * g + nu2 * v_hat) + eps)
    return theta


@pytest.mark.parametrize(
    ("betas", "nus", "decay"),
    [
        ((0.995, 0.998), (0.7, 1.0), 0.0),
        ((0.995, 0.998), (1.0, 1.0), 0.1),
        ((0.9, 0.99), (0.7, 0.8), 0.1),
        ((0.9, 0.99), (0.0, 0.0), 0.1),
        ((0.0, 0.0), (0.7, 0.8), 0.0),
    ],
)
def test_qhadam_is_its_definition(betas: tuple[float, float], nus: tuple[float, float], decay: float) -> None:
    params = parameters()
    starts = [p.detach().clone() for p in params]
    moved = walk(QHAdam(params, lr=0.1, betas=betas, nus=nus, eps=1e-8, weight_decay=decay), params)
    grads = [gradients(step, params) for step in range(20)]
    for i, start in enumerate(starts):
        for j, theta in enumerate(start.flatten().tolist()):
            along = [float(grad[i].flatten()[j]) for grad in grads]
            expected = by_definition(theta, along, lr=0.1, betas=betas, nus=nus, eps=1e-8, decay=decay)
            assert float(moved[i].flatten()[j]) == pytest.approx(expected, rel=SAME_STEPS, abs=SAME_STEPS)


@pytest.mark.parametrize(("usual", "decay"), [(torch.optim.Adam, 0.0), (torch.optim.AdamW, 0.3)])
def test_qhadam_with_averages_only_is_adam(usual: Any, decay: float) -> None:
    ours, theirs = parameters(), parameters()
    options: dict[str, Any] = {"lr": 0.05, "betas": (0.9, 0.99), "weight_decay": decay}
    first = walk(QHAdam(ours, nus=(1.0, 1.0), **options), ours)
    for a, b in zip(first, walk(usual(theirs, **options), theirs), strict=True):
        assert_same(a, b, SAME_STEPS)


def test_qhadam_continues_from_its_state() -> None:
    whole, halves = parameters(), parameters()
    expected = walk(QHAdam(whole, lr=0.1), whole)
    first, second = QHAdam(halves, lr=0.1), QHAdam(halves, lr=0.7)
    walk(first, halves, range(10))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert all(map(torch.equal, walk(second, halves, range(10, 20)), expected))


@pytest.mark.parametrize("name", ["adamw", "qhadam", "sgd"])
def test_a_rate_may_be_in_a_tensor(name: str) -> None:
    numbers, tensors, rate = parameters(), parameters(), torch.zeros((), dtype=torch.float64)
    first = make_optimizer(name, numbers, lr=0.1, weight_decay=0.2)
    second = make_optimizer(name, tensors, lr=rate, weight_decay=0.2)
    for step in range(5):
        first.param_groups[0]["lr"] = 0.1 / (1 + step)
        rate.fill_(0.1 / (1 + step))
        expected, found = walk(first, numbers, range(step, step + 1)), walk(second, tensors, range(step, step + 1))
    for a, b in zip(expected, found, strict=True):
        assert_same(a, b, SAME_STEPS)


def test_qhadam_leaves_parameters_without_gradients_or_rate_alone() -> None:
    params = [*parameters(), nn.Parameter(torch.ones(2, dtype=torch.float64))]
    before = [p.detach().clone() for p in params]
    optimizer = QHAdam([{"params": params[:1]}, {"params": params[1:], "lr": 0.0}], lr=0.1, weight_decay=0.1)
    for p in params[:2]:
        p.grad = torch.ones_like(p)
    optimizer.step()
    assert [torch.equal(p, b) for p, b in zip(params, before, strict=True)] == [False, True, True]
    assert params[2] not in optimizer.state


def test_qhadam_may_compute_the_loss_itself() -> None:
    x = nn.Parameter(torch.ones(()))
    optimizer = QHAdam([x], lr=0.1)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = x.square()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    assert optimizer.step(closure).item() == 1.0
    assert x.item() < 1.0


def test_qhadam_refuses_options_out_of_range() -> None:
    wrong: list[tuple[str, Any]] = [("lr", -0.1), ("lr", NAN), ("eps", -1.0), ("weight_decay", -1.0)]
    wrong += [("betas", (1.0, 0.9)), ("betas", (0.9, -0.1)), ("nus", (1.1, 1.0)), ("nus", (0.7, -0.1))]
    for name, value in wrong:
        with pytest.raises(InputValueError, match=f"{name} must be"):
            QHAdam(parameters(), **{name: value})


@pytest.mark.parametrize(
    ("optimizer", "kind"),
    [
        ("adamw", torch.optim.AdamW),
        ("qhadam", QHAdam),
        ("sgd", torch.optim.SGD),
        (torch.optim.RMSprop, torch.optim.RMSprop),
    ],
)
def test_names_and_callables_make_optimizers(optimizer: Any, kind: type) -> None:
    made = make_optimizer(optimizer, parameters(), lr=0.1, weight_decay=0.2)
    assert isinstance(made, kind)
    assert (made.param_groups[0]["lr"], made.param_groups[0]["weight_decay"]) == (0.1, 0.2)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        ("adam", r"one of \['adamw', 'qhadam', 'sgd'\] or a callable, got 'adam'"),
        (3, "optimizer must be a name or a callable, got 3"),
        (lambda *_, **__: 3, r"must return a torch\.optim\.Optimizer, got 3"),
    ],
)
def test_what_is_no_optimizer_is_refused(optimizer: Any, message: str) -> None:
    with pytest.raises((InputValueError, InputTypeError), match=message):
        make_optimizer(optimizer, parameters(), lr=0.1, weight_decay=0.0)
