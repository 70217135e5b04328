"""Every backend gives the values and gradients of the reference in double precision."""

import pytest
import torch
from torch import Tensor

from prunus.ops import path_rewards, tree_argmin, tree_traverse
from tests.ops.conftest import Target
from tests.ops.problems import (
    OPERATORS,
    Operator,
    Upstream,
    assert_all_same,
    evaluate,
    matrix,
    pools,
    rewards,
    scores,
    smooth_upstream,
    weights,
)

pytestmark = pytest.mark.usefixtures("poisoned_memory")
over_operators = pytest.mark.parametrize("operator", OPERATORS)

SIZES = [(1, 0), (1, 3), (2, 1), (2, 5), (63, 0), (63, 4), (63, 9), (500, 2), (500, 6), (1000, 3), (1000, 8), (3, 12)]
FEW_SIZES = [(500, 6), (63, 4), (1, 0), (63, 4), (500, 6)]
POOLING_SIZES = [(1, 1), (2, 3), (63, 2), (63, 7), (500, 5), (1000, 4)]
STRENGTHS = [0.0, 1e-3, 1.0, 30.0, 1e4]
POOLING_STRENGTHS = [0.0, 1e-3, 1.0, 30.0, 300.0, 1e4]


def paired(sizes: list[tuple[int, int]], strengths: list[float], *, each: int = 1) -> list[tuple[int, int, float]]:
    """Every size with `each` of the strengths, taken in turn, so that every strength is tried as well."""
    return [(*size, strengths[(each * i + j) % len(strengths)]) for i, size in enumerate(sizes) for j in range(each)]


def assert_agrees(target: Target, operator: Operator, x: Tensor, lam: float, weight: Tensor | None = None) -> None:
    """The target's evaluation at x, rounded to its dtype, is that of the reference at the same numbers."""
    given, given_weight = target.tensor(x), None if weight is None else target.tensor(weight)
    x, weight = given.double().cpu(), None if given_weight is None else given_weight.double().cpu()
    a = operator(x, lam, sample_weight=weight, backend="reference").a
    upstream = smooth_upstream(operator, x, a, target.dtype)
    expected = evaluate(operator, x, lam, weight, upstream=upstream)
    upstream = Upstream(*map(target.tensor, upstream))
    assert_all_same(evaluate(operator, given, lam, given_weight, upstream=upstream, backend=target.backend), expected)


def test_new_memory_is_poisoned() -> None:
    assert torch.empty(3).isnan().all()
    assert torch.empty_like(torch.zeros(2, 2)).isnan().all()


def test_traverse(target: Target) -> None:
    for n, depth, lam in [*paired(SIZES, STRENGTHS), *((63, 3, lam) for lam in STRENGTHS)]:
        assert_agrees(target, tree_traverse, scores(n, depth), lam)


def test_traverse_with_weights_and_argmin_of_path_rewards(target: Target) -> None:
    for n, depth, lam in paired(FEW_SIZES, STRENGTHS):
        assert_agrees(target, tree_traverse, scores(n, depth), lam, weights(n))
        assert_agrees(target, tree_argmin, path_rewards(scores(n, depth)), lam, weights(n))


@pytest.mark.parametrize("weighted", [False, True])
def test_traverse_of_many_samples(target: Target, weighted: bool) -> None:
    for n, depth, lam in [(3001, 5, 1.0), (3001, 5, 1e-3), (2500, 7, 1e-3), (2500, 3, 300.0), (4096, 0, 1e4)]:
        assert_agrees(target, tree_traverse, scores(n, depth), lam, weights(n) if weighted else None)


def test_traverse_of_small_and_large_scores(target: Target) -> None:
    for n, depth, lam in [(63, 4, 1.0), (63, 4, 30.0), (500, 6, 1e-3), (500, 6, 30.0)]:
        s = scores(n, depth, scale=0.1)
        assert (path_rewards(s) > -0.5).all()  # within the margin
        assert_agrees(target, tree_traverse, s, lam)
        assert_agrees(target, tree_traverse, 1000 * s, lam)


def test_argmin_with_pooling(target: Target) -> None:
    for n, depth, lam in [
        *paired(POOLING_SIZES, POOLING_STRENGTHS, each=2),
        *paired(POOLING_SIZES[::-1], POOLING_STRENGTHS),
    ]:
        assert_agrees(target, tree_argmin, rewards(n, depth), lam)
        assert_agrees(target, tree_argmin, rewards(n, depth), lam, weights(n))


def test_argmin_with_pooling_of_masses_below_one(target: Target) -> None:
    for n, depth, lam in [(63, 4, 1e-3), (63, 4, 30.0), (500, 5, 1.0), (500, 5, 30.0)]:
        q = rewards(n, depth) / 4
        assert pools(tree_argmin(q, lam, backend="reference").a)
        assert_agrees(target, tree_argmin, q, lam, weights(n))


def test_argmin_pools_over_several_levels(target: Target) -> None:
    q = rewards(63, 5) + torch.linspace(-1.5, 1, 63, dtype=torch.float64)  # the deeper, the better
    for lam in (30.0, 300.0):
        assert pools(tree_argmin(q, lam, backend="reference").a)
        assert_agrees(target, tree_argmin, q, lam)


@over_operators
def test_tied_inputs(target: Target, operator: Operator) -> None:
    for lam in (0.7371, 30.0):
        assert_agrees(target, operator, (4 * matrix(operator, 63, 4)).round() / 4, lam)


def test_constant_columns_and_samples_on_one_side(target: Target) -> None:
    for value in (-0.75, -0.25, 0.0, 0.25, 2.0):
        assert_agrees(target, tree_traverse, torch.full((63, 7), value, dtype=torch.float64), 3.0)
    for side in (-1, 1):
        assert_agrees(target, tree_traverse, side * scores(500, 5).abs(), 1.0, weights(500))


@over_operators
def test_all_weights_zero_and_no_samples(target: Target, operator: Operator) -> None:
    assert_agrees(target, operator, matrix(operator, 63), 1.0, torch.zeros(63, dtype=torch.float64))
    for depth, lam in ((0, 1.0), (3, 0.0)):
        assert_agrees(target, operator, matrix(operator, 0, depth), lam, weights(0))


@over_operators
def test_strided_inputs(target: Target, operator: Operator) -> None:
    x, w = target.tensor(matrix(operator, 126, 4)), target.tensor(weights(126))
    transposed, every_second = x.t().contiguous().t(), x[::2]
    assert not transposed.is_contiguous()
    for given, weight in ((transposed, w), (every_second, w[::2])):
        expected = evaluate(operator, given.contiguous(), 1.0, weight.contiguous(), backend=target.backend)
        assert_all_same(evaluate(operator, given, 1.0, weight, backend=target.backend), expected)


@over_operators
def test_strided_gradients(target: Target, operator: Operator) -> None:
    x = target.tensor(matrix(operator, 63, 4))
    one, grad_z, grad_a = (target.tensor(g) for g in (torch.ones(()), rewards(63, 4, seed=1), rewards(1, 4, seed=2)[0]))
    for upstream, same in (
        (Upstream(one.expand(63, 31), one.expand(31)), None),
        (Upstream(grad_z.t().contiguous().t(), grad_a), Upstream(grad_z, grad_a)),
    ):
        expected = evaluate(operator, x, 1.0, upstream=same, backend=target.backend)
        assert_all_same(evaluate(operator, x, 1.0, upstream=upstream, backend=target.backend), expected)
