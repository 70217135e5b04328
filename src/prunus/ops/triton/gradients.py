"""Gradients of the split scores: how the loss pulls at each node's mass, then what reaches each split."""

import triton
import triton.language as tl

from prunus.ops.triton.layers import arrivals, blocks_together, first_index, levels_above, load_weight, subtree
from prunus.ops.triton.roots import add_groups, groups_of, node_of, node_u, one_of

__all__ = ["ascend_kernel", "node_slope_kernel", "pull_kernel", "slope_kernel"]


@triton.jit
def slope_of(pull, held, a, lam):
    """d loss / d (sum of w u over the active samples); zero where the mass is not free to move."""
    return tl.where((a > 0.0) & (a < 1.0), pull / (lam + held), 0.0)


@triton.jit
def node_slope_kernel(
    s_ptr, weight_ptr, lam_ptr, a_ptr, grad_z_ptr, grad_a_ptr, slope_ptr, n,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """The slope of node program_id, from all samples: for few of them."""
    T: tl.constexpr = 2 * SPLITS + 1
    node = tl.program_id(0)
    a = tl.load(a_ptr + node)
    pull = tl.load(grad_a_ptr + node)
    held = 0.0
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        u, weight = node_u(s_ptr, weight_ptr, rows, n, node, DEPTH, SPLITS, WEIGHTED)
        bounded = (u >= a) & (rows < n)
        pull += tl.sum(tl.load(grad_z_ptr + rows * T + node, mask=bounded, other=0.0))
        held += tl.sum(tl.where(u > a, weight, 0.0))
    tl.store(slope_ptr + node, slope_of(pull, held, a, tl.load(lam_ptr)))


@triton.jit
def pull_subtree(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, a_ptr, grad_z_ptr, partial_ptr, n, blocks, index, root, group,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, TOGETHER: tl.constexpr, IS_TOP: tl.constexpr, HEIGHT: tl.constexpr,
    ROWS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The sums of one subtree over a group of blocks; nothing if none of its masses is free."""
    NODES: tl.constexpr = (1 << HEIGHT) - 1
    T: tl.constexpr = 2 * SPLITS + 1
    masses = ()
    sums = ()
    free = 0
    for node in tl.static_range(NODES):
        mass = tl.load(a_ptr + node_of(root, node))
        free += ((mass > 0.0) & (mass < 1.0)).to(tl.int32)
        masses = masses + (mass,)
        sums = sums + (tl.zeros([CHUNK], tl.float32), tl.zeros([CHUNK], tl.float32))
    if free > 0:
        for block in range(group * TOGETHER, tl.minimum((group + 1) * TOGETHER, blocks)):
            here = (index - 1) * blocks + block
            count = tl.minimum(n - block * ROWS, ROWS)
            if not IS_TOP:
                count = tl.load(count_ptr + here)
            for start in range(0, count, CHUNK):
                row, u, valid = arrivals(
                    weight_ptr, row_ptr, u_ptr, here.to(tl.int64) * ROWS, start, count, block * ROWS,
                    WEIGHTED, IS_TOP, CHUNK,
                )  # fmt: skip
                weight = load_weight(weight_ptr, row, valid, WEIGHTED)
                us, scores = subtree(u, s_ptr, row, valid, root, SPLITS, HEIGHT)
                added = ()
                for node in tl.static_range(NODES):
                    at = grad_z_ptr + row * T + node_of(root, node)
                    grad = tl.load(at, mask=valid & (us[node] >= masses[node]), other=0.0)
                    held = tl.where(us[node] > masses[node], weight, 0.0)
                    added = added + (sums[2 * node] + grad, sums[2 * node + 1] + held)
                sums = added
    for node in tl.static_range(NODES):
        for k in tl.static_range(2):
            at = partial_ptr + (group * 2 + k).to(tl.int64) * T + node_of(root, node)
            tl.store(at, tl.sum(sums[2 * node + k], 0))


@triton.jit
def pull_kernel(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, a_ptr, grad_z_ptr, partial_ptr, n, blocks,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, LAYERS: tl.constexpr,
    ROWS: tl.constexpr, TOP: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Sums of grad_z where the mass bounds z, and of the active weight, (blocks, 2, nodes), as in sums_kernel."""
    program = tl.program_id(0)
    if program < blocks:
        pull_subtree(
            s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, a_ptr, grad_z_ptr, partial_ptr, n, blocks, 0, 0, program,
            SPLITS, WEIGHTED, 1, True, TOP, ROWS, CHUNK,
        )  # fmt: skip
    program -= blocks
    for layer in tl.static_range(1, LAYERS):
        groups = tl.cdiv(blocks, blocks_together(layer))
        place = program // groups
        if (program >= 0) & (place < (1 << levels_above(layer, TOP))):
            pull_subtree(
                s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, a_ptr, grad_z_ptr, partial_ptr, n, blocks,
                first_index(layer, TOP) + place, (1 << levels_above(layer, TOP)) - 1 + place, program % groups,
                SPLITS, WEIGHTED, blocks_together(layer), False, 3, ROWS, CHUNK,
            )  # fmt: skip
        program -= groups << levels_above(layer, TOP)


@triton.jit
def slope_kernel(
    partial_ptr, lam_ptr, a_ptr, grad_a_ptr, slope_ptr, blocks,
    T: tl.constexpr, BLOCK: tl.constexpr, LAYERS: tl.constexpr, TOP: tl.constexpr,
):  # fmt: skip
    """The slopes from the sums of pull_kernel."""
    nodes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = nodes < T
    sums = add_groups(partial_ptr, nodes, groups_of(nodes, blocks, LAYERS, TOP), 2, T)
    pull, held = one_of(sums, 0), one_of(sums, 1)
    pull += tl.load(grad_a_ptr + nodes, mask=mask, other=0.0).to(tl.float64)
    a = tl.load(a_ptr + nodes, mask=mask, other=0.0)
    tl.store(slope_ptr + nodes, slope_of(pull, held, a, tl.load(lam_ptr).to(tl.float64)).to(tl.float32), mask=mask)


@triton.jit
def from_lists(values_ptr, us, counts, child, blocks, ROWS: tl.constexpr, HEIGHT: tl.constexpr):
    """For each subtree below: the value that it left in its list for each lane, 0 where the lane does not reach it.

    Finds the place in the list as descend_kernel did. Also returns the new counts.
    """
    values = ()
    counted = ()
    for side in tl.static_range(1 << HEIGHT):
        alive = (~(us[(1 << HEIGHT) - 1 + side] <= 0.0)).to(tl.int32)
        at = (child + side * blocks).to(tl.int64) * ROWS + counts[side] + tl.cumsum(alive, 0) - 1
        values = values + (tl.load(values_ptr + at, mask=alive == 1, other=0.0),)
        counted = counted + (counts[side] + tl.sum(alive, 0),)
    return values, counted


@triton.jit
def step_up(
    us, scores, masses, slopes, grads, row, weight, valid, root, grad_z_ptr, grad_s_ptr,
    SPLITS: tl.constexpr, HEIGHT: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """Up one subtree: writes the gradients of its scores; returns that of u at its root and its nodes' to the weights.

    grads holds the gradients of u of the level below, at first those of the subtrees below; with LAST there are none.
    """
    to_weight = weight * 0.0
    for up in tl.static_range(HEIGHT):
        own = ()
        for offset in tl.static_range(1 << (HEIGHT - 1 - up)):
            u = us[(1 << (HEIGHT - 1 - up)) - 1 + offset]
            mass = masses[(1 << (HEIGHT - 1 - up)) - 1 + offset]
            slope = slopes[(1 << (HEIGHT - 1 - up)) - 1 + offset]
            node = ((root + 1) << (HEIGHT - 1 - up)) - 1 + offset
            at = grad_z_ptr + row * (2 * SPLITS + 1) + node
            grad = tl.load(at, mask=valid & (u > 0.0) & (u < mass), other=0.0)
            grad += tl.where(u > mass, weight * slope, 0.0)
            to_weight += tl.where(u > mass, (u - mass) * slope, 0.0)
            if not LAST or up > 0:
                s = scores[(1 << (HEIGHT - 1 - up)) - 1 + offset]
                left, right = 0.5 - s < u, 0.5 + s < u  # the score, not the parent's u, is the child's
                to_left, to_right = grads[2 * offset], grads[2 * offset + 1]
                to_s = tl.where(right, to_right, 0.0) - tl.where(left, to_left, 0.0)
                tl.store(grad_s_ptr + row * SPLITS + node, to_s, mask=valid & (u > 0.0))
                grad += tl.where(right, 0.0, to_right) + tl.where(left, 0.0, to_left)
            own = own + (grad,)
        grads = own
    return grads[0], to_weight


@triton.jit
def ascend_kernel(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, a_ptr, slope_ptr, grad_z_ptr,
    to_u_ptr, to_weight_ptr, grad_s_ptr, grad_weight_ptr, n, blocks, first_block,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, LAYER: tl.constexpr, LAST: tl.constexpr,
    ROWS: tl.constexpr, TOP: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Gradients of one subtree's scores over one block of rows; those of the subtrees below have been here before.

    Leaves in its list, for the subtree above, the gradient of u at its root (to_u_ptr) and what it and all below add to
    the gradients of the weights (to_weight_ptr). grad_s must be zero where nothing is reached.
    """
    IS_TOP: tl.constexpr = LAYER == 0
    HEIGHT: tl.constexpr = TOP if IS_TOP else 3
    LEVELS: tl.constexpr = HEIGHT if LAST else HEIGHT + 1
    block = first_block + tl.program_id(0)
    place = tl.program_id(1)
    first = 0 if IS_TOP else first_index(LAYER, TOP)
    root = 0 if IS_TOP else (1 << levels_above(LAYER, TOP)) - 1 + place
    here = (first + place - 1) * blocks + block
    begin = here.to(tl.int64) * ROWS
    count = tl.minimum(n - block * ROWS, ROWS)
    if not IS_TOP:
        count = tl.load(count_ptr + here)
    child = (first_index(LAYER + 1, TOP) + (place << HEIGHT) - 1) * blocks + block
    counts = ()
    for side in tl.static_range(1 << HEIGHT):
        counts = counts + (count * 0,)
    masses = ()
    slopes = ()
    for node in tl.static_range((1 << HEIGHT) - 1):
        masses = masses + (tl.load(a_ptr + node_of(root, node)),)
        slopes = slopes + (tl.load(slope_ptr + node_of(root, node)),)
    for start in range(0, count, CHUNK):
        row, u, valid = arrivals(weight_ptr, row_ptr, u_ptr, begin, start, count, block * ROWS, WEIGHTED, IS_TOP, CHUNK)
        weight = load_weight(weight_ptr, row, valid, WEIGHTED)
        us, scores = subtree(u, s_ptr, row, valid, root, SPLITS, LEVELS)
        to_weight = tl.zeros([CHUNK], tl.float32)
        if LAST:
            grads = ()
        else:
            if WEIGHTED:
                more, counted = from_lists(to_weight_ptr, us, counts, child, blocks, ROWS, HEIGHT)
                for side in tl.static_range(1 << HEIGHT):
                    to_weight += more[side]
            grads, counts = from_lists(to_u_ptr, us, counts, child, blocks, ROWS, HEIGHT)
        grad, more_to_weight = step_up(
            us, scores, masses, slopes, grads, row, weight, valid, root, grad_z_ptr, grad_s_ptr, SPLITS, HEIGHT, LAST
        )
        to_weight += more_to_weight
        lane = start + tl.arange(0, CHUNK)
        if IS_TOP:
            if WEIGHTED:
                tl.store(grad_weight_ptr + row, to_weight, mask=valid)
        else:
            tl.store(to_u_ptr + begin + lane, grad, mask=valid)
            if WEIGHTED:
                tl.store(to_weight_ptr + begin + lane, to_weight, mask=valid)
