"""Roots for arbitrary rewards, and pooling where a node's root exceeds its parent's; the ops' README derives it."""

import triton
import triton.language as tl

from prunus.ops.triton.kernels import kernel
from prunus.ops.triton.roots import add_above

__all__ = ["group_kernel", "order_kernel", "own_roots_kernel", "pool_kernel"]


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
