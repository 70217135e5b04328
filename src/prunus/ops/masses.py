"""Node masses of a tree for more samples than fit into memory at once, and the tree that is pruned hard."""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from prunus.ops.backends import PRECISIONS, available_backends, has_native, kernels_for
from prunus.ops.heap import depth_of_nodes, level
from prunus.ops.library import check_lam, check_matrix, check_values, check_weight, solve_dtype, to_dtype

__all__ = [
    "MAX_GPU_DEPTH",
    "Chunks",
    "capped",
    "has_linear_masses",
    "integer_pruning",
    "linear_masses",
    "streamed_masses",
]


MAX_GPU_DEPTH = 11
"""The deepest tree whose levels a program on a GPU has in registers."""

Chunks = Callable[[], Iterable[tuple[Tensor, Tensor | None]]]


def streamed_masses(
    chunks: Chunks,
    lam: float,
    start: Tensor,
    passes: int | None = None,
    *,
    add_up: Callable[[Tensor], None] = lambda _sums: None,
) -> Tensor:
    """The node masses of `tree_traverse`, solved over chunks of the samples.

    Each Newton step is one pass over the chunks. A good start saves passes and changes the result by rounding only.

    Parameters
    ----------
    chunks : callable
        Returns a new iterable at each call, of pairs: scores of shape (m, 2**depth - 1), and weights of shape (m,) or
        None.
    lam : float
        Pruning strength for the sum over all samples, at least 0. At 0 nothing is pruned.
    start : Tensor of shape (2**(depth + 1) - 1,)
        A guess of the masses, for example those of a part of the samples.
    passes : int, optional
        Largest number of steps, at least 1; by default as many as it takes.
    add_up : callable
        Replaces sums over these samples, in place, by those over the samples of all processes that share them.

    Examples
    --------
    >>> s = torch.tensor([[0.25], [0.75]])
    >>> streamed_masses(lambda: [(s[:1], None), (s[1:], None)], 0.5, torch.ones(3))
    tensor([1.0000, 0.1667, 0.8333])
    """
    strength = check_lam(lam, start, torch.float64)
    if lam == 0:
        return torch.ones_like(start)
    a = _step(chunks, strength, start.double(), add_up)  # the first step lands left of the roots, whatever the start
    left = math.inf if passes is None else passes - 1
    while left > 0 and bool(((proposed := _step(chunks, strength, a, add_up)) > a + 1e-9).any()):
        a = torch.maximum(a, proposed)
        left -= 1
    return (capped(a) if left == 0 else a).to(start.dtype)


def linear_masses(x: Tensor, weight: Tensor, bias: Tensor, sample_weight: Tensor | None, lam: float) -> Tensor:
    """The node masses of `tree_traverse` for scores ``x @ weight.T + bias``, where `has_linear_masses` says so.

    On the CPU scores are computed only for the samples that reach a split, so deep trees cost little more than the
    paths of the samples through them.

    Parameters
    ----------
    x : Tensor of shape (n, d)
    weight : Tensor of shape (2**depth - 1, d)
    bias : Tensor of shape (2**depth - 1,)
    sample_weight : Tensor of shape (n,) or None
    lam : float
        Pruning strength for the sum over all samples, at least 0. At 0 nothing is pruned.

    Examples
    --------
    >>> x = torch.tensor([[0.25], [0.75]])
    >>> linear_masses(x, torch.ones(1, 1), torch.zeros(1), None, 0.5)
    tensor([1.0000, 0.1667, 0.8333])
    """
    checked = check_weight(sample_weight, x, x.dtype)
    check_values(check_lam(lam, x, torch.float64), checked)
    x, weight, bias = (part.detach().contiguous() for part in (x, weight, bias))
    if x.device.type == "cuda":
        from prunus.ops.triton.step.routes import linear_roots

        return capped(linear_roots(x, weight, bias, checked, lam))
    from prunus.ops import cpp

    return cpp.linear_masses(x, weight, bias, checked, lam / len(x))


