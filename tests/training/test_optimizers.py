"""Optimizers: quasi-hyperbolic Adam against its definition, and the table of names."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputTypeError, InputValueError
from prunus.training import QHAdam
from prunus.training.optimizers import make_optimizer
from tests.tolerances import SAME_STEPS, assert_same
from tests.training.problems import generator


def parameters(*, dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    source = generator(0)
    return [nn.Parameter(torch.randn(size, generator=source, dtype=dtype)) for size in ((3, 2), (4,))]


def gradients(step: int, like: list[nn.Parameter]) -> list[Tensor]:
    source = generator(step)
    return [torch.randn(p.shape, generator=source, dtype=p.dtype) for p in like]


def walk(optimizer: torch.optim.Optimizer, params: list[nn.Parameter], steps: range) -> list[Tensor]:
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
        ((0.9, 0.99), (0.7, 1.0), 0.0),
        ((0.9, 0.99), (0.0, 0.0), 0.1),
        ((0.0, 0.0), (0.7, 0.8), 0.0),
    ],
)
def test_qhadam_is_its_definition(betas: tuple[float, float], nus: tuple[float, float], decay: float) -> None:
    params = parameters()
    starts = [p.detach().clone() for p in params]
    moved = walk(QHAdam(params, lr=0.1, betas=betas, nus=nus, eps=1e-8, weight_decay=decay), params, range(20))
    grads = [gradients(step, params) for step in range(20)]
    for i, start in enumerate(starts):
        for j, theta in enumerate(start.flatten().tolist()):
            along = [float(grad[i].flatten()[j]) for grad in grads]
            expected = by_definition(theta, along, lr=0.1, betas=betas, nus=nus, eps=1e-8, decay=decay)
            assert float(moved[i].flatten()[j]) == pytest.approx(expected, rel=SAME_STEPS, abs=SAME_STEPS)


def test_qhadam_with_averages_only_is_adam() -> None:
    ours, theirs = parameters(), parameters()
    first = walk(QHAdam(ours, lr=0.05, betas=(0.9, 0.99), nus=(1.0, 1.0)), ours, range(20))
    second = walk(torch.optim.Adam(theirs, lr=0.05, betas=(0.9, 0.99)), theirs, range(20))
    for a, b in zip(first, second, strict=True):
        assert_same(a, b, SAME_STEPS)


def test_qhadam_with_averages_only_decays_like_adamw() -> None:
    ours, theirs = parameters(), parameters()
    first = walk(QHAdam(ours, lr=0.05, betas=(0.9, 0.99), nus=(1.0, 1.0), weight_decay=0.3), ours, range(20))
    second = walk(torch.optim.AdamW(theirs, lr=0.05, betas=(0.9, 0.99), weight_decay=0.3), theirs, range(20))
    for a, b in zip(first, second, strict=True):
        assert_same(a, b, SAME_STEPS)


def test_qhadam_continues_from_its_state() -> None:
    whole, halves = parameters(), parameters()
    expected = walk(QHAdam(whole, lr=0.1), whole, range(20))
    first = QHAdam(halves, lr=0.1)
    walk(first, halves, range(10))
    second = QHAdam(halves, lr=0.7)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for a, b in zip(walk(second, halves, range(10, 20)), expected, strict=True):
        assert torch.equal(a, b)


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


def test_qhadam_leaves_parameters_without_gradients_alone() -> None:
    params = parameters()
    before = params[1].detach().clone()
    optimizer = QHAdam(params, weight_decay=0.1)
    params[0].grad = torch.ones_like(params[0])
    optimizer.step()
    assert torch.equal(params[1], before)


def test_qhadam_has_options_for_each_group() -> None:
    params = parameters()
    before = [p.detach().clone() for p in params]
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.0}]
    walk(QHAdam(groups, lr=0.1), params, range(1))
    assert [torch.equal(p, b) for p, b in zip(params, before, strict=True)] == [False, True]


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


@pytest.mark.parametrize(
    "options",
    [
        {"lr": -0.1},
        {"lr": float("nan")},
        {"eps": -1.0},
        {"weight_decay": -1.0},
        {"betas": (1.0, 0.9)},
        {"betas": (0.9, -0.1)},
        {"nus": (1.1, 1.0)},
        {"nus": (0.7, -0.1)},
    ],
)
def test_qhadam_refuses_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(InputValueError, match=f"{next(iter(options))} must be"):
        QHAdam(parameters(), **options)


@pytest.mark.parametrize(("name", "kind"), [("adamw", torch.optim.AdamW), ("qhadam", QHAdam), ("sgd", torch.optim.SGD)])
def test_names_make_optimizers(name: str, kind: type) -> None:
    made = make_optimizer(name, parameters(), lr=0.1, weight_decay=0.2)
    assert isinstance(made, kind)
    assert (made.param_groups[0]["lr"], made.param_groups[0]["weight_decay"]) == (0.1, 0.2)


def test_a_callable_makes_an_optimizer() -> None:
    made = make_optimizer(torch.optim.RMSprop, parameters(), lr=0.1, weight_decay=0.2)
    assert isinstance(made, torch.optim.RMSprop)
    assert made.param_groups[0]["weight_decay"] == 0.2


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputValueError, match=r"one of \['adamw', 'qhadam', 'sgd'\] or a callable, got 'adam'"):
        make_optimizer("adam", parameters(), lr=0.1, weight_decay=0.0)


def test_other_objects_are_refused() -> None:
    wrong: Any = 3
    with pytest.raises(InputTypeError, match="optimizer must be a name or a callable, got 3"):
        make_optimizer(wrong, parameters(), lr=0.1, weight_decay=0.0)
