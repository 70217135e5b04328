"""Random orders of samples, which are computed where they are needed."""

from collections.abc import Sequence
from importlib.util import find_spec

import torch
from torch import Tensor

__all__ = ["ROUNDS", "keyed_orders", "random_orders"]

ROUNDS = 8
"""With this many rounds, orders of a few samples pass tests of randomness, too."""
MIN_BITS = 8
FACTORS = 0x9E3779B1, 0x85EBCA6B
"""Odd numbers, by which a product mixes the bits of another number."""


def random_orders(counts: Sequence[int], generators: Sequence[torch.Generator], device: torch.device) -> Tensor:
    """Random orders of this many samples each, by one generator each on a device, (orders, most samples).

    Shorter ones are followed by the numbers of samples that are not there.

    >>> random_orders([3], [torch.Generator().manual_seed(0)], torch.device("cpu")).sort().values
    tensor([[0, 1, 2]])
    """
    if device.type == "cpu":
        orders = torch.arange(max(counts)).repeat(len(counts), 1)
        for row, count, generator in zip(orders, counts, generators, strict=True):
            row[:count] = torch.randperm(count, generator=generator)
        return orders
    keys = torch.empty(len(counts), ROUNDS, dtype=torch.int64, device=device)
    for row, generator in zip(keys, generators, strict=True):
        row.random_(0, 1 << 32, generator=generator)
    if device.type == "cuda" and find_spec("triton") is not None:
        from prunus.ops.triton.step.orders import write_orders

        orders = torch.empty(len(counts), max(counts), dtype=torch.int64, device=device)
        write_orders(torch.tensor(counts, device=device), keys, orders, MIN_BITS, FACTORS)
        return orders
    return keyed_orders(counts, keys)


def keyed_orders(counts: Sequence[int], keys: Tensor) -> Tensor:
    """Orders that depend on keys alone, (orders, most samples); no numbers have to be sorted for them.

    The two halves of a sample's bits change in turns, each by a mixture of the other half and a key. That can be
    undone, so no two samples get the same place. Where the result is no number of a sample, it is changed again.

    Parameters
    ----------
    counts : sequence of int
        Number of samples in each order.
    keys : int64 Tensor of shape (orders, rounds)
        Numbers from 0 to 2**32 - 1.

    Examples
    --------
    >>> keyed_orders([5], torch.arange(8).unsqueeze(0)).sort().values
    tensor([[0, 1, 2, 3, 4]])
    """
    count = torch.tensor(counts, device=keys.device).unsqueeze(1)
    bits = torch.tensor([max(MIN_BITS, (n - 1).bit_length()) for n in counts], device=keys.device).unsqueeze(1)
    low = bits // 2
    masks = (1 << (bits - low)) - 1, (1 << low) - 1
    order = torch.arange(max(counts), device=keys.device).repeat(len(counts), 1)
    changing = order < count
    while bool(changing.any()):
        halves = [order >> low, order & masks[1]]
        for turn, key in enumerate(keys.unsqueeze(2).unbind(1)):
            own, other = turn % 2, 1 - turn % 2
            halves[own] = halves[own] ^ (_mixed(halves[other] ^ key) & masks[own])
        order = torch.where(changing, (halves[0] << low) | halves[1], order)
        changing &= order >= count
    return order


def _mixed(number: Tensor) -> Tensor:
    """The 32 bits of a number, each of which then depends on all of them."""
    for factor, shift in zip(FACTORS, (15, 13), strict=True):
        number = (number * factor) & 0xFFFFFFFF
        number = number ^ (number >> shift)
    return number
