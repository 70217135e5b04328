"""The tree argmin of split scores in one fused step, where training spends its time."""

from typing import Any

from torch import Tensor

from prunus.ops.argmin import TreeArgmin
from prunus.ops.backends import check_backend, choose_backend, kernels
from prunus.ops.checks import check_lam, check_matrix, check_values, check_weight
from prunus.ops.heap import depth_of_splits, n_nodes
from prunus.ops.library import register, solve_dtype, to_dtype, to_result_dtype

__all__ = ["tree_traverse"]


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


def _forward(s: Tensor, lam: Tensor, weight: Tensor | None, backend: str) -> tuple[Tensor, Tensor]:
    check_values(lam, weight)
    name = choose_backend(backend, s.device.type, s.dtype)
    return kernels(name).traverse_forward(s, lam, weight)


def _fake_forward(s: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    nodes = n_nodes(depth_of_splits(s.shape[1]))
    return s.new_empty(s.shape[0], nodes), s.new_empty(nodes)


def _backward(
    grad_z: Tensor, grad_a: Tensor, s: Tensor, a: Tensor, lam: Tensor, weight: Tensor | None, backend: str
) -> tuple[Tensor, Tensor, Tensor]:
    name = choose_backend(backend, s.device.type, s.dtype)
    return kernels(name).traverse_backward(grad_z, grad_a, s, a, lam, weight)


def _fake_backward(_grad_z: Tensor, _grad_a: Tensor, s: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return s.new_empty(s.shape), s.new_empty(()), s.new_empty(s.shape[0])


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    s, lam, weight, ctx.backend = inputs
    ctx.save_for_backward(s, output[1], lam, weight)


def _autograd(ctx: Any, grad_z: Tensor, grad_a: Tensor) -> tuple[Tensor | None, ...]:
    s, a, lam, weight = ctx.saved_tensors
    grad_s, grad_lam, grad_weight = _tree_traverse_backward(grad_z, grad_a, s, a, lam, weight, ctx.backend)
    return grad_s, grad_lam, grad_weight if weight is not None else None, None


_tree_traverse_backward = register(
    "tree_traverse_backward(Tensor grad_z, Tensor grad_a, Tensor s, Tensor a, Tensor lam, Tensor? weight, str backend)"
    " -> (Tensor, Tensor, Tensor)",
    _backward,
    _fake_backward,
)
_tree_traverse = register(
    "tree_traverse(Tensor s, Tensor lam, Tensor? weight, str backend) -> (Tensor, Tensor)",
    _forward,
    _fake_forward,
    backward=_autograd,
    setup_context=_setup_context,
)
