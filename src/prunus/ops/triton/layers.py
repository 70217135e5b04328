"""The tree in layers of three levels, and the samples that reach each subtree of a layer.

A sample reaches a node if its u there is above 0 (or NaN); where it does not, it reaches nothing below either, and its
z and all its gradients are zero there. So many samples are sent down layer by layer: for every subtree of a layer and
every block of rows there is a list of the rows that reach its root, with their u. The kernels that sum over samples
work on these lists: lanes are samples, and the few nodes of a subtree are unrolled.

Subtrees are numbered through all layers from the top (`index`); the subtree at the root of the tree has all rows and no
list. List `index`, block b, begins at ((index - 1) * blocks + b) * block_rows.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.heap import depth_of_splits

__all__ = ["Lists", "arrivals", "blocks_together", "descend", "first_index", "levels_above", "load_weight", "subtree"]

HEIGHT = 3
MOST_BLOCKS = 256
"""The sums of all blocks are added in one step: no more than this."""


class Lists:
    """Which rows reach the root of each subtree: empty lists for scores s, (n, splits), which `descend` fills.

    row and u have shape (subtrees - 1, blocks, block_rows), count has (subtrees - 1, blocks). All layers have three
    levels but for the first, which has what remains.
    """

    def __init__(self, s: Tensor) -> None:
        self.n, self.depth = s.shape[0], depth_of_splits(s.shape[1])
        self.block_rows = max(128, triton.next_power_of_2(triton.cdiv(self.n, MOST_BLOCKS)))
        self.blocks: int = triton.cdiv(self.n, self.block_rows)
        self.layers: int = triton.cdiv(self.depth + 1, HEIGHT)
        self.top_height = self.depth + 1 - HEIGHT * (self.layers - 1)
        size = (sum(map(self.subtrees, range(1, self.layers))), self.blocks)
        self.row = s.new_empty(*size, self.block_rows, dtype=torch.int32)
        self.u = s.new_empty(*size, self.block_rows)
        self.count = s.new_empty(size, dtype=torch.int32)

    def subtrees(self, layer: int) -> int:
        """Number of subtrees of a layer."""
        return 1 if layer == 0 else int(2 ** (self.top_height + HEIGHT * (layer - 1)))

    @property
    def shape(self) -> dict[str, int]:
        """What every kernel over the lists must know."""
        return {"ROWS": self.block_rows, "TOP": self.top_height}

    @property
    def programs(self) -> int:
        """Programs of a kernel that sums over all lists: in lower layers one takes several blocks of a subtree."""
        together = [1, 2] + [8] * self.layers
        return sum(self.subtrees(layer) * triton.cdiv(self.blocks, together[layer]) for layer in range(self.layers))

    def chunk(self, layer: int) -> dict[str, int]:
        """Lanes and warps for one list: the lists get shorter from layer to layer."""
        lanes = (min(self.block_rows, 256), 128)[layer] if layer < 2 else 32
        return {"CHUNK": lanes, "num_warps": lanes // 32}


def descend(s: Tensor, weight: Tensor | None) -> Lists:
    """Send all samples down the layers."""
    lists = Lists(s)
    for layer in range(lists.layers - 1):
        descend_kernel[(lists.blocks, lists.subtrees(layer))](
            s, weight, lists.row, lists.u, lists.count, lists.n, lists.blocks,
            SPLITS=s.shape[1], WEIGHTED=weight is not None, LAYER=layer, **lists.shape, **lists.chunk(layer),
        )  # fmt: skip
    return lists


@triton.jit
def first_index(LAYER: tl.constexpr, TOP: tl.constexpr):
    """Number of the first subtree of a layer below the top one."""
    return 1 + (1 << TOP) * ((1 << (3 * (LAYER - 1))) - 1) // 7


@triton.jit
def levels_above(LAYER: tl.constexpr, TOP: tl.constexpr):
    """Depth of the roots of a layer below the top one."""
    return TOP + 3 * (LAYER - 1)


@triton.jit
def blocks_together(LAYER: tl.constexpr):
    """How many blocks of a subtree one program sums over; `Lists.programs` counts on it."""
    return 1 if LAYER == 0 else (2 if LAYER == 1 else 8)


@triton.jit
def load_weight(weight_ptr, row, valid, WEIGHTED: tl.constexpr):
    """Weights of some rows: 0 where a weight is no number."""
    weight = tl.where(valid, 1.0, 0.0)
    if WEIGHTED:
        weight = tl.load(weight_ptr + row, mask=valid, other=0.0)
        weight = tl.where((weight >= 0.0) & (weight < float("inf")), weight, 0.0)
    return weight


@triton.jit
def arrivals(
    weight_ptr, row_ptr, u_ptr, begin, start, count, first_row,
    WEIGHTED: tl.constexpr, IS_TOP: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """A chunk of a list: rows, their u at the subtree's root, and which lanes are in use. The others have u = -1."""
    lane = start + tl.arange(0, CHUNK)
    valid = lane < count
    if IS_TOP:
        row = (first_row + lane).to(tl.int64)
        u = tl.where(valid, 1.5, -1.0)
        if WEIGHTED:
            weight = tl.load(weight_ptr + row, mask=valid, other=0.0)
            u = tl.where((weight >= 0.0) & (weight < float("inf")), u, float("nan"))
    else:
        row = tl.load(row_ptr + begin + lane, mask=valid, other=0).to(tl.int64)
        u = tl.load(u_ptr + begin + lane, mask=valid, other=-1.0)
    return row, u, valid


