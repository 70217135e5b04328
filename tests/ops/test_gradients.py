"""Gradients against finite differences, and how autograd may call them."""

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from prunus.ops import tree_argmin, tree_traverse
from tests.ops.problems import Operator, generator, pools, rewards, scores, weights
from tests.tolerances import FINITE_DIFFERENCE, assert_same

OPERATORS = [tree_traverse, tree_argmin]


def inputs(operator: Operator, n: int = 5, depth: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Scores or rewards, lam and weights, away from ties, that all require gradients."""
    x = scores(n, depth) if operator is tree_traverse else rewards(n, depth)
    lam = torch.tensor(1.3, dtype=torch.float64)
    return x.requires_grad_(), lam.requires_grad_(), (weights(n) + 0.1).requires_grad_()


@pytest.mark.parametrize(
    ("n", "depth", "lam"), [(1, 0, 1.3), (1, 2, 0.05), (5, 1, 0.05), (5, 1, 20.0), (4, 3, 1.3), (4, 3, 20.0)]
)
@pytest.mark.parametrize("operator", OPERATORS)
def test_finite_differences(operator: Operator, n: int, depth: int, lam: float, cpu_backend: str) -> None:
    x, _, w = inputs(operator, n, depth)

    def solve(x: Tensor, lam: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        return operator(x, lam, sample_weight=w, backend=cpu_backend)

    strength = torch.tensor(lam, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(solve, (x, strength, w), **FINITE_DIFFERENCE)


def test_finite_differences_where_nodes_pool(cpu_backend: str) -> None:
    q = (rewards(3, 3, seed=3) + torch.linspace(-1, 1, 15, dtype=torch.float64)).requires_grad_()
    lam = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)
    assert pools(tree_argmin(q, lam, backend=cpu_backend).a)
    assert torch.autograd.gradcheck(
        lambda q, lam: tree_argmin(q, lam, backend=cpu_backend), (q, lam), **FINITE_DIFFERENCE
    )


@pytest.mark.parametrize("operator", OPERATORS)
def test_finite_differences_at_no_pruning(operator: Operator, cpu_backend: str) -> None:
    x = inputs(operator)[0]
    assert torch.autograd.gradcheck(lambda x: operator(x, 0.0, backend=cpu_backend), (x,), **FINITE_DIFFERENCE)


@pytest.mark.parametrize("output", ["z", "a"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_one_output_alone_is_used(operator: Operator, output: str, cpu_backend: str) -> None:
    x, lam, w = inputs(operator, n=3)

    def solve(x: Tensor, lam: Tensor, w: Tensor) -> Tensor:
        chosen: Tensor = getattr(operator(x, lam, sample_weight=w, backend=cpu_backend), output)
        return chosen

    assert torch.autograd.gradcheck(solve, (x, lam, w), **FINITE_DIFFERENCE)


@pytest.mark.parametrize("operator", OPERATORS)
def test_backward_twice_gives_the_same(operator: Operator, cpu_backend: str) -> None:
    given = inputs(operator)
    z, a = operator(given[0], given[1], sample_weight=given[2], backend=cpu_backend)
    loss = (z**2).sum() + a.sum()
    first = torch.autograd.grad(loss, given, retain_graph=True)
    second = torch.autograd.grad(loss, given)
    assert all(map(torch.equal, first, second))


@pytest.mark.parametrize("operator", OPERATORS)
def test_gradients_accumulate(operator: Operator, cpu_backend: str) -> None:
    x, lam, w = inputs(operator)
    for _ in range(2):
        torch.autograd.backward(operator(x, lam, sample_weight=w, backend=cpu_backend).z.sum())
    once = torch.autograd.grad(operator(x, lam, sample_weight=w, backend=cpu_backend).z.sum(), (x, lam, w))
    for leaf, grad in zip((x, lam, w), once, strict=True):
        assert leaf.grad is not None
        assert_same(leaf.grad, 2 * grad)


@pytest.mark.parametrize("operator", OPERATORS)
def test_lam_is_a_parameter_of_another_dtype(operator: Operator, cpu_backend: str) -> None:
    x = inputs(operator)[0]
    lam = torch.nn.Parameter(torch.tensor(1.3, dtype=torch.float32))
    torch.autograd.backward(operator(x, lam, backend=cpu_backend).a.sum())
    as_double = lam.detach().double().requires_grad_()
    torch.autograd.backward(operator(x, as_double, backend=cpu_backend).a.sum())
    assert lam.grad is not None
    assert as_double.grad is not None
    assert lam.grad.dtype == torch.float32
    assert_same(lam.grad, as_double.grad)


@pytest.mark.parametrize("operator", OPERATORS)
def test_only_inputs_that_require_gradients_get_them(operator: Operator, cpu_backend: str) -> None:
    x, lam, w = inputs(operator)
    x, w = x.detach(), w.detach()
    torch.autograd.backward(operator(x, lam, sample_weight=w, backend=cpu_backend).a.sum())
    assert lam.grad is not None
    assert x.grad is None
    assert w.grad is None


@pytest.mark.parametrize("operator", OPERATORS)
def test_no_graph_without_gradients(operator: Operator, cpu_backend: str) -> None:
    x, lam, _ = inputs(operator)
    with torch.no_grad():
        z, a = operator(x, lam, backend=cpu_backend)
    assert not z.requires_grad
    assert not a.requires_grad


@pytest.mark.parametrize("operator", OPERATORS)
def test_inputs_are_left_as_they_were(operator: Operator, cpu_backend: str) -> None:
    given = inputs(operator)
    before = [x.detach().clone() for x in given]
    z, a = operator(given[0], given[1], sample_weight=given[2], backend=cpu_backend)
    torch.autograd.backward(z.sum() + a.sum())
    assert all(map(torch.equal, before, given))


@pytest.mark.parametrize("operator", OPERATORS)
def test_second_derivatives_are_refused(operator: Operator, cpu_backend: str) -> None:
    x = inputs(operator)[0]
    z, _ = operator(x, 1.3, backend=cpu_backend)

    def second_derivative() -> None:
        (grad,) = torch.autograd.grad((z**2).sum(), x, create_graph=True)
        torch.autograd.grad((grad**2).sum(), x)

    with pytest.raises(RuntimeError, match=r"once|twice|second|double"):
        second_derivative()


@pytest.mark.parametrize("operator", OPERATORS)
def test_second_derivatives_are_refused_where_the_loss_is_linear(operator: Operator, cpu_backend: str) -> None:
    x, lam, _ = inputs(operator)
    (grad,) = torch.autograd.grad(operator(x, lam, backend=cpu_backend).a.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=f"{operator.__name__} can be differentiated once only"):
        torch.autograd.grad(grad.sum(), lam)  # which is not zero


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_graph_that_is_made_but_not_used_changes_nothing(operator: Operator, cpu_backend: str) -> None:
    given = inputs(operator)
    z, a = operator(given[0], given[1], sample_weight=given[2], backend=cpu_backend)
    loss = (z**2).sum() + a.sum()
    with_graph = torch.autograd.grad(loss, given, create_graph=True)
    assert all(map(torch.equal, with_graph, torch.autograd.grad(loss, given)))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own use of it
@pytest.mark.parametrize("operator", OPERATORS)
def test_derivatives_in_forward_mode_are_refused(operator: Operator, cpu_backend: str) -> None:
    x = inputs(operator)[0].detach()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))  # type: ignore[no-untyped-call]
        with pytest.raises(NotImplementedError, match="forward mode"):
            operator(dual, 1.3, backend=cpu_backend)


@pytest.mark.parametrize("operator", OPERATORS)
def test_checkpointing_gives_the_same(operator: Operator, cpu_backend: str) -> None:
    x, lam, w = inputs(operator)

    def loss(x: Tensor, lam: Tensor, w: Tensor) -> Tensor:
        return (operator(2 * x, lam, sample_weight=w, backend=cpu_backend).z ** 2).sum()

    later = torch.autograd.grad(checkpoint(loss, x, lam, w, use_reentrant=False), (x, lam, w))
    assert all(map(torch.equal, later, torch.autograd.grad(loss(x, lam, w), (x, lam, w))))


def test_gradient_descent_with_learned_lam_lowers_the_loss(cpu_backend: str) -> None:
    s = scores(63, 3).requires_grad_()
    lam = torch.tensor(5.0, dtype=torch.float64, requires_grad=True)
    goal = torch.rand(63, 15, generator=generator(1), dtype=torch.float64)
    losses = []
    for _ in range(20):
        loss = ((tree_traverse(s, lam, backend=cpu_backend).z - goal) ** 2).sum()
        grad_s, grad_lam = torch.autograd.grad(loss, (s, lam))
        with torch.no_grad():
            s -= 0.01 * grad_s
            lam -= 1e-4 * grad_lam
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert losses == sorted(losses, reverse=True)
