"""tree_traverse on the GPU: which kernels run, with which tiles."""

import functools

import torch
import triton
from torch import Tensor

from prunus.ops.heap import depth_of_splits, n_nodes
from prunus.ops.triton.gradients import gradients_kernel, node_slope_kernel, pull_kernel, slope_kernel
from prunus.ops.triton.roots import cap_kernel, check_kernel, newton_kernel, refine_kernel, sums_kernel
from prunus.ops.triton.routes import routes_kernel

__all__ = ["traverse_backward", "traverse_forward"]

FEW = 2048
"""Up to so many samples one program a node is faster than passes over all samples."""


def traverse_forward(s: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Routes z, (n, T), and node masses a, (T,), of split scores s, (n, S)."""
    s, weight = s.contiguous(), None if weight is None else weight.contiguous()
    nodes = n_nodes(depth_of_splits(s.shape[1]))
    z, a = s.new_empty(s.shape[0], nodes), s.new_empty(nodes)
    if s.shape[0] <= FEW:
        _forward_few(s, lam, weight, z, a)
    else:
        _forward_many(s, lam, weight, z, a)
    return z, a


def traverse_backward(
    grad_z: Tensor, grad_a: Tensor, s: Tensor, a: Tensor, lam: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the scores, of lam and of the sample weights."""
    s, weight = s.contiguous(), None if weight is None else weight.contiguous()
    grad_z, grad_a = grad_z.contiguous(), grad_a.contiguous()
    n, depth, options = s.shape[0], depth_of_splits(s.shape[1]), _options(s, weight)
    slope = torch.empty_like(a)
    if n <= FEW:
        args = s, weight, lam, a, grad_z, grad_a, slope, n
        node_slope_kernel[(a.numel(),)](*args, **options, BLOCK=_node_block(n), num_warps=4)
    else:
        tile, programs = _tile(depth), _programs(s.device)
        partial = s.new_empty(programs, 2, 2 << depth)
        pull_kernel[(programs,)](s, weight, a, grad_z, partial, n, **options, **tile)
        slope_kernel[(triton.cdiv(2 << depth, 16),)](partial, lam, a, grad_a, slope, programs, DEPTH=depth, BLOCK=16)
    grad_s, grad_weight = torch.empty_like(s), s.new_empty(n)
    if n > 0:
        tile = _tile(depth)
        args = s, weight, a, slope, grad_z, grad_s, grad_weight, n
        gradients_kernel[(triton.cdiv(n, tile["BLOCK"]),)](*args, **options, **tile)
    return grad_s, -(slope * a).sum(), grad_weight


def _forward_few(s: Tensor, lam: Tensor, weight: Tensor | None, z: Tensor, a: Tensor) -> None:
    n, depth, options = s.shape[0], depth_of_splits(s.shape[1]), _options(s, weight)
    roots, block = torch.empty_like(a), _node_block(n)
    args = s, weight, lam, None, roots, n
    newton_kernel[(a.numel(),)](*args, **options, BLOCK=block, ONE_BLOCK=n <= block, RESUME=False, num_warps=4)
    _cap(roots, lam, None, a, depth)
    if n > 0:
        tile = _tile(depth)
        args = s, weight, a, None, z, None, n
        routes_kernel[(triton.cdiv(n, tile["BLOCK"]),)](*args, **options, **tile, CHECK=False, GUARDED=False)


def _forward_many(s: Tensor, lam: Tensor, weight: Tensor | None, z: Tensor, a: Tensor) -> None:
    """Three passes find the roots; the pass that writes z checks them and, seldom, marks nodes for another round."""
    n, depth, options = s.shape[0], depth_of_splits(s.shape[1]), _options(s, weight)
    tile, programs, columns = _tile(depth), _programs(s.device), 2 << depth
    roots, points, high = torch.empty_like(a), s.new_empty(4, columns), s.new_empty(columns)
    partial = s.new_empty(programs, 8, columns)
    unsettled = torch.empty_like(a, dtype=torch.int32)
    pending = unsettled.new_zeros(1)

    def bracket(first: bool, guarded: bool) -> None:
        sums_kernel[(programs,)](
            s, weight, points, pending, partial, n, **options, **tile, FIRST=first, GUARDED=guarded
        )
        refine_kernel[(triton.cdiv(columns, 16),)](
            partial, lam, points, pending, high, roots, programs, DEPTH=depth, BLOCK=16, FIRST=first, GUARDED=guarded
        )

    def route(guarded: bool) -> None:
        _cap(roots, lam, pending if guarded else None, a, depth)
        args = s, weight, a, pending, z, partial, n
        routes_kernel[(programs,)](*args, **options, **tile, CHECK=not guarded, GUARDED=guarded)

    for index in range(3):
        bracket(first=index == 0, guarded=False)
    route(guarded=False)
    args = partial, lam, a, unsettled, pending, programs
    check_kernel[(triton.cdiv(columns, 16),)](*args, DEPTH=depth, BLOCK=16)
    bracket(first=False, guarded=True)
    args = s, weight, lam, unsettled, roots, n
    newton_kernel[(a.numel(),)](*args, **options, BLOCK=1024, ONE_BLOCK=False, RESUME=True, num_warps=4)
    route(guarded=True)


def _cap(roots: Tensor, lam: Tensor, pending: Tensor | None, a: Tensor, depth: int) -> None:
    grid = (triton.cdiv(a.numel(), 128),)
    cap_kernel[grid](roots, lam, pending, a, DEPTH=depth, BLOCK=128, GUARDED=pending is not None)


def _options(s: Tensor, weight: Tensor | None) -> dict[str, int | bool]:
    return {"DEPTH": depth_of_splits(s.shape[1]), "SPLITS": s.shape[1], "WEIGHTED": weight is not None}


def _tile(depth: int) -> dict[str, int]:
    """Rows of a tile and warps that share it: about 2,000 values, 16 a thread, more only where one row has more."""
    columns = 2 << depth
    return {"BLOCK": max(1, min(128, 2048 // columns)), "num_warps": max(4, columns // 512)}


def _node_block(n: int) -> int:
    return max(16, min(1024, triton.next_power_of_2(n)))


@functools.cache
def _programs(device: torch.device) -> int:
    """Programs of a pass over all samples: enough to fill the device, few enough that their sums are quickly added."""
    return 4 * int(torch.cuda.get_device_properties(device).multi_processor_count)
