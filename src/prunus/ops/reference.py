"""The tree argmin in plain torch, on any device: the ground truth that every other backend is compared with.

README.md beside this file derives what is computed here. Every function works on whole tensors; loops run over the
levels of the tree or over Newton steps, never over samples or nodes.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from prunus.ops.heap import depth_of_nodes, depth_of_splits, level

__all__ = [
    "argmin_backward",
    "argmin_forward",
    "path_rewards",
    "routes",
    "routes_backward",
    "sums_above",
    "traverse_backward",
    "traverse_forward",
]


def path_rewards(s: Tensor) -> Tensor:
    """Rewards q, (n, T), of split scores s, (n, S); differentiable."""
    q = s.new_ones(s.shape[0], 1)
    levels = [q]
    for d in range(depth_of_splits(s.shape[1])):
        toward, takes = _turns(s[:, level(d)], q)
        q = torch.where(takes, toward, q.unsqueeze(2)).flatten(1)  # (n, 2**(d + 1))
        levels.append(q)
    return torch.cat(levels, 1)


def traverse_forward(s: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Routes z, (n, T), and node masses a, (T,), of split scores s, (n, S)."""
    u, weight = _shifted(path_rewards(s.contiguous()), weight)
    a = _cap_by_parent(_newton_roots(u, lam, weight))
    return _clip(u, a), a


