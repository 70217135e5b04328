"""Roots of the nodes' phi from split scores.

Few samples: one program a node runs Newton to the end on the node's own values. Many samples: passes over the lists of
`layers` evaluate every node's phi at four points at once. phi is increasing and concave, so the roots of its tangents
bound its root from the left and those of its chords from the right: each pass shrinks that bracket by an order of
magnitude or more. A node is settled when its bracket is no wider than rounding, or when a Newton step from its root no
longer moves it.
"""

import triton
import triton.language as tl

from prunus.ops.triton.layers import arrivals, blocks_together, first_index, levels_above, load_weight, subtree
from prunus.ops.triton.tiles import top

__all__ = ["cap_kernel", "newton_kernel", "refine_kernel", "sums_kernel"]


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
    settled_ptr,
    roots_ptr,
    n,
    DEPTH: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    ONE_BLOCK: tl.constexpr,
    WEIGHTED: tl.constexpr,
    RESUME: tl.constexpr,
):
    """Newton to the end for node program_id; with RESUME only for nodes not settled, from the roots found so far."""
    node = tl.program_id(0)
    a = 0.0
    if RESUME:
        if tl.load(settled_ptr + node) != 0:
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
def add_sums(sums, us, weight, points, NODES: tl.constexpr, WEIGHTED: tl.constexpr):
    """Adds w u and w of the lanes above each of four points, for each node of a subtree: eight sums a node."""
    added = ()
    for node in tl.static_range(NODES):
        u = us[node]
        wu = tl.where(weight > 0.0, weight * u, 0.0) if WEIGHTED else u
        for j in tl.static_range(4):
            above = u > points[4 * node + j]
            added = added + (sums[8 * node + 2 * j] + tl.where(above, wu, 0.0),)
            added = added + (sums[8 * node + 2 * j + 1] + tl.where(above, weight, 0.0),)
    return added


@triton.jit
def node_of(root, NODE: tl.constexpr):
    """Heap index in the tree of the NODE-th node of the subtree at root."""
    if NODE == 0:
        node = root
    elif NODE < 3:
        node = 2 * root + NODE
    else:
        node = 4 * root + NODE
    return node


