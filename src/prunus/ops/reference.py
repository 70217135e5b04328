"""All kernels in plain torch, on any device: the ground truth that every other backend is compared with.

README.md beside this file derives what is computed here. Every function works on whole tensors, or on chunks of rows;
loops run over the levels of the tree or over Newton steps, never over samples or nodes.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from prunus.ops.heap import depth_of_nodes, depth_of_splits, level
from prunus.ops.library import chunked

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "argmin_backward",
    "argmin_forward",
    "leaves",
    "linear_leaves",
    "path_rewards",
    "predict",
    "routes",
    "routes_backward",
    "sums_above",
    "table_leaves",
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
    """Routes z, (n, T), node masses a, (T,), and for each node the topmost node of its group, (T,)."""
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
    mass_grad = grad_a + torch.where(u >= a, grad_z, 0.0).sum(0)  # (T,)
    active_weight = torch.where(active, weight, 0.0).sum(0)
    size = torch.ones_like(a)
    if group is not None:
        mass_grad, active_weight, size = (
            torch.zeros_like(a).index_add(0, group, x)[group] for x in (mass_grad, active_weight, size)
        )
    free = (a > 0) & (a < 1)
    sum_grad = torch.where(free, mass_grad / (lam * size + active_weight), 0.0)
    grad_q = torch.where((u > 0) & (u < a), grad_z, 0.0) + torch.where(active, weight * sum_grad, 0.0)
    moves = active & (sum_grad != 0)  # u may be infinite where sum_grad is 0
    grad_weight = torch.where(moves, (u - a) * sum_grad, 0.0).sum(1)
    return grad_q, -(sum_grad * a).sum(), grad_weight


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


def sums_above(s: Tensor, weight: Tensor | None, a: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of w u over the samples with u above the masses a, (T,), and of their weights, (T,), as float64."""
    u, weight = _shifted(path_rewards(s.contiguous()), weight)
    return _sums_above(u.double(), weight.double(), a.double())


def leaves(s: Tensor) -> Tensor:
    """Leaf, (n,), at the end of each sample's path for split scores s, (n, S): left where a score is negative."""
    node = torch.zeros(s.shape[0], dtype=torch.int64, device=s.device)
    for _ in range(depth_of_splits(s.shape[1])):
        right = ~(s.gather(1, node.unsqueeze(1)).squeeze(1) < 0)
        node = 2 * node + 1 + right
    return node


