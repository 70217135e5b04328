"""The edges of the operators' domain: values that are no numbers, sizes of 0 and 1, extreme pruning strengths."""

import pytest
import torch
from torch import Tensor

from prunus.ops import path_rewards, tree_argmin, tree_traverse
from tests.ops.conftest import Target
from tests.ops.problems import Evaluation, Operator, evaluate, parents, rewards, scores, weights
from tests.tolerances import HUGE_LAM, SMALL_LAM_SLOPE, assert_same

OPERATORS = [tree_traverse, tree_argmin]
ABSENT = -9.0
"""A reward at which a sample takes no part in a node."""


def matrix(operator: Operator, n: int = 9, depth: int = 3, *, seed: int = 0) -> Tensor:
    return scores(n, depth, seed=seed) if operator is tree_traverse else rewards(n, depth, seed=seed)


def assert_others_same(actual: Evaluation, expected: Evaluation, others: Tensor) -> None:
    """Masses, routes and gradients are those expected, for these samples where they are per sample."""
    assert_same(actual.a, expected.a)
    assert_same(actual.z[others], expected.z[others])
    assert_same(actual.grad_x[others], expected.grad_x[others])
    assert_same(actual.grad_lam, expected.grad_lam)


def descendants(t: int, depth: int) -> list[int]:
    return [node for node in range(2 ** (depth + 1) - 1) if node != t and is_below(node, t)]


def is_below(node: int, t: int) -> bool:
    while node > t:
        node = (node - 1) // 2
    return node == t


@pytest.mark.parametrize("split", [0, 1, 2, 5])
def test_a_nan_score_spoils_its_sample_below_the_split(split: int, target: Target) -> None:
    s = target.tensor(scores(9, 3, scale=0.1))  # so small that every sample reaches every node
    s[4, split] = torch.nan
    z = tree_traverse(s, 1.0, backend=target.backend).z
    assert z[4].isnan().nonzero().flatten().tolist() == descendants(split, 3)
    assert not z[torch.arange(9) != 4].isnan().any()


@pytest.mark.parametrize("split", [0, 1, 2, 5])
def test_a_nan_score_leaves_the_others_as_if_its_sample_were_absent_below(split: int, target: Target) -> None:
    s = scores(9, 3, scale=0.1)
    absent = path_rewards(s)
    absent[4, descendants(split, 3)] = ABSENT
    expected = tree_argmin(absent, 1.0, backend="reference")
    s[4, split] = torch.nan
    z, a = tree_traverse(target.tensor(s), 1.0, backend=target.backend)
    others = torch.arange(9) != 4
    assert_same(a, expected.a)
    assert_same(z.cpu()[others], expected.z[others])


def test_a_nan_score_that_is_out_of_reach_changes_nothing(target: Target) -> None:
    s = target.tensor(torch.tensor([[0.75, 0.1, 0.2], [0.1, -0.2, 0.3]]))
    spoiled = s.clone()
    spoiled[0, 1] = torch.nan  # u of the left child is -1/4
    backend = target.backend
    for actual, expected in zip(
        evaluate(tree_traverse, spoiled, 1.0, backend=backend)[:4],
        evaluate(tree_traverse, s, 1.0, backend=backend)[:4],
        strict=True,
    ):
        assert isinstance(actual, Tensor)
        assert isinstance(expected, Tensor)
        assert_same(actual, expected)


def test_a_nan_score_gives_finite_gradients(target: Target) -> None:
    s = target.tensor(scores(9, 3, scale=0.1))
    s[4, 1] = torch.nan
    result = evaluate(tree_traverse, s, 1.0, target.tensor(weights(9)), backend=target.backend)
    assert all(grad.isfinite().all() for grad in result[2:] if grad is not None)


@pytest.mark.parametrize("node", [0, 1, 6, 14])
def test_a_nan_reward_spoils_its_own_route_alone(node: int, target: Target) -> None:
    q = rewards(9, 3)
    absent = q.clone()
    absent[4, node] = ABSENT
    expected = tree_argmin(absent, 1.0, backend="reference")
    q[4, node] = torch.nan
    z, a = tree_argmin(target.tensor(q), 1.0, backend=target.backend)
    expected.z[4, node] = torch.nan
    assert_same(a, expected.a)
    assert_same(z, expected.z)


