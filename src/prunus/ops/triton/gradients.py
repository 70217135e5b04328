"""Gradients of the split scores: first those of the node masses, then those of each split.

For many samples the gradients of the masses are summed over the lists of `layers`. The gradients of the scores are
dense, though most are zero: they are written for whole rows, from the leaves up.
"""

import triton
import triton.language as tl

from prunus.ops.triton.layers import (
    add_groups,
    arrivals,
    blocks_together,
    first_index,
    group_lanes,
    groups_of,
    levels_above,
    load_weight,
    node_of,
    one_of,
    subtree,
)
from prunus.ops.triton.roots import node_u
from prunus.ops.triton.tiles import kernel, level_columns, load_levels, load_scores, step_down, top

__all__ = ["gradients_kernel", "lam_kernel", "mass_grad_kernel", "node_sum_grad_kernel", "sum_grad_kernel"]


@triton.jit
def sum_grad_of(mass_grad, active_weight, a, lam):
    """The gradient of the sum of w u over the active samples; it is zero if the mass is not free."""
    return tl.where((a > 0.0) & (a < 1.0), mass_grad / (lam + active_weight), 0.0)


@kernel()
def node_sum_grad_kernel(
    s_ptr, weight_ptr, lam_ptr, a_ptr, grad_z_ptr, grad_a_ptr, sum_grad_ptr, n,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """sum_grad of node program_id, from all samples; fast if these are few."""
    T: tl.constexpr = 2 * SPLITS + 1
    node = tl.program_id(0)
    a = tl.load(a_ptr + node)
    mass_grad = tl.load(grad_a_ptr + node)
    active_weight = 0.0
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        u, weight = node_u(s_ptr, weight_ptr, rows, n, node, DEPTH, SPLITS, WEIGHTED)
        bounded = (u >= a) & (rows < n)
        mass_grad += tl.sum(tl.load(grad_z_ptr + rows * T + node, mask=bounded, other=0.0))
        active_weight += tl.sum(tl.where(u > a, weight, 0.0))
    tl.store(sum_grad_ptr + node, sum_grad_of(mass_grad, active_weight, a, tl.load(lam_ptr)))


@triton.jit
def add_mass_grads(sums, us, masses, weight, row, root, grad_z_ptr, NODES: tl.constexpr, T: tl.constexpr):
    """Adds grad_z where z equals the mass, and the weight of active samples, for each node of a subtree."""
    added = ()
    for node in tl.static_range(NODES):
        at = grad_z_ptr + row * T + node_of(root, node)
        grad = tl.load(at, mask=us[node] >= masses[node], other=0.0)
        active_weight = tl.where(us[node] > masses[node], weight, 0.0)
        added = added + (sums[2 * node] + tl.sum(grad), sums[2 * node + 1] + tl.sum(active_weight))
    return added


@triton.jit
def mass_grad_subtree(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, a_ptr, grad_z_ptr, partial_ptr, n, blocks, index, root, group,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, TOGETHER: tl.constexpr, IS_TOP: tl.constexpr, HEIGHT: tl.constexpr,
    ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Writes the sums of one subtree over a group of blocks; they are zero for masses that are not free."""
    NODES: tl.constexpr = (1 << HEIGHT) - 1
    T: tl.constexpr = 2 * SPLITS + 1
    masses = ()
    sums = ()
    free = 0
    for node in tl.static_range(NODES):
        mass = tl.load(a_ptr + node_of(root, node))
        is_free = (mass > 0.0) & (mass < 1.0)
        free += is_free.to(tl.int32)
        masses = masses + (tl.where(is_free, mass, float("inf")),)
        sums = sums + (0.0, 0.0)
    if free > 0:
        block, place, begin, count = group_lanes(count_ptr, n, blocks, index, group, TOGETHER, IS_TOP, ROWS, LANES)
        for start in range(0, tl.max(count), LANES // TOGETHER):
            row, u, valid = arrivals(
                weight_ptr, row_ptr, u_ptr, begin, start + place, count, block * ROWS, WEIGHTED, IS_TOP
            )
            us, scores = subtree(u, s_ptr, row, valid, root, SPLITS, HEIGHT)
            weight = load_weight(weight_ptr, row, valid, WEIGHTED)
            sums = add_mass_grads(sums, us, masses, weight, row, root, grad_z_ptr, NODES, T)
    for node in tl.static_range(NODES):
        for k in tl.static_range(2):
            tl.store(partial_ptr + (group * 2 + k).to(tl.int64) * T + node_of(root, node), sums[2 * node + k])


@kernel()
def mass_grad_kernel(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, a_ptr, grad_z_ptr, partial_ptr, n, blocks,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, LAYERS: tl.constexpr,
    ROWS: tl.constexpr, TOP: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Sums of grad_z where z equals the mass, and of the weights of active samples, (blocks, 2, nodes)."""
    program = tl.program_id(0)
    if program < blocks:
        mass_grad_subtree(
            s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, a_ptr, grad_z_ptr, partial_ptr, n, blocks, 0, 0, program,
            SPLITS, WEIGHTED, 1, True, TOP, ROWS, LANES,
        )  # fmt: skip
    program -= blocks
    for layer in tl.static_range(1, LAYERS):
        groups = tl.cdiv(blocks, blocks_together(layer))
        place = program // groups
        if (program >= 0) & (place < (1 << levels_above(layer, TOP))):
            mass_grad_subtree(
                s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, a_ptr, grad_z_ptr, partial_ptr, n, blocks,
                first_index(layer, TOP) + place, (1 << levels_above(layer, TOP)) - 1 + place, program % groups,
                SPLITS, WEIGHTED, blocks_together(layer), False, 3, ROWS, LANES,
            )  # fmt: skip
        program -= groups << levels_above(layer, TOP)


@kernel()
def sum_grad_kernel(
    partial_ptr, lam_ptr, a_ptr, grad_a_ptr, sum_grad_ptr, blocks,
    T: tl.constexpr, BLOCK: tl.constexpr, LAYERS: tl.constexpr, TOP: tl.constexpr,
):  # fmt: skip
    """sum_grad of each node from the sums of mass_grad_kernel."""
    nodes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = nodes < T
    sums = add_groups(partial_ptr, nodes, groups_of(nodes, blocks, LAYERS, TOP), 2, T)
    mass_grad, active_weight = one_of(sums, 0), one_of(sums, 1)
    mass_grad += tl.load(grad_a_ptr + nodes, mask=mask, other=0.0).to(tl.float64)
    a = tl.load(a_ptr + nodes, mask=mask, other=0.0)
    lam = tl.load(lam_ptr).to(tl.float64)
    tl.store(sum_grad_ptr + nodes, sum_grad_of(mass_grad, active_weight, a, lam).to(tl.float32), mask=mask)


@kernel()
def lam_kernel(sum_grad_ptr, a_ptr, grad_lam_ptr, T: tl.constexpr, BLOCK: tl.constexpr):
    """The gradient of lam, by one program."""
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, T, BLOCK):
        nodes = start + tl.arange(0, BLOCK)
        sum_grad = tl.load(sum_grad_ptr + nodes, mask=nodes < T, other=0.0)
        total += sum_grad * tl.load(a_ptr + nodes, mask=nodes < T, other=0.0)
    tl.store(grad_lam_ptr, -tl.sum(total))


@triton.jit
def own_gradient(
    u, a, sum_grad, weight, rows, grad_z_ptr, LEVEL: tl.constexpr, SPLITS: tl.constexpr, WEIGHTED: tl.constexpr
):
    """Gradient of u at the nodes of a level, without what its descendants add."""
    at = grad_z_ptr + rows[:, None] * (2 * SPLITS + 1) + level_columns(LEVEL)[None, :]
    grad = tl.load(at, mask=(u > 0.0) & (u < a), other=0.0)
    return grad + tl.where(u > a, weight[:, None] * sum_grad if WEIGHTED else sum_grad, 0.0)


@triton.jit
def go_up(us, scores, own, rows, n, grad_s_ptr, DEPTH: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    """Writes the gradients of the scores, from the gradients of u (`own`) of all levels."""
    grad = own[DEPTH]
    for up in tl.static_range(1, DEPTH + 1):
        u = us[DEPTH - up]
        s = scores[DEPTH - up]
        to_left, to_right = tl.split(tl.reshape(grad, [BLOCK, 1 << (DEPTH - up), 2]))
        left, right = 0.5 - s < u, 0.5 + s < u  # whether the child's u comes from the score, not from its parent
        to_s = tl.where(right, to_right, 0.0) - tl.where(left, to_left, 0.0)
        at = grad_s_ptr + rows[:, None] * SPLITS + level_columns(DEPTH - up)[None, :]
        tl.store(at, to_s, mask=rows[:, None] < n)
        grad = own[DEPTH - up] + tl.where(right, 0.0, to_right) + tl.where(left, 0.0, to_left)


@kernel()
def gradients_kernel(
    s_ptr, weight_ptr, a_ptr, sum_grad_ptr, grad_z_ptr, grad_s_ptr, grad_weight_ptr, n,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Gradients of the scores and weights of BLOCK samples: goes down the tree for u, and up again for gradients."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    scores = load_scores(s_ptr, rows, n, DEPTH, SPLITS)
    masses = load_levels(a_ptr, DEPTH)
    sum_grads = load_levels(sum_grad_ptr, DEPTH)
    u, weight = top(rows, n, weight_ptr, WEIGHTED)
    us = ()
    own = ()
    to_weight = weight * 0.0
    for level in tl.static_range(DEPTH + 1):
        us = us + (u,)
        a, sum_grad = masses[level], sum_grads[level]
        own = own + (own_gradient(u, a, sum_grad, weight, rows, grad_z_ptr, level, SPLITS, WEIGHTED),)
        if WEIGHTED:
            to_weight += tl.sum(tl.where(u > a, (u - a) * sum_grad, 0.0), 1)
        if level < DEPTH:
            u = step_down(u, scores[level])
    go_up(us, scores, own, rows, n, grad_s_ptr, DEPTH, SPLITS, BLOCK)
    if WEIGHTED:
        tl.store(grad_weight_ptr + rows, to_weight, mask=rows < n)
