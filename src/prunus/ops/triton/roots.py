"""Roots of the nodes' phi from split scores, by Newton's method over all samples, and masses from roots.

One program for each node runs Newton's method to the end, for few samples and for nodes that `brackets` left open.
"""

import triton
import triton.language as tl

from prunus.ops.triton.tiles import kernel, top

__all__ = ["cap_kernel", "newton_kernel", "node_u"]


@triton.jit
def node_u(s_ptr, weight_ptr, rows, n, node, DEPTH: tl.constexpr, SPLITS: tl.constexpr, WEIGHTED: tl.constexpr):
    """u of one node, and the weights, of some rows, from the scores on the node's path."""
    start, weight = top(rows, n, weight_ptr, WEIGHTED)
    u = tl.reshape(start, rows.shape)
    for step in tl.static_range(DEPTH):
        ancestor = ((node + 1) >> (DEPTH - step)) - 1
        child = ((node + 1) >> (DEPTH - step - 1)) - 1
        inside = ancestor >= 0  # else this step would be above the root
        s = tl.load(s_ptr + rows * SPLITS + ancestor, mask=(rows < n) & inside, other=0.0)
        toward = tl.where(child == 2 * ancestor + 1, 0.5 - s, 0.5 + s)
        below = tl.minimum(u, toward, propagate_nan=tl.PropagateNan.ALL)
        u = tl.where(inside & ~(u <= 0.0), below, u)
    return u, weight


@triton.jit
def add_above(total, active_weight, u, weight, a):
    """Adds the sum of w u over the samples with u above a, and the sum of their weights."""
    active = tl.where(u > a, weight, 0.0)
    return total + tl.sum(tl.where(active > 0.0, active * u, 0.0)), active_weight + tl.sum(active)


@kernel()
def newton_kernel(
    s_ptr,
    weight_ptr,
    lam_ptr,
    state_ptr,
    roots_ptr,
    n,
    DEPTH: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    ONE_BLOCK: tl.constexpr,
    WEIGHTED: tl.constexpr,
    RESUME: tl.constexpr,
):
    """Runs Newton's method for node program_id; with RESUME only for open nodes, from the roots found so far."""
    node = tl.program_id(0)
    a = 0.0
    if RESUME:
        if tl.load(state_ptr + node) != 0:
            return
        a = tl.load(roots_ptr + node)
    lam = tl.load(lam_ptr)
    offsets = tl.arange(0, BLOCK).to(tl.int64)
    if ONE_BLOCK:
        u, weight = node_u(s_ptr, weight_ptr, offsets, n, node, DEPTH, SPLITS, WEIGHTED)
    moving = lam > 0.0
    while moving:
        total = 0.0
        active_weight = 0.0
        if ONE_BLOCK:
            total, active_weight = add_above(total, active_weight, u, weight, a)
        else:
            for start in range(0, n, BLOCK):
                u, weight = node_u(s_ptr, weight_ptr, start + offsets, n, node, DEPTH, SPLITS, WEIGHTED)
                total, active_weight = add_above(total, active_weight, u, weight, a)
        step = tl.minimum(total / (lam + active_weight), 1.0)
        moving = step > a
        # If the step is below a, rounding put a on or above the smallest active u: stay just below that u.
        a = tl.where(step > a, step, tl.where((step < a) & (a < 1.0), a * (1.0 - 4.8e-7), a))
    tl.store(roots_ptr + node, a)


@kernel()
def cap_kernel(roots_ptr, lam_ptr, a_ptr, T: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    """Node masses: the smallest root on each node's path, which by the lemma is its own root up to rounding."""
    node = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lam = tl.load(lam_ptr)
    a = tl.full([BLOCK], 1.0, tl.float32)
    for step in tl.static_range(DEPTH + 1):
        ancestor = ((node + 1) >> step) - 1
        a = tl.minimum(a, tl.load(roots_ptr + ancestor, mask=(node < T) & (ancestor >= 0), other=1.0))
    a = tl.where(lam > 0.0, a, tl.where(lam == 0.0, 1.0, float("nan")))
    tl.store(a_ptr + node, a, mask=node < T)
