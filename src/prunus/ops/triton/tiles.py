"""Pieces of kernels: a block of samples and the levels of the tree in registers.

A kernel loads all that it needs of a tree before it stores anything: as far as the compiler knows a store may change
what a later load reads, so that a load after it would have to wait.
"""

import triton
import triton.language as tl

__all__ = ["level_columns", "load_levels", "load_scores", "step_down", "top"]


@triton.jit
def level_columns(LEVEL: tl.constexpr):
    """Heap indices of the nodes of a level."""
    return (1 << LEVEL) - 1 + tl.arange(0, 1 << LEVEL)


@triton.jit
def load_levels(values_ptr, DEPTH: tl.constexpr):
    """A value of every node: a tuple of the levels, each (1, 2**level)."""
    values = ()
    for level in tl.static_range(DEPTH + 1):
        values = values + (tl.load(values_ptr + level_columns(level)[None, :]),)
    return values


@triton.jit
def load_scores(s_ptr, rows, n, DEPTH: tl.constexpr, SPLITS: tl.constexpr):
    """The scores of some rows: a tuple of the levels, each (BLOCK, 2**level)."""
    scores = ()
    for level in tl.static_range(DEPTH):
        at = s_ptr + rows[:, None] * SPLITS + level_columns(level)[None, :]
        scores = scores + (tl.load(at, mask=rows[:, None] < n, other=0.0),)
    return scores


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
def step_down(u, s):
    """u of the next level, (BLOCK, 2**(level + 1)), from u and s of a level. NaN stays within what is reached."""
    s = tl.where(u <= 0.0, 0.0, s)
    left = tl.minimum(u, 0.5 - s, propagate_nan=tl.PropagateNan.ALL)
    right = tl.minimum(u, 0.5 + s, propagate_nan=tl.PropagateNan.ALL)
    return tl.interleave(left, right)
