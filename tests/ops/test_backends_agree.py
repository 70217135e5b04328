"""Every backend gives the values and gradients of the reference in double precision."""

import pytest
import torch
from torch import Tensor

from prunus.ops import path_rewards, tree_argmin, tree_traverse
from tests.ops.conftest import Target
from tests.ops.problems import (
    Evaluation,
    Operator,
    Upstream,
    evaluate,
    pools,
    rewards,
    scores,
    smooth_upstream,
    weights,
)
from tests.tolerances import assert_same

pytestmark = pytest.mark.usefixtures("poisoned_memory")

SIZES = [
    (1, 0),
    (1, 3),
    (2, 1),
    (2, 5),
    (63, 0),
    (63, 4),
    (63, 9),
    (500, 2),
    (500, 6),
    (1000, 3),
    (1000, 8),
    (3, 12),
]
POOLING_SIZES = [(1, 1), (2, 3), (63, 2), (63, 7), (500, 5), (1000, 4)]
STRENGTHS = [0.0, 1e-3, 1.0, 30.0, 1e4]
POOLING_STRENGTHS = [0.0, 1e-3, 1.0, 30.0, 300.0, 1e4]


def paired(sizes: list[tuple[int, int]], strengths: list[float], *, each: int) -> list[tuple[int, int, float]]:
    """Every size with `each` of the strengths, taken in turn, so that every strength is tried as well."""
    return [(*size, strengths[(each * i + j) % len(strengths)]) for i, size in enumerate(sizes) for j in range(each)]


def assert_agrees(
    target: Target,
    operator: Operator,
    x: Tensor,
    lam: float,
    weight: Tensor | None = None,
    upstream: Upstream | None = None,
) -> None:
    """The target's evaluation at x, rounded to its dtype, is that of the reference at the same numbers."""
    given, given_weight = target.tensor(x), None if weight is None else target.tensor(weight)
    x, weight = given.double().cpu(), None if given_weight is None else given_weight.double().cpu()
    if upstream is None:
        upstream = smooth_upstream(
            operator, x, operator(x, lam, sample_weight=weight, backend="reference").a, target.dtype
        )
    expected = evaluate(operator, x, lam, weight, upstream=upstream)
    upstream = Upstream(*map(target.tensor, upstream))
    assert_all_same(evaluate(operator, given, lam, given_weight, upstream=upstream, backend=target.backend), expected)


def assert_all_same(actual: Evaluation, expected: Evaluation) -> None:
    for name in Evaluation._fields:
        value, truth = getattr(actual, name), getattr(expected, name)
        if truth is not None:
            assert_same(value, truth)


def test_new_memory_is_poisoned() -> None:
    assert torch.empty(3).isnan().all()
    assert torch.empty_like(torch.zeros(2, 2)).isnan().all()


@pytest.mark.parametrize(
    ("n", "depth", "lam"), [*paired(SIZES, STRENGTHS, each=1), *((63, 3, lam) for lam in STRENGTHS)]
)
def test_traverse(target: Target, n: int, depth: int, lam: float) -> None:
    assert_agrees(target, tree_traverse, scores(n, depth), lam)


@pytest.mark.parametrize(
    ("n", "depth", "lam"), paired([(500, 6), (63, 4), (2, 0), (63, 4), (500, 6)], STRENGTHS, each=1)
)
def test_traverse_with_weights(target: Target, n: int, depth: int, lam: float) -> None:
    assert_agrees(target, tree_traverse, scores(n, depth), lam, weights(n))


@pytest.mark.parametrize(
    ("n", "depth", "lam", "weighted"),
    [
        (3001, 5, 1.0, False),
        (3001, 5, 1e-3, True),
        (2500, 7, 1e-3, False),
        (2500, 3, 300.0, False),
        (2500, 3, 300.0, True),
        (4096, 0, 1e4, True),
    ],
)
def test_traverse_of_many_samples(target: Target, n: int, depth: int, lam: float, weighted: bool) -> None:
    assert_agrees(target, tree_traverse, scores(n, depth), lam, weights(n) if weighted else None)


@pytest.mark.parametrize(("n", "depth", "lam"), [(63, 4, 1.0), (63, 4, 30.0), (500, 6, 1e-3), (500, 6, 30.0)])
def test_traverse_of_scores_within_the_margin(target: Target, n: int, depth: int, lam: float) -> None:
    s = scores(n, depth, scale=0.1)
    assert (path_rewards(s) > -0.5).all()
    assert_agrees(target, tree_traverse, s, lam)


@pytest.mark.parametrize(("n", "depth", "lam"), [(63, 4, 1.0), (63, 4, 30.0), (500, 6, 1e-3), (500, 6, 30.0)])
def test_traverse_of_large_scores(target: Target, n: int, depth: int, lam: float) -> None:
    assert_agrees(target, tree_traverse, scores(n, depth, scale=100.0), lam)


@pytest.mark.parametrize(
    ("n", "depth", "lam"), paired([(500, 6), (63, 4), (1, 0), (63, 4), (500, 6)], STRENGTHS, each=1)
)
def test_argmin_of_path_rewards(target: Target, n: int, depth: int, lam: float) -> None:
    assert_agrees(target, tree_argmin, path_rewards(scores(n, depth)), lam, weights(n))


