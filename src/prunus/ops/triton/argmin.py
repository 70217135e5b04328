"""tree_argmin on the GPU: the order of the kernels, and those that write routes and gradients of arbitrary rewards."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.heap import depth_of_nodes
from prunus.ops.triton.kernels import kernel
from prunus.ops.triton.pooling import group_kernel, order_kernel, own_roots_kernel, pool_kernel, shifted

__all__ = ["argmin_backward", "argmin_forward"]

ROWS, COLUMNS = 128, 8
"""Samples and nodes of a tile, for kernels that loop over the samples: eight float32 are one sector of memory."""


def argmin_forward(q: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Routes z, (n, T), node masses a, (T,), and for each node the topmost node of its group, (T,)."""
    q, weight = q.contiguous(), None if weight is None else weight.contiguous()
    n, nodes = q.shape
    depth, weighted = depth_of_nodes(nodes), weight is not None
    own, roots, a = (q.new_empty(nodes) for _ in range(3))
    preferred, group = (q.new_empty(nodes, dtype=dtype) for dtype in (torch.int32, torch.int64))
    options = {"NODES": nodes, "BLOCK": ROWS, "WEIGHTED": weighted}
    own_roots_kernel[(triton.cdiv(nodes, COLUMNS),)](q, weight, lam, own, preferred, n, **options, COLUMNS=COLUMNS)
    per_node, shape = (triton.cdiv(nodes, 128),), {"NODES": nodes, "DEPTH": depth, "BLOCK": 128}
    order_kernel[per_node](own, preferred, roots, **shape)
    for level in reversed(range(depth)):
        args = q, weight, lam, roots, n, 2**level - 1
        pool_kernel[(2**level,)](*args, NODES=nodes, HEIGHT=depth - level, BLOCK=1024, WEIGHTED=weighted)
    group_kernel[per_node](roots, a, group, **shape)
    z = torch.empty_like(q)
    if n > 0:
        routes_of_rewards_kernel[_grid(n, nodes)](q, weight, a, z, n, NODES=nodes, WEIGHTED=weighted, **_TILE)
    return z, a, group


