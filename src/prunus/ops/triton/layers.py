"""The tree in layers of three levels, and the samples that matter to each subtree of a layer.

u never grows along a path. If a sample's u at the root of a subtree is below all roots of phi, or all masses, in the
subtree, the sample takes no part in them. So samples are sent down layer by layer: for every subtree of a layer and
every block of rows there is a list of the rows whose u at the subtree's root is at least the subtree's bound, with
their u. The kernels that sum over samples work on these lists. Their lanes are samples, and the loop over the few nodes
of a subtree is unrolled.

Subtrees are numbered through all layers from the top (`index`). The subtree at the root of the tree has all rows and no
list. The list of subtree `index` and block b begins at ((index - 1) * blocks + b) * block_rows.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.heap import depth_of_splits
from prunus.ops.triton.tiles import kernel

__all__ = [
    "FIRST_BOUND",
    "NARROW",
    "OPEN",
    "SOLVED",
    "Lists",
    "add_groups",
    "arrivals",
    "blocks_together",
    "first_index",
    "group_lanes",
    "groups_of",
    "levels_above",
    "load_weight",
    "node_of",
    "one_of",
    "subtree",
]

HEIGHT = 3
OPEN, SOLVED, NARROW = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
"""States of a node whose root is searched for: see `brackets`."""

FIRST_BOUND = tl.constexpr(0.5)
"""The smallest u that the first pass over lists uses."""

SECOND, LOWER = tl.constexpr(4), tl.constexpr(16)
"""How many blocks of a subtree one program sums over, in the second layer and in lower ones, whose lists are short."""

MAX_BLOCKS = 256
"""The largest number of blocks: their sums are added in one step."""


class Lists:
    """Lists of the rows that matter to each subtree, for scores s, (n, splits). They are empty until `descend`.

    row and u have shape (subtrees - 1, blocks, block_rows), count has shape (subtrees - 1, blocks). All layers have
    three levels, except that the first has the levels that remain.
    """

    def __init__(self, s: Tensor) -> None:
        self.n, self.depth = s.shape[0], depth_of_splits(s.shape[1])
        self.block_rows = max(128, triton.next_power_of_2(triton.cdiv(self.n, MAX_BLOCKS)))
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
        """Arguments of every kernel over the lists."""
        return {"ROWS": self.block_rows, "TOP": self.top_height}

    @property
    def programs(self) -> int:
        """Programs of a kernel that sums over all lists; in lower layers one program sums over several blocks."""
        together = [1, SECOND.value] + [LOWER.value] * self.layers
        return sum(self.subtrees(layer) * triton.cdiv(self.blocks, together[layer]) for layer in range(self.layers))

    def chunk(self, layer: int) -> dict[str, int]:
        """Lanes and warps for one list; below the top layer the lists are short."""
        lanes = min(self.block_rows, 256) if layer == 0 else 64
        return {"CHUNK": lanes, "num_warps": lanes // 32}

    def descend(self, s: Tensor, weight: Tensor | None, bound: Tensor | None) -> None:
        """Fill the lists. bound, (subtrees - 1,), is FIRST_BOUND for all if it is None."""
        for layer in range(self.layers - 1):
            descend_kernel[(self.blocks, self.subtrees(layer))](
                s, weight, bound, self.row, self.u, self.count, self.n, self.blocks,
                SPLITS=s.shape[1], WEIGHTED=weight is not None, LAYER=layer, **self.shape, **self.chunk(layer),
            )  # fmt: skip

    def bounds(self, values: Tensor, state: Tensor | None) -> Tensor:
        """For each subtree the smallest value of its unsolved nodes or, without states, of its values in (0, 1)."""
        bound = values.new_empty(self.u.shape[0])
        if self.layers > 1:
            bound_kernel[(bound.numel(),)](
                values, state, bound, DEPTH=self.depth, LAYERS=self.layers, TOP=self.top_height, num_warps=1
            )
        return bound


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
    """How many blocks of a subtree one program sums over; `Lists.programs` must agree."""
    return 1 if LAYER == 0 else (SECOND if LAYER == 1 else LOWER)


@triton.jit
def load_weight(weight_ptr, row, valid, WEIGHTED: tl.constexpr):
    """Weights of some rows; an invalid weight counts as 0."""
    weight = tl.where(valid, 1.0, 0.0)
    if WEIGHTED:
        weight = tl.load(weight_ptr + row, mask=valid, other=0.0)
        weight = tl.where((weight >= 0.0) & (weight < float("inf")), weight, 0.0)
    return weight


@triton.jit
def group_lanes(
    count_ptr, n, blocks, index, group, TOGETHER: tl.constexpr, IS_TOP: tl.constexpr, ROWS: tl.constexpr,
    LANES: tl.constexpr,
):  # fmt: skip
    """Distributes LANES lanes over the lists of a group of blocks, so that loads from all these lists overlap.

    Returns for each lane its block, its place among the lanes of that block, and the begin and length of the block's
    list.
    """
    lane = tl.arange(0, LANES)
    block = group * TOGETHER + lane // (LANES // TOGETHER)
    here = (index - 1) * blocks + block
    count = tl.minimum(n - block * ROWS, ROWS)
    if not IS_TOP:
        count = tl.load(count_ptr + here, mask=block < blocks, other=0)
    return block, lane % (LANES // TOGETHER), here.to(tl.int64) * ROWS, count


@triton.jit
def arrivals(weight_ptr, row_ptr, u_ptr, begin, place, count, first_row, WEIGHTED: tl.constexpr, IS_TOP: tl.constexpr):
    """Rows at some places of lists, their u at the subtree's root, and which lanes are in use. Others have u = -1."""
    valid = place < count
    if IS_TOP:
        row = (first_row + place).to(tl.int64)
        u = tl.where(valid, 1.5, -1.0)
        if WEIGHTED:
            weight = tl.load(weight_ptr + row, mask=valid, other=0.0)
            u = tl.where((weight >= 0.0) & (weight < float("inf")), u, float("nan"))
    else:
        row = tl.load(row_ptr + begin + place, mask=valid, other=0).to(tl.int64)
        u = tl.load(u_ptr + begin + place, mask=valid, other=-1.0)
    return row, u, valid


