"""Gradients against finite differences, and how autograd may call them."""

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from prunus.ops import tree_argmin, tree_traverse
from prunus.ops.routes import tree_routes
from tests.ops.problems import OPERATORS, Operator, generator, matrix, pools, rewards, scores, weights
from tests.tolerances import FINITE_DIFFERENCE, assert_same

over_operators = pytest.mark.parametrize("operator", OPERATORS)


def inputs(operator: Operator, n: int = 5, depth: int = 2, lam: float = 1.3) -> tuple[Tensor, Tensor, Tensor]:
    """Scores or rewards, lam and weights, away from ties, that all require gradients."""
    given = matrix(operator, n, depth), torch.tensor(lam, dtype=torch.float64), weights(n) + 0.1
    return tuple(x.requires_grad_() for x in given)  # type: ignore[return-value]


def solver(operator: Operator, backend: str, output: str | None = None) -> Operator:
    """The operator as a function of tensors alone."""

    def solve(x: Tensor, lam: Tensor, w: Tensor | None = None) -> Tensor:
        found = operator(x, lam, sample_weight=w, backend=backend)
        return found if output is None else getattr(found, output)  # type: ignore[return-value]

    return solve  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("n", "depth", "lam"), [(1, 0, 1.3), (1, 2, 0.05), (5, 1, 0.05), (5, 1, 20.0), (4, 3, 1.3), (4, 3, 20.0)]
)
@over_operators
def test_finite_differences(operator: Operator, n: int, depth: int, lam: float, cpu_backend: str) -> None:
    assert torch.autograd.gradcheck(solver(operator, cpu_backend), inputs(operator, n, depth, lam), **FINITE_DIFFERENCE)


def test_finite_differences_where_nodes_pool(cpu_backend: str) -> None:
    q = (rewards(3, 3, seed=3) + torch.linspace(-1, 1, 15, dtype=torch.float64)).requires_grad_()
    lam = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)
    assert pools(tree_argmin(q, lam, backend=cpu_backend).a)
    assert torch.autograd.gradcheck(solver(tree_argmin, cpu_backend), (q, lam), **FINITE_DIFFERENCE)


@over_operators
def test_finite_differences_at_no_pruning(operator: Operator, cpu_backend: str) -> None:
    x = inputs(operator)[0]
    assert torch.autograd.gradcheck(lambda x: operator(x, 0.0, backend=cpu_backend), (x,), **FINITE_DIFFERENCE)


@pytest.mark.parametrize("output", ["z", "a"])
@over_operators
def test_one_output_alone_is_used(operator: Operator, output: str, cpu_backend: str) -> None:
    assert torch.autograd.gradcheck(solver(operator, cpu_backend, output), inputs(operator, 3), **FINITE_DIFFERENCE)


@over_operators
def test_gradients_are_the_same_each_time_and_inputs_stay_as_they_are(operator: Operator, cpu_backend: str) -> None:
    given = inputs(operator)
    before = [x.detach().clone() for x in given]

    def loss(*given: Tensor) -> Tensor:
        z, a = solver(operator, cpu_backend)(*given)
        return (z**2).sum() + a.sum()

    once = loss(*given)
    first = torch.autograd.grad(once, given, retain_graph=True)
    with_graph = torch.autograd.grad(once, given, create_graph=True)  # which is made, but not used
    later = torch.autograd.grad(checkpoint(loss, *given, use_reentrant=False), given)
    for again in (with_graph, later, torch.autograd.grad(loss(*given), given)):
        assert all(map(torch.equal, first, again))
    for _ in range(2):
        torch.autograd.backward(loss(*given))
    for leaf, grad, value in zip(given, first, before, strict=True):
        assert leaf.grad is not None
        assert_same(leaf.grad, 2 * grad)
        assert torch.equal(leaf, value)


@over_operators
def test_lam_is_a_parameter_of_another_dtype(operator: Operator, cpu_backend: str) -> None:
    found = []
    for dtype in (torch.float32, torch.float64):
        lam = torch.nn.Parameter(torch.tensor(1.3, dtype=torch.float32).to(dtype))
        torch.autograd.backward(operator(matrix(operator, 5, 2), lam, backend=cpu_backend).a.sum())
        assert lam.grad is not None
        assert lam.grad.dtype == dtype
        found.append(lam.grad)
    assert_same(found[0], found[1])


@over_operators
def test_only_inputs_that_require_gradients_get_them(operator: Operator, cpu_backend: str) -> None:
    x, lam, w = inputs(operator)
    x, w = x.detach(), w.detach()
    torch.autograd.backward(operator(x, lam, sample_weight=w, backend=cpu_backend).a.sum())
    assert (x.grad, w.grad) == (None, None)
    assert lam.grad is not None
    with torch.no_grad():
        assert not any(part.requires_grad for part in operator(x, lam, backend=cpu_backend))


@over_operators
def test_second_derivatives_are_refused(operator: Operator, cpu_backend: str) -> None:
    x, lam, _ = inputs(operator)
    (grad,) = torch.autograd.grad((operator(x, 1.3, backend=cpu_backend).z ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"once|twice|second|double"):
        torch.autograd.grad((grad**2).sum(), x)
    (grad,) = torch.autograd.grad(operator(x, lam, backend=cpu_backend).a.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=f"{operator.__name__} can be differentiated once only"):
        torch.autograd.grad(grad.sum(), lam)  # which is not zero, though the loss is linear


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own use of it
@over_operators
def test_derivatives_in_forward_mode_are_refused(operator: Operator, cpu_backend: str) -> None:
    x = matrix(operator, 5, 2)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))  # type: ignore[no-untyped-call]
        with pytest.raises(NotImplementedError, match="forward mode"):
            operator(dual, 1.3, backend=cpu_backend)


def test_gradients_of_routes_have_no_derivatives() -> None:
    s = scores(3, 2).requires_grad_()
    (grad,) = torch.autograd.grad(tree_routes(s, torch.full((7,), 0.5)).sum(), s, create_graph=True)
    with pytest.raises(RuntimeError, match="prunus::tree_routes can be differentiated once only"):
        torch.autograd.grad(grad.sum(), s)


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
