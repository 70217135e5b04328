"""The tree layer: routes of a training batch, routes by stored masses, and its options."""

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputValueError
from prunus.nn import TreeLayer
from prunus.ops import tree_traverse
from prunus.ops.routes import tree_routes
from tests.nn.problems import generator, inputs, tree
from tests.tolerances import assert_same


def masses(depth: int, *, seed: int = 3) -> Tensor:
    """Masses that no data gave: some pruned, some whole, some between."""
    return (torch.rand(2 ** (depth + 1) - 1, generator=generator(seed)) * 1.6 - 0.3).clamp(0.0, 1.0)


def with_masses(depth: int = 3) -> TreeLayer:
    """A tree in eval mode with some of its nodes pruned."""
    layer = tree(depth)
    layer.a.copy_(masses(depth))
    layer.eval()
    return layer


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_training_solves_the_program_of_the_batch(depth: int) -> None:
    layer, x = tree(depth, strength=2.5), inputs(63)
    z, a = layer(x)
    expected = tree_traverse(layer.split(x), 2.5)
    assert torch.equal(z, expected.z)
    assert torch.equal(a, expected.a)


def test_training_uses_the_weights_of_the_batch() -> None:
    layer, x, w = tree(), inputs(63), torch.rand(63, generator=generator(4))
    z, a = layer(x, w)
    expected = tree_traverse(layer.split(x), 1.0, sample_weight=w)
    assert torch.equal(z, expected.z)
    assert torch.equal(a, expected.a)


@pytest.mark.parametrize("n", [16, 7, 1, 48])
def test_the_pruning_strength_is_scaled_to_the_size_of_the_batch(n: int) -> None:
    layer, x = tree(strength=2.5, batch_size=16), inputs(n)
    assert torch.equal(layer(x).a, tree_traverse(layer.split(x), 2.5 * n / 16).a)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_eval_mode_routes_by_the_stored_masses(depth: int) -> None:
    layer, x = with_masses(depth), inputs(63)
    z, a = layer(x)
    assert torch.equal(z, tree_routes(layer.split(x), layer.a))
    assert torch.equal(a, layer.a)


def test_eval_mode_gives_a_row_the_same_routes_alone_and_among_others() -> None:
    layer, x = with_masses(), inputs(300)
    together = layer(x).z
    assert_same(torch.cat([layer(row).z for row in torch.split(x, 1)]), together)
    assert_same(layer(x.flip(0)).z.flip(0), together)


def test_nothing_is_pruned_before_masses_are_stored() -> None:
    layer, x = tree().eval(), inputs(63)
    z, a = layer(x)
    assert (a == 1).all()
    assert torch.equal(z, tree_traverse(layer.split(x), 0.0).z)


@pytest.mark.parametrize("training", [True, False])
def test_forward_changes_nothing(training: bool) -> None:
    layer = with_masses().train(training)
    x, w = inputs(63), torch.rand(63, generator=generator(4))
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    random, kept_x, kept_w = torch.get_rng_state(), x.clone(), w.clone()
    first, second = layer(x, w), layer(x, w)
    assert torch.equal(first.z, second.z)
    assert torch.equal(first.a, second.a)
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert torch.equal(x, kept_x)
    assert torch.equal(w, kept_w)
    assert torch.equal(random, torch.get_rng_state())
    assert layer.training is training


@pytest.mark.parametrize("training", [True, False])
def test_gradients_reach_the_split(training: bool) -> None:
    layer = with_masses().train(training)
    z = layer(inputs(63)).z
    grads = torch.autograd.grad((z * torch.linspace(-1, 1, 15)).sum(), list(layer.parameters()))
    assert all(grad.any() for grad in grads)


@pytest.mark.parametrize("width", [0, 6, 8, 15])
@pytest.mark.parametrize("training", [True, False])
def test_scores_of_a_wrong_width_are_refused(width: int, training: bool) -> None:
    layer = TreeLayer(nn.Linear(5, width) if width else Nothing(), depth=3).train(training)
    name = type(layer.split).__name__
    with pytest.raises(InputValueError, match=rf"depth 3 must return .* \(n, 7\), got \(9, {width}\) from {name}"):
        layer(inputs(9))


class Nothing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :0]


@pytest.mark.parametrize("depth", [-1, 17])
def test_a_depth_out_of_range_is_refused(depth: int) -> None:
    with pytest.raises(InputValueError, match=rf"depth must be from 0 to 16, got {depth}"):
        TreeLayer(nn.Identity(), depth)


@pytest.mark.parametrize("strength", [-1.0, float("nan"), float("inf")])
def test_a_pruning_strength_out_of_range_is_refused(strength: float) -> None:
    with pytest.raises(InputValueError, match=f"pruning_strength must be finite and at least 0, got .*{strength}"):
        TreeLayer(nn.Identity(), 3, strength)


@pytest.mark.parametrize("batch_size", [0, -8])
def test_a_batch_size_below_1_is_refused(batch_size: int) -> None:
    with pytest.raises(InputValueError, match=f"batch_size must be at least 1, got {batch_size}"):
        TreeLayer(nn.Identity(), 3, batch_size=batch_size)
