"""Gradients of the split scores: how the loss pulls at each node's mass, then what reaches each split."""

import triton
import triton.language as tl

from prunus.ops.triton.roots import node_u, sum_programs
from prunus.ops.triton.tiles import inorder_nodes, level_columns, step_down, top

__all__ = ["gradients_kernel", "node_slope_kernel", "pull_kernel", "slope_kernel"]


@triton.jit
def slope_of(pull, held, a, lam):
    """d loss / d (sum of w u over the active samples); zero where the mass is not free to move."""
    return tl.where((a > 0.0) & (a < 1.0), pull / (lam + held), 0.0)


@triton.jit
def node_slope_kernel(
    s_ptr,
    weight_ptr,
    lam_ptr,
    a_ptr,
    grad_z_ptr,
    grad_a_ptr,
    slope_ptr,
    n,
    DEPTH: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """The slope of node program_id, from all samples: for few of them."""
    NODES: tl.constexpr = 2 * SPLITS + 1
    node = tl.program_id(0)
    a = tl.load(a_ptr + node)
    lam = tl.load(lam_ptr)
    pull = tl.load(grad_a_ptr + node)
    held = 0.0
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        u, weight = node_u(s_ptr, weight_ptr, rows, n, node, DEPTH, SPLITS, WEIGHTED)
        bounded = (u >= a) & (rows < n)
        pull += tl.sum(tl.load(grad_z_ptr + rows * NODES + node, mask=bounded, other=0.0))
        held += tl.sum(tl.where(u > a, weight, 0.0))
    tl.store(slope_ptr + node, slope_of(pull, held, a, lam))


@triton.jit
def load_where(grad_z_ptr, rows, needed, LEVEL: tl.constexpr, NODES: tl.constexpr):
    """grad_z of one level where it is needed, else 0: most of it is not, and is not read."""
    at = grad_z_ptr + rows[:, None] * NODES + level_columns(LEVEL)[None, :]
    return tl.load(at, mask=needed, other=0.0)


@triton.jit
def bounded(a_ptr, u, rows, n, LEVEL: tl.constexpr):
    """Where a free mass bounds z."""
    a = tl.load(a_ptr + level_columns(LEVEL))[None, :]
    return (u >= a) & (a > 0.0) & (a < 1.0) & (rows[:, None] < n)


@triton.jit
def pull_kernel(
    s_ptr,
    weight_ptr,
    a_ptr,
    grad_z_ptr,
    partial_ptr,
    n,
    DEPTH: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Sums of grad_z where the mass bounds z, and of the active weight, (programs, 2, N), in-order."""
    N: tl.constexpr = 2 << DEPTH
    columns = tl.arange(0, N)
    a = tl.load(a_ptr + inorder_nodes(columns, DEPTH))[None, :]
    pull = tl.zeros([BLOCK, N], tl.float32)
    held = pull
    first = tl.program_id(0) * BLOCK
    stride = tl.num_programs(0) * BLOCK
    for start in range(first, n, stride):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        u, weight = top(rows, n, weight_ptr, WEIGHTED)
        pad = tl.full([BLOCK, 1], -1.0, tl.float32)
        tile = tl.interleave(pad, u)
        grad = tl.interleave(pad * 0.0, load_where(grad_z_ptr, rows, bounded(a_ptr, u, rows, n, 0), 0, N - 1))
        for level in tl.static_range(DEPTH):
            u = step_down(u, s_ptr, rows, n, level, SPLITS)
            tile = tl.interleave(tile, u)
            needed = bounded(a_ptr, u, rows, n, level + 1)
            grad = tl.interleave(grad, load_where(grad_z_ptr, rows, needed, level + 1, N - 1))
        pull += grad
        held += tl.where(tile > a, weight[:, None], 0.0)
    out = partial_ptr + tl.program_id(0).to(tl.int64) * 2 * N + columns
    tl.store(out, tl.sum(pull, 0))
    tl.store(out + N, tl.sum(held, 0))


@triton.jit
def slope_kernel(
    partial_ptr, lam_ptr, a_ptr, grad_a_ptr, slope_ptr, programs, DEPTH: tl.constexpr, BLOCK: tl.constexpr
):
    """The slopes from the sums of pull_kernel."""
    N: tl.constexpr = 2 << DEPTH
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (columns < N) & (columns > 0)
    node = inorder_nodes(columns, DEPTH)
    pull = sum_programs(partial_ptr, columns, programs, 0, 2, N)
    held = sum_programs(partial_ptr, columns, programs, 1, 2, N)
    pull += tl.load(grad_a_ptr + node, mask=mask, other=0.0).to(tl.float64)
    a = tl.load(a_ptr + node, mask=mask, other=0.0)
    tl.store(slope_ptr + node, slope_of(pull, held, a, tl.load(lam_ptr).to(tl.float64)).to(tl.float32), mask=mask)


@triton.jit
def level_gradient(a_ptr, slope_ptr, grad_z_ptr, u, w, rows, n, LEVEL: tl.constexpr, NODES: tl.constexpr):
    """d loss / d u of one level, and what each pair adds to the gradient of its sample's weight."""
    columns = level_columns(LEVEL)
    a = tl.load(a_ptr + columns)[None, :]
    slope = tl.load(slope_ptr + columns)[None, :]
    from_z = load_where(grad_z_ptr, rows, (u > 0.0) & (u < a) & (rows[:, None] < n), LEVEL, NODES)
    active = u > a
    return from_z + tl.where(active, w * slope, 0.0), tl.where(active, (u - a) * slope, 0.0)


@triton.jit
def last_level(tile, LEVEL: tl.constexpr):
    """Takes the last level off an in-order tile: (BLOCK, 2**(LEVEL + 1)) -> the rest and the level, both half as wide."""
    return tl.split(tl.reshape(tile, [tile.shape[0], 1 << LEVEL, 2]))


@triton.jit
def step_up(tile, grads, below, s_ptr, grad_s_ptr, rows, n, LEVEL: tl.constexpr, SPLITS: tl.constexpr):
    """Writes the gradient of a level's scores and passes on to its nodes what their children got from them."""
    tile, u = last_level(tile, LEVEL)
    grads, own = last_level(grads, LEVEL)
    at = rows[:, None] * SPLITS + level_columns(LEVEL)[None, :]
    s = tl.load(s_ptr + at, mask=rows[:, None] < n, other=0.0)
    to_left, to_right = tl.split(tl.reshape(below, [below.shape[0], 1 << LEVEL, 2]))
    # The score, rather than the parent's u, is the child's u where it is smaller. A tie keeps the parent's.
    left, right = 0.5 - s < u, 0.5 + s < u
    to_s = tl.where(right, to_right, 0.0) - tl.where(left, to_left, 0.0)
    tl.store(grad_s_ptr + at, to_s, mask=rows[:, None] < n)
    return tile, grads, own + tl.where(right, 0.0, to_right) + tl.where(left, 0.0, to_left)


@triton.jit
def gradients_kernel(
    s_ptr,
    weight_ptr,
    a_ptr,
    slope_ptr,
    grad_z_ptr,
    grad_s_ptr,
    grad_weight_ptr,
    n,
    DEPTH: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Gradients of the scores, and with WEIGHTED of the weights: down the tree for u, up again for who gave it."""
    N: tl.constexpr = 2 << DEPTH
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    u, weight = top(rows, n, weight_ptr, WEIGHTED)
    w = weight[:, None]
    pad = tl.full([BLOCK, 1], 0.0, tl.float32)
    grad, to_weight = level_gradient(a_ptr, slope_ptr, grad_z_ptr, u, w, rows, n, 0, N - 1)
    grad_weight = tl.sum(to_weight, 1)
    tile = tl.interleave(pad, u)
    grads = tl.interleave(pad, grad)
    for level in tl.static_range(DEPTH):
        u = step_down(u, s_ptr, rows, n, level, SPLITS)
        grad, to_weight = level_gradient(a_ptr, slope_ptr, grad_z_ptr, u, w, rows, n, level + 1, N - 1)
        grad_weight += tl.sum(to_weight, 1)
        tile = tl.interleave(tile, u)
        grads = tl.interleave(grads, grad)
    if WEIGHTED:
        tl.store(grad_weight_ptr + rows, grad_weight, mask=rows < n)
    if DEPTH > 0:
        tile, u = last_level(tile, DEPTH)
        grads, below = last_level(grads, DEPTH)
        for step in tl.static_range(DEPTH):
            tile, grads, below = step_up(tile, grads, below, s_ptr, grad_s_ptr, rows, n, DEPTH - 1 - step, SPLITS)