@triton.jit
def subtree(u, s_ptr, row, valid, root, SPLITS: tl.constexpr, LEVELS: tl.constexpr):
    """u of the nodes of a subtree in heap order, a tuple of 2**LEVELS - 1 vectors, and the scores of its splits.

    A NaN score makes the u below it NaN, in the nodes that the row reaches.
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
def node_of(root, NODE: tl.constexpr):
    """Heap index in the tree of the NODE-th node of the subtree at root."""
    if NODE == 0:
        node = root
    elif NODE < 3:
        node = 2 * root + NODE
    else:
        node = 4 * root + NODE
    return node


@kernel()
def bound_kernel(values_ptr, state_ptr, bound_ptr, DEPTH: tl.constexpr, LAYERS: tl.constexpr, TOP: tl.constexpr):
    """The bound of subtree program_id + 1, over all nodes below its root: see `Lists.bounds`."""
    index = tl.program_id(0) + 1
    for layer in tl.static_range(1, LAYERS):
        place = index - first_index(layer, TOP)
        if (place >= 0) & (place < (1 << levels_above(layer, TOP))):
            root = (1 << levels_above(layer, TOP)) - 1 + place
            smallest = float("inf")
            for level in tl.static_range(DEPTH + 1 - TOP - 3 * (layer - 1)):
                node = ((root + 1) << level) - 1 + tl.arange(0, 1 << level)
                value = tl.load(values_ptr + node)
                if state_ptr is None:
                    is_relevant = (value > 0.0) & (value < 1.0)
                else:
                    is_relevant = tl.load(state_ptr + node) != SOLVED
                smallest = tl.minimum(smallest, tl.min(tl.where(is_relevant, value, float("inf"))))
            tl.store(bound_ptr + index - 1, smallest)


@triton.jit
def places_among(chosen, SETS: tl.constexpr):
    """For each of SETS sets of lanes: the number of its lanes before each lane, and their number in all.

    Four sets are counted at once, each in 16 bits of an integer.
    """
    places = ()
    numbers = ()
    for first in tl.static_range(0, SETS, 4):
        packed = chosen[first].to(tl.int64)
        for k in tl.static_range(1, 4):
            if first + k < SETS:
                packed += chosen[first + k].to(tl.int64) << (16 * k)
        before = tl.cumsum(packed, 0) - packed
        total = tl.sum(packed, 0)
        for k in tl.static_range(4):
            if first + k < SETS:
                places = places + (((before >> (16 * k)) & 0xFFFF).to(tl.int32),)
                numbers = numbers + (((total >> (16 * k)) & 0xFFFF).to(tl.int32),)
    return places, numbers


@kernel()
def descend_kernel(
    s_ptr, weight_ptr, bound_ptr, row_ptr, u_ptr, count_ptr, n, blocks,
    SPLITS: tl.constexpr, WEIGHTED: tl.constexpr, LAYER: tl.constexpr,
    ROWS: tl.constexpr, TOP: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Fills the lists of the subtrees below one subtree of LAYER for one block, in the order of the rows."""
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
    bounds = ()
    for side in tl.static_range(1 << HEIGHT):
        counts = counts + (count * 0,)
        if bound_ptr is None:
            bounds = bounds + (FIRST_BOUND,)
        else:
            bounds = bounds + (tl.load(bound_ptr + first_index(LAYER + 1, TOP) + (place << HEIGHT) - 1 + side),)
    for start in range(0, count, CHUNK):
        place_here = start + tl.arange(0, CHUNK)
        row, u, valid = arrivals(weight_ptr, row_ptr, u_ptr, begin, place_here, count, block * ROWS, WEIGHTED, IS_TOP)
        below, scores = subtree(u, s_ptr, row, valid, root, SPLITS, HEIGHT + 1)
        alive = ()
        for side in tl.static_range(1 << HEIGHT):
            alive = alive + (below[(1 << HEIGHT) - 1 + side] >= bounds[side],)
        places, numbers = places_among(alive, 1 << HEIGHT)
        counted = ()
        for side in tl.static_range(1 << HEIGHT):
            at = (child + side * blocks).to(tl.int64) * ROWS + counts[side] + places[side]
            tl.store(row_ptr + at, row.to(tl.int32), mask=alive[side])
            tl.store(u_ptr + at, below[(1 << HEIGHT) - 1 + side], mask=alive[side])
            counted = counted + (counts[side] + numbers[side],)
        counts = counted
    for side in tl.static_range(1 << HEIGHT):
        tl.store(count_ptr + child + side * blocks, counts[side])


