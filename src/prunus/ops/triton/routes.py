"""Routes z from split scores and node masses."""

import triton
import triton.language as tl

from prunus.ops.triton.tiles import level_columns, load_levels, load_scores, step_down, top

__all__ = ["routes_kernel"]


@triton.jit
def routes_kernel(
    s_ptr, weight_ptr, a_ptr, z_ptr, n,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """z of BLOCK samples."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    scores = load_scores(s_ptr, rows, n, DEPTH, SPLITS)
    masses = load_levels(a_ptr, DEPTH)
    u, _ = top(rows, n, weight_ptr, WEIGHTED)
    for level in tl.static_range(DEPTH + 1):
        positive = tl.maximum(u, 0.0, propagate_nan=tl.PropagateNan.ALL)
        z = tl.minimum(positive, masses[level], propagate_nan=tl.PropagateNan.ALL)
        at = z_ptr + rows[:, None] * (2 * SPLITS + 1) + level_columns(level)[None, :]
        tl.store(at, z, mask=rows[:, None] < n)
        if level < DEPTH:
            u = step_down(u, scores[level])
