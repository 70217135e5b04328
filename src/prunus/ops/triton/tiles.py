"""Functions that several kernels share: they hold a block of samples, level by level of the tree, in registers.

A kernel loads all values of a tree before it stores anything: the compiler must assume that a store changes what a
later load reads, and that load would have to wait.
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
    """One value for each node: a tuple of the levels, each of shape (1, 2**level)."""
    values = ()
    for level in tl.static_range(DEPTH + 1):
        values = values + (tl.load(values_ptr + level_columns(level)[None, :]),)
    return values


@triton.jit
def load_scores(s_ptr, rows, n, DEPTH: tl.constexpr, SPLITS: tl.constexpr):
    """The scores of some rows: a tuple of the levels, each of shape (BLOCK, 2**level)."""
    scores = ()
    for level in tl.static_range(DEPTH):
        at = s_ptr + rows[:, None] * SPLITS + level_columns(level)[None, :]
        scores = scores + (tl.load(at, mask=rows[:, None] < n, other=0.0),)
    return scores


@triton.jit
def top(rows, n, weight_ptr, WEIGHTED: tl.constexpr):
    """The root's u, (BLOCK, 1), and the weights, (BLOCK,), of the rows.

    Rows past the end reach no node. A row with an invalid weight has u = NaN and weight 0.
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
    """u of the next level, (BLOCK, 2**(level + 1)), from u and s of a level. A NaN in s counts only where u > 0."""
    s = tl.where(u <= 0.0, 0.0, s)
    left = tl.minimum(u, 0.5 - s, propagate_nan=tl.PropagateNan.ALL)
    right = tl.minimum(u, 0.5 + s, propagate_nan=tl.PropagateNan.ALL)
    return tl.interleave(left, right)
