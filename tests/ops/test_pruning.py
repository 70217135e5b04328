"""integer_pruning against trying every rooted subtree."""

import functools

import pytest
import torch
from torch import Tensor

from prunus.ops import integer_pruning, path_rewards
from tests.ops.problems import parents, rewards, scores, weights
from tests.tolerances import ROUNDING


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


def problem(kind: str, depth: int, seed: int) -> Tensor:
    return rewards(9, depth, seed=seed) if kind == "arbitrary" else path_rewards(scores(9, depth, seed=seed))


def test_there_are_as_many_rooted_subtrees_as_expected() -> None:
    assert [len(rooted_subtrees(depth)) for depth in range(4)] == [2, 5, 26, 677]


@pytest.mark.parametrize(("lam", "weighted"), [(0.5, True), (4.0, False), (10.0, True)])
@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("kind", ["path", "arbitrary"])
def test_is_the_best_of_all_subtrees(kind: str, depth: int, lam: float, weighted: bool) -> None:
    for seed in range(10):
        q, w = problem(kind, depth, seed), weights(9, seed=seed) if weighted else None
        masks = rooted_subtrees(depth)
        best = masks[objectives(q, lam, w, masks).argmax()]
        assert torch.equal(integer_pruning(q, lam, sample_weight=w), best)


@pytest.mark.parametrize("lam", [1.0, 4.0])
def test_earns_the_most_where_subtrees_tie(lam: float) -> None:
    for seed in range(10):
        q = (2 * rewards(3, 3, seed=seed)).round() / 2
        earned = objectives(q, lam, None, integer_pruning(q, lam).unsqueeze(0))
        assert earned.item() == pytest.approx(objectives(q, lam, None, rooted_subtrees(3)).max().item())


def test_a_subtree_that_gains_nothing_is_dropped() -> None:
    q = torch.tensor([[1.0, 0.5, 0.25]])
    assert integer_pruning(q, 1.0).tolist() == [True, False, False]  # node 1 earns exactly its price


def test_a_worthless_node_is_kept_for_what_lies_below_it() -> None:
    q = torch.tensor([[-1.0, -1.0, -1.0, 2.0, -1.0, -1.0, -1.0]])
    assert integer_pruning(q, 1.0).tolist() == [True, True, False, True, False, False, False]


def test_the_root_may_be_pruned() -> None:
    assert not integer_pruning(path_rewards(scores(9, 3)), 1e6).any()


@pytest.mark.parametrize("lam", [0.0, torch.tensor(0.0)])
def test_no_price_keeps_every_node(lam: float | Tensor) -> None:
    assert integer_pruning(torch.full((4, 7), -1.0), lam).all()


def test_an_infinite_price_keeps_none() -> None:
    assert not integer_pruning(path_rewards(scores(9, 2)), float("inf")).any()


@pytest.mark.parametrize("depth", [0, 4, 8])
def test_a_kept_node_has_a_kept_parent(depth: int) -> None:
    kept = integer_pruning(rewards(63, depth), 60.0)
    assert (kept <= kept[parents(kept.numel())]).all()


def test_integer_weights_count_as_repeated_samples() -> None:
    q, w = path_rewards(scores(9, 3)), torch.arange(9) % 4
    assert torch.equal(integer_pruning(q, 4.0, sample_weight=w), integer_pruning(q.repeat_interleave(w, 0), 4.0))


def test_a_nan_reward_counts_for_nothing() -> None:
    q = torch.tensor([[1.0, 0.75, torch.nan], [1.0, torch.nan, 0.5]])
    assert integer_pruning(q, 1.0).tolist() == [True, True, False]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_weight_that_is_no_number_takes_no_part(bad: float) -> None:
    q, w = path_rewards(scores(9, 3)), torch.ones(9, dtype=torch.float64)
    w[2] = bad
    without = torch.arange(9) != 2
    assert torch.equal(integer_pruning(q, 2.0, sample_weight=w), integer_pruning(q[without], 2.0))


def test_no_samples_keep_nothing() -> None:
    assert not integer_pruning(torch.empty(0, 7), 1.0).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_dtypes_are_summed_in_single_precision(dtype: torch.dtype) -> None:
    q = torch.full((5000, 1), 1.0, dtype=dtype)
    price = 2 * 5000 * (1 - ROUNDING[torch.float32])  # a sum in half precision would stop far below
    assert integer_pruning(q, price).tolist() == [True]


def test_is_not_differentiated() -> None:
    q = path_rewards(scores(9, 3)).requires_grad_()
    kept = integer_pruning(q, torch.tensor(1.0, requires_grad=True))
    assert kept.dtype == torch.bool
    assert not kept.requires_grad
