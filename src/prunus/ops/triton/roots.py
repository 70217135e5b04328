"""Roots of the nodes' phi from split scores.

Few samples: one program a node runs Newton to the end on the node's own values. Many samples: passes over all samples
evaluate every node's phi at four points at once. phi is increasing and concave, so the roots of its tangents bound its
root from the left and those of its chords from the right: each pass shrinks that bracket by an order of magnitude or more.
"""

import triton
import triton.language as tl

from prunus.ops.triton.tiles import inorder_nodes, step_down, top

__all__ = ["cap_kernel", "check_kernel", "newton_kernel", "refine_kernel", "sums_kernel"]


@triton.jit
def node_u(s_ptr, weight_ptr, rows, n, node, DEPTH: tl.constexpr, SPLITS: tl.constexpr, WEIGHTED: tl.constexpr):
    """u of one node, and the weights, for some rows: down the node's path."""
    start, weight = top(rows, n, weight_ptr, WEIGHTED)
    u = tl.reshape(start, rows.shape)
    for step in tl.static_range(DEPTH):
        ancestor = ((node + 1) >> (DEPTH - step)) - 1
        child = ((node + 1) >> (DEPTH - step - 1)) - 1
        inside = ancestor >= 0  # else this step lies above the root
        s = tl.load(s_ptr + rows * SPLITS + ancestor, mask=(rows < n) & inside, other=0.0)
        toward = tl.where(child == 2 * ancestor + 1, 0.5 - s, 0.5 + s)
        below = tl.minimum(u, toward, propagate_nan=tl.PropagateNan.ALL)
        u = tl.where(inside & ~(u <= 0.0), below, u)
    return u, weight


@triton.jit
def add_above(total, held, u, weight, a):
    """Adds the weighted sum of the u above a, and their weight."""
    active = tl.where(u > a, weight, 0.0)
    return total + tl.sum(tl.where(active > 0.0, active * u, 0.0)), held + tl.sum(active)


@triton.jit
def newton_kernel(
    s_ptr,
    weight_ptr,
    lam_ptr,
    unsettled_ptr,
    roots_ptr,
    n,
    DEPTH: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    ONE_BLOCK: tl.constexpr,
    WEIGHTED: tl.constexpr,
    RESUME: tl.constexpr,
):
    """Newton to the end for node program_id; with RESUME only for unsettled nodes, from the roots found so far."""
    node = tl.program_id(0)
    a = 0.0
    if RESUME:
        if tl.load(unsettled_ptr + node) == 0:
            return
        a = tl.load(roots_ptr + node)
    lam = tl.load(lam_ptr)
    offsets = tl.arange(0, BLOCK).to(tl.int64)
    if ONE_BLOCK:
        u, weight = node_u(s_ptr, weight_ptr, offsets, n, node, DEPTH, SPLITS, WEIGHTED)
    moving = lam > 0.0
    while moving:
        total = 0.0
        held = 0.0
        if ONE_BLOCK:
            total, held = add_above(total, held, u, weight, a)
        else:
            for start in range(0, n, BLOCK):
                u, weight = node_u(s_ptr, weight_ptr, start + offsets, n, node, DEPTH, SPLITS, WEIGHTED)
                total, held = add_above(total, held, u, weight, a)
        step = tl.minimum(total / (lam + held), 1.0)
        moving = step > a
        # A step back means that rounding carried a onto or past the smallest active u: stay just below it.
        a = tl.where(step > a, step, tl.where((step < a) & (a < 1.0), a * (1.0 - 4.8e-7), a))
    tl.store(roots_ptr + node, a)


@triton.jit
def point(points_ptr, columns, J: tl.constexpr, FIRST: tl.constexpr, N: tl.constexpr):
    """The j-th place where phi is evaluated, for each in-order column; the same for all nodes in the first pass."""
    x = tl.full([N], 0.25 * (J + 1), tl.float32)
    if not FIRST:
        x = tl.load(points_ptr + J * N + columns)
    return x


