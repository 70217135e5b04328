"""Split functions: what their scores are, and trees of depth 0."""

from operator import mul

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.errors import InputValueError
from prunus.nn import ELUSplit, LinearSplit, MLPSplit, SparseMLPSplit
from tests.nn.problems import inputs
from tests.tolerances import assert_same

SPLITS = [LinearSplit, ELUSplit, MLPSplit, SparseMLPSplit]


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("split", SPLITS)
def test_there_is_a_score_for_each_split(split: type[nn.Module], depth: int) -> None:
    assert split(5, depth)(inputs(9, 5)).shape == (9, 2**depth - 1)


def test_a_linear_split_scores_by_a_scalar_product() -> None:
    split, x = LinearSplit(5, 2), inputs(9, 5)
    weight, bias = split.weight.tolist(), split.bias.tolist()
    expected = [[sum(map(mul, w, row)) + b for w, b in zip(weight, bias, strict=True)] for row in x.tolist()]
    assert_same(split(x), torch.tensor(expected))


def test_an_elu_split_is_a_linear_one_bent_below_zero() -> None:
    split, x = ELUSplit(5, 2), inputs(9, 5)
    linear = functional.linear(x, split.weight, split.bias)
    assert_same(split(x), torch.where(linear > 0, linear, linear.exp() - 1))


def test_an_mlp_split_is_its_layers_in_turn() -> None:
    split, x = MLPSplit(5, 2, hidden=(7, 4)), inputs(9, 5)
    expected = x
    for layer in (split.features[0], split.features[2]):
        expected = functional.elu(layer(expected))
    assert_same(split(x), split.scores(expected))


def test_dropout_is_random_in_training_and_off_in_eval_mode() -> None:
    split, x = MLPSplit(5, 2, hidden=(64,), dropout=0.5), inputs(9, 5)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert not torch.equal(split(x), split(x))
        assert torch.equal(split.eval()(x), split(x))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("depth", [-1, 17])
def test_a_depth_out_of_range_is_refused(split: type[nn.Module], depth: int) -> None:
    with pytest.raises(InputValueError, match=rf"depth must be from 0 to 16, got {depth}"):
        split(5, depth)


@pytest.mark.parametrize("split", SPLITS)
def test_gradients_reach_all_parameters(split: type[nn.Module]) -> None:
    made = split(5, 2)
    scores: Tensor = made(inputs(9, 5))
    grads = torch.autograd.grad(scores.square().sum(), list(made.parameters()))
    assert all(grad.any() for grad in grads)


def test_a_sparse_network_is_its_layers_in_turn() -> None:
    split, x = SparseMLPSplit(5, 2, hidden=7), inputs(9, 5)
    assert_same(split(x), split.scores(split.sums(x).clamp(min=0)))


def test_weights_of_features_are_pulled_to_zero_and_not_beyond() -> None:
    split = SparseMLPSplit(3, 1, hidden=1, sparsity=0.5)
    before = [parameter.clone() for name, parameter in split.named_parameters() if name != "features.0.weight"]
    split.sums.weight.data = torch.tensor([[0.3, -0.3, 0.05]])
    split.after_step(0.2)
    assert_same(split.sums.weight.detach(), torch.tensor([[0.2, -0.2, 0.0]]))
    after = [parameter for name, parameter in split.named_parameters() if name != "features.0.weight"]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_a_negative_sparsity_is_refused() -> None:
    with pytest.raises(InputValueError, match="sparsity"):
        SparseMLPSplit(3, 1, sparsity=-0.1)
