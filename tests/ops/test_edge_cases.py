"""The edges of the operators' domain: values that are no numbers, sizes of 0 and 1, extreme pruning strengths."""

import pytest
import torch
from torch import Tensor

from prunus.ops import path_rewards, tree_argmin, tree_traverse
from tests.ops.conftest import Target
from tests.ops.problems import (
    OPERATORS,
    Evaluation,
    Operator,
    evaluate,
    is_below,
    matrix,
    parents,
    rewards,
    scores,
    weights,
)
from tests.tolerances import HUGE_LAM, SMALL_LAM_SLOPE, assert_same

ABSENT = -9.0
"""A reward at which a sample takes no part in a node."""
OTHERS = torch.arange(9) != 4
NAN, INF = torch.nan, torch.inf
over_operators = pytest.mark.parametrize("operator", OPERATORS)


def assert_finite_gradients(target: Target, operator: Operator, x: Tensor, w: Tensor, lam: float = 1.0) -> None:
    result = evaluate(operator, target.tensor(x), lam, target.tensor(w), backend=target.backend)
    assert all(grad.isfinite().all() for grad in result[2:] if grad is not None)


def assert_same_but_for(actual: Evaluation, expected: Evaluation, rows: Tensor) -> None:
    """Masses are those expected, and routes and gradients of these samples."""
    assert_same(actual.a, expected.a)
    assert_same(actual.grad_lam, expected.grad_lam)
    for value, truth in ((actual.z, expected.z), (actual.grad_x, expected.grad_x)):
        assert_same(value.cpu()[rows], truth[rows])


def with_reward(q: Tensor, node: int | list[int], value: float) -> Tensor:
    q = q.clone()
    q[4, node] = value
    return q


@pytest.mark.parametrize("split", [0, 1, 2, 5])
def test_a_nan_score_spoils_its_sample_below_the_split_alone(split: int, target: Target) -> None:
    s = scores(9, 3, scale=0.1)  # so small that every sample reaches every node
    below = [t for t in range(15) if is_below(t, split)]
    expected = tree_argmin(with_reward(path_rewards(s), below, ABSENT), 1.0, backend="reference")
    s[4, split] = NAN
    z, a = tree_traverse(target.tensor(s), 1.0, backend=target.backend)
    assert z[4].isnan().nonzero().flatten().tolist() == below
    assert_same(a, expected.a)
    assert_same(z.cpu()[OTHERS], expected.z[OTHERS])
    assert_finite_gradients(target, tree_traverse, s, weights(9))


def test_a_nan_score_that_is_out_of_reach_changes_nothing(target: Target) -> None:
    s = torch.tensor([[0.75, 0.1, 0.2], [0.1, -0.2, 0.3]])
    expected = evaluate(tree_traverse, target.tensor(s), 1.0, backend=target.backend)
    s[0, 1] = NAN  # u of the left child is -1/4
    actual = evaluate(tree_traverse, target.tensor(s), 1.0, backend=target.backend)
    for value, truth in zip(actual[:4], expected[:4], strict=True):
        assert isinstance(value, Tensor)
        assert isinstance(truth, Tensor)
        assert_same(value, truth)


@pytest.mark.parametrize("node", [0, 1, 6, 14])
def test_a_nan_reward_spoils_its_own_route_alone(node: int, target: Target) -> None:
    q = rewards(9, 3)
    expected = tree_argmin(with_reward(q, node, ABSENT), 1.0, backend="reference")
    z, a = tree_argmin(target.tensor(with_reward(q, node, NAN)), 1.0, backend=target.backend)
    expected.z[4, node] = NAN
    assert_same(a, expected.a)
    assert_same(z, expected.z)


def test_nodes_whose_rewards_are_nan(target: Target) -> None:
    a = tree_argmin(target.tensor(torch.tensor([[NAN, 1.0, 1.0]])), 1.0, backend=target.backend).a
    assert_same(a, torch.full((3,), 0.6, dtype=torch.float64))  # children pool with it: 3 lam a = 2 (1.5 - a)
    z, a = tree_argmin(target.tensor(torch.full((3, 7), NAN)), 1.0, backend=target.backend)
    assert (a == 0).all()
    assert z.isnan().all()


