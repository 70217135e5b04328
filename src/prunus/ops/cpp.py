"""The CPU backend: allocates the outputs and calls the C++ kernels of ``prunus._core``."""

import torch
from torch import Tensor

from prunus import _core

__all__ = ["argmin_backward", "argmin_forward", "traverse_backward", "traverse_forward"]


def traverse_forward(s: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Routes z, (n, T), and node masses a, (T,), of split scores s, (n, S)."""
    s, weight = _plain(s), _plain_or_none(weight)
    nodes = 2 * s.shape[1] + 1
    z, a = s.new_empty(s.shape[0], nodes), s.new_empty(nodes)
    _core.traverse_forward(s, lam.item(), weight, z, a, torch.get_num_threads())
    return z, a


def traverse_backward(
    grad_z: Tensor, grad_a: Tensor, s: Tensor, a: Tensor, lam: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the scores, of lam and of the sample weights."""
    grad_z, grad_a, s, a, weight = _plain(grad_z), _plain(grad_a), _plain(s), _plain(a), _plain_or_none(weight)
    grads = torch.empty_like(s), s.new_empty(()), s.new_empty(s.shape[0])
    _core.traverse_backward(grad_z, grad_a, s, a, lam.item(), weight, *grads, torch.get_num_threads())
    return grads


def argmin_forward(q: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Routes z, (n, T), node masses a, (T,), and the pooled group of each node, named by its topmost node, (T,)."""
    q, weight = _plain(q), _plain_or_none(weight)
    nodes = q.shape[1]
    z, a, group = torch.empty_like(q), q.new_empty(nodes), q.new_empty(nodes, dtype=torch.int64)
    _core.argmin_forward(q, lam.item(), weight, z, a, group, torch.get_num_threads())
    return z, a, group


def argmin_backward(
    grad_z: Tensor, grad_a: Tensor, q: Tensor, a: Tensor, group: Tensor, lam: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the rewards, of lam and of the sample weights."""
    grad_z, grad_a, q, a, weight = _plain(grad_z), _plain(grad_a), _plain(q), _plain(a), _plain_or_none(weight)
    grads = torch.empty_like(q), q.new_empty(()), q.new_empty(q.shape[0])
    _core.argmin_backward(grad_z, grad_a, q, a, group, lam.item(), weight, *grads, torch.get_num_threads())
    return grads


def _plain(x: Tensor) -> Tensor:
    """The tensor as the kernels take it: dense rows, no autograd."""
    return x.detach().contiguous()


def _plain_or_none(x: Tensor | None) -> Tensor | None:
    return None if x is None else _plain(x)
