"""Roots of the nodes' phi from split scores, for many samples: passes over the lists of `layers`.

A pass evaluates every node's phi at four points. phi is increasing and concave, so the roots of its tangents bound its
root from the left and those of its chords from the right. Each pass shrinks this bracket by an order of magnitude or
more. Once few samples lie inside the bracket, their values are collected, and Newton's method finds the root from these
values and the sums above the bracket. The first pass uses points from 1/2 to 1 and samples above 1/2 only. The lower
bounds that it finds limit the lists of the second pass.

The state of a node is OPEN, SOLVED (its root is found) or NARROW (few values are left to collect).
"""

import triton
import triton.language as tl

from prunus.ops.triton.layers import (
    NARROW,
    OPEN,
    SOLVED,
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
from prunus.ops.triton.tiles import kernel

__all__ = ["collect_kernel", "finish_kernel", "refine_kernel", "sums_kernel"]


@triton.jit
def first_point(J: tl.constexpr):
    """The points of the first pass, 1/2, 3/4, 7/8 and 1, from FIRST_BOUND on."""
    return 1.0 if J == 3 else 1.0 - 0.5 / (1 << J)


@triton.jit
def add_sums(sums, us, weight, points, NODES: tl.constexpr, WEIGHTED: tl.constexpr):
    """Adds w u and w of the lanes above each of four points, for each node of a subtree: eight sums for each node."""
    added = ()
    for node in tl.static_range(NODES):
        u = us[node]
        wu = tl.where(weight > 0.0, weight * u, 0.0) if WEIGHTED else u
        for j in tl.static_range(4):
            above = u > points[4 * node + j]
            added = added + (sums[8 * node + 2 * j] + tl.sum(tl.where(above, wu, 0.0)),)
            added = added + (sums[8 * node + 2 * j + 1] + tl.sum(tl.where(above, weight, 0.0)),)
    return added


@triton.jit
def sum_subtree(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, points_ptr, state_ptr, partial_ptr, n, blocks, index, root, group,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, FIRST_PASS: tl.constexpr, TOGETHER: tl.constexpr,
    IS_TOP: tl.constexpr, HEIGHT: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Writes the sums of one subtree over a group of blocks, or nothing if none of its nodes is open."""
    NODES: tl.constexpr = (1 << HEIGHT) - 1
    T: tl.constexpr = 2 * SPLITS + 1
    open_nodes = 1
    if not FIRST_PASS:
        open_nodes = 0
        for node in tl.static_range(NODES):
            open_nodes += (tl.load(state_ptr + node_of(root, node)) == OPEN).to(tl.int32)
    if open_nodes > 0:
        points = ()
        sums = ()
        for node in tl.static_range(NODES):
            for j in tl.static_range(4):
                if FIRST_PASS:
                    points = points + (first_point(j),)
                else:
                    points = points + (tl.load(points_ptr + j * T + node_of(root, node)),)
                sums = sums + (0.0, 0.0)
        block, place, begin, count = group_lanes(count_ptr, n, blocks, index, group, TOGETHER, IS_TOP, ROWS, LANES)
        for start in range(0, tl.max(count), LANES // TOGETHER):
            row, u, valid = arrivals(
                weight_ptr, row_ptr, u_ptr, begin, start + place, count, block * ROWS, WEIGHTED, IS_TOP
            )
            us, scores = subtree(u, s_ptr, row, valid, root, SPLITS, HEIGHT)
            sums = add_sums(sums, us, load_weight(weight_ptr, row, valid, WEIGHTED), points, NODES, WEIGHTED)
        for node in tl.static_range(NODES):
            for k in tl.static_range(8):
                tl.store(partial_ptr + (group * 8 + k).to(tl.int64) * T + node_of(root, node), sums[8 * node + k])


@kernel()
def sums_kernel(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, points_ptr, state_ptr, partial_ptr, n, blocks,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, FIRST_PASS: tl.constexpr, LAYERS: tl.constexpr,
    ROWS: tl.constexpr, TOP: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Sums of w u and of w above four points, over the lists of one subtree for a group of blocks.

    partial_ptr, (blocks, 8, nodes): for each group of blocks the sum of w u and the sum of w above each of four points.
    """
    program = tl.program_id(0)
    if program < blocks:
        sum_subtree(
            s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, points_ptr, state_ptr, partial_ptr, n, blocks, 0, 0,
            program, SPLITS, WEIGHTED, FIRST_PASS, 1, True, TOP, ROWS, LANES,
        )  # fmt: skip
    program -= blocks
    for layer in tl.static_range(1, LAYERS):
        groups = tl.cdiv(blocks, blocks_together(layer))
        place = program // groups
        if (program >= 0) & (place < (1 << levels_above(layer, TOP))):
            sum_subtree(
                s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, points_ptr, state_ptr, partial_ptr, n, blocks,
                first_index(layer, TOP) + place, (1 << levels_above(layer, TOP)) - 1 + place, program % groups,
                SPLITS, WEIGHTED, FIRST_PASS, blocks_together(layer), False, 3, ROWS, LANES,
            )  # fmt: skip
        program -= groups << levels_above(layer, TOP)


@triton.jit
def floor_to_float32(x):
    """The largest float32 not above x: for every float32 u, u > x exactly if u > floor_to_float32(x)."""
    near = x.to(tl.float32)
    return tl.where(near.to(tl.float64) > x, near * (1.0 - 1.2e-7), near)


@kernel()
def refine_kernel(
    partial_ptr, lam_ptr, points_ptr, right_ptr, roots_ptr, state_ptr, blocks,
    T: tl.constexpr, BLOCK: tl.constexpr, FIRST_PASS: tl.constexpr, WEIGHTED: tl.constexpr,
    LAYERS: tl.constexpr, TOP: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    """From the sums of a pass: lower bounds of the roots, and the points of the next pass between both bounds.

    right_ptr, (3, T): the smallest point that is known to lie right of the root, and the two sums above it.
    """
    nodes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = nodes < T
    if not FIRST_PASS:
        mask = mask & (tl.load(state_ptr + nodes, mask=mask, other=SOLVED) == OPEN)
        if tl.max(mask.to(tl.int32)) == 0:
            return
    groups = groups_of(nodes, blocks, LAYERS, TOP)
    sums = add_groups(partial_ptr, nodes, groups, 8, T)
    lam = tl.load(lam_ptr).to(tl.float64)
    low = tl.zeros([BLOCK], tl.float64)
    right, total_right, active_weight_right = low + 1.0, low, low
    if not FIRST_PASS:
        low = tl.load(points_ptr + nodes, mask=mask, other=0.0).to(tl.float64)
        right = tl.load(right_ptr + nodes, mask=mask, other=1.0)
        total_right = tl.load(right_ptr + T + nodes, mask=mask, other=0.0)
        active_weight_right = tl.load(right_ptr + 2 * T + nodes, mask=mask, other=0.0)
    before, step = low, low
    left, phi_left, active_weight_left = low, low + float("nan"), low + float("nan")
    for j in tl.static_range(4):
        if FIRST_PASS:
            x = tl.zeros([BLOCK], tl.float64) + first_point(j)
        else:
            x = tl.load(points_ptr + j * T + nodes, mask=mask, other=0.0).to(tl.float64)
        total, active_weight = one_of(sums, 2 * j), one_of(sums, 2 * j + 1)
        if j == 0:
            step = total / (lam + active_weight)
        phi = (lam + active_weight) * x - total
        low = tl.maximum(low, total / (lam + active_weight))
        on_left, on_right = (phi < 0.0) & (x >= left), (phi >= 0.0) & (x <= right)
        left, phi_left = tl.where(on_left, x, left), tl.where(on_left, phi, phi_left)
        active_weight_left = tl.where(on_left, active_weight, active_weight_left)
        right, total_right = tl.where(on_right, x, right), tl.where(on_right, total, total_right)
        active_weight_right = tl.where(on_right, active_weight, active_weight_right)
    phi_right = (lam + active_weight_right) * right - total_right
    chord = left - phi_left * (right - left) / (phi_right - phi_left)
    high = tl.where(chord < right, chord, right)  # right, if the chord is NaN
    solved = (low >= 1.0) | (high <= low * (1.0 + 1e-6))
    if not FIRST_PASS:
        solved = solved | (tl.abs(step - before) <= 1e-6 * before)
    state = tl.where(solved, SOLVED, OPEN)
    if not WEIGHTED:  # then weights count samples; if those in the bracket are spread evenly, they can be collected
        inside = active_weight_left - active_weight_right
        state = tl.where((state == OPEN) & (inside <= groups * (CAPACITY // 4)), NARROW, state)
    low32 = tl.minimum(floor_to_float32(low), 1.0)
    high32 = tl.minimum(tl.maximum(high.to(tl.float32) * (1.0 + 1.2e-7), low32), right.to(tl.float32))
    tl.store(roots_ptr + nodes, low32, mask=mask)
    tl.store(state_ptr + nodes, state, mask=mask)
    tl.store(right_ptr + nodes, right, mask=mask)
    tl.store(right_ptr + T + nodes, total_right, mask=mask)
    tl.store(right_ptr + 2 * T + nodes, active_weight_right, mask=mask)
    for j in tl.static_range(4):
        tl.store(points_ptr + j * T + nodes, low32 + (high32 - low32) * (j / 3), mask=mask)


@triton.jit
def collect(collected_ptr, count, wanted, u, weight, inside, WEIGHTED: tl.constexpr, CAPACITY: tl.constexpr):
    """Appends u of the lanes inside, and their weights, to the `count` collected so far; returns the new number."""
    if wanted != 0:
        keep = inside.to(tl.int32)
        place = count + tl.cumsum(keep) - 1
        tl.store(collected_ptr + place, u, mask=inside & (place < CAPACITY))
        if WEIGHTED:
            tl.store(collected_ptr + CAPACITY + place, weight, mask=inside & (place < CAPACITY))
        count += tl.sum(keep)
    return count


@triton.jit
def collect_subtree(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, roots_ptr, right_ptr, state_ptr, collected_ptr, collected_count_ptr,
    n, blocks, index, root, group,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, TOGETHER: tl.constexpr, IS_TOP: tl.constexpr, HEIGHT: tl.constexpr,
    ROWS: tl.constexpr, LANES: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    """Collects the values inside the bracket of each unsolved node of one subtree, from a group of blocks."""
    NODES: tl.constexpr = (1 << HEIGHT) - 1
    KINDS: tl.constexpr = 2 if WEIGHTED else 1
    lows, rights, wanted, counts, any_wanted = (), (), (), (), 0
    for node in tl.static_range(NODES):
        is_wanted = (tl.load(state_ptr + node_of(root, node)) != SOLVED).to(tl.int32)
        lows = lows + (tl.load(roots_ptr + node_of(root, node)),)
        rights = rights + (tl.load(right_ptr + node_of(root, node)).to(tl.float32),)
        wanted, counts, any_wanted = wanted + (is_wanted,), counts + (is_wanted * 0,), any_wanted + is_wanted
    if any_wanted > 0:
        block, place, begin, count = group_lanes(count_ptr, n, blocks, index, group, TOGETHER, IS_TOP, ROWS, LANES)
        for start in range(0, tl.max(count), LANES // TOGETHER):
            row, u, valid = arrivals(
                weight_ptr, row_ptr, u_ptr, begin, start + place, count, block * ROWS, WEIGHTED, IS_TOP
            )
            us, scores = subtree(u, s_ptr, row, valid, root, SPLITS, HEIGHT)
            weight = load_weight(weight_ptr, row, valid, WEIGHTED)
            counted = ()
            for node in tl.static_range(NODES):
                at = collected_ptr + (node_of(root, node) * blocks + group).to(tl.int64) * (CAPACITY * KINDS)
                inside = (us[node] > lows[node]) & (us[node] <= rights[node])
                counted = counted + (
                    collect(at, counts[node], wanted[node], us[node], weight, inside, WEIGHTED, CAPACITY),
                )
            counts = counted
        for node in tl.static_range(NODES):
            tl.store(collected_count_ptr + node_of(root, node) * blocks + group, counts[node])


@kernel()
def collect_kernel(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, roots_ptr, right_ptr, state_ptr, collected_ptr, collected_count_ptr,
    n, blocks,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, LAYERS: tl.constexpr,
    ROWS: tl.constexpr, TOP: tl.constexpr, LANES: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    """Collects the values inside the brackets; its programs are those of sums_kernel.

    collected_ptr, (nodes, blocks, kinds, CAPACITY): the values u and, if there are weights, their weights.
    collected_count_ptr, (nodes, blocks): how many values there are, of which at most CAPACITY are stored.
    """
    program = tl.program_id(0)
    if program < blocks:
        collect_subtree(
            s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, roots_ptr, right_ptr, state_ptr, collected_ptr,
            collected_count_ptr, n, blocks, 0, 0, program, SPLITS, WEIGHTED, 1, True, TOP, ROWS, LANES, CAPACITY,
        )  # fmt: skip
    program -= blocks
    for layer in tl.static_range(1, LAYERS):
        groups = tl.cdiv(blocks, blocks_together(layer))
        place = program // groups
        if (program >= 0) & (place < (1 << levels_above(layer, TOP))):
            collect_subtree(
                s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, roots_ptr, right_ptr, state_ptr, collected_ptr,
                collected_count_ptr, n, blocks, first_index(layer, TOP) + place,
                (1 << levels_above(layer, TOP)) - 1 + place, program % groups,
                SPLITS, WEIGHTED, blocks_together(layer), False, 3, ROWS, LANES, CAPACITY,
            )  # fmt: skip
        program -= groups << levels_above(layer, TOP)


@triton.jit
def add_collected(
    collected_ptr, count_ptr, a, node, blocks, groups, max_count, total, active_weight,
    WEIGHTED: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    """Adds the sum of w u over a node's collected values above a, and the sum of their weights."""
    for first in range(0, groups, 32):
        group = first + tl.arange(0, 32)[:, None]
        count = tl.load(count_ptr + node * blocks + group, mask=group < groups, other=0)
        for start in range(0, max_count, 32):
            place = start + tl.arange(0, 32)[None, :]
            at = (node * blocks + group).to(tl.int64) * CAPACITY * (2 if WEIGHTED else 1) + place
            u = tl.load(collected_ptr + at, mask=place < count, other=-1.0)
            weight = tl.full([32, 32], 1.0, tl.float32)
            if WEIGHTED:
                weight = tl.load(collected_ptr + CAPACITY + at, mask=place < count, other=0.0)
            weight = tl.where(u > a, weight, 0.0)
            total += tl.sum(weight * u).to(tl.float64)
            active_weight += tl.sum(weight).to(tl.float64)
    return total, active_weight


@kernel()
def finish_kernel(
    lam_ptr, right_ptr, collected_ptr, collected_count_ptr, roots_ptr, state_ptr, blocks,
    T: tl.constexpr, WEIGHTED: tl.constexpr, LAYERS: tl.constexpr, TOP: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    """Runs Newton's method for node program_id on its collected values; the node stays open if not all were stored."""
    node = tl.program_id(0)
    if tl.load(state_ptr + node) == SOLVED:
        return
    groups = tl.max(groups_of(node + tl.arange(0, 1), blocks, LAYERS, TOP))
    group = tl.arange(0, 256)
    max_count = tl.max(tl.load(collected_count_ptr + node * blocks + group, mask=group < groups, other=0))
    complete = max_count <= CAPACITY
    lam = tl.load(lam_ptr).to(tl.float64)
    total_right, active_weight_right = tl.load(right_ptr + T + node), tl.load(right_ptr + 2 * T + node)
    a = tl.load(roots_ptr + node)
    moving = complete
    while moving:
        total, active_weight = add_collected(
            collected_ptr, collected_count_ptr, a, node, blocks, groups, max_count, total_right, active_weight_right,
            WEIGHTED, CAPACITY,
        )  # fmt: skip
        step = tl.minimum(floor_to_float32(total / (lam + active_weight)), 1.0)
        moving = step > a
        # If the step is below a, rounding put a on or above the smallest active u: stay just below that u.
        a = tl.where(step > a, step, tl.where((step < a) & (a < 1.0), a * (1.0 - 4.8e-7), a))
    tl.store(roots_ptr + node, a)
    tl.store(state_ptr + node, complete.to(tl.int32))