@pytest.mark.parametrize("sign", [-1, 1])
@over_operators
def test_infinity_acts_like_a_very_large_number(sign: int, operator: Operator, target: Target) -> None:
    x = matrix(operator)
    for lam in (1.0, INF) if operator is tree_argmin else (1.0,):
        large = operator(with_reward(x, 1, sign * 1e6), lam, backend="reference")
        found = operator(target.tensor(with_reward(x, 1, sign * INF)), lam, backend=target.backend)
        for actual, expected in zip(found, large, strict=True):
            assert_same(actual, expected)
    assert_finite_gradients(target, operator, with_reward(x, 1, sign * INF), weights(9))
    if operator is tree_traverse:
        given = target.tensor(with_reward(x, 1, sign * INF)), 1.0, target.tensor(weights(9))
        usual = evaluate(operator, with_reward(x, 1, sign * 1e6), 1.0, weights(9))
        assert_same_but_for(evaluate(operator, *given, backend=target.backend), usual, torch.arange(9) >= 0)


@pytest.mark.parametrize("bad", [NAN, INF])
@over_operators
def test_a_weight_that_is_no_number_spoils_its_own_row_and_takes_no_part(
    operator: Operator, bad: float, target: Target
) -> None:
    x, w = matrix(operator), weights(9) + 0.1
    spoiled = torch.where(OTHERS, w, bad)
    z, a = operator(target.tensor(x), 1.0, sample_weight=target.tensor(spoiled), backend=target.backend)
    assert z.isnan().all(1).tolist() == (~OTHERS).tolist()
    assert z.cpu()[OTHERS].isfinite().all()
    assert_finite_gradients(target, operator, x, spoiled)
    expected = operator(x, 1.0, sample_weight=torch.where(OTHERS, w, 0.0), backend="reference")
    x[4] = ABSENT * (1 if operator is tree_argmin else NAN)
    again = operator(target.tensor(x), 1.0, sample_weight=target.tensor(spoiled), backend=target.backend)
    for found in (a, again.a):
        assert_same(found, expected.a)
    assert_same(again.z.cpu()[OTHERS], expected.z[OTHERS])


@over_operators
def test_no_pruning_keeps_all_and_infinite_strength_prunes_all(operator: Operator, target: Target) -> None:
    x = matrix(operator)
    q = path_rewards(x) if operator is tree_traverse else x
    z, a = operator(target.tensor(x), 0.0, backend=target.backend)
    assert (a == 1).all()
    assert_same(z, (q + 0.5).clamp(0, 1))
    result = evaluate(operator, target.tensor(x), INF, backend=target.backend)
    assert all((part == 0).all() for part in result if part is not None)


@over_operators
def test_huge_strength_leaves_the_sums_over_it(operator: Operator, target: Target) -> None:
    lam, x = 1e8, matrix(operator)
    q = path_rewards(x) if operator is tree_traverse else torch.cummin(x, 1).values
    a = operator(target.tensor(x if operator is tree_traverse else q), lam, backend=target.backend).a
    assert_same(a * lam, (q + 0.5).clamp(min=0).sum(0), tolerance=HUGE_LAM)
    assert_finite_gradients(target, operator, x, weights(9), lam)


@pytest.mark.parametrize(("n", "value"), [(1, 0.1), (7, 0.2), (1000, 0.3)])
def test_tiny_strength_keeps_the_slope_of_constant_columns(n: int, value: float, target: Target) -> None:
    lam = 1e-8  # lam + n is n in single precision, and a the same number as every u
    s = target.tensor(torch.full((n, 1), value))
    result, u = evaluate(tree_traverse, s, lam, backend=target.backend), path_rewards(s)[0] + 0.5
    assert (result.a[1:] < u[1:]).all()
    assert_same(result.a[1:], u[1:] * n / (lam + n))
    slopes = -result.a[1:].double().sum() / (lam + n)  # the root is whole and has none
    # z = a where u > a, so that z.sum() + a.sum() has the slope n + 1 in each a
    assert float(result.grad_lam) == pytest.approx(float((n + 1) * slopes), rel=SMALL_LAM_SLOPE[target.dtype])


@pytest.mark.parametrize(("n", "value"), [(1, 0.3), (7, 0.1), (1000, 0.2)])
def test_tiny_strength_keeps_the_slope_of_pooled_constant_columns(n: int, value: float, target: Target) -> None:
    lam = torch.tensor(1e-8, dtype=target.dtype, device=target.device, requires_grad=True)
    q = target.tensor(torch.tensor([[-0.25, value, value]]).repeat(n, 1))
    (slope,) = torch.autograd.grad(tree_argmin(q, lam, backend=target.backend).a.sum(), lam)
    # 3 lam a = 2 n (u - a): each of the three masses has the slope -3 a / (3 lam + 2 n)
    assert float(slope) == pytest.approx(-9 * (value + 0.5) / (2 * n), rel=SMALL_LAM_SLOPE[target.dtype])


