"""tree_traverse on the GPU: the order of the kernels, their grids and their memory; and routes alone."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.heap import depth_of_splits, n_nodes
from prunus.ops.triton.brackets import collect_kernel, finish_kernel, refine_kernel, sums_kernel
from prunus.ops.triton.gradients import (
    gradients_kernel,
    lam_kernel,
    mass_grad_kernel,
    node_sum_grad_kernel,
    sum_grad_kernel,
)
from prunus.ops.triton.layers import Lists
from prunus.ops.triton.roots import cap_kernel, newton_kernel
from prunus.ops.triton.tiles import kernel, level_columns, load_levels, load_scores, step_down, top

__all__ = ["routes", "traverse_backward", "traverse_forward", "write_routes"]


FEW_SAMPLES = 2048
"""Up to this many samples, one program for each node is faster than passes over lists."""

PASSES = 2
"""Passes that bracket the roots before the values inside the brackets are collected."""

CAPACITY = 64
"""Values that are collected for a node from a group of blocks. If there are more, newton_kernel solves the node."""

LANES = 64
"""Entries of lists that one program sums over at a time."""

NODES_PER_PROGRAM = 8
"""Number of nodes for which one program adds the sums of all groups of blocks."""


def traverse_forward(s: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Routes z, (n, T), and node masses a, (T,), of split scores s, (n, S)."""
    s, weight = s.contiguous(), None if weight is None else weight.contiguous()
    n, splits = s.shape
    depth, nodes = depth_of_splits(splits), n_nodes(depth_of_splits(splits))
    options = {"DEPTH": depth, "SPLITS": splits, "WEIGHTED": weight is not None}
    z, a, roots = s.new_empty(n, nodes), s.new_empty(nodes), s.new_empty(nodes)
    state = None if n <= FEW_SAMPLES else _bracket(s, lam, weight, roots)
    block = _node_block(n)
    resume = {"RESUME": state is not None, "ONE_BLOCK": state is None and n <= block}
    newton_kernel[(nodes,)](s, weight, lam, state, roots, n, **options, BLOCK=block, **resume)
    cap_kernel[(triton.cdiv(nodes, 128),)](roots, lam, a, T=nodes, DEPTH=depth, BLOCK=128)
    write_routes(s, weight, a, z)
    return z, a


def traverse_backward(
    grad_z: Tensor, grad_a: Tensor, s: Tensor, a: Tensor, lam: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the scores, of lam and of the sample weights."""
    s, weight = s.contiguous(), None if weight is None else weight.contiguous()
    grad_z, grad_a = grad_z.contiguous(), grad_a.contiguous()
    n, splits = s.shape
    sum_grad, grad_s, grad_weight = torch.empty_like(a), torch.empty_like(s), s.new_empty(n)
    options = {"DEPTH": depth_of_splits(splits), "SPLITS": splits, "WEIGHTED": weight is not None}
    if n <= FEW_SAMPLES:
        args = s, weight, lam, a, grad_z, grad_a, sum_grad, n
        node_sum_grad_kernel[(a.numel(),)](*args, **options, BLOCK=_node_block(n))
    else:
        _sum_grads(s, lam, weight, a, grad_z, grad_a, sum_grad)
    if n > 0:
        args = s, weight, a, sum_grad, grad_z, grad_s, grad_weight, n
        rows = max(1, min(128, 2048 // (a.numel() + 1)))
        warps = min(32, max(2, (a.numel() + 1) // 1024))
        # With fewer registers more programs run at a time; without weights 128 are enough for all values.
        registers = {"maxnreg": 128} if weight is None and warps <= 16 else {}
        gradients_kernel[(triton.cdiv(n, rows),)](*args, **options, BLOCK=rows, num_warps=warps, **registers)
    grad_lam = torch.empty_like(lam)
    lam_kernel[(1,)](sum_grad, a, grad_lam, T=a.numel(), BLOCK=1024)
    return grad_s, grad_lam, grad_weight


def _sum_grads(
    s: Tensor, lam: Tensor, weight: Tensor | None, a: Tensor, grad_z: Tensor, grad_a: Tensor, sum_grad: Tensor
) -> None:
    """Write sum_grad by a pass over the lists of samples that may be active in a node with a free mass."""
    lists = Lists(s)
    lists.descend(s, weight, lists.bounds(a, None))
    partial = s.new_empty(lists.blocks, 2, a.numel())
    mass_grad_kernel[(lists.programs,)](
        s, weight, lists.row, lists.u, lists.count, a, grad_z, partial, lists.n, lists.blocks,
        SPLITS=s.shape[1], WEIGHTED=weight is not None, **lists.shape, LAYERS=lists.layers, LANES=LANES, num_warps=1,
    )  # fmt: skip
    args = partial, lam, a, grad_a, sum_grad, lists.blocks
    layers = {"LAYERS": lists.layers, "TOP": lists.top_height}
    sum_grad_kernel[(triton.cdiv(a.numel(), NODES_PER_PROGRAM),)](*args, T=a.numel(), BLOCK=NODES_PER_PROGRAM, **layers)


def _bracket(s: Tensor, lam: Tensor, weight: Tensor | None, roots: Tensor) -> Tensor:
    """Write roots by passes over the lists; returns the states of the nodes."""
    nodes, lists = roots.numel(), Lists(s)
    layers = {"LAYERS": lists.layers, "TOP": lists.top_height}
    of_lists = s, weight, lists.row, lists.u, lists.count
    options = {"SPLITS": s.shape[1], "WEIGHTED": weight is not None, "LANES": LANES, "num_warps": 1, **lists.shape}
    refine = {"T": nodes, "WEIGHTED": weight is not None, "CAPACITY": CAPACITY, **layers}
    points, partial = s.new_empty(4, nodes), s.new_empty(lists.blocks, 8, nodes)
    right, state = s.new_empty(3, nodes, dtype=torch.float64), torch.empty_like(roots, dtype=torch.int32)
    for index in range(PASSES):
        lists.descend(s, weight, lists.bounds(roots, state) if index > 0 else None)
        args = *of_lists, points, state, partial, lists.n, lists.blocks
        sums_kernel[(lists.programs,)](*args, **options, LAYERS=lists.layers, FIRST_PASS=index == 0)
        args = partial, lam, points, right, roots, state, lists.blocks
        programs = (triton.cdiv(nodes, NODES_PER_PROGRAM),)
        refine_kernel[programs](*args, **refine, BLOCK=NODES_PER_PROGRAM, FIRST_PASS=index == 0)
    collected = s.new_empty(nodes, lists.blocks, 1 if weight is None else 2, CAPACITY)
    count = s.new_empty(nodes, lists.blocks, dtype=torch.int32)
    args = *of_lists, roots, right, state, collected, count, lists.n, lists.blocks
    collect_kernel[(lists.programs,)](*args, **options, LAYERS=lists.layers, CAPACITY=CAPACITY)
    args = lam, right, collected, count, roots, state, lists.blocks
    finish_kernel[(nodes,)](*args, **refine)
    return state


def _node_block(n: int) -> int:
    return max(16, min(1024, triton.next_power_of_2(n)))


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
