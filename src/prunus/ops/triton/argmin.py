"""tree_argmin on the GPU: the order of the kernels, and those that write routes and gradients of arbitrary rewards."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.heap import depth_of_nodes
from prunus.ops.triton.roots import add_above
from prunus.ops.triton.tiles import kernel

__all__ = ["argmin_backward", "argmin_forward", "group_kernel", "order_kernel", "own_roots_kernel", "pool_kernel"]


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


@triton.jit
def shifted(q_ptr, weight_ptr, rows, nodes, n, NODES: tl.constexpr, WEIGHTED: tl.constexpr):
    """u = q + 1/2, (rows, nodes), and weights, (rows, 1). A row with an invalid weight has u = NaN and weight 0."""
    mask = (rows[:, None] < n) & (nodes[None, :] < NODES)
    u = tl.load(q_ptr + rows[:, None] * NODES + nodes[None, :], mask=mask, other=-1.0) + 0.5
    weight = tl.where(rows < n, 1.0, 0.0)
    if WEIGHTED:
        weight = tl.load(weight_ptr + rows, mask=rows < n, other=0.0)
        valid = (weight >= 0.0) & (weight < float("inf"))
        u = tl.where(valid[:, None], u, float("nan"))
        weight = tl.where(valid, weight, 0.0)
    return u, weight[:, None]


@kernel()
def own_roots_kernel(
    q_ptr,
    weight_ptr,
    lam_ptr,
    roots_ptr,
    preferred_ptr,
    n,
    NODES: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """The root of each node's own phi, and whether some sample prefers the node to its parent."""
    nodes = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    parents = tl.maximum(nodes - 1, 0) // 2
    lam = tl.load(lam_ptr)
    preferred = tl.zeros([COLUMNS], tl.int32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        u, _ = shifted(q_ptr, weight_ptr, rows, nodes, n, NODES, WEIGHTED)
        above, _ = shifted(q_ptr, weight_ptr, rows, parents, n, NODES, WEIGHTED)
        prefers = (u > above) | ((u == u) & (above != above))
        preferred = tl.maximum(preferred, tl.max(prefers.to(tl.int32), 0))
    a = tl.zeros([COLUMNS], tl.float32)
    moving = lam > 0.0
    while moving:
        total = tl.zeros([COLUMNS], tl.float32)
        active_weight = tl.zeros([COLUMNS], tl.float32)
        for start in range(0, n, BLOCK):
            rows = start + tl.arange(0, BLOCK).to(tl.int64)
            u, weight = shifted(q_ptr, weight_ptr, rows, nodes, n, NODES, WEIGHTED)
            active = tl.where(u > a[None, :], weight, 0.0)
            total += tl.sum(tl.where(active > 0.0, active * u, 0.0), 0)
            active_weight += tl.sum(active, 0)
        step = total / (lam + active_weight)
        step = tl.where(step > 1.0, 1.0, step)  # a NaN stays NaN and changes no root
        moving = tl.max((step > a).to(tl.int32), 0) > 0
        # If the step is below a, rounding put a on or above the smallest active u: stay just below that u.
        a = tl.where(step > a, step, tl.where(~moving & (step < a) & (a < 1.0), a * (1.0 - 4.8e-7), a))
    a = tl.where(lam > 0.0, a, tl.where(lam == 0.0, 1.0, float("nan")))
    tl.store(roots_ptr + nodes, a, mask=nodes < NODES)
    tl.store(preferred_ptr + nodes, preferred, mask=nodes < NODES)


@kernel()
def order_kernel(own_ptr, preferred_ptr, roots_ptr, NODES: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    """Undoes rounding where no sample prefers a child to its parent: by the lemma the child's root is not larger."""
    node = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    root = tl.full([BLOCK], float("inf"), tl.float32)
    for step in tl.static_range(DEPTH + 1):
        on_path = ((node + 1) >> (DEPTH - step)) - 1
        mask = (node < NODES) & (on_path >= 0)
        own = tl.load(own_ptr + on_path, mask=mask, other=float("inf"))
        preferred = tl.load(preferred_ptr + on_path, mask=mask, other=0)
        ordered = tl.minimum(own, root, propagate_nan=tl.PropagateNan.ALL)
        root = tl.where(mask, tl.where(preferred > 0, own, ordered), root)
    tl.store(roots_ptr + node, root, mask=node < NODES)


@kernel()
def pool_kernel(
    q_ptr,
    weight_ptr,
    lam_ptr,
    roots_ptr,
    n,
    level_start,
    NODES: tl.constexpr,
    HEIGHT: tl.constexpr,
    BLOCK: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Raises the root of one node of a level, HEIGHT above the leaves, to that of its group. Lower roots are final.

    A descendant belongs to the group at the value a if its root and all roots between it and the node exceed a.
    """
    node = level_start + tl.program_id(0)
    a = tl.load(roots_ptr + node)
    lam = tl.load(lam_ptr)
    largest = tl.maximum(tl.load(roots_ptr + 2 * node + 1), tl.load(roots_ptr + 2 * node + 2))
    moving = (largest > a) & (lam > 0.0)
    if moving == 0:
        return
    back = 0.0
    while moving:
        total = 0.0
        active_weight = 0.0
        size = 0.0
        for relative in range((2 << HEIGHT) - 1):
            # relative: heap index within the subtree; depth below the node: floor(log2(relative + 1))
            member = node
            joined = relative >= 0
            for step in tl.static_range(HEIGHT):
                ancestor = ((relative + 1) >> (HEIGHT - step)) - 1
                child = ((relative + 1) >> (HEIGHT - step - 1)) - 1
                inside = ancestor >= 0
                member = tl.where(inside, 2 * member + 1 + (child - 2 * ancestor - 1), member)
                joined = joined & ((~inside) | (tl.load(roots_ptr + member) > a))
            if joined:
                size += 1.0
                for start in range(0, n, BLOCK):
                    rows = start + tl.arange(0, BLOCK).to(tl.int64)
                    u, weight = shifted(q_ptr, weight_ptr, rows, member + tl.arange(0, 1), n, NODES, WEIGHTED)
                    total, active_weight = add_above(total, active_weight, u, weight, a)
        step = total / (lam * size + active_weight)
        step = tl.where(step > 1.0, 1.0, step)  # a NaN stays NaN and changes no root
        # If the step is below a, rounding put a on or above an active u or a member's root: lower a until it is not.
        climbs = (step > a) & (back == 0.0)
        falls = (step < a) & (a < 1.0)
        back = tl.where(falls, tl.maximum(2.0 * back, 2.4e-7), back)
        a = tl.where(climbs, step, tl.where(falls, a - back * a, a))
        moving = climbs | falls
    tl.store(roots_ptr + node, a)


@kernel()
def group_kernel(roots_ptr, a_ptr, group_ptr, NODES: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    """Node masses, and the topmost node of each node's group. A node whose root is larger joins its parent's group."""
    node = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.full([BLOCK], float("inf"), tl.float32)
    group = tl.zeros([BLOCK], tl.int64)
    for step in tl.static_range(DEPTH + 1):
        on_path = ((node + 1) >> (DEPTH - step)) - 1
        mask = (node < NODES) & (on_path >= 0)
        root = tl.load(roots_ptr + on_path, mask=mask, other=0.0)
        group = tl.where(mask & ~(root > a), on_path, group)
        a = tl.where(mask, tl.minimum(a, root, propagate_nan=tl.PropagateNan.ALL), a)
    tl.store(a_ptr + node, a, mask=node < NODES)
    tl.store(group_ptr + node, group, mask=node < NODES)