@triton.jit
def subtree(u, s_ptr, row, valid, root, SPLITS: tl.constexpr, LEVELS: tl.constexpr):
    """u of the nodes of a subtree in heap order, a tuple of 2**LEVELS - 1 vectors, and the scores of its splits.

    NaN stays within what is reached.
    """
    below = (u,)
    scores = ()
    for level in tl.static_range(LEVELS - 1):
        for offset in tl.static_range(1 << level):
            above = below[(1 << level) - 1 + offset]
            s = tl.load(s_ptr + row * SPLITS + (((root + 1) << level) - 1 + offset), mask=valid, other=0.0)
            left = tl.minimum(above, 0.5 - s, propagate_nan=tl.PropagateNan.ALL)
            right = tl.minimum(above, 0.5 + s, propagate_nan=tl.PropagateNan.ALL)
            below = below + (tl.where(above <= 0.0, above, left), tl.where(above <= 0.0, above, right))
            scores = scores + (s,)
    return below, scores


@triton.jit
def descend_kernel(
    s_ptr, weight_ptr, row_ptr, u_ptr, count_ptr, n, blocks,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, LAYER: tl.constexpr,
    ROWS: tl.constexpr, TOP: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Fills the lists of the subtrees below one subtree of LAYER, for one block of rows; in the order of the rows."""
    IS_TOP: tl.constexpr = LAYER == 0
    HEIGHT: tl.constexpr = TOP if IS_TOP else 3
    block = tl.program_id(0)
    place = tl.program_id(1)
    first = 0 if IS_TOP else first_index(LAYER, TOP)
    root = 0 if IS_TOP else (1 << levels_above(LAYER, TOP)) - 1 + place
    here = (first + place - 1) * blocks + block
    begin = here.to(tl.int64) * ROWS
    count = tl.minimum(n - block * ROWS, ROWS)
    if not IS_TOP:
        count = tl.load(count_ptr + here)
    child = (first_index(LAYER + 1, TOP) + (place << HEIGHT) - 1) * blocks + block  # list of the first child
    counts = ()
    for side in tl.static_range(1 << HEIGHT):
        counts = counts + (count * 0,)
    for start in range(0, count, CHUNK):
        row, u, valid = arrivals(weight_ptr, row_ptr, u_ptr, begin, start, count, block * ROWS, WEIGHTED, IS_TOP, CHUNK)
        below, scores = subtree(u, s_ptr, row, valid, root, SPLITS, HEIGHT + 1)
        counted = ()
        for side in tl.static_range(1 << HEIGHT):
            value = below[(1 << HEIGHT) - 1 + side]
            alive = (~(value <= 0.0)).to(tl.int32)
            place_in_list = counts[side] + tl.cumsum(alive, 0) - 1
            at = (child + side * blocks).to(tl.int64) * ROWS + place_in_list
            tl.store(row_ptr + at, row.to(tl.int32), mask=alive == 1)
            tl.store(u_ptr + at, value, mask=alive == 1)
            counted = counted + (counts[side] + tl.sum(alive, 0),)
        counts = counted
    for side in tl.static_range(1 << HEIGHT):
        tl.store(count_ptr + child + side * blocks, counts[side])