@triton.jit
def groups_of(nodes, blocks, LAYERS: tl.constexpr, TOP: tl.constexpr):
    """Number of groups of blocks that have sums for each node."""
    groups = tl.zeros_like(nodes) + blocks
    for layer in tl.static_range(1, LAYERS):
        here = nodes + 1 >= (1 << levels_above(layer, TOP))
        groups = tl.where(here, tl.cdiv(blocks, blocks_together(layer)), groups)
    return groups


@triton.jit
def add_groups(partial_ptr, nodes, groups, OF: tl.constexpr, T: tl.constexpr):
    """The OF sums, (OF, nodes), of all groups, in double precision. One load for all saves latency."""
    MAX_GROUPS: tl.constexpr = 256
    group = tl.arange(0, MAX_GROUPS).to(tl.int64)[:, None, None]
    which = tl.arange(0, OF)[None, :, None]
    at = partial_ptr + (group * OF + which) * T + nodes[None, None, :]
    mask = (group < groups[None, None, :]) & (nodes[None, None, :] < T)
    return tl.sum(tl.load(at, mask=mask, other=0.0).to(tl.float64), 0)


@triton.jit
def one_of(sums, WHICH: tl.constexpr):
    """One row of a matrix of sums."""
    return tl.sum(tl.where(tl.arange(0, sums.shape[0])[:, None] == WHICH, sums, 0.0), 0)
