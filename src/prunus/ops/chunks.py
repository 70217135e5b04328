"""Functions of rows that are computed in chunks of one fixed size."""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["chunked"]


@torch.no_grad()
def chunked(function: Callable[[Tensor], Tensor], x: Tensor, size: int = 2048) -> Tensor:
    """``function(x)``, where no row's result depends on which other rows there are, not even in its last bit.

    Matrix products of another shape may round differently. So the function is always called with `size` rows; the last
    chunk is filled up with zeros.

    Parameters
    ----------
    function : callable
        Maps a tensor of shape (size, ...) to one of shape (size, ...), on any device, each row by itself.
    x : Tensor of shape (n, ...)
        The rows; there may be none.
    size : int
        Rows of a chunk.

    Returns
    -------
    Tensor of shape (n, ...), on the CPU and without a gradient

    Examples
    --------
    >>> chunked(lambda rows: 2 * rows, torch.tensor([[1.0], [2.0]]))
    tensor([[2.],
            [4.]])
    """
    results = []
    for begin in range(0, max(len(x), 1), size):  # without rows one chunk shows the shape of the result
        rows = x[begin : begin + size]
        count = len(rows)
        if count < size:
            rows = torch.cat((rows, rows.new_zeros(size - count, *rows.shape[1:])))
        results.append(function(rows)[:count].cpu())
    return torch.cat(results)
