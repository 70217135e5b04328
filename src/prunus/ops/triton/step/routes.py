"""From scores to u, with masses to routes, and gradients back to the scores: some samples of one tree a program."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.heap import depth_of_splits, n_nodes
from prunus.ops.triton.step.batches import Numbers, number
from prunus.ops.triton.step.masses import roots
from prunus.ops.triton.tiles import kernel, level_columns, step_down

__all__ = ["constant_outputs", "linear_roots", "rewards", "score_grads", "write_routes"]


def rewards(s: Tensor, numbers: Numbers, scale: int | None, out: Tensor) -> None:
    """Write u, (trees, T, n), of scores s, (trees, S, n).

    `scale` says which of the numbers of a step scores are multiplied by; None is 1.
    """
    trees, splits, n = s.shape
    rows = 32 if splits < 512 else 16  # whole lines of memory
    rewards_kernel[(triton.cdiv(n, rows), trees)](
        s, numbers.table, numbers.step, numbers.ahead, out, n, s.stride(1),
        DEPTH=depth_of_splits(splits), SPLITS=splits, ROWS=rows,
        COUNT=numbers.width, SCALE=scale, num_warps=max(1, min(16, rows * (splits + 1) // 1024)),
    )  # fmt: skip


def write_routes(s: Tensor, roots: Tensor, numbers: Numbers, scale: int | None, inputs: Tensor, first: int) -> None:
    """Write the routes of scores s, (trees, S, n), to the columns of `inputs`, (trees, n, width), from `first` on.

    Masses are the smallest of the roots, (trees, T), on the way to each node.
    """
    trees, splits, n = s.shape
    rows, warps = _tile(splits)
    routes_kernel[(triton.cdiv(n, rows), trees)](
        s, roots, numbers.table, numbers.step, numbers.ahead, inputs, n, s.stride(1), inputs.shape[2],
        DEPTH=depth_of_splits(splits), SPLITS=splits, FIRST=first, ROWS=rows,
        COUNT=numbers.width, SCALE=scale, num_warps=warps,
    )  # fmt: skip


def constant_outputs(
    s: Tensor, roots: Tensor, numbers: Numbers, scale: int | None, constants: Tensor, first: int, out: Tensor
) -> None:
    """Write the outputs, (trees, n, k), of constant leaves, without storing routes.

    Constants, (trees, k, columns), are what is added to the outputs and, from column `first` on, those of the nodes.
    """
    trees, splits, n = s.shape
    rows, warps = _tile(splits)
    constant_outputs_kernel[(triton.cdiv(n, rows), trees)](
        s, roots, constants, numbers.table, numbers.step, numbers.ahead, out, n, s.stride(1), constants.stride(0),
        DEPTH=depth_of_splits(splits), SPLITS=splits, OUTPUTS=out.shape[2], FIRST=first, WIDTH=constants.shape[2],
        ROWS=rows, COUNT=numbers.width, SCALE=scale, num_warps=warps,
    )  # fmt: skip


def score_grads(
    s: Tensor, rest: Tensor | None, roots: Tensor, sum_grad: Tensor, numbers: Numbers, scale: int | None,
    grad: Tensor, out: Tensor, constants: Tensor | None = None, first: int = 0,
) -> None:  # fmt: skip
    """Write the gradients of the scores, (trees, n, S).

    Gradients are given for the routes, (trees, T, n), or for the outputs, (trees, n, k), of leaves with constants as
    for `constant_outputs`. `rest` holds weights as for `roots`.
    """
    trees, splits, n = s.shape
    rows, warps = _tile(splits) if splits < 512 else (4, 4)
    score_grads_kernel[(triton.cdiv(n, rows), trees)](
        s, rest, roots, sum_grad, constants, numbers.table, numbers.step, numbers.ahead, grad, out, n, s.stride(1),
        out.shape[2], 0 if constants is None else constants.stride(0),
        DEPTH=depth_of_splits(splits), SPLITS=splits, ROWS=rows, REST=0 if rest is None else rest.shape[2],
        OUTPUTS=0 if constants is None else constants.shape[1], FIRST=first,
        WIDTH=0 if constants is None else constants.shape[2],
        COUNT=numbers.width, SCALE=scale, num_warps=2 * warps,
    )  # fmt: skip


def _tile(splits: int) -> tuple[int, int]:
    """Number of samples, whole sectors of memory, and of warps."""
    rows = 16 if splits < 128 else 8
    return rows, max(1, min(16, rows * (splits + 1) // 1024))


@triton.jit
def begin(
    s_ptr, table_ptr, step_ptr, ahead, n, stride,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, ROWS: tl.constexpr, COUNT: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """The tree and the samples of this program, their u at the root, (ROWS, 1), and their scores, times the scale.

    These are a tuple of the levels, each of shape (ROWS, 2**level).
    """
    tree = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    scale = 1.0
    if SCALE is not None:
        scale = number(table_ptr, step_ptr, ahead, COUNT, SCALE)
    scores = ()
    for level in tl.static_range(DEPTH):
        at = s_ptr + (tree * SPLITS + level_columns(level)[None, :]) * stride + rows[:, None]
        scores = scores + (scale * tl.load(at, mask=rows[:, None] < n, other=0.0),)
    return tree, rows, tl.where(rows < n, 1.5, -1.0)[:, None], scores


@triton.jit
def load_masses(roots_ptr, tree, DEPTH: tl.constexpr, SPLITS: tl.constexpr):
    """The masses of all nodes: a tuple of the levels, each of shape (1, 2**level)."""
    masses = ()
    for level in tl.static_range(DEPTH + 1):
        mass = tl.load(roots_ptr + tree * (2 * SPLITS + 1) + level_columns(level)[None, :])
        if level > 0:
            mass = tl.minimum(mass, tl.interleave(masses[level - 1], masses[level - 1]))
        masses = masses + (mass,)
    return masses


@kernel(do_not_specialize=("ahead", "n"))
def rewards_kernel(
    s_ptr, table_ptr, step_ptr, ahead, u_ptr, n, stride,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, ROWS: tl.constexpr, COUNT: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """u of ROWS samples."""
    tree, rows, u, scores = begin(s_ptr, table_ptr, step_ptr, ahead, n, stride, DEPTH, SPLITS, ROWS, COUNT, SCALE)
    for level in tl.static_range(DEPTH + 1):
        at = u_ptr + (tree * (2 * SPLITS + 1) + level_columns(level)[None, :]) * stride + rows[:, None]
        tl.store(at, u, mask=rows[:, None] < n)
        if level < DEPTH:
            u = step_down(u, scores[level])


@kernel(do_not_specialize=("ahead", "n", "width"))
def routes_kernel(
    s_ptr, roots_ptr, table_ptr, step_ptr, ahead, inputs_ptr, n, stride, width,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, FIRST: tl.constexpr, ROWS: tl.constexpr,
    COUNT: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """The routes of ROWS samples."""
    tree, rows, u, scores = begin(s_ptr, table_ptr, step_ptr, ahead, n, stride, DEPTH, SPLITS, ROWS, COUNT, SCALE)
    masses = load_masses(roots_ptr, tree, DEPTH, SPLITS)
    for level in tl.static_range(DEPTH + 1):
        z = tl.minimum(tl.maximum(u, 0.0), masses[level])
        at = inputs_ptr + (tree * n + rows[:, None]) * width + FIRST + level_columns(level)[None, :]
        tl.store(at, z, mask=rows[:, None] < n)
        if level < DEPTH:
            u = step_down(u, scores[level])


@kernel(do_not_specialize=("ahead", "n", "constants_stride"))
def constant_outputs_kernel(
    s_ptr, roots_ptr, constants_ptr, table_ptr, step_ptr, ahead, out_ptr, n, stride, constants_stride,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, OUTPUTS: tl.constexpr, FIRST: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, COUNT: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """The outputs of ROWS samples."""
    tree, rows, u, scores = begin(s_ptr, table_ptr, step_ptr, ahead, n, stride, DEPTH, SPLITS, ROWS, COUNT, SCALE)
    masses = load_masses(roots_ptr, tree, DEPTH, SPLITS)
    zs = ()
    for level in tl.static_range(DEPTH + 1):
        zs = zs + (tl.minimum(tl.maximum(u, 0.0), masses[level]),)
        if level < DEPTH:
            u = step_down(u, scores[level])
    for output in tl.static_range(OUTPUTS):
        at = constants_ptr + tree * constants_stride + output * WIDTH
        total = tl.zeros([ROWS], tl.float32) + tl.load(at)
        for level in tl.static_range(DEPTH + 1):
            total += tl.sum(zs[level] * tl.load(at + FIRST + level_columns(level))[None, :], 1)
        tl.store(out_ptr + (tree * n + rows) * OUTPUTS + output, total, mask=rows < n)


@triton.jit
def route_grads(
    grad_ptr, constants_ptr, rows, mask, n, stride, tree, LEVEL: tl.constexpr, SPLITS: tl.constexpr,
    OUTPUTS: tl.constexpr, FIRST: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Gradients of the routes of some rows to the nodes of a level: stored ones, or those of constant leaves."""
    T: tl.constexpr = 2 * SPLITS + 1
    if OUTPUTS == 0:
        at = grad_ptr + (tree * T + level_columns(LEVEL)[None, :]) * stride + rows[:, None]
        grad = tl.load(at, mask=mask & (rows[:, None] < n), other=0.0)
    else:
        grad = tl.zeros(mask.shape, tl.float32)
        for output in tl.static_range(OUTPUTS):
            of_rows = tl.load(grad_ptr + (tree * n + rows) * OUTPUTS + output, mask=rows < n, other=0.0)
            of_nodes = tl.load(constants_ptr + output * WIDTH + FIRST + level_columns(LEVEL))
            grad += of_rows[:, None] * of_nodes[None, :]
        grad = tl.where(mask, grad, 0.0)
    return grad


