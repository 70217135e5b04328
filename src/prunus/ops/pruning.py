"""The hard pruned tree: which nodes are worth their price."""

import torch
from torch import Tensor

from prunus.ops.checks import check_lam, check_matrix, check_values, check_weight
from prunus.ops.heap import depth_of_nodes, level
from prunus.ops.library import solve_dtype

__all__ = ["integer_pruning"]


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