def test_a_reward_of_hardly_any_weight_does_not_lower_a_mass(target: Target) -> None:
    q, w = target.tensor(torch.tensor([[0.0], [0.375]])), target.tensor(torch.tensor([1.0, 1e-30]))
    a = tree_argmin(q, 1e-20, sample_weight=w, backend=target.backend).a
    assert_same(a, torch.tensor([0.5]))  # beside the weight 1 neither lam nor the weight of u = 0.875 can be seen


@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
@over_operators
def test_one_sample_alone(operator: Operator, lam: float, target: Target) -> None:
    x = matrix(operator, n=1)
    q = path_rewards(x) if operator is tree_traverse else torch.cummin(x, 1).values
    given = target.tensor(x if operator is tree_traverse else q)
    expected = ((q[0] + 0.5).clamp(min=0) / (1 + lam)).clamp(max=1)
    assert_same(operator(given, lam, backend=target.backend).a, expected)


@pytest.mark.parametrize(("lam", "mass"), [(0.0, 1.0), (2.0, 0.0)])
@over_operators
def test_a_root_alone_and_no_samples(operator: Operator, lam: float, mass: float, target: Target) -> None:
    x = torch.empty(5, 0) if operator is tree_traverse else torch.ones(5, 1)
    z, a = operator(target.tensor(x), lam, backend=target.backend)
    assert a.tolist() == [1.0]  # 5 (1.5 - a) = lam a lies above 1
    assert z.tolist() == [[1.0]] * 5
    result = evaluate(operator, target.tensor(matrix(operator, n=0)), lam, backend=target.backend)
    assert (result.a == mass).all()
    assert (result.z.shape, result.grad_x.shape) == ((0, 15), matrix(operator, n=0).shape)
    assert result.grad_lam == 0


def test_depth_twelve(target: Target) -> None:
    s = target.tensor(scores(3, 12))
    expected = tree_argmin(path_rewards(s), 0.5, backend=target.backend)
    for actual, truth in zip(tree_traverse(s, 0.5, backend=target.backend), expected, strict=True):
        assert_same(actual, truth)


@pytest.mark.parametrize("lam", [1e-3, 1.0, 300.0])
@over_operators
def test_masses_obey_the_tree_exactly(operator: Operator, lam: float, target: Target) -> None:
    for seed in range(5):
        x = (8 * matrix(operator, 63, 5, seed=seed)).round() / 8
        z, a = (y.cpu() for y in operator(target.tensor(x), lam, backend=target.backend))
        assert (a <= a[parents(63)]).all()
        assert ((a >= 0) & (a <= 1)).all()
        assert ((z >= 0) & (z <= a)).all()


def test_rounding_never_lifts_a_child_above_its_parent_nor_pools_path_rewards(target: Target) -> None:
    for seed in range(40):  # node 2 holds one sample more than its child 6, so near its mass that only rounding tells
        s = target.tensor(scores(63, 2, scale=0.3, seed=seed))
        s[:, 2] = 5.0
        s[0] = torch.tensor([-5.0, 0.0, -5.0])
        s[0, 0] = tree_traverse(s, 1.3, backend=target.backend).a[2] - 0.5
        a = tree_traverse(s, 1.3, backend=target.backend).a
        assert a[6] <= a[2]
        q = path_rewards(s)
        group = torch.ops.prunus.tree_argmin(q, torch.tensor(1.3).to(q), None, target.backend)[2]
        assert group.tolist() == list(range(7))


def test_a_reward_equal_to_the_mass_is_not_active(target: Target) -> None:
    q = target.tensor(torch.tensor([[0.25], [-0.125]]))  # u = 3/4, 3/8 and at lam = 1 the mass is 3/8
    result = evaluate(tree_argmin, q, 1.0, backend=target.backend)
    assert result.a.tolist() == [0.375]
    assert result.grad_x.flatten().tolist() == [1.5, 0.0]  # da/du = 1/2 for the first; both z and a follow a


@pytest.mark.parametrize(
    ("s", "node", "expected"),
    [([0.0], 2, [1.0]), ([0.25, 0.0, 0.25], 6, [1.0, 0.0, 0.0])],  # score 0 goes right; a tie to the topmost split
)
def test_gradients_of_ties(s: list[float], node: int, expected: list[float], target: Target) -> None:
    given = target.tensor(torch.tensor([s])).requires_grad_()
    z = tree_traverse(given, 0.0, backend=target.backend).z
    assert z[0, node] == min(0.5 + max(0.0, min(s[0], 1.0)), 1.0)
    (grad,) = torch.autograd.grad(z[0, node], given)
    assert grad.tolist() == [expected]
