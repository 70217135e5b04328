"""Routes z from split scores and node masses."""

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.heap import depth_of_splits
from prunus.ops.triton.kernels import kernel
from prunus.ops.triton.tiles import level_columns, load_levels, load_scores, step_down, top

__all__ = ["routes", "write_routes"]


def routes(s: Tensor, a: Tensor) -> Tensor:
    """Routes z, (n, T), of split scores s, (n, S), through a tree with masses a, (T,)."""
    z = s.new_empty(s.shape[0], a.shape[0])
    write_routes(s.contiguous(), None, a.contiguous(), z)
    return z


def write_routes(s: Tensor, weight: Tensor | None, a: Tensor, z: Tensor) -> None:
    """Write the routes z of contiguous tensors; those of a sample with an invalid weight are NaN."""
    n, nodes = z.shape
    if n == 0:
        return
    shape = {"DEPTH": depth_of_splits(s.shape[1]), "SPLITS": s.shape[1], "WEIGHTED": weight is not None}
    rows, warps = max(1, min(128, 1024 // (nodes + 1))), min(32, max(1, (nodes + 1) // 2048))
    routes_kernel[(triton.cdiv(n, rows),)](s, weight, a, z, n, **shape, BLOCK=rows, num_warps=warps)


@kernel()
def routes_kernel(
    s_ptr, weight_ptr, a_ptr, z_ptr, n,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """The routes z of BLOCK samples."""
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