def traverse_backward(
    grad_z: Tensor, grad_a: Tensor, s: Tensor, a: Tensor, lam: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the scores, of lam and of the sample weights."""
    s = s.contiguous()
    q = path_rewards(s)
    grad_q, grad_lam, grad_weight = argmin_backward(grad_z, grad_a, q, a, None, lam, weight)
    return _path_rewards_backward(grad_q, s, q), grad_lam, grad_weight


def argmin_forward(q: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Routes z, (n, T), node masses a, (T,), and the pooled group of each node, named by its topmost node, (T,)."""
    u, weight = _shifted(q.contiguous(), weight)
    roots = _cap_monotone_edges(u, _newton_roots(u, lam, weight))
    if bool((roots > _of_parent(roots)).any()):
        roots = _pooled_roots(u, lam, weight, roots)
    a, group = _groups(roots)
    return _clip(u, a), a, group


def argmin_backward(
    grad_z: Tensor, grad_a: Tensor, q: Tensor, a: Tensor, group: Tensor | None, lam: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the rewards, of lam and of the sample weights."""
    u, weight = _shifted(q.contiguous(), weight)
    grad_z = grad_z.contiguous()
    active = u > a
    pull = grad_a + torch.where(u >= a, grad_z, 0.0).sum(0)  # (T,)
    held = torch.where(active, weight, 0.0).sum(0)
    size = torch.ones_like(held)
    if group is not None:
        pull, held, size = (torch.zeros_like(a).index_add(0, group, x)[group] for x in (pull, held, size))
    free = (a > 0) & (a < 1)
    slope = torch.where(free, pull / (lam * size + held), 0.0)
    grad_q = torch.where((u > 0) & (u < a), grad_z, 0.0) + torch.where(active, weight * slope, 0.0)
    grad_weight = torch.where(active & (slope != 0), (u - a) * slope, 0.0).sum(1)  # u may be infinite where slope is 0
    return grad_q, -(slope * a).sum(), grad_weight


def routes(s: Tensor, a: Tensor) -> Tensor:
    """Routes z, (n, T), of split scores s, (n, S), through a tree with masses a, (T,)."""
    return _clip(path_rewards(s.contiguous()) + 0.5, a)


def routes_backward(grad_z: Tensor, s: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the scores and of the masses, each as if the other were constant."""
    s = s.contiguous()
    q = path_rewards(s)
    u = q + 0.5
    grad_q = torch.where((u > 0) & (u < a), grad_z, 0.0)
    return _path_rewards_backward(grad_q, s, q), torch.where(u >= a, grad_z, 0.0).sum(0)


def _turns(s: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """Score towards the (left, right) child and whether it, rather than the parent's reward, is the child's reward.

    A tie keeps the parent's. A NaN score is passed on only below nodes that the sample still reaches.
    """
    toward = torch.stack((-s, s), 2)  # (n, 2**d, 2)
    q = q.unsqueeze(2)
    return toward, (toward < q) | (toward.isnan() & (q > -0.5))


def _path_rewards_backward(grad_q: Tensor, s: Tensor, q: Tensor) -> Tensor:
    depth = depth_of_splits(s.shape[1])
    grad_s = torch.empty_like(s)
    below = grad_q[:, level(depth)]
    for d in reversed(range(depth)):
        takes = _turns(s[:, level(d)], q[:, level(d)])[1]
        below = torch.unflatten(below, 1, (-1, 2))  # (n, 2**d, 2)
        to_split = torch.where(takes, below, 0.0)
        grad_s[:, level(d)] = to_split[..., 1] - to_split[..., 0]
        below = grad_q[:, level(d)] + torch.where(takes, 0.0, below).sum(2)
    return grad_s


def _shifted(q: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """``u = q + 1/2``, and the weights as a column. Without a valid weight a sample takes part in its own z alone."""
    if weight is None:
        return q + 0.5, q.new_ones(1, 1)
    valid = (weight >= 0) & (weight < torch.inf)
    u = torch.where(valid.unsqueeze(1), q + 0.5, torch.nan)
    return u, torch.where(valid, weight, 0.0).unsqueeze(1)


def _clip(u: Tensor, a: Tensor) -> Tensor:
    return torch.minimum(u.clamp(min=0.0), a)


def sums_above(u: Tensor, weight: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted sum of the u above a, and their weight, per node."""
    held = torch.where(u > a, weight, 0.0)
    return torch.where(held > 0, held * u, 0.0).sum(0), held.sum(0)


def _newton_roots(u: Tensor, lam: Tensor, weight: Tensor) -> Tensor:
    """Root of each node's own phi, capped at 1. lam = 0 prunes nothing; a lam that is no strength spoils all."""

    def step(a: Tensor) -> Tensor:
        total, held = sums_above(u, weight, a)
        return total / (lam + held)

    a = _newton(step, u.new_zeros(u.shape[1]))
    return torch.where(lam > 0, a, torch.where(lam == 0, 1.0, torch.nan))


def _newton(step: Callable[[Tensor], Tensor], a: Tensor) -> Tensor:
    """Raise a from left of the roots until no step raises it further; at most 1."""
    while bool(((proposed := step(a).clamp(max=1.0)) > a).any()):
        a = torch.maximum(a, proposed)
    # Rounding may carry a onto or past values that the exact root lies below; the next step then falls back. Go back
    # until none does, by as many last places as it takes.
    back = torch.finfo(a.dtype).eps
    while bool((falls := (proposed < a) & (a < 1)).any()):
        a = torch.where(falls, a - back * a, a)
        proposed, back = step(a).clamp(max=1.0), 2 * back
    return a


def _pooled_roots(u: Tensor, lam: Tensor, weight: Tensor, roots: Tensor) -> Tensor:
    """Root of each node pooled with the descendants that press against it, from the leaves up."""
    roots = roots.clone()
    depth = depth_of_nodes(u.shape[1])
    for top in reversed(range(depth)):

        def step(a: Tensor, top: int = top) -> Tensor:
            total, held, size = _pooled_sums(u, weight, roots, a, top)
            return total / (lam * size + held)

        own = roots[level(top)]
        pooled = _newton(step, own)
        roots[level(top)] = torch.maximum(own, pooled)
    return roots


def _pooled_sums(u: Tensor, weight: Tensor, roots: Tensor, a: Tensor, top: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over each node of level top and the descendants joined to it at the values a, (2**top,)."""
    total, held = sums_above(u[:, level(top)], weight, a)
    size = torch.ones_like(a)
    joined = torch.ones_like(a, dtype=torch.bool)
    for d in range(top + 1, depth_of_nodes(u.shape[1]) + 1):
        at = a.repeat_interleave(2 ** (d - top))
        joined = joined.repeat_interleave(2) & (roots[level(d)] > at)
        more_total, more_held = sums_above(u[:, level(d)], weight, at)
        total, held, size = (
            x + torch.unflatten(torch.where(joined, more, 0.0), 0, (a.numel(), -1)).sum(1)
            for x, more in ((total, more_total), (held, more_held), (size, torch.ones_like(at)))
        )
    return total, held, size


def _of_parent(x: Tensor) -> Tensor:
    """The value at each node's parent; the root is its own."""
    parent = (torch.arange(x.shape[-1], device=x.device) - 1).clamp(min=0) // 2
    return x[..., parent]


def _cap_by_parent(a: Tensor) -> Tensor:
    """Smallest value on the path from the root: removes the rounding by which a child may exceed its parent."""
    levels = [a[level(0)]]
    for d in range(1, depth_of_nodes(a.numel()) + 1):
        levels.append(torch.minimum(a[level(d)], levels[-1].repeat_interleave(2)))
    return torch.cat(levels)


def _cap_monotone_edges(u: Tensor, a: Tensor) -> Tensor:
    """Where no sample prefers the child to its parent the roots are ordered by the lemma: undo rounding there."""
    prefers_child = (~(u <= _of_parent(u)) & ~u.isnan()).any(0)  # a sample that the parent lacks prefers the child
    levels = [a[level(0)]]
    for d in range(1, depth_of_nodes(a.numel()) + 1):
        own, parent = a[level(d)], levels[-1].repeat_interleave(2)
        levels.append(torch.where(prefers_child[level(d)], own, torch.minimum(own, parent)))
    return torch.cat(levels)


def _groups(roots: Tensor) -> tuple[Tensor, Tensor]:
    """Node masses, and the topmost node of each node's group: a node joins its parent where its root lies above."""
    node = torch.arange(roots.numel(), device=roots.device)
    masses, groups = [roots[level(0)]], [node[level(0)]]
    for d in range(1, depth_of_nodes(roots.numel()) + 1):
        own, above = roots[level(d)], masses[-1].repeat_interleave(2)
        groups.append(torch.where(own > above, groups[-1].repeat_interleave(2), node[level(d)]))
        masses.append(torch.minimum(own, above))
    return torch.cat(masses), torch.cat(groups)