@triton.jit
def sum_subtree(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, points_ptr, settled_ptr, partial_ptr, n, blocks, index, root, group,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, FIRST_PASS: tl.constexpr, TOGETHER: tl.constexpr,
    IS_TOP: tl.constexpr, HEIGHT: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The sums of one subtree over a group of blocks; nothing if all its nodes are settled."""
    NODES: tl.constexpr = (1 << HEIGHT) - 1
    T: tl.constexpr = 2 * SPLITS + 1
    open_nodes = 1
    if not FIRST_PASS:
        open_nodes = 0
        for node in tl.static_range(NODES):
            open_nodes += (tl.load(settled_ptr + node_of(root, node)) == 0).to(tl.int32)
    if open_nodes > 0:
        points = ()
        sums = ()
        for node in tl.static_range(NODES):
            for j in tl.static_range(4):
                if FIRST_PASS:
                    points = points + (0.25 * (j + 1),)
                else:
                    points = points + (tl.load(points_ptr + j * T + node_of(root, node)),)
                sums = sums + (tl.zeros([CHUNK], tl.float32), tl.zeros([CHUNK], tl.float32))
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
                us, scores = subtree(u, s_ptr, row, valid, root, SPLITS, HEIGHT)
                sums = add_sums(sums, us, load_weight(weight_ptr, row, valid, WEIGHTED), points, NODES, WEIGHTED)
        for node in tl.static_range(NODES):
            for k in tl.static_range(8):
                at = partial_ptr + (group * 8 + k).to(tl.int64) * T + node_of(root, node)
                tl.store(at, tl.sum(sums[8 * node + k], 0))


@triton.jit
def sums_kernel(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, points_ptr, settled_ptr, partial_ptr, n, blocks,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, FIRST_PASS: tl.constexpr, LAYERS: tl.constexpr,
    ROWS: tl.constexpr, TOP: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Sums of w u and of w above four points, over the lists of one subtree for a group of blocks.

    partial_ptr: (blocks, 8, nodes), of which a node uses a row a group; the eight are total and weight for each point.
    """
    program = tl.program_id(0)
    if program < blocks:
        sum_subtree(
            s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, points_ptr, settled_ptr, partial_ptr, n, blocks, 0, 0,
            program, SPLITS, WEIGHTED, FIRST_PASS, 1, True, TOP, ROWS, CHUNK,
        )  # fmt: skip
    program -= blocks
    for layer in tl.static_range(1, LAYERS):
        groups = tl.cdiv(blocks, blocks_together(layer))
        place = program // groups
        if (program >= 0) & (place < (1 << levels_above(layer, TOP))):
            sum_subtree(
                s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, points_ptr, settled_ptr, partial_ptr, n, blocks,
                first_index(layer, TOP) + place, (1 << levels_above(layer, TOP)) - 1 + place, program % groups,
                SPLITS, WEIGHTED, FIRST_PASS, blocks_together(layer), False, 3, ROWS, CHUNK,
            )  # fmt: skip
        program -= groups << levels_above(layer, TOP)


@triton.jit
def groups_of(nodes, blocks, LAYERS: tl.constexpr, TOP: tl.constexpr):
    """How many groups of blocks have summed for each node."""
    groups = tl.zeros_like(nodes) + blocks
    for layer in tl.static_range(1, LAYERS):
        here = nodes + 1 >= (1 << levels_above(layer, TOP))
        groups = tl.where(here, tl.cdiv(blocks, blocks_together(layer)), groups)
    return groups


@triton.jit
def add_groups(partial_ptr, nodes, groups, OF: tl.constexpr, T: tl.constexpr):
    """The OF sums of all groups, added in double precision: (OF, nodes). One load for all: latency is what costs."""
    MOST: tl.constexpr = 256
    group = tl.arange(0, MOST).to(tl.int64)[:, None, None]
    which = tl.arange(0, OF)[None, :, None]
    at = partial_ptr + (group * OF + which) * T + nodes[None, None, :]
    mask = (group < groups[None, None, :]) & (nodes[None, None, :] < T)
    return tl.sum(tl.load(at, mask=mask, other=0.0).to(tl.float64), 0)


@triton.jit
def one_of(sums, WHICH: tl.constexpr):
    """One row of a matrix of sums."""
    return tl.sum(tl.where(tl.arange(0, sums.shape[0])[:, None] == WHICH, sums, 0.0), 0)


@triton.jit
def floor_to_float32(x):
    """The largest float32 not above x, so that u > x and u > floor say the same."""
    near = x.to(tl.float32)
    return tl.where(near.to(tl.float64) > x, near * (1.0 - 1.2e-7), near)


@triton.jit
def narrow(total, held, x, lam, low, left, phi_left, right, phi_right):
    """Takes one evaluation into the bracket: the best tangent root and the nearest points on both sides of the root."""
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
    partial_ptr, lam_ptr, points_ptr, high_ptr, roots_ptr, settled_ptr, blocks,
    T: tl.constexpr, BLOCK: tl.constexpr, FIRST_PASS: tl.constexpr, LAYERS: tl.constexpr, TOP: tl.constexpr,
):  # fmt: skip
    """From the sums of a pass: better roots, and the points of the next pass, the first of which is the root itself."""
    nodes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = nodes < T
    sums = add_groups(partial_ptr, nodes, groups_of(nodes, blocks, LAYERS, TOP), 8, T)
    lam = tl.load(lam_ptr).to(tl.float64)
    low = tl.zeros([BLOCK], tl.float64)
    left = low
    right = low + 1.0
    if not FIRST_PASS:
        mask = mask & (tl.load(settled_ptr + nodes, mask=mask, other=1) == 0)
        low = tl.load(points_ptr + nodes, mask=mask, other=0.0).to(tl.float64)
        right = tl.load(high_ptr + nodes, mask=mask, other=1.0).to(tl.float64)
    phi_left = low + float("nan")
    phi_right = phi_left
    before = low
    step = low
    for j in tl.static_range(4):
        x = tl.zeros([BLOCK], tl.float64) + 0.25 * (j + 1)
        if not FIRST_PASS:
            x = tl.load(points_ptr + j * T + nodes, mask=mask, other=0.0).to(tl.float64)
        total = one_of(sums, 2 * j)
        held = one_of(sums, 2 * j + 1)
        if j == 0:
            step = total / (lam + held)
        low, left, phi_left, right, phi_right = narrow(total, held, x, lam, low, left, phi_left, right, phi_right)
    chord = left - phi_left * (right - left) / (phi_right - phi_left)
    right = tl.where(chord < right, chord, right)  # not where the chord is NaN
    settled = (low >= 1.0) | (right <= low * (1.0 + 1e-6))
    if not FIRST_PASS:
        settled = settled | (step <= before * (1.0 + 1e-6))
    low32 = tl.minimum(floor_to_float32(low), 1.0)
    high32 = tl.maximum(right.to(tl.float32) * (1.0 + 1.2e-7), low32)
    tl.store(roots_ptr + nodes, low32, mask=mask)
    tl.store(high_ptr + nodes, high32, mask=mask)
    tl.store(settled_ptr + nodes, settled.to(tl.int32), mask=mask)
    for j in tl.static_range(4):
        tl.store(points_ptr + j * T + nodes, low32 + (high32 - low32) * (0.25 * j), mask=mask)


@triton.jit
def cap_kernel(roots_ptr, lam_ptr, a_ptr, T: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    """Node masses from roots: the smallest on the path, by the lemma the own root but for rounding."""
    node = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lam = tl.load(lam_ptr)
    a = tl.full([BLOCK], 1.0, tl.float32)
    for step in tl.static_range(DEPTH + 1):
        ancestor = ((node + 1) >> step) - 1
        a = tl.minimum(a, tl.load(roots_ptr + ancestor, mask=(node < T) & (ancestor >= 0), other=1.0))
    a = tl.where(lam > 0.0, a, tl.where(lam == 0.0, 1.0, float("nan")))
    tl.store(a_ptr + node, a, mask=node < T)