def linear_leaves(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Leaf, (n,), of each row of x, (n, d), for linear splits with weight, (S, d), and bias, (S,)."""
    return chunked(lambda rows: leaves(linear(rows, weight, bias)), x).to(x.device)


def table_leaves(x: "NDArray[Any]", scaling: "NDArray[Any]", weight: Tensor, bias: Tensor) -> Tensor | None:
    """Leaf, (n,), as int32, of each row of a table x, (n, d), after scaling; None if a value is not finite.

    scaling, (4, d), holds for each column its center, its scale, and the lower and upper limit of the scaled values.
    weight and bias are float32; the leaves are on the CPU.
    """
    table, device = _from_numpy(x), weight.device
    if not bool(table.isfinite().all()):
        return None
    center, scale, low, high = _from_numpy(scaling).to(device)

    def leaves_of_rows(rows: Tensor) -> Tensor:
        scaled = ((rows.to(device).double() - center) / scale).clamp(low, high)
        return leaves(linear(scaled.float(), weight, bias))

    return chunked(leaves_of_rows, table).int()


def predict(x: Tensor, weight: Tensor, bias: Tensor, a: Tensor, slope: Tensor | None, constant: Tensor) -> Tensor:
    """Predictions, (n, k), of a tree with linear splits and linear functions, or constants, at its nodes.

    With the routes z of the scores ``x @ weight.T + bias`` through masses a that never grow along a path::

        out[i] = sum over nodes t of  z[i,t] (slope[t] @ x[i] + constant[t])

    x, (n, d), is finite; slope, (T, k, d), is None if all its entries are 0; constant has shape (T, k).
    """

    def predict_rows(rows: Tensor) -> Tensor:
        z = routes(linear(rows, weight, bias), a)
        out = z @ constant
        if slope is None:
            return out
        values = linear(rows, slope.flatten(0, 1)).view(len(rows), *slope.shape[:2])  # (n, T, k)
        return out + (z.unsqueeze(2) * values).sum(1)

    return chunked(predict_rows, x).to(x.device)


def _from_numpy(x: "NDArray[Any]") -> Tensor:
    """The array as a tensor; a copy if it is read-only, which torch warns about."""
    return torch.from_numpy(x if x.flags.writeable else x.copy())


def _turns(s: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """Scores towards the (left, right) children, and whether these or the parent's reward are the children's rewards.

    If the two are equal, the parent's reward is taken. A NaN score counts only below nodes that the sample reaches.
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
    """``u = q + 1/2``, and the weights as a column. A sample with an invalid weight has u = NaN and weight 0."""
    if weight is None:
        return q + 0.5, q.new_ones(1, 1)
    valid = (weight >= 0) & (weight < torch.inf)
    u = torch.where(valid.unsqueeze(1), q + 0.5, torch.nan)
    return u, torch.where(valid, weight, 0.0).unsqueeze(1)


def _clip(u: Tensor, a: Tensor) -> Tensor:
    return torch.minimum(u.clamp(min=0.0), a)


def _sums_above(u: Tensor, weight: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """For each node the sum of w u over the samples with u above a, and the sum of their weights."""
    active = torch.where(u > a, weight, 0.0)
    return torch.where(active > 0, active * u, 0.0).sum(0), active.sum(0)


def _newton_roots(u: Tensor, lam: Tensor, weight: Tensor) -> Tensor:
    """Root of each node's own phi, at most 1. All are 1 if lam is 0, and NaN if lam is negative or NaN."""

    def step(a: Tensor) -> Tensor:
        total, active_weight = _sums_above(u, weight, a)
        return total / (lam + active_weight)

    a = _newton(step, u.new_zeros(u.shape[1]))
    return torch.where(lam > 0, a, torch.where(lam == 0, 1.0, torch.nan))


def _newton(step: Callable[[Tensor], Tensor], a: Tensor) -> Tensor:
    """Raise a from left of the roots until no step raises it further; at most 1."""
    while bool(((proposed := step(a).clamp(max=1.0)) > a).any()):
        a = torch.maximum(a, proposed)
    # Rounding may put a on or above values that are above the exact root; the next step is then below a. Lower a until
    # that is no longer so, by one unit in the last place at first and twice as much each time.
    back = torch.finfo(a.dtype).eps
    while bool((falls := (proposed < a) & (a < 1)).any()):
        a = torch.where(falls, a - back * a, a)
        proposed, back = step(a).clamp(max=1.0), 2 * back
    return a


def _pooled_roots(u: Tensor, lam: Tensor, weight: Tensor, roots: Tensor) -> Tensor:
    """Root of each node pooled with the descendants whose roots exceed it, from the leaves up."""
    roots = roots.clone()
    depth = depth_of_nodes(u.shape[1])
    for top in reversed(range(depth)):

        def step(a: Tensor, top: int = top) -> Tensor:
            total, active_weight, size = _pooled_sums(u, weight, roots, a, top)
            return total / (lam * size + active_weight)

        own = roots[level(top)]
        pooled = _newton(step, own)
        roots[level(top)] = torch.maximum(own, pooled)
    return roots


def _pooled_sums(u: Tensor, weight: Tensor, roots: Tensor, a: Tensor, top: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over each node of level top and the descendants in its group at the values a, (2**top,)."""
    total, active_weight = _sums_above(u[:, level(top)], weight, a)
    size = torch.ones_like(a)
    joined = torch.ones_like(a, dtype=torch.bool)
    for d in range(top + 1, depth_of_nodes(u.shape[1]) + 1):
        at = a.repeat_interleave(2 ** (d - top))
        joined = joined.repeat_interleave(2) & (roots[level(d)] > at)
        more_total, more_weight = _sums_above(u[:, level(d)], weight, at)
        total, active_weight, size = (
            x + torch.unflatten(torch.where(joined, more, 0.0), 0, (a.numel(), -1)).sum(1)
            for x, more in ((total, more_total), (active_weight, more_weight), (size, torch.ones_like(at)))
        )
    return total, active_weight, size


def _of_parent(x: Tensor) -> Tensor:
    """The value at each node's parent; the root counts as its own parent."""
    parent = (torch.arange(x.shape[-1], device=x.device) - 1).clamp(min=0) // 2
    return x[..., parent]


def _cap_by_parent(a: Tensor) -> Tensor:
    """Smallest value on the path from the root: removes the rounding by which a child may exceed its parent."""
    levels = [a[level(0)]]
    for d in range(1, depth_of_nodes(a.numel()) + 1):
        levels.append(torch.minimum(a[level(d)], levels[-1].repeat_interleave(2)))
    return torch.cat(levels)


def _cap_monotone_edges(u: Tensor, a: Tensor) -> Tensor:
    """Undo rounding where no sample prefers a child to its parent: by the lemma the child's root is not larger."""
    prefers_child = (~(u <= _of_parent(u)) & ~u.isnan()).any(0)  # also if only the parent's is NaN
    levels = [a[level(0)]]
    for d in range(1, depth_of_nodes(a.numel()) + 1):
        own, parent = a[level(d)], levels[-1].repeat_interleave(2)
        levels.append(torch.where(prefers_child[level(d)], own, torch.minimum(own, parent)))
    return torch.cat(levels)


def _groups(roots: Tensor) -> tuple[Tensor, Tensor]:
    """Node masses, and the topmost node of each node's group. A node whose root is larger joins its parent's group."""
    node = torch.arange(roots.numel(), device=roots.device)
    masses, groups = [roots[level(0)]], [node[level(0)]]
    for d in range(1, depth_of_nodes(roots.numel()) + 1):
        own, above = roots[level(d)], masses[-1].repeat_interleave(2)
        groups.append(torch.where(own > above, groups[-1].repeat_interleave(2), node[level(d)]))
        masses.append(torch.minimum(own, above))
    return torch.cat(masses), torch.cat(groups)