def test_a_child_pools_with_a_parent_whose_rewards_are_nan(target: Target) -> None:
    q = target.tensor(torch.tensor([[torch.nan, 1.0, 1.0]]))
    a = tree_argmin(q, 1.0, backend=target.backend).a
    assert_same(a, torch.full((3,), 0.6, dtype=torch.float64))  # 3 lam a = 2 (1.5 - a)


def test_all_nan_leaves_nothing_to_keep(target: Target) -> None:
    z, a = tree_argmin(target.tensor(torch.full((3, 7), torch.nan)), 1.0, backend=target.backend)
    assert (a == 0).all()
    assert z.isnan().all()


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_infinite_score_acts_like_a_very_large_one(sign: int, target: Target) -> None:
    s = scores(9, 3)
    s[4, 1] = sign * 1e6
    large = evaluate(tree_traverse, s, 1.0, weights(9))
    s[4, 1] = sign * torch.inf
    infinite = evaluate(tree_traverse, target.tensor(s), 1.0, target.tensor(weights(9)), backend=target.backend)
    assert_others_same(infinite, large, torch.arange(9) >= 0)


@pytest.mark.parametrize("lam", [1.0, float("inf")])
@pytest.mark.parametrize("sign", [-1, 1])
def test_an_infinite_reward_acts_like_a_very_large_one(sign: int, lam: float, target: Target) -> None:
    q = rewards(9, 3)
    q[4, 1] = sign * 1e6
    large = tree_argmin(q, lam, backend="reference")
    q[4, 1] = sign * torch.inf
    z, a = tree_argmin(target.tensor(q), lam, backend=target.backend)
    assert_same(a, large.a)
    assert_same(z, large.z)


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_infinite_reward_gives_finite_gradients(sign: int, target: Target) -> None:
    q = rewards(9, 3)
    q[4, 1] = sign * torch.inf
    result = evaluate(tree_argmin, target.tensor(q), 1.0, target.tensor(weights(9)), backend=target.backend)
    assert all(grad.isfinite().all() for grad in result[2:] if grad is not None)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_weight_that_is_no_number_spoils_its_own_row(operator: Operator, bad: float, target: Target) -> None:
    w = weights(9) + 0.1
    w[4] = bad
    z, a = operator(target.tensor(matrix(operator)), 1.0, sample_weight=target.tensor(w), backend=target.backend)
    assert z.isnan().all(1).tolist() == [i == 4 for i in range(9)]
    assert z[torch.arange(9) != 4].isfinite().all()
    assert a.isfinite().all()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_weight_that_is_no_number_takes_no_part(operator: Operator, bad: float, target: Target) -> None:
    x, w = matrix(operator), weights(9) + 0.1
    expected = evaluate(operator, x, 1.0, torch.where(torch.arange(9) == 4, 0.0, w))
    w[4] = bad
    x[4] = ABSENT * (1 if operator is tree_argmin else torch.nan)
    actual = evaluate(operator, target.tensor(x), 1.0, target.tensor(w), backend=target.backend)
    others = torch.arange(9) != 4
    assert_same(actual.a, expected.a)
    assert_same(actual.z.cpu()[others], expected.z[others])


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_weight_that_is_no_number_gives_finite_gradients(operator: Operator, target: Target) -> None:
    w = weights(9) + 0.1
    w[4] = torch.nan
    actual = evaluate(operator, target.tensor(matrix(operator)), 1.0, target.tensor(w), backend=target.backend)
    assert all(grad.isfinite().all() for grad in actual[2:] if grad is not None)


@pytest.mark.parametrize("operator", OPERATORS)
def test_no_pruning_keeps_all(operator: Operator, target: Target) -> None:
    x = matrix(operator)
    q = path_rewards(x) if operator is tree_traverse else x
    z, a = operator(target.tensor(x), 0.0, backend=target.backend)
    assert (a == 1).all()
    assert_same(z, (q + 0.5).clamp(0, 1))