@triton.jit
def sums_kernel(
    s_ptr,
    weight_ptr,
    points_ptr,
    pending_ptr,
    partial_ptr,
    n,
    DEPTH: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    WEIGHTED: tl.constexpr,
    FIRST: tl.constexpr,
    GUARDED: tl.constexpr,
):
    """Sums of w u and of w above four points for every node, over this program's share of the samples.

    partial_ptr: (programs, 8, N), in-order.
    """
    if GUARDED:
        if tl.load(pending_ptr) == 0:
            return
    N: tl.constexpr = 2 << DEPTH
    columns = tl.arange(0, N)
    x0 = point(points_ptr, columns, 0, FIRST, N)
    x1 = point(points_ptr, columns, 1, FIRST, N)
    x2 = point(points_ptr, columns, 2, FIRST, N)
    x3 = point(points_ptr, columns, 3, FIRST, N)
    total0 = tl.zeros([BLOCK, N], tl.float32)
    total1, total2, total3, held0, held1, held2, held3 = total0, total0, total0, total0, total0, total0, total0
    first = tl.program_id(0) * BLOCK
    stride = tl.num_programs(0) * BLOCK
    for start in range(first, n, stride):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        u, weight = top(rows, n, weight_ptr, WEIGHTED)
        tile = tl.interleave(tl.full([BLOCK, 1], -1.0, tl.float32), u)
        for level in tl.static_range(DEPTH):
            u = step_down(u, s_ptr, rows, n, level, SPLITS)
            tile = tl.interleave(tile, u)
        w = weight[:, None]
        wu = tl.where(w > 0.0, w * tile, 0.0) if WEIGHTED else tile
        held0 += tl.where(tile > x0[None, :], w, 0.0)
        held1 += tl.where(tile > x1[None, :], w, 0.0)
        held2 += tl.where(tile > x2[None, :], w, 0.0)
        held3 += tl.where(tile > x3[None, :], w, 0.0)
        total0 += tl.where(tile > x0[None, :], wu, 0.0)
        total1 += tl.where(tile > x1[None, :], wu, 0.0)
        total2 += tl.where(tile > x2[None, :], wu, 0.0)
        total3 += tl.where(tile > x3[None, :], wu, 0.0)
    out = partial_ptr + tl.program_id(0).to(tl.int64) * 8 * N + columns
    tl.store(out, tl.sum(total0, 0))
    tl.store(out + N, tl.sum(total1, 0))
    tl.store(out + 2 * N, tl.sum(total2, 0))
    tl.store(out + 3 * N, tl.sum(total3, 0))
    tl.store(out + 4 * N, tl.sum(held0, 0))
    tl.store(out + 5 * N, tl.sum(held1, 0))
    tl.store(out + 6 * N, tl.sum(held2, 0))
    tl.store(out + 7 * N, tl.sum(held3, 0))


@triton.jit
def sum_programs(partial_ptr, columns, programs, WHICH: tl.constexpr, OF: tl.constexpr, N: tl.constexpr):
    """One of the OF sums of each program, added over the programs in double precision."""
    CHUNK: tl.constexpr = 128
    result = tl.zeros([CHUNK, columns.shape[0]], tl.float64)
    for start in range(0, programs, CHUNK):
        program = (start + tl.arange(0, CHUNK)).to(tl.int64)
        at = partial_ptr + (program[:, None] * OF + WHICH) * N + columns[None, :]
        result += tl.load(at, mask=(program[:, None] < programs) & (columns[None, :] < N), other=0.0).to(tl.float64)
    return tl.sum(result, 0)


@triton.jit
def floor_to_float32(x):
    """The largest float32 not above x, so that u > x and u > floor say the same."""
    near = x.to(tl.float32)
    return tl.where(near.to(tl.float64) > x, near * (1.0 - 1.2e-7), near)


@triton.jit
def narrow(total, held, x, lam, low, left, phi_left, right, phi_right):
    """Takes one evaluation into the bracket: the best tangent root, and the nearest points on both sides of the root."""
    phi = (lam + held) * x - total
    low = tl.maximum(low, total / (lam + held))
    on_left = (phi < 0.0) & (x >= left)
    on_right = (phi >= 0.0) & (x <= right)
    left = tl.where(on_left, x, left)
    phi_left = tl.where(on_left, phi, phi_left)
    right = tl.where(on_right, x, right)
    phi_right = tl.where(on_right, phi, phi_right)
    return low, left, phi_left, right, phi_right


