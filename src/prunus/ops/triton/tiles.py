"""What kernels share: how they are launched, and functions of a block of samples, level by level of the tree.

These hold the levels in registers. A kernel loads all values of a tree before it stores anything: the compiler must
assume that a store changes what a later load reads, and that load would have to wait.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["Kernel", "kernel", "level_columns", "load_levels", "load_scores", "step_down", "top"]


class Kernel:
    """A compiled function of triton, launched as ``name[grid](tensor, ...)`` on the device of its first argument.

    A product and the sum that it is added to are rounded once, whatever the default of the installed version is.
    """

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Any]:
        return partial(self._launch, self.compiled[grid])

    def _launch(self, launch: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        device: torch.device = arguments[0].device
        if device.type != "cuda" or device.index == torch.cuda.current_device():
            return launch(*arguments, **options, enable_fp_fusion=True)
        with torch.cuda.device(device):  # triton launches on the current one
            return launch(*arguments, **options, enable_fp_fusion=True)


def kernel(*, do_not_specialize: tuple[str, ...] = ()) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorate a kernel; it is compiled once for all values of the arguments that are not to be specialized."""
    return lambda function: Kernel(triton.jit(function, do_not_specialize=do_not_specialize))


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