@pytest.mark.parametrize("operator", OPERATORS)
def test_infinite_strength_prunes_all(operator: Operator, target: Target) -> None:
    result = evaluate(operator, target.tensor(matrix(operator)), float("inf"), backend=target.backend)
    assert (result.a == 0).all()
    assert (result.z == 0).all()
    assert (result.grad_x == 0).all()
    assert result.grad_lam == 0


@pytest.mark.parametrize("operator", OPERATORS)
def test_huge_strength_leaves_the_sums_over_it(operator: Operator, target: Target) -> None:
    lam = 1e8
    x = matrix(operator)
    q = path_rewards(x) if operator is tree_traverse else torch.cummin(x, 1).values
    a = operator(target.tensor(x if operator is tree_traverse else q), lam, backend=target.backend).a
    assert_same(a * lam, (q + 0.5).clamp(min=0).sum(0), tolerance=HUGE_LAM)


@pytest.mark.parametrize("operator", OPERATORS)
def test_huge_strength_gives_finite_gradients(operator: Operator, target: Target) -> None:
    result = evaluate(operator, target.tensor(matrix(operator)), 1e8, target.tensor(weights(9)), backend=target.backend)
    assert all(grad.isfinite().all() for grad in result[2:] if grad is not None)


@pytest.mark.parametrize(("n", "value"), [(1, 0.1), (7, 0.2), (1000, 0.3)])
def test_tiny_strength_keeps_the_slope_of_constant_columns(n: int, value: float, target: Target) -> None:
    lam = 1e-8  # lam + n is n in single precision, and a the same number as every u
    s = target.tensor(torch.full((n, 1), value))
    result = evaluate(tree_traverse, s, lam, backend=target.backend)
    slopes = -result.a[1:].double().sum() / (lam + n)  # the root is whole and has none
    # z = a where u > a, so that z.sum() + a.sum() has the slope n + 1 in each a
    assert float(result.grad_lam) == pytest.approx(float((n + 1) * slopes), rel=SMALL_LAM_SLOPE[target.dtype])


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_tiny_strength_keeps_constant_columns_below_their_rewards(n: int, target: Target) -> None:
    s = target.tensor(torch.full((n, 1), 0.3))
    lam = 1e-8
    a = tree_traverse(s, lam, backend=target.backend).a
    u = path_rewards(s)[0] + 0.5
    assert (a[1:] < u[1:]).all()
    assert_same(a[1:], u[1:] * n / (lam + n))


@pytest.mark.parametrize(("n", "value"), [(1, 0.3), (7, 0.1), (1000, 0.2)])
def test_tiny_strength_keeps_the_slope_of_pooled_constant_columns(n: int, value: float, target: Target) -> None:
    lam = torch.tensor(1e-8, dtype=target.dtype, device=target.device, requires_grad=True)
    q = target.tensor(torch.tensor([[-0.25, value, value]]).repeat(n, 1))
    a = tree_argmin(q, lam, backend=target.backend).a
    (slope,) = torch.autograd.grad(a.sum(), lam)
    # 3 lam a = 2 n (u - a): each of the three masses has the slope -3 a / (3 lam + 2 n)
    assert float(slope) == pytest.approx(-9 * (value + 0.5) / (2 * n), rel=SMALL_LAM_SLOPE[target.dtype])


def test_a_reward_of_hardly_any_weight_does_not_lower_a_mass(target: Target) -> None:
    q = target.tensor(torch.tensor([[0.0], [0.375]]))
    w = target.tensor(torch.tensor([1.0, 1e-30]))
    a = tree_argmin(q, 1e-20, sample_weight=w, backend=target.backend).a
    assert_same(a, torch.tensor([0.5]))  # beside the weight 1 neither lam nor the weight of u = 0.875 can be seen


@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("operator", OPERATORS)
def test_one_sample_alone(operator: Operator, lam: float, target: Target) -> None:
    x = matrix(operator, n=1)
    q = path_rewards(x) if operator is tree_traverse else torch.cummin(x, 1).values
    given = target.tensor(x if operator is tree_traverse else q)
    expected = ((q[0] + 0.5).clamp(min=0) / (1 + lam)).clamp(max=1)
    assert_same(operator(given, lam, backend=target.backend).a, expected)


