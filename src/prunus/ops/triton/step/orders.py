"""Random orders of the samples of several trees."""

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.triton.kernels import kernel

__all__ = ["write_orders"]

BLOCK = 512


def write_orders(counts: Tensor, keys: Tensor, out: Tensor, min_bits: int, factors: tuple[int, int]) -> None:
    """Write the orders of `prunus.training.samples.keyed_orders`, (trees, most samples).

    Parameters
    ----------
    counts : int64 Tensor of shape (trees,)
        Number of samples of each tree.
    keys : int64 Tensor of shape (trees, rounds)
        Numbers from 0 to 2**32 - 1.
    out : int64 Tensor of shape (trees, most samples)
    min_bits : int
        Numbers of samples have at least this many bits.
    factors : two ints
        By which numbers are mixed.
    """
    trees, most = out.shape
    orders_kernel[(triton.cdiv(most, BLOCK), trees)](
        counts, keys, out, most, ROUNDS=keys.shape[1], MIN_BITS=min_bits, FIRST=factors[0], SECOND=factors[1],
        BLOCK=BLOCK,
    )  # fmt: skip


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
