"""Node masses of a batch, and their gradients: one program for each node of each tree."""

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.heap import depth_of_splits
from prunus.ops.triton.roots import add_above
from prunus.ops.triton.tiles import kernel

__all__ = ["constant_grads", "mass_grads", "roots"]

MAX_BLOCK = 8192
"""Largest number of samples whose u one program has in registers; of more samples it reads u again and again."""


def roots(u: Tensor, rest: Tensor | None, lam: float, counts: Tensor | None, out: Tensor) -> None:
    """Write the root of each node's phi, (trees, T), given u, (trees, T, n).

    A mass is the smallest root on the way to its node. The weights are the last column of `rest`, (trees, n, more);
    None means that all are 1. If some trees have fewer than n samples, and rows of weight 0 after them, `counts`,
    (trees,), in single precision, are the numbers of their samples, and their strength is that share of `lam`.
    """
    trees, nodes, n = u.shape
    block, warps = _block(n)
    roots_kernel[(nodes, trees)](
        u, rest, counts, lam, out, n, u.stride(1),
        T=nodes, BLOCK=block, ONE_BLOCK=n <= block, REST=0 if rest is None else rest.shape[2], num_warps=warps,
    )  # fmt: skip


def mass_grads(
    u: Tensor, rest: Tensor | None, lam: float, counts: Tensor | None, roots: Tensor, grad_z: Tensor, out: Tensor
) -> None:
    """Write the gradient of the sum of w u over the samples that are active in each node, (trees, T).

    Masses are the smallest of the roots, (trees, T), on the way to each node; gradients of the routes have the shape of
    u, (trees, T, n).
    """
    trees, nodes, n = u.shape
    block, warps = _block(n)
    mass_grads_kernel[(nodes, trees)](
        u, rest, counts, lam, roots, grad_z, None, None, out, n, u.stride(1), 0, 0,
        T=nodes, DEPTH=depth_of_splits(nodes // 2), BLOCK=block, REST=0 if rest is None else rest.shape[2],
        OUTPUTS=0, FIRST=0, WIDTH=0, num_warps=warps,
    )  # fmt: skip


def constant_grads(
    u: Tensor, rest: Tensor | None, lam: float, counts: Tensor | None, roots: Tensor, grad_out: Tensor,
    constants: Tensor, first: int, out: Tensor, grads: Tensor,
) -> None:  # fmt: skip
    """`mass_grads` for constant leaves, and the gradients of their constants.

    Parameters
    ----------
    grad_out : Tensor of shape (trees, n, k)
        Gradients of the outputs.
    constants : Tensor of shape (trees, k, columns)
        What is added to the outputs, and from column `first` on the constants of the nodes.
    grads : Tensor of shape (trees, k, columns)
        Where the gradients of these are written; of one tree they are contiguous.
    """
    trees, nodes, n = u.shape
    block, warps = _block(n)
    mass_grads_kernel[(nodes, trees)](
        u, rest, counts, lam, roots, grad_out, constants, grads, out, n, u.stride(1), constants.stride(0),
        grads.stride(0),
        T=nodes, DEPTH=depth_of_splits(nodes // 2), BLOCK=block, REST=0 if rest is None else rest.shape[2],
        OUTPUTS=grad_out.shape[2], FIRST=first, WIDTH=constants.shape[2], num_warps=2 * warps,
    )  # fmt: skip


def _block(n: int) -> tuple[int, int]:
    """Number of samples that a program has in registers, and its warps: few choices, since each is compiled."""
    block = next((block for block in (256, 1024, 4096) if n <= block), MAX_BLOCK)
    return block, max(2, block // 1024)


@triton.jit
def load_rewards(u_ptr, rest_ptr, rows, n, stride, node, tree, T: tl.constexpr, REST: tl.constexpr):
    """u of one node, and the weights, of some rows."""
    u = tl.load(u_ptr + (tree * T + node) * stride + rows, mask=rows < n, other=-1.0)
    weight = tl.where(rows < n, 1.0, 0.0)
    if REST > 0:
        weight = tl.load(rest_ptr + tree * n * REST + rows * REST + (REST - 1), mask=rows < n, other=0.0)
    return u, weight


@kernel(do_not_specialize=("n",))
def roots_kernel(
    u_ptr, rest_ptr, counts_ptr, lam, roots_ptr, n, stride,
    T: tl.constexpr, BLOCK: tl.constexpr, ONE_BLOCK: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """Runs Newton's method for one node of one tree."""
    node = tl.program_id(0)
    tree = tl.program_id(1).to(tl.int64)
    if counts_ptr is not None:
        lam = lam * tl.load(counts_ptr + tree) / n
    offsets = tl.arange(0, BLOCK)
    if ONE_BLOCK:
        u, weight = load_rewards(u_ptr, rest_ptr, offsets, n, stride, node, tree, T, REST)
    a = 0.0
    moving = lam > 0.0
    while moving:
        total = tl.full([], 0.0, tl.float32 if ONE_BLOCK else tl.float64)
        active_weight = total
        if ONE_BLOCK:
            total, active_weight = add_above(total, active_weight, u, weight, a)
        else:
            for start in range(0, n, BLOCK):
                u, weight = load_rewards(u_ptr, rest_ptr, start + offsets, n, stride, node, tree, T, REST)
                total, active_weight = add_above(total, active_weight, u, weight, a)
        step = tl.minimum((total / (lam + active_weight)).to(tl.float32), 1.0)
        moving = step > a
        # If the step is below a, rounding put a on or above the smallest active u: stay just below that u.
        a = tl.where(step > a, step, tl.where((step < a) & (a < 1.0), a * (1.0 - 4.8e-7), a))
    tl.store(roots_ptr + tree * T + node, tl.where(lam > 0.0, a, 1.0))


@kernel(do_not_specialize=("n", "constants_stride", "grads_stride"))
def mass_grads_kernel(
    u_ptr, rest_ptr, counts_ptr, lam, roots_ptr, grad_ptr, constants_ptr, grads_ptr, out_ptr, n, stride,
    constants_stride, grads_stride,
    T: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr, REST: tl.constexpr, OUTPUTS: tl.constexpr,
    FIRST: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Sums the gradients of the routes that equal the mass of one node, which matters if that mass is free.

    grad_ptr: gradients of the routes, or of OUTPUTS outputs to which the leaves add constants.
    """
    node = tl.program_id(0)
    tree = tl.program_id(1).to(tl.int64)
    if counts_ptr is not None:
        lam = lam * tl.load(counts_ptr + tree) / n
    a = 1.0
    for step in tl.static_range(DEPTH + 1):
        ancestor = ((node + 1) >> step) - 1
        a = tl.minimum(a, tl.load(roots_ptr + tree * T + ancestor, mask=ancestor >= 0, other=1.0))
    is_free = (a > 0.0) & (a < 1.0)
    mass_grad = 0.0
    active_weight = 0.0
    if OUTPUTS == 0:
        if is_free:
            for start in range(0, n, BLOCK):
                rows = start + tl.arange(0, BLOCK)
                u, weight = load_rewards(u_ptr, rest_ptr, rows, n, stride, node, tree, T, REST)
                bounded = (u >= a) & (rows < n)
                mass_grad += tl.sum(tl.load(grad_ptr + (tree * T + node) * stride + rows, mask=bounded, other=0.0))
                active_weight += tl.sum(tl.where(u > a, weight, 0.0))
    else:
        for output in tl.static_range(OUTPUTS):
            bounded_grad = 0.0
            constant_grad = 0.0
            all_grad = 0.0
            active_weight = 0.0
            for start in range(0, n, BLOCK):
                rows = start + tl.arange(0, BLOCK)
                u, weight = load_rewards(u_ptr, rest_ptr, rows, n, stride, node, tree, T, REST)
                grad = tl.load(grad_ptr + (tree * n + rows) * OUTPUTS + output, mask=(rows < n) & (u > 0.0), other=0.0)
                bounded_grad += tl.sum(tl.where(u >= a, grad, 0.0))
                constant_grad += tl.sum(grad * tl.minimum(u, a))
                all_grad += tl.sum(grad)  # of all samples, at the root
                active_weight += tl.sum(tl.where(u > a, weight, 0.0))
            at = output * WIDTH + FIRST + node
            mass_grad += bounded_grad * tl.load(constants_ptr + tree * constants_stride + at)
            tl.store(grads_ptr + tree * grads_stride + at, constant_grad)
            if node == 0:
                tl.store(grads_ptr + tree * grads_stride + output * WIDTH, all_grad)
    tl.store(out_ptr + tree * T + node, tl.where(is_free, mass_grad / (lam + active_weight), 0.0))
