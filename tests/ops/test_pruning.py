"""path_rewards against their definition, and integer_pruning against trying every rooted subtree."""

import functools

import pytest
import torch
from torch import Tensor

from prunus.ops import integer_pruning, path_rewards
from tests.ops.problems import parents, rewards, scores, weights
from tests.tolerances import FINITE_DIFFERENCE, ROUNDING


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


@pytest.mark.parametrize("depth", range(6))
def test_rewards_are_those_of_the_definition(depth: int) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        s = scores(7, depth).to(dtype)
        q = path_rewards(s)
        assert q.dtype == dtype
        assert torch.equal(q.double(), slow_rewards(s.double()))
        assert (q <= q[:, parents(q.shape[1])]).all()
    assert path_rewards(torch.empty(0, 3)).shape == (0, 7)


@pytest.mark.parametrize("depth", range(1, 4))
def test_gradients_of_rewards_are_finite_differences(depth: int) -> None:
    assert torch.autograd.gradcheck(path_rewards, (scores(3, depth).requires_grad_(),), **FINITE_DIFFERENCE)


NAN = torch.nan


@pytest.mark.parametrize(
    ("s", "expected"),
    [
        ([-0.25], [1.0, 0.25, -0.25]),
        ([0.0], [1.0, 0.0, 0.0]),
        ([3.0], [1.0, -3.0, 1.0]),  # at most 1
        ([0.75, NAN, 0.25], [1.0, -0.75, 0.75, -0.75, -0.75, -0.25, 0.25]),  # out of reach
        ([0.25, NAN, NAN], [1.0, -0.25, 0.25, NAN, NAN, NAN, NAN]),  # u at node 1 is 1/4
    ],
)
def test_rewards_at_the_edges(s: list[float], expected: list[float]) -> None:
    assert torch.equal(path_rewards(torch.tensor([s])).nan_to_num(-9), torch.tensor([expected]).nan_to_num(-9))


@pytest.mark.parametrize(
    ("s", "node", "expected"),
    [
        ([0.5, 0.0, 0.25], 6, [0.0, 0.0, 1.0]),
        ([0.25, 0.0, 0.5], 6, [1.0, 0.0, 0.0]),
        ([-0.25, -0.5, 0.0], 3, [-1.0, 0.0, 0.0]),  # a left turn
        ([0.5, 0.0, 0.5], 6, [1.0, 0.0, 0.0]),  # a tie goes to the topmost
        ([1.0], 2, [0.0]),  # a tie with the bound
    ],
)
def test_the_gradient_of_a_reward_goes_to_the_smallest_ancestor(
    s: list[float], node: int, expected: list[float]
) -> None:
    given = torch.tensor([s], requires_grad=True)
    (grad,) = torch.autograd.grad(path_rewards(given)[0, node], given)
    assert grad[0].tolist() == expected


@functools.cache
def rooted_subtrees(depth: int) -> Tensor:
    """Every set of nodes that is closed under parents, the empty one first, (how many, nodes)."""
    return torch.tensor([[node in kept for node in range(2 ** (depth + 1) - 1)] for kept in subtrees_below(0, depth)])


def subtrees_below(node: int, depth: int) -> list[set[int]]:
    none: list[set[int]] = [set()]
    if depth < 0:
        return none
    left, right = (subtrees_below(child, depth - 1) for child in (2 * node + 1, 2 * node + 2))
    return none + [{node} | a | b for a in left for b in right]


def objectives(q: Tensor, lam: float, weight: Tensor | None, masks: Tensor) -> Tensor:
    """What each mask earns: rewards of the kept nodes minus their price."""
    w = torch.ones(q.shape[0], dtype=q.dtype) if weight is None else weight
    return masks.to(q.dtype) @ (w @ q.clamp(min=0) - lam / 2)


@pytest.mark.parametrize(("lam", "weighted"), [(0.5, True), (4.0, False), (10.0, True)])
@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("kind", ["path", "arbitrary"])
def test_the_best_of_all_subtrees_is_kept(kind: str, depth: int, lam: float, weighted: bool) -> None:
    masks = rooted_subtrees(depth)
    assert len(masks) == [2, 5, 26, 677][depth]
    for seed in range(10):
        q = rewards(9, depth, seed=seed) if kind == "arbitrary" else path_rewards(scores(9, depth, seed=seed))
        w = weights(9, seed=seed) if weighted else None
        best = masks[objectives(q, lam, w, masks).argmax()]
        assert torch.equal(integer_pruning(q, lam, sample_weight=w), best)


@pytest.mark.parametrize("lam", [1.0, 4.0])
def test_it_earns_the_most_where_subtrees_tie(lam: float) -> None:
    for seed in range(10):
        q = (2 * rewards(3, 3, seed=seed)).round() / 2
        earned = objectives(q, lam, None, integer_pruning(q, lam).unsqueeze(0))
        assert earned.item() == pytest.approx(objectives(q, lam, None, rooted_subtrees(3)).max().item())


PATHS = path_rewards(scores(9, 3))


@pytest.mark.parametrize(
    ("q", "lam", "kept"),
    [
        (torch.tensor([[1.0, 0.5, 0.25]]), 1.0, [0]),  # node 1 earns exactly its price
        (torch.tensor([[-1.0, -1.0, -1.0, 2.0, -1.0, -1.0, -1.0]]), 1.0, [0, 1, 3]),  # for what lies below
        (torch.tensor([[1.0, 0.75, NAN], [1.0, NAN, 0.5]]), 1.0, [0, 1]),
        (PATHS, 1e6, []),
        (PATHS, float("inf"), []),
        (torch.full((4, 7), -1.0), 0.0, [*range(7)]),
        (torch.full((4, 7), -1.0), torch.tensor(0.0), [*range(7)]),
        (torch.empty(0, 7), 1.0, []),
    ],
)
def test_pruning_at_the_edges(q: Tensor, lam: float, kept: list[int]) -> None:
    assert integer_pruning(q, lam).nonzero().flatten().tolist() == kept


@pytest.mark.parametrize("depth", [0, 4, 8])
def test_a_kept_node_has_a_kept_parent(depth: int) -> None:
    kept = integer_pruning(rewards(63, depth), 60.0)
    assert (kept <= kept[parents(kept.numel())]).all()


def test_integer_weights_count_as_repeated_samples() -> None:
    w = torch.arange(9) % 4
    assert torch.equal(
        integer_pruning(PATHS, 4.0, sample_weight=w), integer_pruning(PATHS.repeat_interleave(w, 0), 4.0)
    )


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_weight_that_is_no_number_takes_no_part(bad: float) -> None:
    w, without = torch.ones(9, dtype=torch.float64), torch.arange(9) != 2
    w[2] = bad
    assert torch.equal(integer_pruning(PATHS, 2.0, sample_weight=w), integer_pruning(PATHS[without], 2.0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_dtypes_are_summed_in_single_precision(dtype: torch.dtype) -> None:
    q = torch.full((5000, 1), 1.0, dtype=dtype)
    price = 2 * 5000 * (1 - ROUNDING[torch.float32])  # a sum in half precision would stop far below
    assert integer_pruning(q, price).tolist() == [True]


def test_pruning_is_not_differentiated() -> None:
    kept = integer_pruning(PATHS.clone().requires_grad_(), torch.tensor(1.0, requires_grad=True))
    assert kept.dtype == torch.bool
    assert not kept.requires_grad
