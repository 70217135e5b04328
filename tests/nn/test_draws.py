"""Random numbers of modules come from generators of their own, and are those of torch's seeded generator."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.nn.draws import LocalRNG

ONES = torch.ones(7, 5)
DRAWS: dict[str, Callable[[], Tensor]] = {
    "rand": lambda: torch.rand(3),
    "randn": lambda: torch.randn(33),
    "randint": lambda: torch.randint(0, 100, (9,)),
    "randperm": lambda: torch.randperm(9),
    "rand_like": lambda: torch.rand_like(ONES),
    "randn_like": lambda: torch.randn_like(ONES),
    "bernoulli": lambda: torch.bernoulli(0.5 * ONES),
    "uniform_": lambda: torch.empty(9).uniform_(-1, 1),
    "normal_": lambda: torch.empty(33).normal_(),
    "exponential_": lambda: torch.empty(9).exponential_(),
    "Linear": lambda: nn.Linear(5, 7).weight.detach(),
    "xavier": lambda: nn.init.xavier_normal_(torch.empty(7, 5)),
    "orthogonal": lambda: nn.init.orthogonal_(torch.empty(5, 5)),
    "Dropout": lambda: nn.Dropout(0.3)(ONES),
    "dropout in place": lambda: functional.dropout(ONES.clone(), 0.3, inplace=True),
    "dropout of all": lambda: functional.dropout(ONES, 1.0),
    "dropout of none": lambda: functional.dropout(ONES, 0.0),
    "no training": lambda: functional.dropout(ONES, 0.3, training=False),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_numbers_are_those_of_the_seeded_global_generator(draw: Callable[[], Tensor]) -> None:
    with torch.random.fork_rng([]):
        torch.manual_seed(5)
        expected = draw(), draw()
    random = torch.get_rng_state()
    with LocalRNG(5):
        found = draw(), draw()
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    assert torch.equal(random, torch.get_rng_state())


def test_a_generator_that_was_passed_is_used() -> None:
    expected = torch.rand(3, generator=torch.Generator().manual_seed(1))
    with LocalRNG(5):
        assert torch.equal(torch.rand(3, generator=torch.Generator().manual_seed(1)), expected)


def test_dropout_has_a_gradient() -> None:
    x = torch.ones(50, requires_grad=True)
    with LocalRNG(5):
        out = functional.dropout(x, 0.5)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(gradient, out.detach())
