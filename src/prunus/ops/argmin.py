"""The operators that solve a tree's quadratic program: for arbitrary rewards, or split scores in one fused step."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from prunus.ops.backends import check_backend, choose_backend, kernels
from prunus.ops.heap import depth_of_nodes, depth_of_splits, n_nodes
from prunus.ops.library import (
    check_lam,
    check_matrix,
    check_values,
    check_weight,
    register,
    solve_dtype,
    to_dtype,
    to_result_dtype,
)

__all__ = ["TreeArgmin", "tree_argmin", "tree_traverse"]


class TreeArgmin(NamedTuple):
    """Solution of the tree's quadratic program."""

    z: Tensor
    """Routes, (n, 2**(depth + 1) - 1): how much of each sample reaches each node."""
    a: Tensor
    """Node masses, (2**(depth + 1) - 1,): 0 is pruned, 1 is kept."""


def tree_argmin(
    q: Tensor, lam: float | Tensor, *, sample_weight: Tensor | None = None, backend: str = "auto"
) -> TreeArgmin:
    """Route samples and prune nodes: the argmin of a quadratic program over a tree, differentiable.

    Solves, exactly::

        min over z, a of   lam/2 |a|^2 + 1/2 sum_i w[i] |z[i] - q[i] - 1/2|^2
        subject to         0 <= z[i,t] <= a[t],   a[t] <= a[parent(t)],   0 <= a <= 1

    If rewards never grow along a path, like those of `path_rewards`, each node is solved by itself. Otherwise a node
    whose mass would exceed its parent's shares one mass with it. If the rewards come from split scores, `tree_traverse`
    is faster.

    Parameters
    ----------
    q : Tensor of shape (n, 2**(depth + 1) - 1)
        Rewards in heap order, in half, single or double precision. A NaN makes its own entry of z NaN and has no other
        effect.
    lam : float or 0-dim Tensor
        Pruning strength, at least 0. ``lam = 0`` prunes nothing: a = 1.
    sample_weight : Tensor of shape (n,), optional
        Weights of the samples, not negative; 1 by default.
    backend : {"auto", "reference", "cpp", "triton"}
        Which code to run; see `available_backends`.

    Returns
    -------
    TreeArgmin
        ``z`` of shape (n, 2**(depth + 1) - 1) and ``a`` of shape (2**(depth + 1) - 1,), with gradients for q, lam and
        sample_weight.

    Examples
    --------
    >>> z, a = tree_argmin(torch.tensor([[1.0, -0.25, 0.25]]), 0.5)
    >>> z
    tensor([[1.0000, 0.1667, 0.5000]])
    >>> a
    tensor([1.0000, 0.1667, 0.5000])
    """
    check_matrix(q, "q")
    depth_of_nodes(q.shape[1])
    dtype = solve_dtype(q)
    check_backend(backend, q.device.type, dtype)
    strength, weight = check_lam(lam, q, dtype), check_weight(sample_weight, q, dtype)
    z, a, _ = _tree_argmin(to_dtype(q, dtype), strength, weight, backend)
    return TreeArgmin(to_result_dtype(z, q), to_result_dtype(a, q))


def _argmin_forward(q: Tensor, lam: Tensor, weight: Tensor | None, backend: str) -> tuple[Tensor, Tensor, Tensor]:
    check_values(lam, weight)
    name = choose_backend(backend, q.device.type, q.dtype)
    return kernels(name).argmin_forward(q, lam, weight)