@kernel(do_not_specialize=("ahead", "n", "width", "constants_stride"))
def score_grads_kernel(
    s_ptr, rest_ptr, roots_ptr, sum_grad_ptr, constants_ptr, table_ptr, step_ptr, ahead, grad_ptr, out_ptr, n, stride,
    width, constants_stride,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr, ROWS: tl.constexpr, REST: tl.constexpr,
    OUTPUTS: tl.constexpr, FIRST: tl.constexpr, WIDTH: tl.constexpr, COUNT: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """Goes down the tree for u, and up again for the gradients, of ROWS samples."""
    T: tl.constexpr = 2 * SPLITS + 1
    tree, rows, u, scores = begin(s_ptr, table_ptr, step_ptr, ahead, n, stride, DEPTH, SPLITS, ROWS, COUNT, SCALE)
    masses = load_masses(roots_ptr, tree, DEPTH, SPLITS)
    weight = tl.where(rows < n, 1.0, 0.0)
    if REST > 0:
        weight = tl.load(rest_ptr + (tree * n + rows) * REST + (REST - 1), mask=rows < n, other=0.0)
    us = ()
    own = ()
    for level in tl.static_range(DEPTH + 1):
        us = us + (u,)
        a = masses[level]
        between = (u > 0.0) & (u < a)
        grad = route_grads(
            grad_ptr, constants_ptr + tree * constants_stride if OUTPUTS > 0 else constants_ptr, rows, between, n,
            stride, tree, level, SPLITS, OUTPUTS, FIRST, WIDTH,
        )  # fmt: skip
        sum_grad = tl.load(sum_grad_ptr + tree * T + level_columns(level)[None, :])
        own = own + (grad + tl.where(u > a, weight[:, None] * sum_grad, 0.0),)
        if level < DEPTH:
            u = step_down(u, scores[level])
    scale = 1.0
    if SCALE is not None:
        scale = number(table_ptr, step_ptr, ahead, COUNT, SCALE)
    grad = own[DEPTH]
    for up in tl.static_range(1, DEPTH + 1):
        u, s = us[DEPTH - up], scores[DEPTH - up]
        to_left, to_right = tl.split(tl.reshape(grad, [ROWS, 1 << (DEPTH - up), 2]))
        left, right = 0.5 - s < u, 0.5 + s < u  # whether the child's u comes from the score, not from its parent
        to_s = scale * (tl.where(right, to_right, 0.0) - tl.where(left, to_left, 0.0))
        at = out_ptr + (tree * n + rows[:, None]) * width + level_columns(DEPTH - up)[None, :]
        tl.store(at, to_s, mask=rows[:, None] < n)
        grad = own[DEPTH - up] + tl.where(right, 0.0, to_right) + tl.where(left, 0.0, to_left)


def linear_roots(x: Tensor, weight: Tensor, bias: Tensor, sample_weight: Tensor | None, lam: float) -> Tensor:
    """The roots of the nodes' phi, (T,), for scores ``x @ weight.T + bias``; masses follow from them."""
    n, splits = len(x), len(weight)
    stride, nodes = -(-n // 16) * 16, n_nodes(int(splits + 1).bit_length() - 1)
    scores = x.new_empty(1, splits, stride)[:, :, :n]
    torch.addmm(bias.unsqueeze(1), weight, x.T, out=scores[0])
    u = x.new_empty(1, nodes, stride)[:, :, :n]
    rewards(scores, Numbers(x.new_zeros(1, 1), torch.zeros((), dtype=torch.int64, device=x.device), 0), None, u)
    found = x.new_empty(1, nodes)
    roots(u, None if sample_weight is None else sample_weight.contiguous().view(1, n, 1), lam, None, found)
    return found[0]
