"""tree_argmin on the GPU: which kernels run, and the ones that write routes and gradients of arbitrary rewards."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.heap import depth_of_nodes
from prunus.ops.triton.pooling import group_kernel, order_kernel, own_roots_kernel, pool_kernel, shifted

__all__ = ["argmin_backward", "argmin_forward"]

ROWS, COLUMNS = 128, 8
"""Tile of the kernels that go down the samples for a few nodes: eight float32 are one sector of memory."""


def argmin_forward(q: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Routes z, (n, T), node masses a, (T,), and the pooled group of each node, named by its topmost node, (T,)."""
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
    pull, held, slope, grad_weight = *(torch.empty_like(a) for _ in range(3)), q.new_empty(n)
    options = {"NODES": nodes, "WEIGHTED": weight is not None}
    args = q, weight, a, grad_z, grad_a.contiguous(), pull, held, n
    pull_of_rewards_kernel[(triton.cdiv(nodes, COLUMNS),)](*args, **options, BLOCK=ROWS, COLUMNS=COLUMNS)
    group_slope_kernel[(nodes,)](pull, held, group, lam, a, slope, NODES=nodes, BLOCK=512)
    slope = slope[group]
    grad_q = torch.empty_like(q)
    if n > 0:
        args = q, weight, a, slope, grad_z, grad_q, grad_weight, n
        gradients_of_rewards_kernel[(triton.cdiv(n, _TILE["BLOCK"]),)](*args, **options, **_TILE)
    return grad_q, -(slope * a).sum(), grad_weight


_TILE = {"BLOCK": 16, "COLUMNS": 128}


def _grid(n: int, nodes: int) -> tuple[int, int]:
    return triton.cdiv(n, _TILE["BLOCK"]), triton.cdiv(nodes, _TILE["COLUMNS"])


@triton.jit
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


@triton.jit
def pull_of_rewards_kernel(
    q_ptr,
    weight_ptr,
    a_ptr,
    grad_z_ptr,
    grad_a_ptr,
    pull_ptr,
    held_ptr,
    n,
    NODES: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Per node: grad_a plus the sum of grad_z where the mass bounds z, and the active weight."""
    nodes = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    a = tl.load(a_ptr + nodes, mask=nodes < NODES, other=0.0)
    pull = tl.load(grad_a_ptr + nodes, mask=nodes < NODES, other=0.0)
    held = tl.zeros([COLUMNS], tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        u, weight = shifted(q_ptr, weight_ptr, rows, nodes, n, NODES, WEIGHTED)
        bounded = (u >= a[None, :]) & (rows[:, None] < n) & (nodes[None, :] < NODES)
        pull += tl.sum(tl.load(grad_z_ptr + rows[:, None] * NODES + nodes[None, :], mask=bounded, other=0.0), 0)
        held += tl.sum(tl.where(u > a[None, :], weight, 0.0), 0)
    tl.store(pull_ptr + nodes, pull, mask=nodes < NODES)
    tl.store(held_ptr + nodes, held, mask=nodes < NODES)


@triton.jit
def group_slope_kernel(
    pull_ptr, held_ptr, group_ptr, lam_ptr, a_ptr, slope_ptr, NODES: tl.constexpr, BLOCK: tl.constexpr
):
    """d loss / d (sum of w u over the active samples) of the group that node program_id names; 0 if it names none."""
    name = tl.program_id(0)
    pull = 0.0
    held = 0.0
    size = 0.0
    for start in range(0, NODES, BLOCK):
        node = start + tl.arange(0, BLOCK)
        member = tl.load(group_ptr + node, mask=node < NODES, other=-1) == name
        pull += tl.sum(tl.load(pull_ptr + node, mask=member, other=0.0))
        held += tl.sum(tl.load(held_ptr + node, mask=member, other=0.0))
        size += tl.sum(member.to(tl.float32))
    a = tl.load(a_ptr + name)
    free = (a > 0.0) & (a < 1.0) & (size > 0.0)
    tl.store(slope_ptr + name, tl.where(free, pull / (tl.load(lam_ptr) * size + held), 0.0))


@triton.jit
def gradients_of_rewards_kernel(
    q_ptr,
    weight_ptr,
    a_ptr,
    slope_ptr,
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
        slope = tl.load(slope_ptr + nodes, mask=nodes < NODES, other=0.0)[None, :]
        at = rows[:, None] * NODES + nodes[None, :]
        mask = (rows[:, None] < n) & (nodes[None, :] < NODES)
        from_z = tl.load(grad_z_ptr + at, mask=mask & (u > 0.0) & (u < a), other=0.0)
        active = (u > a) & mask
        tl.store(grad_q_ptr + at, from_z + tl.where(active, weight * slope, 0.0), mask=mask)
        grad_weight += tl.sum(tl.where(active & (slope != 0.0), (u - a) * slope, 0.0), 1)
    tl.store(grad_weight_ptr + rows, grad_weight, mask=rows < n)
