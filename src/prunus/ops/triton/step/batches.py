"""The samples of a batch, gathered from a table in random orders, and the numbers of a step, all on the device."""

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.triton.tiles import kernel

__all__ = ["Numbers", "gather", "number", "write_orders"]


class Numbers(NamedTuple):
    """Where the numbers of a step are."""

    table: Tensor
    """(steps, count), in single precision."""
    step: Tensor
    """The number of the next step, an int64 without dimensions."""
    ahead: int
    """How many steps lie between that step and the one that is meant."""

    @property
    def width(self) -> int:
        """How many numbers a step has."""
        return self.table.shape[1]


@triton.jit
def number(table_ptr, step_ptr, ahead, COUNT: tl.constexpr, WHICH: tl.constexpr):
    """One of the numbers of a step."""
    return tl.load(table_ptr + (tl.load(step_ptr) + ahead) * COUNT + WHICH)


def gather(
    table: Tensor, order: Tensor | None, done: Tensor, numbers: Numbers, batch: int, inputs: Tensor, rest: Tensor,
    columns: int,
) -> None:  # fmt: skip
    """Copy rows of a table, (trees, rows, columns + more), to a batch: the first columns to `inputs`, others to `rest`.

    Parameters
    ----------
    table : Tensor of shape (trees, rows, columns + more)
        It may be a part of the rows of a larger table.
    order : int64 Tensor of shape (trees, rows), optional
        The rows of the epoch in their order, of which the step takes the next; None takes the first rows.
    done : int64 Tensor of shape ()
        How many rows of the epoch came before those of the order.
    numbers : Numbers
        They say which step it is.
    batch : int
        Number of rows in each step but the last.
    inputs : Tensor of shape (trees, n, at least columns)
    rest : Tensor of shape (trees, n, more)
    columns : int
    """
    trees, n, width = inputs.shape
    rows, block = 32, min(64, triton.next_power_of_2(table.shape[2]))
    gather_kernel[(triton.cdiv(n, rows), trees)](
        table, order, numbers.step, done, inputs, rest, numbers.ahead, batch, n, table.stride(0),
        0 if order is None else order.stride(0),
        COLUMNS=columns, WIDTH=width, REST=rest.shape[2], ROWS=rows, BLOCK=block,
    )  # fmt: skip


@kernel(do_not_specialize=("ahead", "batch", "n", "table_stride", "order_stride"))
def gather_kernel(
    table_ptr, order_ptr, step_ptr, done_ptr, inputs_ptr, rest_ptr, ahead, batch, n, table_stride, order_stride,
    COLUMNS: tl.constexpr, WIDTH: tl.constexpr, REST: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copies ROWS rows of one tree's table."""
    tree = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS).to(tl.int64)
    row = i
    if order_ptr is not None:
        at = (tl.load(step_ptr) + ahead) * batch - tl.load(done_ptr) + i
        row = tl.load(order_ptr + tree * order_stride + at, mask=i < n, other=0)
    for start in tl.static_range(0, COLUMNS + REST, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = (i[:, None] < n) & (column[None, :] < COLUMNS + REST)
        at = table_ptr + tree * table_stride + row[:, None] * (COLUMNS + REST) + column[None, :]
        values = tl.load(at, mask=mask, other=0.0)
        to_inputs = inputs_ptr + (tree * n + i[:, None]) * WIDTH + column[None, :]
        tl.store(to_inputs, values, mask=mask & (column[None, :] < COLUMNS))
        to_rest = rest_ptr + (tree * n + i[:, None]) * REST + column[None, :] - COLUMNS
        tl.store(to_rest, values, mask=mask & (column[None, :] >= COLUMNS))


ORDERED = 512
"""Number of samples whose places a program computes."""
ROUNDS = 8
"""With this many rounds, orders of a few samples pass tests of randomness, too."""
MIN_BITS = 8
"""Numbers of samples have at least this many bits."""
FACTORS = 0x9E3779B1, 0x85EBCA6B
"""Odd numbers, by which a product mixes the bits of another number."""


def write_orders(counts: Tensor, keys: Tensor, out: Tensor) -> None:
    """Write orders that depend on keys alone, (trees, most samples); no numbers have to be sorted for them.

    The two halves of a sample's bits change in turns, each by a mixture of the other half and a key. That can be
    undone, so no two samples get the same place. Where the result is no number of a sample, it is changed again.

    Parameters
    ----------
    counts : int64 Tensor of shape (trees,)
        Number of samples of each tree.
    keys : int64 Tensor of shape (trees, ROUNDS)
        Numbers from 0 to 2**32 - 1.
    out : int64 Tensor of shape (trees, most samples)
    """
    trees, most = out.shape
    orders_kernel[(triton.cdiv(most, ORDERED), trees)](
        counts, keys, out, most, ROUNDS=ROUNDS, MIN_BITS=MIN_BITS, FIRST=FACTORS[0], SECOND=FACTORS[1], BLOCK=ORDERED
    )


@triton.jit
def mixed(number, FIRST: tl.constexpr, SECOND: tl.constexpr):
    """The 32 bits of a number, each of which then depends on all of them."""
    number = number * FIRST
    number = number ^ (number >> 15)
    number = number * SECOND
    return number ^ (number >> 13)


@kernel(do_not_specialize=("most",))
def orders_kernel(
    counts_ptr, keys_ptr, out_ptr, most,
    ROUNDS: tl.constexpr, MIN_BITS: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The places of BLOCK samples of one tree. Halves of their numbers have 24 bits at most, and products 32."""
    tree = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    count = tl.load(counts_ptr + tree)
    bits = tl.full([], MIN_BITS, tl.int64)
    for more in tl.static_range(MIN_BITS, 48):
        bits += tl.where((count - 1) >> more > 0, 1, 0)
    low = bits // 2
    one = tl.full([], 1, tl.int64)
    high_mask = ((one << (bits - low)) - 1).to(tl.uint32)
    low_mask = ((one << low) - 1).to(tl.uint32)
    number = place
    changing = place < count
    while tl.max(changing.to(tl.int32)) > 0:
        high, rest = (number >> low).to(tl.uint32), number.to(tl.uint32) & low_mask
        for turn in tl.static_range(ROUNDS):
            key = tl.load(keys_ptr + tree * ROUNDS + turn).to(tl.uint32)
            if turn % 2 == 0:
                high = high ^ (mixed(rest ^ key, FIRST, SECOND) & high_mask)
            else:
                rest = rest ^ (mixed(high ^ key, FIRST, SECOND) & low_mask)
        number = tl.where(changing, (high.to(tl.int64) << low) | rest.to(tl.int64), number)
        changing = changing & (number >= count)
    tl.store(out_ptr + tree * most + place, number, mask=place < most)
