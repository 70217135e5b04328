"""Node masses of a batch, and their gradients: one program for each node of each tree.

A program has the rewards of all samples in registers as long as they are not too many, so that Newton's method reads
memory once.
"""

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.heap import depth_of_splits
from prunus.ops.triton.roots import add_above
from prunus.ops.triton.step.numbers import Numbers, number

__all__ = ["cap", "mass_grads", "node_rewards", "roots"]

MAX_BLOCK = 32768
"""Largest number of samples whose rewards one program has in registers."""


LOOPED = 4096
"""Number of samples that a program reads at once if it reads each of them once."""


def roots(s: Tensor, rest: Tensor | None, lam: float, numbers: Numbers, scale: int | None, out: Tensor) -> None:
    """Write the root of each node's phi, (trees, T), of scores s, (trees, S, n).

    A mass is the smallest root on the way to its node. The weights are the last column of `rest`, (trees, n, more);
    None means that all are 1. `scale` says which of the numbers of a step scores are multiplied by; None is 1.
    """
    trees, splits, n = s.shape
    block, warps = _block(n)
    roots_kernel[(out.shape[1], trees)](
        s, rest, numbers.table, numbers.step, numbers.ahead, lam, out, n, s.stride(1),
        DEPTH=depth_of_splits(splits), SPLITS=splits, BLOCK=block, ONE_BLOCK=n <= block,
        REST=0 if rest is None else rest.shape[2], COUNT=numbers.count, SCALE=scale, num_warps=warps,
    )  # fmt: skip


def mass_grads(
    s: Tensor, rest: Tensor | None, lam: float, numbers: Numbers, scale: int | None,
    mass: Tensor, grad_z: Tensor, out: Tensor,
) -> None:  # fmt: skip
    """Write the gradient of the sum of w u over the samples that are active in each node, (trees, T).

    Masses have shape (trees, T), gradients of the routes (trees, T, n).
    """
    trees, splits, n = s.shape
    block, warps = _block(min(n, LOOPED))
    mass_grads_kernel[(out.shape[1], trees)](
        s, rest, numbers.table, numbers.step, numbers.ahead, lam, mass, grad_z, out, n, s.stride(1),
        DEPTH=depth_of_splits(splits), SPLITS=splits, BLOCK=block,
        REST=0 if rest is None else rest.shape[2], COUNT=numbers.count, SCALE=scale, num_warps=warps,
    )  # fmt: skip


def cap(values: Tensor) -> Tensor:
    """Masses, (trees, T), from roots: the smallest root on the way to each node. By the lemma that is its own root."""
    mass = values.clone()
    for level in range(1, depth_of_splits(values.shape[1] // 2) + 1):
        here, above = slice(2**level - 1, 2 ** (level + 1) - 1), slice(2 ** (level - 1) - 1, 2**level - 1)
        mass[:, here] = mass[:, here].minimum(mass[:, above].repeat_interleave(2, 1))
    return mass


def _block(n: int) -> tuple[int, int]:
    """Number of samples that a program has in registers, and its warps."""
    block = max(64, min(MAX_BLOCK, triton.next_power_of_2(n)))
    return block, max(1, min(32, block // 256))


@triton.jit
def node_rewards(
    s_ptr, rest_ptr, rows, n, stride, node, tree, scale,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """u of one node, and the weights, of some rows, from the scores on the node's path."""
    weight = tl.where(rows < n, 1.0, 0.0)
    if REST > 0:
        weight = tl.load(rest_ptr + tree * n * REST + rows * REST + (REST - 1), mask=rows < n, other=0.0)
    u = tl.where(rows < n, 1.5, -1.0)
    for step in tl.static_range(DEPTH):
        ancestor = ((node + 1) >> (DEPTH - step)) - 1
        child = ((node + 1) >> (DEPTH - step - 1)) - 1
        inside = ancestor >= 0  # else this step would be above the root
        s = scale * tl.load(s_ptr + (tree * SPLITS + ancestor) * stride + rows, mask=(rows < n) & inside, other=0.0)
        toward = tl.where(child == 2 * ancestor + 1, 0.5 - s, 0.5 + s)
        u = tl.where(inside, tl.minimum(u, toward), u)
    return u, weight


@triton.jit(do_not_specialize=["ahead", "n"])
def roots_kernel(
    s_ptr, rest_ptr, table_ptr, step_ptr, ahead, lam, roots_ptr, n, stride,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr, ONE_BLOCK: tl.constexpr,
    REST: tl.constexpr, COUNT: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """Runs Newton's method for one node of one tree."""
    node = tl.program_id(0)
    tree = tl.program_id(1).to(tl.int64)
    scale = 1.0
    if SCALE is not None:
        scale = number(table_ptr, step_ptr, ahead, COUNT, SCALE)
    offsets = tl.arange(0, BLOCK)
    if ONE_BLOCK:
        u, weight = node_rewards(s_ptr, rest_ptr, offsets, n, stride, node, tree, scale, DEPTH, SPLITS, REST)
    a = 0.0
    moving = lam > 0.0
    while moving:
        total = 0.0
        active_weight = 0.0
        if ONE_BLOCK:
            total, active_weight = add_above(total, active_weight, u, weight, a)
        else:
            for start in range(0, n, BLOCK):
                rows = start + offsets
                u, weight = node_rewards(s_ptr, rest_ptr, rows, n, stride, node, tree, scale, DEPTH, SPLITS, REST)
                total, active_weight = add_above(total, active_weight, u, weight, a)
        step = tl.minimum(total / (lam + active_weight), 1.0)
        moving = step > a
        # If the step is below a, rounding put a on or above the smallest active u: stay just below that u.
        a = tl.where(step > a, step, tl.where((step < a) & (a < 1.0), a * (1.0 - 4.8e-7), a))
    tl.store(roots_ptr + tree * (2 * SPLITS + 1) + node, tl.where(lam > 0.0, a, 1.0))


@triton.jit(do_not_specialize=["ahead", "n"])
def mass_grads_kernel(
    s_ptr, rest_ptr, table_ptr, step_ptr, ahead, lam, mass_ptr, grad_z_ptr, out_ptr, n, stride,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr,
    REST: tl.constexpr, COUNT: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """Sums the gradients of the routes that equal the mass of one node, if that mass is free."""
    T: tl.constexpr = 2 * SPLITS + 1
    node = tl.program_id(0)
    tree = tl.program_id(1).to(tl.int64)
    a = 1.0
    for step in tl.static_range(DEPTH + 1):
        ancestor = ((node + 1) >> step) - 1
        a = tl.minimum(a, tl.load(mass_ptr + tree * T + ancestor, mask=ancestor >= 0, other=1.0))
    is_free = (a > 0.0) & (a < 1.0)
    mass_grad = 0.0
    active_weight = 0.0
    if is_free:
        scale = 1.0
        if SCALE is not None:
            scale = number(table_ptr, step_ptr, ahead, COUNT, SCALE)
        for start in range(0, n, BLOCK):
            rows = start + tl.arange(0, BLOCK)
            u, weight = node_rewards(s_ptr, rest_ptr, rows, n, stride, node, tree, scale, DEPTH, SPLITS, REST)
            bounded = (u >= a) & (rows < n)
            mass_grad += tl.sum(tl.load(grad_z_ptr + (tree * T + node) * stride + rows, mask=bounded, other=0.0))
            active_weight += tl.sum(tl.where(u > a, weight, 0.0))
    tl.store(out_ptr + tree * T + node, tl.where(is_free, mass_grad / (lam + active_weight), 0.0))
