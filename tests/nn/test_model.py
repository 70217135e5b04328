"""A tree and a head as one predictor."""

import pytest
import torch
from torch import Tensor, nn

from prunus.nn import LinearHead, MLPSplit, TreeLayer, TreeModel, Whiten
from prunus.ops import tree_traverse
from tests.nn.problems import HEADS, generator, inputs, model, randomized
from tests.tolerances import FINITE_DIFFERENCE, assert_same


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_prediction_is_made_of_inputs_and_routes(head: str, depth: int) -> None:
    whole, x = model(head, depth), inputs(9)
    z = tree_traverse(whole.tree.split(x), 1.0).z
    assert torch.equal(whole(x), whole.head(x, z))


def test_weights_concern_the_pruning_of_a_training_batch() -> None:
    whole, x, w = model(), inputs(9), torch.rand(9, generator=generator(4))
    z = tree_traverse(whole.tree.split(x), 1.0, sample_weight=w).z
    assert torch.equal(whole(x, w), whole.head(x, z))


def test_inputs_come_before_tree_and_head() -> None:
    whole, x = model(), inputs(9)
    expected = whole(2 * x)
    whole.inputs = Double()
    assert torch.equal(whole(x), expected)


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("training", [True, False])
def test_gradients_are_those_of_finite_differences(head: str, training: bool) -> None:
    whole = model(head, 2).double().train(training)
    whole.tree.a.fill_(0.7)
    parameters = dict(whole.named_parameters())

    def call(x: Tensor, *values: Tensor) -> Tensor:
        out: Tensor = torch.func.functional_call(whole, dict(zip(parameters, values, strict=True)), (x,))
        return out

    arguments = (inputs(5).double().requires_grad_(), *parameters.values())
    assert torch.autograd.gradcheck(call, arguments, **FINITE_DIFFERENCE, fast_mode=True)


@pytest.mark.parametrize("head", HEADS)
def test_eval_mode_predicts_for_a_row_alone_what_it_does_among_others(head: str) -> None:
    whole, x = model(head), inputs(99)
    whole.solve_masses(x)
    whole.eval()
    assert_same(torch.cat([whole(row) for row in torch.split(x, 1)]), whole(x))


@pytest.mark.parametrize("training", [True, False])
def test_forward_changes_nothing(training: bool) -> None:
    whole = model("mlp").train(training)
    x, before = inputs(9), {name: value.clone() for name, value in whole.state_dict().items()}
    random = torch.get_rng_state()
    assert torch.equal(whole(x), whole(x))
    assert all(torch.equal(value, before[name]) for name, value in whole.state_dict().items())
    assert torch.equal(x, inputs(9))
    assert torch.equal(random, torch.get_rng_state())


def test_all_parts_together_learn_a_checkerboard() -> None:
    x = 2 * torch.rand(256, 2, generator=generator(0)) - 1
    y = (x[:, :1] * x[:, 1:]).sign()
    split = randomized(MLPSplit(2, 2, hidden=(16,)))
    whole = TreeModel(TreeLayer(split, 2, 0.1), LinearHead(2, 2, 1), Whiten(2).fit(x))
    optimizer = torch.optim.Adam(whole.parameters(), lr=0.02)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = (whole(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