def argmin_backward(
    grad_z: Tensor, grad_a: Tensor, q: Tensor, a: Tensor, group: Tensor, lam: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the rewards, of lam and of the sample weights."""
    q, grad_z, weight = q.contiguous(), grad_z.contiguous(), None if weight is None else weight.contiguous()
    n, nodes = q.shape
    mass_grad, active_weight, sum_grad, grad_weight = *(torch.empty_like(a) for _ in range(3)), q.new_empty(n)
    options = {"NODES": nodes, "WEIGHTED": weight is not None}
    args = q, weight, a, grad_z, grad_a.contiguous(), mass_grad, active_weight, n
    mass_grad_of_rewards_kernel[(triton.cdiv(nodes, COLUMNS),)](*args, **options, BLOCK=ROWS, COLUMNS=COLUMNS)
    group_sum_grad_kernel[(nodes,)](mass_grad, active_weight, group, lam, a, sum_grad, NODES=nodes, BLOCK=512)
    sum_grad = sum_grad[group]
    grad_q = torch.empty_like(q)
    if n > 0:
        args = q, weight, a, sum_grad, grad_z, grad_q, grad_weight, n
        gradients_of_rewards_kernel[(triton.cdiv(n, _TILE["BLOCK"]),)](*args, **options, **_TILE)
    return grad_q, -(sum_grad * a).sum(), grad_weight


_TILE = {"BLOCK": 16, "COLUMNS": 128}


def _grid(n: int, nodes: int) -> tuple[int, int]:
    return triton.cdiv(n, _TILE["BLOCK"]), triton.cdiv(nodes, _TILE["COLUMNS"])


@kernel()
def routes_of_rewards_kernel(
    q_ptr,
    weight_ptr,
    a_ptr,
    z_ptr,
    n,
    NODES: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """z = clip(q + 1/2, 0, a)."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    nodes = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    u, _ = shifted(q_ptr, weight_ptr, rows, nodes, n, NODES, WEIGHTED)
    a = tl.load(a_ptr + nodes, mask=nodes < NODES, other=0.0)[None, :]
    positive = tl.maximum(u, 0.0, propagate_nan=tl.PropagateNan.ALL)
    z = tl.minimum(positive, a, propagate_nan=tl.PropagateNan.ALL)
    tl.store(z_ptr + rows[:, None] * NODES + nodes[None, :], z, mask=(rows[:, None] < n) & (nodes[None, :] < NODES))


@kernel()
def mass_grad_of_rewards_kernel(
    q_ptr,
    weight_ptr,
    a_ptr,
    grad_z_ptr,
    grad_a_ptr,
    mass_grad_ptr,
    active_weight_ptr,
    n,
    NODES: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """For each node: grad_a plus the sum of grad_z where z equals the mass, and the weight of the active samples."""
    nodes = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    a = tl.load(a_ptr + nodes, mask=nodes < NODES, other=0.0)
    mass_grad = tl.load(grad_a_ptr + nodes, mask=nodes < NODES, other=0.0)
    active_weight = tl.zeros([COLUMNS], tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        u, weight = shifted(q_ptr, weight_ptr, rows, nodes, n, NODES, WEIGHTED)
        bounded = (u >= a[None, :]) & (rows[:, None] < n) & (nodes[None, :] < NODES)
        mass_grad += tl.sum(tl.load(grad_z_ptr + rows[:, None] * NODES + nodes[None, :], mask=bounded, other=0.0), 0)
        active_weight += tl.sum(tl.where(u > a[None, :], weight, 0.0), 0)
    tl.store(mass_grad_ptr + nodes, mass_grad, mask=nodes < NODES)
    tl.store(active_weight_ptr + nodes, active_weight, mask=nodes < NODES)


@kernel()
def group_sum_grad_kernel(
    mass_grad_ptr, active_weight_ptr, group_ptr, lam_ptr, a_ptr, sum_grad_ptr, NODES: tl.constexpr, BLOCK: tl.constexpr
):
    """Gradient of the sum of w u over the active samples of the group whose topmost node is program_id, or 0."""
    top = tl.program_id(0)
    mass_grad = 0.0
    active_weight = 0.0
    size = 0.0
    for start in range(0, NODES, BLOCK):
        node = start + tl.arange(0, BLOCK)
        member = tl.load(group_ptr + node, mask=node < NODES, other=-1) == top
        mass_grad += tl.sum(tl.load(mass_grad_ptr + node, mask=member, other=0.0))
        active_weight += tl.sum(tl.load(active_weight_ptr + node, mask=member, other=0.0))
        size += tl.sum(member.to(tl.float32))
    a = tl.load(a_ptr + top)
    free = (a > 0.0) & (a < 1.0) & (size > 0.0)
    tl.store(sum_grad_ptr + top, tl.where(free, mass_grad / (tl.load(lam_ptr) * size + active_weight), 0.0))


@kernel()
def gradients_of_rewards_kernel(
    q_ptr,
    weight_ptr,
    a_ptr,
    sum_grad_ptr,
    grad_z_ptr,
    grad_q_ptr,
    grad_weight_ptr,
    n,
    NODES: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Gradients of the rewards and of the weights."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    grad_weight = tl.zeros([BLOCK], tl.float32)
    for start in range(0, NODES, COLUMNS):
        nodes = start + tl.arange(0, COLUMNS)
        u, weight = shifted(q_ptr, weight_ptr, rows, nodes, n, NODES, WEIGHTED)
        a = tl.load(a_ptr + nodes, mask=nodes < NODES, other=0.0)[None, :]
        sum_grad = tl.load(sum_grad_ptr + nodes, mask=nodes < NODES, other=0.0)[None, :]
        at = rows[:, None] * NODES + nodes[None, :]
        mask = (rows[:, None] < n) & (nodes[None, :] < NODES)
        from_z = tl.load(grad_z_ptr + at, mask=mask & (u > 0.0) & (u < a), other=0.0)
        active = (u > a) & mask
        tl.store(grad_q_ptr + at, from_z + tl.where(active, weight * sum_grad, 0.0), mask=mask)
        grad_weight += tl.sum(tl.where(active & (sum_grad != 0.0), (u - a) * sum_grad, 0.0), 1)
    tl.store(grad_weight_ptr + rows, grad_weight, mask=rows < n)
