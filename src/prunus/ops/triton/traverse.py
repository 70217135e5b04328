"""tree_traverse on the GPU: which kernels run, on what."""

import torch
import triton
from torch import Tensor

from prunus.ops.heap import depth_of_splits, n_nodes
from prunus.ops.triton.gradients import ascend_kernel, node_slope_kernel, pull_kernel, slope_kernel
from prunus.ops.triton.layers import Lists, descend
from prunus.ops.triton.roots import cap_kernel, newton_kernel, refine_kernel, sums_kernel
from prunus.ops.triton.routes import routes_kernel

__all__ = ["traverse_backward", "traverse_forward"]

FEW = 2048
"""Up to so many samples one program a node is faster than passes over lists."""

SLICE = 1 << 22
"""Scores whose gradients are written at a time: 16 MiB."""

PASSES = 5
"""Passes that look for the roots. All but few nodes settle in three or four; the rest goes to newton_kernel."""


def traverse_forward(s: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Routes z, (n, T), and node masses a, (T,), of split scores s, (n, S)."""
    s, weight = s.contiguous(), None if weight is None else weight.contiguous()
    n, splits = s.shape
    depth, nodes = depth_of_splits(splits), n_nodes(depth_of_splits(splits))
    options = {"DEPTH": depth, "SPLITS": splits, "WEIGHTED": weight is not None}
    z, a, roots = s.new_empty(n, nodes), s.new_empty(nodes), s.new_empty(nodes)
    settled = None if n <= FEW else _bracket(s, lam, weight, roots)
    block = _node_block(n)
    resume = {"RESUME": settled is not None, "ONE_BLOCK": settled is None and n <= block}
    newton_kernel[(nodes,)](s, weight, lam, settled, roots, n, **options, BLOCK=block, **resume)
    cap_kernel[(triton.cdiv(nodes, 128),)](roots, lam, a, T=nodes, DEPTH=depth, BLOCK=128)
    if n > 0:
        rows = max(1, min(128, 1024 // (nodes + 1)))
        routes_kernel[(triton.cdiv(n, rows),)](s, weight, a, z, n, **options, BLOCK=rows, num_warps=_route_warps(depth))
    return z, a


def traverse_backward(
    grad_z: Tensor, grad_a: Tensor, s: Tensor, a: Tensor, lam: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the scores, of lam and of the sample weights."""
    s, weight = s.contiguous(), None if weight is None else weight.contiguous()
    grad_z, grad_a = grad_z.contiguous(), grad_a.contiguous()
    n, splits = s.shape
    slope, grad_s, grad_weight = torch.empty_like(a), torch.empty_like(s), s.new_empty(n)
    options = {"SPLITS": splits, "WEIGHTED": weight is not None}
    lists = descend(s, weight)
    if n <= FEW:
        args = s, weight, lam, a, grad_z, grad_a, slope, n
        node_slope_kernel[(a.numel(),)](*args, **options, DEPTH=lists.depth, BLOCK=_node_block(n))
    else:
        partial = s.new_empty(lists.blocks, 2, a.numel())
        pull_kernel[(lists.programs,)](
            s, weight, lists.row, lists.u, lists.count, a, grad_z, partial, n, lists.blocks,
            **options, **lists.shape, LAYERS=lists.layers, CHUNK=32, num_warps=1,
        )  # fmt: skip
        args = partial, lam, a, grad_a, slope, lists.blocks
        layers = {"LAYERS": lists.layers, "TOP": lists.top_height}
        slope_kernel[(triton.cdiv(a.numel(), 8),)](*args, T=a.numel(), BLOCK=8, **layers)
    _ascend(lists, s, weight, a, slope, grad_z, grad_s, grad_weight)
    return grad_s, -(slope * a).sum(), grad_weight


def _ascend(
    lists: Lists,
    s: Tensor,
    weight: Tensor | None,
    a: Tensor,
    slope: Tensor,
    grad_z: Tensor,
    grad_s: Tensor,
    grad_weight: Tensor,
) -> None:
    """Gradients of the scores from the leaves up, a slice of rows after the other.

    What a slice zeroes is still in the cache when its few nonzero gradients are written.
    """
    to_u, to_weight = torch.empty_like(lists.u), lists.u if weight is None else torch.empty_like(lists.u)
    step = max(1, min(lists.blocks, SLICE // (lists.block_rows * max(s.shape[1], 1))))
    for first in range(0, lists.blocks, step):
        blocks = min(step, lists.blocks - first)
        grad_s[first * lists.block_rows : (first + blocks) * lists.block_rows].zero_()
        for layer in reversed(range(lists.layers)):
            ascend_kernel[(blocks, lists.subtrees(layer))](
                s, weight, lists.row, lists.u, lists.count, a, slope, grad_z,
                to_u, to_weight, grad_s, grad_weight, lists.n, lists.blocks, first,
                SPLITS=s.shape[1], WEIGHTED=weight is not None, LAYER=layer, LAST=layer == lists.layers - 1,
                **lists.shape, **lists.chunk(layer),
            )  # fmt: skip


def _bracket(s: Tensor, lam: Tensor, weight: Tensor | None, roots: Tensor) -> Tensor:
    """Roots by passes over the lists; returns which nodes are settled."""
    nodes, lists = roots.numel(), descend(s, weight)
    points, high, partial = s.new_empty(4, nodes), s.new_empty(nodes), s.new_empty(lists.blocks, 8, nodes)
    settled = torch.empty_like(roots, dtype=torch.int32)
    for index in range(PASSES):
        sums_kernel[(lists.programs,)](
            s, weight, lists.row, lists.u, lists.count, points, settled, partial, lists.n, lists.blocks,
            SPLITS=s.shape[1], WEIGHTED=weight is not None, FIRST_PASS=index == 0,
            **lists.shape, LAYERS=lists.layers, CHUNK=32, num_warps=1,
        )  # fmt: skip
        args = partial, lam, points, high, roots, settled, lists.blocks
        refine_kernel[(triton.cdiv(nodes, 8),)](
            *args, T=nodes, BLOCK=8, FIRST_PASS=index == 0, LAYERS=lists.layers, TOP=lists.top_height
        )
    return settled


def _route_warps(depth: int) -> int:
    return max(1, (2 << depth) // 2048)


def _node_block(n: int) -> int:
    return max(16, min(1024, triton.next_power_of_2(n)))
