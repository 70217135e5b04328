"""Random problems, and an operator's values and gradients on them."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from prunus.ops import TreeArgmin, path_rewards, tree_argmin, tree_traverse
from tests.tolerances import NEAR_TIE, assert_same

Operator = Callable[..., TreeArgmin]
OPERATORS: list[Operator] = [tree_traverse, tree_argmin]


class Evaluation(NamedTuple):
    """What an operator returns, and the gradients of `(z * grad_z).sum() + (a * grad_a).sum()`."""

    z: Tensor
    a: Tensor
    grad_x: Tensor
    grad_lam: Tensor
    grad_weight: Tensor | None


class Upstream(NamedTuple):
    """Gradients that arrive at z and a."""

    grad_z: Tensor
    grad_a: Tensor


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def scores(n: int, depth: int, *, scale: float = 1.0, seed: int = 0) -> Tensor:
    """Normally distributed split scores, (n, 2**depth - 1)."""
    return scale * torch.randn(n, 2**depth - 1, generator=generator(seed), dtype=torch.float64)


def rewards(n: int, depth: int, *, seed: int = 0) -> Tensor:
    """Rewards that no scores give, uniform in [-2, 2], (n, 2**(depth + 1) - 1): nodes press against their parents."""
    return 4 * torch.rand(n, 2 ** (depth + 1) - 1, generator=generator(seed), dtype=torch.float64) - 2


def matrix(operator: Operator, n: int = 9, depth: int = 3, *, seed: int = 0) -> Tensor:
    """Scores or rewards for an operator."""
    return scores(n, depth, seed=seed) if operator is tree_traverse else rewards(n, depth, seed=seed)


def weights(n: int, *, seed: int = 0) -> Tensor:
    """Weights uniform in [0, 2], about a quarter of them exactly 0, (n,)."""
    draw = torch.rand(2, n, generator=generator(seed), dtype=torch.float64)
    return torch.where(draw[0] < 0.25, 0.0, 2 * draw[1])


def evaluate(
    operator: Operator,
    x: Tensor,
    lam: float,
    weight: Tensor | None = None,
    *,
    upstream: Upstream | None = None,
    backend: str = "reference",
) -> Evaluation:
    """Values and all gradients; those that arrive are 1 unless given."""
    x = x.detach().requires_grad_()
    strength = torch.tensor(lam, dtype=x.dtype, device=x.device, requires_grad=True)
    weight = None if weight is None else weight.detach().requires_grad_()
    z, a = operator(x, strength, sample_weight=weight, backend=backend)
    arriving = upstream or Upstream(torch.ones_like(z), torch.ones_like(a))
    inputs = (x, strength) if weight is None else (x, strength, weight)
    grads = torch.autograd.grad((z, a), inputs, tuple(g.to(z) for g in arriving))
    return Evaluation(z.detach(), a.detach(), grads[0], grads[1], grads[2] if weight is not None else None)


def assert_all_same(actual: Evaluation, expected: Evaluation) -> None:
    """The same but for rounding, where there is something to expect."""
    for value, truth in zip(actual, expected, strict=True):
        if truth is not None:
            assert value is not None
            assert_same(value, truth)


def smooth_upstream(operator: Operator, x: Tensor, a: Tensor, dtype: torch.dtype, *, seed: int = 0) -> Upstream:
    """Random gradients for z and a, zero at the nodes where rounding in this dtype may decide what is active."""
    u = 0.5 + (path_rewards(x) if operator is tree_traverse else x)
    tie = NEAR_TIE[dtype]
    to_parent = (a - a[parents(a.numel())]).abs()
    close = ((u - a).abs() < tie).any(0) | ((a != 1) & ((a - 1).abs() < tie)) | ((to_parent > 0) & (to_parent < tie))
    pooled_with_close = torch.isin(a, a[close & (a < 1)])
    smooth = ~(close | pooled_with_close)
    grad_z, grad_a = torch.randn(2, *u.shape, generator=generator(seed), dtype=u.dtype).unbind(0)
    return Upstream(grad_z * smooth, grad_a.sum(0) * smooth)


def parents(nodes: int) -> Tensor:
    """Each node's parent in heap order; the root is its own."""
    return (torch.arange(nodes) - 1).clamp(min=0) // 2


def is_below(node: int, t: int) -> bool:
    """Whether a node is a descendant of another one."""
    while node > t:
        node = (node - 1) // 2
        if node == t:
            return True
    return False


def pools(a: Tensor) -> bool:
    """Whether some node with a free mass has the same mass as its parent."""
    above = a[parents(a.numel())]
    return bool(((a == above) & (a > 0) & (a < 1))[1:].any())