@triton.jit
def refine_kernel(
    partial_ptr,
    lam_ptr,
    points_ptr,
    pending_ptr,
    high_ptr,
    roots_ptr,
    programs,
    DEPTH: tl.constexpr,
    BLOCK: tl.constexpr,
    FIRST: tl.constexpr,
    GUARDED: tl.constexpr,
):
    """From the sums of a pass: better roots, and the points of the next pass, the first of which is the root itself."""
    if GUARDED:
        if tl.load(pending_ptr) == 0:
            return
    N: tl.constexpr = 2 << DEPTH
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < N
    lam = tl.load(lam_ptr).to(tl.float64)
    zero = tl.zeros([BLOCK], tl.float64)
    low, left = zero, zero
    right = zero + 1.0
    if not FIRST:
        low = tl.load(points_ptr + columns, mask=mask, other=0.0).to(tl.float64)
        right = tl.load(high_ptr + columns, mask=mask, other=1.0).to(tl.float64)
    phi_left = zero + float("nan")
    phi_right = zero + float("nan")
    for j in tl.static_range(4):
        x = zero + 0.25 * (j + 1)
        if not FIRST:
            x = tl.load(points_ptr + j * N + columns, mask=mask, other=0.0).to(tl.float64)
        total = sum_programs(partial_ptr, columns, programs, j, 8, N)
        held = sum_programs(partial_ptr, columns, programs, 4 + j, 8, N)
        low, left, phi_left, right, phi_right = narrow(total, held, x, lam, low, left, phi_left, right, phi_right)
    chord = left - phi_left * (right - left) / (phi_right - phi_left)
    right = tl.where(chord < right, chord, right)  # not where the chord is NaN
    low = tl.minimum(floor_to_float32(low), 1.0)
    high = tl.maximum(right.to(tl.float32) * (1.0 + 1.2e-7), low)
    tl.store(high_ptr + columns, high, mask=mask)
    for j in tl.static_range(4):
        tl.store(points_ptr + j * N + columns, low + (high - low) * (0.25 * j), mask=mask)
    tl.store(roots_ptr + inorder_nodes(columns, DEPTH), low, mask=mask & (columns > 0))


@triton.jit
def cap_kernel(
    roots_ptr, lam_ptr, pending_ptr, a_ptr, DEPTH: tl.constexpr, BLOCK: tl.constexpr, GUARDED: tl.constexpr
):
    """Node masses from roots: the smallest on the path, which by the lemma differs from the own root by rounding only."""
    if GUARDED:
        if tl.load(pending_ptr) == 0:
            return
    NODES: tl.constexpr = (2 << DEPTH) - 1
    node = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lam = tl.load(lam_ptr)
    a = tl.full([BLOCK], 1.0, tl.float32)
    for step in tl.static_range(DEPTH + 1):
        ancestor = ((node + 1) >> step) - 1
        a = tl.minimum(a, tl.load(roots_ptr + ancestor, mask=(node < NODES) & (ancestor >= 0), other=1.0))
    a = tl.where(lam > 0.0, a, tl.where(lam == 0.0, 1.0, float("nan")))
    tl.store(a_ptr + node, a, mask=node < NODES)


@triton.jit
def check_kernel(
    partial_ptr,
    lam_ptr,
    a_ptr,
    unsettled_ptr,
    pending_ptr,
    programs,
    DEPTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Whether one more Newton step, from sums at the masses themselves, still moves a node; marks those nodes."""
    N: tl.constexpr = 2 << DEPTH
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (columns < N) & (columns > 0)
    node = inorder_nodes(columns, DEPTH)
    lam = tl.load(lam_ptr).to(tl.float64)
    total = sum_programs(partial_ptr, columns, programs, 0, 2, N)
    held = sum_programs(partial_ptr, columns, programs, 1, 2, N)
    a = tl.load(a_ptr + node, mask=mask, other=1.0)
    step = tl.minimum(floor_to_float32(total / (lam + held)), 1.0)
    moves = mask & (step > a * (1.0 + 1e-6)) & (a < 1.0)
    tl.store(unsettled_ptr + node, moves.to(tl.int32), mask=mask)
    if tl.max(moves.to(tl.int32), 0) > 0:
        tl.store(pending_ptr, 1)