@pytest.mark.parametrize(("n", "depth", "lam"), paired(POOLING_SIZES, POOLING_STRENGTHS, each=2))
def test_argmin_with_pooling(target: Target, n: int, depth: int, lam: float) -> None:
    assert_agrees(target, tree_argmin, rewards(n, depth), lam)


@pytest.mark.parametrize(("n", "depth", "lam"), paired(POOLING_SIZES[::-1], POOLING_STRENGTHS, each=1))
def test_argmin_with_pooling_and_weights(target: Target, n: int, depth: int, lam: float) -> None:
    assert_agrees(target, tree_argmin, rewards(n, depth), lam, weights(n))


@pytest.mark.parametrize(("n", "depth", "lam"), [(63, 4, 1e-3), (63, 4, 30.0), (500, 5, 1.0), (500, 5, 30.0)])
def test_argmin_with_pooling_of_masses_below_one(target: Target, n: int, depth: int, lam: float) -> None:
    q = rewards(n, depth) / 4
    assert pools(tree_argmin(q, lam, backend="reference").a)
    assert_agrees(target, tree_argmin, q, lam, weights(n))


@pytest.mark.parametrize("lam", [30.0, 300.0])
def test_argmin_pools_over_several_levels(target: Target, lam: float) -> None:
    q = rewards(63, 5) + torch.linspace(-1.5, 1, 63, dtype=torch.float64)  # the deeper, the better
    assert pools(tree_argmin(q, lam, backend="reference").a)
    assert_agrees(target, tree_argmin, q, lam)


@pytest.mark.parametrize("lam", [0.7371, 30.0])
@pytest.mark.parametrize("operator", [tree_traverse, tree_argmin])
def test_tied_inputs(target: Target, operator: Operator, lam: float) -> None:
    x = scores(63, 4) if operator is tree_traverse else rewards(63, 4)
    assert_agrees(target, operator, (4 * x).round() / 4, lam)


@pytest.mark.parametrize("value", [-0.75, -0.25, 0.0, 0.25, 2.0])
def test_constant_columns(target: Target, value: float) -> None:
    assert_agrees(target, tree_traverse, torch.full((63, 7), value, dtype=torch.float64), 3.0)


@pytest.mark.parametrize("side", [-1, 1])
def test_all_samples_on_one_side(target: Target, side: int) -> None:
    assert_agrees(target, tree_traverse, side * scores(500, 5).abs(), 1.0, weights(500))


@pytest.mark.parametrize("operator", [tree_traverse, tree_argmin])
def test_all_weights_zero(target: Target, operator: Operator) -> None:
    x = scores(63, 3) if operator is tree_traverse else rewards(63, 3)
    assert_agrees(target, operator, x, 1.0, torch.zeros(63, dtype=torch.float64))


@pytest.mark.parametrize(("depth", "lam"), [(0, 1.0), (3, 0.0)])
@pytest.mark.parametrize("operator", [tree_traverse, tree_argmin])
def test_no_samples(target: Target, operator: Operator, depth: int, lam: float) -> None:
    x = scores(0, depth) if operator is tree_traverse else rewards(0, depth)
    assert_agrees(target, operator, x, lam, weights(0))


@pytest.mark.parametrize("operator", [tree_traverse, tree_argmin])
def test_transposed_input(target: Target, operator: Operator) -> None:
    x = target.tensor(scores(63, 4) if operator is tree_traverse else rewards(63, 4))
    transposed = x.t().contiguous().t()
    assert not transposed.is_contiguous()
    backend = target.backend
    assert_all_same(evaluate(operator, transposed, 1.0, backend=backend), evaluate(operator, x, 1.0, backend=backend))


@pytest.mark.parametrize("operator", [tree_traverse, tree_argmin])
def test_every_second_sample_and_weight(target: Target, operator: Operator) -> None:
    x = target.tensor(scores(126, 4) if operator is tree_traverse else rewards(126, 4))[::2]
    w = target.tensor(weights(126))[::2]
    expected = evaluate(operator, x.contiguous(), 1.0, w.contiguous(), backend=target.backend)
    assert_all_same(evaluate(operator, x, 1.0, w, backend=target.backend), expected)


@pytest.mark.parametrize("operator", [tree_traverse, tree_argmin])
def test_expanded_gradients(target: Target, operator: Operator) -> None:
    x = target.tensor(scores(63, 4) if operator is tree_traverse else rewards(63, 4))
    one = torch.ones((), dtype=x.dtype, device=x.device)
    expanded = evaluate(operator, x, 1.0, upstream=Upstream(one.expand(63, 31), one.expand(31)), backend=target.backend)
    assert_all_same(expanded, evaluate(operator, x, 1.0, backend=target.backend))


@pytest.mark.parametrize("operator", [tree_traverse, tree_argmin])
def test_transposed_gradients(target: Target, operator: Operator) -> None:
    x = target.tensor(scores(63, 4) if operator is tree_traverse else rewards(63, 4))
    grad_z, grad_a = target.tensor(rewards(63, 4, seed=1)), target.tensor(rewards(1, 4, seed=2)[0])
    transposed = Upstream(grad_z.t().contiguous().t(), grad_a)
    expected = evaluate(operator, x, 1.0, upstream=Upstream(grad_z, grad_a), backend=target.backend)
    assert_all_same(evaluate(operator, x, 1.0, upstream=transposed, backend=target.backend), expected)