@pytest.mark.parametrize("lam", [0.0, 2.0])
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_root_alone(operator: Operator, lam: float, target: Target) -> None:
    x = torch.empty(5, 0) if operator is tree_traverse else torch.ones(5, 1)
    z, a = operator(target.tensor(x), lam, backend=target.backend)
    assert a.tolist() == [1.0]  # 5 (1.5 - a) = lam a lies above 1
    assert z.tolist() == [[1.0]] * 5


@pytest.mark.parametrize(("lam", "mass"), [(0.0, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("operator", OPERATORS)
def test_no_samples(operator: Operator, lam: float, mass: float, target: Target) -> None:
    result = evaluate(operator, target.tensor(matrix(operator, n=0)), lam, backend=target.backend)
    assert (result.a == mass).all()
    assert result.z.shape == (0, 15)
    assert result.grad_x.shape == (0, 7 if operator is tree_traverse else 15)
    assert result.grad_lam == 0


def test_depth_twelve(target: Target) -> None:
    s = target.tensor(scores(3, 12))
    z, a = tree_traverse(s, 0.5, backend=target.backend)
    expected = tree_argmin(path_rewards(s), 0.5, backend=target.backend)
    assert_same(a, expected.a)
    assert_same(z, expected.z)


@pytest.mark.parametrize("lam", [1e-3, 1.0, 300.0])
@pytest.mark.parametrize("operator", OPERATORS)
def test_masses_obey_the_tree_exactly(operator: Operator, lam: float, target: Target) -> None:
    for seed in range(5):
        x = (8 * matrix(operator, 63, 5, seed=seed)).round() / 8
        z, a = (y.cpu() for y in operator(target.tensor(x), lam, backend=target.backend))
        assert (a <= a[parents(63)]).all()
        assert ((a >= 0) & (a <= 1)).all()
        assert ((z >= 0) & (z <= a)).all()


def nearly_equal_parent_and_child(target: Target, seed: int) -> Tensor:
    """Scores at which node 2 holds one sample more than its child 6, so near its mass that only rounding tells."""
    s = target.tensor(scores(63, 2, scale=0.3, seed=seed))
    s[:, 2] = 5.0
    s[0] = torch.tensor([-5.0, 0.0, -5.0])
    s[0, 0] = tree_traverse(s, 1.3, backend=target.backend).a[2] - 0.5
    return s


def test_rounding_never_lifts_a_child_above_its_parent(target: Target) -> None:
    for seed in range(40):
        a = tree_traverse(nearly_equal_parent_and_child(target, seed), 1.3, backend=target.backend).a
        assert a[6] <= a[2]


def test_rounding_never_pools_path_rewards(target: Target) -> None:
    for seed in range(40):
        q = path_rewards(nearly_equal_parent_and_child(target, seed))
        group = torch.ops.prunus.tree_argmin(q, torch.tensor(1.3).to(q), None, target.backend)[2]
        assert group.tolist() == list(range(7))


def test_a_reward_equal_to_the_mass_is_not_active(target: Target) -> None:
    q = target.tensor(torch.tensor([[0.25], [-0.125]]))  # u = 3/4, 3/8 and at lam = 1 the mass is 3/8
    result = evaluate(tree_argmin, q, 1.0, backend=target.backend)
    assert result.a.tolist() == [0.375]
    assert result.grad_x.flatten().tolist() == [1.5, 0.0]  # da/du = 1/2 for the first; both z and a follow a


def test_score_zero_sends_the_sample_right(target: Target) -> None:
    s = target.tensor(torch.zeros(1, 1)).requires_grad_()
    z = tree_traverse(s, 0.0, backend=target.backend).z
    assert z.tolist() == [[1.0, 0.5, 0.5]]
    (grad,) = torch.autograd.grad(z[0, 2], s)
    assert grad.tolist() == [[1.0]]


def test_the_gradient_of_a_tied_path_goes_to_the_topmost_split(target: Target) -> None:
    s = target.tensor(torch.tensor([[0.25, 0.0, 0.25]])).requires_grad_()
    z = tree_traverse(s, 0.0, backend=target.backend).z
    (grad,) = torch.autograd.grad(z[0, 6], s)
    assert grad.tolist() == [[1.0, 0.0, 0.0]]
