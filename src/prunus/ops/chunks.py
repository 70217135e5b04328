"""Functions of rows, applied to chunks of one size."""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["CHUNK", "chunked"]

CHUNK = 2048


def chunked(function: Callable[[Tensor], Tensor], x: Tensor, size: int = CHUNK) -> Tensor:
    """``function(x)``, called with exactly `size` rows at a time, the last ones filled up with zeros."""
    results: list[Tensor] = []
    for begin in range(0, max(len(x), 1), size):
        rows = x[begin : begin + size]
        count = len(rows)
        if count < size:
            rows = torch.cat((rows, rows.new_zeros(size - count, *rows.shape[1:])))
        results.append(function(rows)[:count].cpu())
    return torch.cat(results)
