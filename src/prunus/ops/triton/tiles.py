"""Pieces of kernels: a block of samples and all nodes of the tree in registers.

A tile holds u for BLOCK samples and all nodes, padded by one column to N = 2**(DEPTH + 1). Level by level it grows by
interleaving the old tile with the new level, which costs no data movement between threads; so its columns are in the
*in-order* of the tree: leaves are the odd columns, their parents every fourth, and so on; column 0 is the padding.
"""

import triton
import triton.language as tl

__all__ = ["inorder_nodes", "level_columns", "step_down", "top", "turns"]


@triton.jit
def inorder_nodes(columns, DEPTH: tl.constexpr):
    """Heap index of the node in each in-order column; the padding gets the root's."""
    node = tl.zeros_like(columns)
    for height in tl.static_range(DEPTH + 1):
        here = (columns & ((2 << height) - 1)) == (1 << height)
        node = tl.where(here, (1 << (DEPTH - height)) - 1 + (columns >> (height + 1)), node)
    return node


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
def turns(u, s):
    """u of the left and of the right children, from u and the scores of one level. NaN stays within what is reached."""
    left = tl.minimum(u, 0.5 - s, propagate_nan=tl.PropagateNan.ALL)
    right = tl.minimum(u, 0.5 + s, propagate_nan=tl.PropagateNan.ALL)
    return tl.where(u <= 0.0, u, left), tl.where(u <= 0.0, u, right)


@triton.jit
def step_down(u, s_ptr, rows, n, LEVEL: tl.constexpr, SPLITS: tl.constexpr):
    """u of the next level, (BLOCK, 2**(LEVEL + 1)), from that of LEVEL."""
    s = tl.load(s_ptr + rows[:, None] * SPLITS + level_columns(LEVEL)[None, :], mask=rows[:, None] < n, other=0.0)
    left, right = turns(u, s)
    return tl.interleave(left, right)
