"""Routes z from split scores and node masses."""

import triton
import triton.language as tl

from prunus.ops.triton.tiles import inorder_nodes, level_columns, step_down, top

__all__ = ["routes_kernel"]


@triton.jit
def store_level(z_ptr, a_ptr, u, rows, n, LEVEL: tl.constexpr, NODES: tl.constexpr):
    """Writes z of one level."""
    columns = level_columns(LEVEL)[None, :]
    positive = tl.maximum(u, 0.0, propagate_nan=tl.PropagateNan.ALL)
    z = tl.minimum(positive, tl.load(a_ptr + columns), propagate_nan=tl.PropagateNan.ALL)
    tl.store(z_ptr + rows[:, None] * NODES + columns, z, mask=rows[:, None] < n)


@triton.jit
def routes_kernel(
    s_ptr,
    weight_ptr,
    a_ptr,
    pending_ptr,
    z_ptr,
    partial_ptr,
    n,
    DEPTH: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    WEIGHTED: tl.constexpr,
    CHECK: tl.constexpr,
    GUARDED: tl.constexpr,
):
    """z for this program's share of the samples; with CHECK also the sums of w u and of w above a, (programs, 2, N)."""
    if GUARDED:
        if tl.load(pending_ptr) == 0:
            return
    N: tl.constexpr = 2 << DEPTH
    columns = tl.arange(0, N)
    a = tl.load(a_ptr + inorder_nodes(columns, DEPTH))[None, :]
    total = tl.zeros([BLOCK, N], tl.float32)
    held = total
    first = tl.program_id(0) * BLOCK
    stride = tl.num_programs(0) * BLOCK
    for start in range(first, n, stride):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        u, weight = top(rows, n, weight_ptr, WEIGHTED)
        store_level(z_ptr, a_ptr, u, rows, n, 0, N - 1)
        tile = tl.interleave(tl.full([BLOCK, 1], -1.0, tl.float32), u)
        for level in tl.static_range(DEPTH):
            u = step_down(u, s_ptr, rows, n, level, SPLITS)
            store_level(z_ptr, a_ptr, u, rows, n, level + 1, N - 1)
            if CHECK:
                tile = tl.interleave(tile, u)
        if CHECK:
            w = weight[:, None]
            held += tl.where(tile > a, w, 0.0)
            total += tl.where((tile > a) & (w > 0.0), w * tile, 0.0)
    if CHECK:
        out = partial_ptr + tl.program_id(0).to(tl.int64) * 2 * N + columns
        tl.store(out, tl.sum(total, 0))
        tl.store(out + N, tl.sum(held, 0))
