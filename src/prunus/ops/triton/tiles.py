"""Pieces of kernels: a block of samples and one level of the tree in registers."""

import triton
import triton.language as tl

__all__ = ["level_columns", "step_down", "top"]


@triton.jit
def level_columns(LEVEL: tl.constexpr):
    """Heap indices of the nodes of a level."""
    return (1 << LEVEL) - 1 + tl.arange(0, 1 << LEVEL)


@triton.jit
def top(rows, n, weight_ptr, WEIGHTED: tl.constexpr):
    """The root's u, (BLOCK, 1), and the weights, (BLOCK,), of the rows.

    Rows past the end reach nothing. A row whose weight is no number is NaN and weighs nothing.
    """
    u = tl.where(rows < n, 1.5, -1.0)
    weight = tl.where(rows < n, 1.0, 0.0)
    if WEIGHTED:
        weight = tl.load(weight_ptr + rows, mask=rows < n, other=0.0)
        valid = (weight >= 0.0) & (weight < float("inf"))
        u = tl.where(valid, u, float("nan"))
        weight = tl.where(valid, weight, 0.0)
    return u[:, None], weight


@triton.jit
def step_down(u, s_ptr, rows, n, LEVEL: tl.constexpr, SPLITS: tl.constexpr):
    """u of the next level, (BLOCK, 2**(LEVEL + 1)), from that of LEVEL. NaN stays within what is reached."""
    s = tl.load(s_ptr + rows[:, None] * SPLITS + level_columns(LEVEL)[None, :], mask=rows[:, None] < n, other=0.0)
    left = tl.minimum(u, 0.5 - s, propagate_nan=tl.PropagateNan.ALL)
    right = tl.minimum(u, 0.5 + s, propagate_nan=tl.PropagateNan.ALL)
    return tl.interleave(tl.where(u <= 0.0, u, left), tl.where(u <= 0.0, u, right))
