"""path_rewards against its definition, node by node."""

import pytest
import torch
from torch import Tensor

from prunus.ops import path_rewards
from tests.ops.problems import scores
from tests.tolerances import FINITE_DIFFERENCE


def slow_rewards(s: Tensor) -> Tensor:
    """Walks from each node to the root and keeps the smallest score towards it."""
    q = torch.ones(s.shape[0], 2 * s.shape[1] + 1, dtype=s.dtype)
    for i in range(q.shape[0]):
        for t in range(q.shape[1]):
            node = t
            while node > 0:
                parent, right = (node - 1) // 2, node % 2 == 0
                q[i, t] = min(q[i, t].item(), (s[i, parent] if right else -s[i, parent]).item())
                node = parent
    return q


def grad_of_node(s: Tensor, node: int) -> list[float]:
    """Gradient of the first sample's reward at a node."""
    s = s.clone().requires_grad_()
    (grad,) = torch.autograd.grad(path_rewards(s)[0, node], s)
    return [float(g) for g in grad[0]]


@pytest.mark.parametrize("depth", range(6))
def test_equals_the_definition(depth: int) -> None:
    s = scores(7, depth)
    assert torch.equal(path_rewards(s), slow_rewards(s))


@pytest.mark.parametrize("depth", range(1, 5))
def test_never_grows_along_a_path(depth: int) -> None:
    q = path_rewards(scores(63, depth))
    children = torch.arange(1, q.shape[1])
    assert (q[:, children] <= q[:, (children - 1) // 2]).all()


@pytest.mark.parametrize("depth", range(1, 4))
def test_gradient_equals_finite_differences(depth: int) -> None:
    s = scores(3, depth).requires_grad_()
    assert torch.autograd.gradcheck(path_rewards, (s,), **FINITE_DIFFERENCE)


def test_negative_score_goes_left() -> None:
    assert path_rewards(torch.tensor([[-0.25]])).tolist() == [[1.0, 0.25, -0.25]]


def test_score_zero_rewards_both_sides_alike() -> None:
    assert path_rewards(torch.tensor([[0.0]])).tolist() == [[1.0, 0.0, 0.0]]


def test_reward_is_at_most_one() -> None:
    assert path_rewards(torch.tensor([[3.0]])).tolist() == [[1.0, -3.0, 1.0]]


def test_gradient_goes_to_the_smallest_ancestor() -> None:
    assert grad_of_node(torch.tensor([[0.5, 0.0, 0.25]]), 6) == [0.0, 0.0, 1.0]
    assert grad_of_node(torch.tensor([[0.25, 0.0, 0.5]]), 6) == [1.0, 0.0, 0.0]


def test_gradient_to_a_left_turn_is_negative() -> None:
    assert grad_of_node(torch.tensor([[-0.25, -0.5, 0.0]]), 3) == [-1.0, 0.0, 0.0]


def test_gradient_of_a_tie_goes_to_the_topmost() -> None:
    assert grad_of_node(torch.tensor([[0.5, 0.0, 0.5]]), 6) == [1.0, 0.0, 0.0]


def test_gradient_of_a_tie_with_the_bound_is_zero() -> None:
    assert grad_of_node(torch.tensor([[1.0]]), 2) == [0.0]


def test_a_nan_score_spoils_what_is_below_it_and_still_reached() -> None:
    s = torch.tensor([[0.25, torch.nan, torch.nan]])
    spoiled = path_rewards(s).isnan()[0].tolist()
    assert spoiled == [False, False, False, True, True, True, True]  # u at node 1 is 1/4


def test_a_nan_score_out_of_reach_spoils_nothing() -> None:
    s = torch.tensor([[0.75, torch.nan, 0.25]])
    assert path_rewards(s).tolist() == [[1.0, -0.75, 0.75, -0.75, -0.75, -0.25, 0.25]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_keeps_the_dtype(dtype: torch.dtype) -> None:
    s = scores(5, 2).to(dtype)
    assert path_rewards(s).dtype == dtype
    assert torch.equal(path_rewards(s).double(), slow_rewards(s.double()))


def test_no_samples() -> None:
    assert path_rewards(torch.empty(0, 3)).shape == (0, 7)
