"""Routes z from split scores and node masses."""

import triton
import triton.language as tl

from prunus.ops.triton.tiles import level_columns, step_down, top

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
    s_ptr, weight_ptr, a_ptr, z_ptr, n,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """z of BLOCK samples."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    u, _ = top(rows, n, weight_ptr, WEIGHTED)
    store_level(z_ptr, a_ptr, u, rows, n, 0, 2 * SPLITS + 1)
    for level in tl.static_range(DEPTH):
        u = step_down(u, s_ptr, rows, n, level, SPLITS)
        store_level(z_ptr, a_ptr, u, rows, n, level + 1, 2 * SPLITS + 1)
