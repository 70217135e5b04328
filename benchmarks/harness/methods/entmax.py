"""Sparse choices with a gradient: 1.5-entmax and its form for two (Peters, Niculae and Martins, 2019), of our own."""

from typing import Any

import torch
from torch import Tensor

__all__ = ["entmax15", "entmoid15"]


class _Entmax15(torch.autograd.Function):
    """Along the first dimension."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        p = (z / 2 - _threshold(z / 2)).clamp(min=0).square()
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (p,) = ctx.saved_tensors
        root = p.sqrt()  # dp/dz at a fixed threshold
        pull = gradient * root
        slope: Tensor = pull - root * pull.sum(0) / root.sum(0)
        return slope


def _threshold(z: Tensor) -> Tensor:
    """t with sum of max(z - t, 0)^2 = 1 along the first dimension.

    If the k largest are those above t, then t solves a quadratic equation of their mean and variance, and it does so
    for the largest k whose smallest member is above the t found.
    """
    ordered = z.sort(dim=0, descending=True).values
    k = torch.arange(1, len(z) + 1, dtype=z.dtype, device=z.device).view(-1, *([1] * (z.ndim - 1)))
    shifted = ordered - ordered[:1]  # the largest is 0: no cancellation for large numbers
    mean = shifted.cumsum(0) / k
    spread = k * (shifted.square().cumsum(0) / k - mean.square())
    thresholds = mean - ((1 - spread) / k).clamp(min=0).sqrt()
    support = (thresholds <= shifted).sum(0, keepdim=True).clamp(min=1)
    return thresholds.gather(0, support - 1) + ordered[:1]


def entmax15(z: Tensor) -> Tensor:
    """Sparse shares along the first dimension: p that maximizes p·z + H(p) over the simplex.

    H is Tsallis' entropy of order 1.5: ``H(p) = 4/3 (1 - sum of p**1.5)``. In closed form ``p = max(z/2 - t, 0)**2``,
    with the t for which they sum to one. The gradient is exact, and computed from p.

    Examples
    --------
    >>> entmax15(torch.tensor([0.0, 0.0, -3.0]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    shares: Tensor = _Entmax15.apply(z)  # type: ignore[no-untyped-call]
    return shares


def entmoid15(x: Tensor) -> Tensor:
    """The first of two sparse shares: entmax15 of [x, 0], which is 0 from -2 on downwards and 1 from 2 on upwards.

    Examples
    --------
    >>> entmoid15(torch.tensor([-2.0, 0.0, 2.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    half = (x / 2).clamp(-1, 1)
    return ((half + (2 - half.square()).sqrt()) / 2).square()
