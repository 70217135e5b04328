"""Routes through a tree with given masses: values and gradients."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from prunus.ops import path_rewards, tree_traverse
from prunus.ops.routes import tree_routes
from tests.ops.conftest import Target, with_threads
from tests.ops.problems import generator, is_below, rewards, scores
from tests.tolerances import FINITE_DIFFERENCE, NEAR_TIE, assert_same

pytestmark = pytest.mark.usefixtures("poisoned_memory")

SIZES = [
    (0, 3, 1.0),
    (1, 0, 1.0),
    (9, 0, 0.1),
    (1, 3, 10.0),
    (63, 4, 0.1),
    (63, 4, 10.0),
    (63, 9, 1.0),
    (500, 6, 0.1),
    (5001, 5, 1.0),
    (3, 12, 0.1),
]
"""Samples, depth, and how large scores are: small ones reach all nodes, large ones a single path."""


def masses(depth: int) -> Tensor:
    """Masses that no data gave: some pruned, some whole, some between."""
    draw = torch.rand(2 ** (depth + 1) - 1, generator=generator(3), dtype=torch.float64)
    return (1.6 * draw - 0.3).clamp(0.0, 1.0)


def by_definition(s: Tensor, a: Tensor) -> Tensor:
    return torch.minimum((path_rewards(s) + 0.5).clamp(min=0.0), a)


def test_routes_are_rewards_clipped_at_the_masses(chosen: Target) -> None:
    for n, depth, scale in SIZES:
        s, a = chosen.tensor(scores(n, depth, scale=scale)), chosen.tensor(masses(depth))
        before = s.clone(), a.clone()
        z = tree_routes(s, a)
        assert torch.equal(z, by_definition(s, a))
        assert all(map(torch.equal, (s, a), before))


def test_masses_of_a_batch_give_its_routes(chosen: Target) -> None:
    for lam in (0.0, 1.0, 30.0):
        s = chosen.tensor(scores(63, 4))
        z, a = tree_traverse(s, lam)
        assert_same(tree_routes(s, a), z.double())


def test_plain_loops_give_the_same(chosen: Target) -> None:
    s, a = scores(9, 2), masses(2)
    expected = torch.zeros(9, 7, dtype=torch.float64)
    for i in range(9):
        q = [1.0] * 7
        for t in range(7):
            if t:
                score = float(s[i, (t - 1) // 2])
                q[t] = min(q[(t - 1) // 2], -score if t % 2 else score)
            expected[i, t] = min(max(q[t] + 0.5, 0.0), float(a[t]))
    assert_same(tree_routes(chosen.tensor(s), chosen.tensor(a)), expected)


def test_a_row_is_the_same_bit_for_bit_alone_and_among_others(chosen: Target) -> None:
    for n in (1, 7, 600):
        s, a = chosen.tensor(scores(n, 6)), chosen.tensor(masses(6))
        together = tree_routes(s, a)
        assert torch.equal(torch.cat([tree_routes(row, a) for row in torch.split(s, 1)]), together)
        assert torch.equal(tree_routes(s.flip(0), a).flip(0), together)


def test_the_number_of_threads_does_not_matter(chosen: Target) -> None:
    s, a = chosen.tensor(scores(5001, 5)), chosen.tensor(masses(5))
    found = [with_threads(count, lambda: tree_routes(s, a)) for count in (1, 3)]
    assert torch.equal(*found)


@pytest.mark.parametrize("split", [0, 1, 2, 5])
def test_a_nan_score_spoils_its_sample_below_the_split_and_no_gradient(split: int, chosen: Target) -> None:
    s = chosen.tensor(scores(9, 3, scale=0.1))  # so small that every sample reaches every node
    a = chosen.tensor(masses(3))
    expected = tree_routes(s, a)
    expected[4, [t for t in range(15) if is_below(t, split)]] = torch.nan
    s[4, split] = torch.nan
    z = tree_routes(s, a)
    assert int(z.isnan().sum()) > 1
    assert_same(z, expected.double())
    assert all(grad.isfinite().all() for grad in gradients(tree_routes, s, a, torch.ones_like(z)))


def test_a_nan_score_that_is_out_of_reach_changes_nothing(chosen: Target) -> None:
    s = chosen.tensor(torch.tensor([[0.75, torch.nan, 0.2]]))  # u of the left child is -1/4
    assert not tree_routes(s, chosen.tensor(torch.ones(7))).isnan().any()


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_infinite_score_acts_like_a_very_large_one(sign: int, chosen: Target) -> None:
    s, a = scores(9, 3), chosen.tensor(masses(3))
    found = []
    for score in (1e6, torch.inf):
        s[4, 1] = sign * score
        found.append(tree_routes(chosen.tensor(s), a))
    assert torch.equal(*found)


@pytest.mark.parametrize("layout", ["transposed", "strided", "expanded"])
def test_strided_inputs_are_read_right(layout: str, chosen: Target) -> None:
    s, a = chosen.tensor(scores(9, 3)), chosen.tensor(masses(3))
    if layout == "expanded":
        s = s[:1].expand(9, 7)
    expected = tree_routes(s.contiguous(), a)
    if layout == "transposed":
        s = s.T.contiguous().T
    if layout == "strided":
        s, a = torch.stack((s, s), 2)[:, :, 0], torch.stack((a, a), 1)[:, 0]
    z = tree_routes(s, a)
    assert z.is_contiguous()
    assert torch.equal(z, expected)


@pytest.mark.usefixtures("chosen_on_cpu")
@pytest.mark.parametrize(("n", "depth"), [(1, 0), (5, 1), (7, 3)])
def test_gradients_are_those_of_finite_differences(n: int, depth: int) -> None:
    s = scores(n, depth, scale=0.4)
    a = 0.1 + 0.8 * torch.rand(2 ** (depth + 1) - 1, generator=generator(3), dtype=torch.float64)
    u = path_rewards(s) + 0.5
    assert min(u.abs().min(), (u - a).abs().min()) > 1e-4  # finite differences do not step over 0 or a mass
    assert torch.autograd.gradcheck(tree_routes, (s.requires_grad_(), a.requires_grad_()), **FINITE_DIFFERENCE)


def test_gradients_are_those_of_the_definition(chosen: Target) -> None:
    for n, depth in [(63, 0), (63, 4), (500, 6), (3, 9)]:
        s, a = scores(n, depth), 0.1 + 0.8 * masses(depth)
        u = path_rewards(s) + 0.5
        upstream = rewards(n, depth, seed=5) * ((u - a).abs() > NEAR_TIE[torch.float32])
        expected = gradients(by_definition, s, a, upstream)
        actual = gradients(tree_routes, chosen.tensor(s), chosen.tensor(a), chosen.tensor(upstream))
        for value, truth in zip(actual, expected, strict=True):
            assert_same(value, truth)


def gradients(function: Callable[[Tensor, Tensor], Tensor], s: Tensor, a: Tensor, grad_z: Tensor) -> tuple[Tensor, ...]:
    s, a = s.detach().requires_grad_(), a.detach().requires_grad_()
    return torch.autograd.grad(function(s, a), (s, a), grad_z, materialize_grads=True)


@pytest.mark.usefixtures("chosen_on_cpu")
def test_a_gradient_goes_to_the_masses_alone_where_only_they_can_change() -> None:
    s, a = torch.tensor([[0.25]]), torch.tensor([1.0, 0.5, 0.5])
    grad_s, grad_a = gradients(tree_routes, s, a, torch.tensor([[1.0, 10.0, 100.0]]))
    assert grad_s.tolist() == [[-10.0]]  # u is 1.5, 0.25, 0.75
    assert grad_a.tolist() == [1.0, 0.0, 100.0]


@pytest.mark.usefixtures("chosen_on_cpu")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_dtypes_are_solved_in_single_precision(dtype: torch.dtype) -> None:
    s, a = scores(63, 3).to(dtype), masses(3).to(dtype)
    z = tree_routes(s, a)
    assert z.dtype == dtype
    assert torch.equal(z, tree_routes(s.float(), a.float()).to(dtype))
    assert all(grad.dtype == dtype for grad in gradients(tree_routes, s, a, torch.ones_like(z)))


def test_masses_may_have_another_precision() -> None:
    s, a = scores(63, 3), masses(3).float()
    assert torch.equal(tree_routes(s, a), tree_routes(s, a.double()))