def _argmin_fake_forward(q: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    nodes = q.shape[1]
    return q.new_empty(q.shape), q.new_empty(nodes), q.new_empty(nodes, dtype=torch.int64)


def _argmin_backward(
    grad_z: Tensor,
    grad_a: Tensor,
    q: Tensor,
    a: Tensor,
    group: Tensor,
    lam: Tensor,
    weight: Tensor | None,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor]:
    name = choose_backend(backend, q.device.type, q.dtype)
    return kernels(name).argmin_backward(grad_z, grad_a, q, a, group, lam, weight)


def _argmin_fake_backward(_grad_z: Tensor, _grad_a: Tensor, q: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), q.new_empty(()), q.new_empty(q.shape[0])


def _argmin_setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    q, lam, weight, ctx.backend = inputs
    _, a, group = output
    ctx.mark_non_differentiable(group)
    ctx.save_for_backward(q, a, group, lam, weight)


def _argmin_autograd(ctx: Any, grad_z: Tensor, grad_a: Tensor, _: Any) -> tuple[Tensor | None, ...]:
    q, a, group, lam, weight = ctx.saved_tensors
    grad_q, grad_lam, grad_weight = _tree_argmin_backward(grad_z, grad_a, q, a, group, lam, weight, ctx.backend)
    return grad_q, grad_lam, grad_weight if weight is not None else None, None


_tree_argmin_backward = register(
    "tree_argmin_backward(Tensor grad_z, Tensor grad_a, Tensor q, Tensor a, Tensor group, Tensor lam, Tensor? weight, "
    "str backend) -> (Tensor, Tensor, Tensor)",
    _argmin_backward,
    _argmin_fake_backward,
)
_tree_argmin = register(
    "tree_argmin(Tensor q, Tensor lam, Tensor? weight, str backend) -> (Tensor, Tensor, Tensor)",
    _argmin_forward,
    _argmin_fake_forward,
    backward=_argmin_autograd,
    setup_context=_argmin_setup_context,
)


def tree_traverse(
    s: Tensor, lam: float | Tensor, *, sample_weight: Tensor | None = None, backend: str = "auto"
) -> TreeArgmin:
    """Route samples through a tree of split scores and prune it, differentiable.

    Returns what ``tree_argmin(path_rewards(s), lam)`` returns, without storing the rewards::

        min over z, a of   lam/2 |a|^2 + 1/2 sum_i w[i] |z[i] - q[i] - 1/2|^2,   q = path_rewards(s)
        subject to         0 <= z[i,t] <= a[t],   a[t] <= a[parent(t)],   0 <= a <= 1

    Parameters
    ----------
    s : Tensor of shape (n, 2**depth - 1)
        Split scores in heap order, in half, single or double precision; a negative score goes left. A NaN makes the z
        of its own sample below that split NaN and has no other effect.
    lam : float or 0-dim Tensor
        Pruning strength, at least 0. ``lam = 0`` prunes nothing: a = 1.
    sample_weight : Tensor of shape (n,), optional
        Weights of the samples, not negative; 1 by default.
    backend : {"auto", "reference", "cpp", "triton"}
        Which code to run; see `available_backends`.

    Returns
    -------
    TreeArgmin
        ``z`` of shape (n, 2**(depth + 1) - 1) and ``a`` of shape (2**(depth + 1) - 1,), with gradients for s, lam and
        sample_weight.

    Examples
    --------
    >>> z, a = tree_traverse(torch.tensor([[0.25], [0.75]]), 0.5)
    >>> z
    tensor([[1.0000, 0.1667, 0.7500],
            [1.0000, 0.0000, 0.8333]])
    """
    check_matrix(s, "s")
    depth_of_splits(s.shape[1])
    dtype = solve_dtype(s)
    check_backend(backend, s.device.type, dtype)
    strength, weight = check_lam(lam, s, dtype), check_weight(sample_weight, s, dtype)
    z, a = _tree_traverse(to_dtype(s, dtype), strength, weight, backend)
    return TreeArgmin(to_result_dtype(z, s), to_result_dtype(a, s))


def _traverse_forward(s: Tensor, lam: Tensor, weight: Tensor | None, backend: str) -> tuple[Tensor, Tensor]:
    check_values(lam, weight)
    name = choose_backend(backend, s.device.type, s.dtype)
    return kernels(name).traverse_forward(s, lam, weight)


def _traverse_fake_forward(s: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    nodes = n_nodes(depth_of_splits(s.shape[1]))
    return s.new_empty(s.shape[0], nodes), s.new_empty(nodes)


def _traverse_backward(
    grad_z: Tensor, grad_a: Tensor, s: Tensor, a: Tensor, lam: Tensor, weight: Tensor | None, backend: str
) -> tuple[Tensor, Tensor, Tensor]:
    name = choose_backend(backend, s.device.type, s.dtype)
    return kernels(name).traverse_backward(grad_z, grad_a, s, a, lam, weight)


def _traverse_fake_backward(_grad_z: Tensor, _grad_a: Tensor, s: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return s.new_empty(s.shape), s.new_empty(()), s.new_empty(s.shape[0])


def _traverse_setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    s, lam, weight, ctx.backend = inputs
    ctx.save_for_backward(s, output[1], lam, weight)


def _traverse_autograd(ctx: Any, grad_z: Tensor, grad_a: Tensor) -> tuple[Tensor | None, ...]:
    s, a, lam, weight = ctx.saved_tensors
    grad_s, grad_lam, grad_weight = _tree_traverse_backward(grad_z, grad_a, s, a, lam, weight, ctx.backend)
    return grad_s, grad_lam, grad_weight if weight is not None else None, None


_tree_traverse_backward = register(
    "tree_traverse_backward(Tensor grad_z, Tensor grad_a, Tensor s, Tensor a, Tensor lam, Tensor? weight, str backend)"
    " -> (Tensor, Tensor, Tensor)",
    _traverse_backward,
    _traverse_fake_backward,
)
_tree_traverse = register(
    "tree_traverse(Tensor s, Tensor lam, Tensor? weight, str backend) -> (Tensor, Tensor)",
    _traverse_forward,
    _traverse_fake_forward,
    backward=_traverse_autograd,
    setup_context=_traverse_setup_context,
)
