"""Modules on an NVIDIA GPU give what they give on the CPU."""

import copy

import pytest
import torch
from torch import Tensor

from prunus.nn import LinearSplit, MLPSplit, Whiten, spread_splits
from tests.nn.problems import HEADS, generator, inputs, model
from tests.tolerances import SAME_ON_GPU, assert_same

pytestmark = pytest.mark.gpu


def weights(n: int) -> Tensor:
    return 2 * torch.rand(n, generator=generator(4))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("head", HEADS)
def test_predictions_and_gradients(head: str, training: bool) -> None:
    here = model(head).train(training)
    here.solve_masses(inputs(500))
    there = copy.deepcopy(here).cuda()
    for module in (here, there):
        x = inputs(63).to(module.tree.a.device)
        module(x, weights(63).to(x.device)).square().sum().backward()
    assert_same(there(inputs(63).cuda()), here(inputs(63)), SAME_ON_GPU)
    for parameter, expected in zip(there.parameters(), here.parameters(), strict=True):
        assert parameter.grad is not None
        assert expected.grad is not None
        assert_same(parameter.grad, expected.grad, SAME_ON_GPU)


@pytest.mark.parametrize("chunk", [10_000, 100])
def test_masses(chunk: int) -> None:
    here = model().tree
    here.pruning_strength = 20.0
    there = copy.deepcopy(here).cuda()
    here.solve_masses(inputs(999), weights(999), chunk=chunk)
    there.solve_masses(inputs(999).cuda(), weights(999).cuda(), chunk=chunk)
    assert_same(there.a, here.a, SAME_ON_GPU)


@pytest.mark.parametrize("split", [LinearSplit(5, 4), MLPSplit(5, 4)])
def test_spread_splits(split: LinearSplit | MLPSplit) -> None:
    here, there = copy.deepcopy(split), copy.deepcopy(split).cuda()
    spread_splits(here, inputs(512), generator=generator(7))
    spread_splits(there, inputs(512).cuda(), generator=generator(7))
    assert_same(there.scores.weight, here.scores.weight, SAME_ON_GPU)


def test_whitening() -> None:
    x = inputs(500) @ torch.randn(5, 5, generator=generator(9))
    here, there = Whiten(5).fit(x), Whiten(5).cuda().fit(x.cuda())
    assert_same(there.matrix, here.matrix, SAME_ON_GPU)
    assert_same(there(x.cuda()), here(x), SAME_ON_GPU)