def has_linear_masses(x: Tensor, depth: int) -> bool:
    """Whether `linear_masses` knows such samples, (n, d), and trees of this depth.

    >>> has_linear_masses(torch.zeros(3), depth=2)
    False
    """
    if x.ndim != 2:
        return False
    if x.device.type == "cuda":
        return x.dtype == torch.float32 and 1 <= depth <= MAX_GPU_DEPTH and "triton" in available_backends()
    return x.device.type == "cpu" and x.dtype in PRECISIONS and has_native()


def capped(values: Tensor) -> Tensor:
    """Masses, (..., T), of which none is larger than that of its parent, as it is with those that are solved wholly.

    >>> capped(torch.tensor([0.5, 1.0, 0.25]))
    tensor([0.5000, 0.5000, 0.2500])
    """
    a = values.clone()
    begin = 1
    while begin < a.shape[-1]:
        level = slice(begin, 2 * begin + 1)
        parents = a[..., (begin - 1) // 2 : begin].repeat_interleave(2, -1)
        a[..., level] = torch.minimum(a[..., level], parents)
        begin = level.stop
    return a


def _step(chunks: Chunks, lam: Tensor, a: Tensor, add_up: Callable[[Tensor], None]) -> Tensor:
    sums = torch.zeros(2, len(a), dtype=a.dtype, device=a.device)
    total, active_weight = sums[0], sums[1]
    for s, weight in chunks():
        solved = to_dtype(s, solve_dtype(s))  # sums of thousands do not fit in half precision
        checked = check_weight(weight, solved, solved.dtype)
        check_values(lam, checked)
        more_total, more_weight = kernels_for(solved).sums_above(solved, checked, a.to(solved.dtype))
        total += more_total
        active_weight += more_weight
    add_up(sums)
    return (total / (lam + active_weight)).clamp(max=1.0)


def integer_pruning(q: Tensor, lam: float | Tensor, *, sample_weight: Tensor | None = None) -> Tensor:
    """Choose the nodes to keep so that rewards minus price are largest; a kept node's parent is kept too.

    Solves the paper's mixed integer program for fixed splits exactly, in one pass from the leaves up::

        max over a in {0, 1}^T  of  sum_t a[t] (sum_i w[i] max(q[i, t], 0) - lam / 2)    s.t.  a[t] <= a[parent(t)]

    A subtree whose gain is not positive is dropped; if no tree has a positive gain, that includes the root. ``lam = 0``
    keeps every node.

    Parameters
    ----------
    q : Tensor of shape (n, 2**(depth + 1) - 1)
        Rewards, as `path_rewards` returns them.
    lam : float or 0-dim Tensor
        Price of a node, at least 0.
    sample_weight : Tensor of shape (n,), optional
        Weights of the samples, not negative; 1 by default.

    Returns
    -------
    Tensor of shape (2**(depth + 1) - 1,) and dtype bool

    Examples
    --------
    >>> q = path_rewards(torch.tensor([[0.9], [0.6]]))
    >>> integer_pruning(q, 1.0)
    tensor([ True, False,  True])
    """
    check_matrix(q, "q")
    depth = depth_of_nodes(q.shape[1])
    dtype = solve_dtype(q)
    strength, weight = check_lam(lam, q, dtype), check_weight(sample_weight, q, dtype)
    check_values(strength, weight)
    return _best_rooted_subtree(_gains(q.detach().to(dtype), strength, weight), depth) | (strength == 0)


def _gains(q: Tensor, lam: Tensor, weight: Tensor | None) -> Tensor:
    """What each node by itself adds to the objective, (T,)."""
    rewards = q.nan_to_num(nan=0.0).clamp(min=0.0)
    if weight is not None:
        rewards = rewards * weight.nan_to_num(nan=0.0, posinf=0.0).unsqueeze(1)
    return rewards.sum(0) - lam / 2


def _best_rooted_subtree(gain: Tensor, depth: int) -> Tensor:
    best = [gain[level(depth)]]  # the largest gain of each subtree whose root is kept
    for d in reversed(range(depth)):
        best.insert(0, gain[level(d)] + torch.unflatten(best[0].clamp(min=0.0), 0, (-1, 2)).sum(1))
    keep = [best[0] > 0]
    for values in best[1:]:
        keep.append(keep[-1].repeat_interleave(2) & (values > 0))
    return torch.cat(keep)
