"""Node masses of a tree from more samples than fit in memory at once."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from prunus.ops import reference

__all__ = ["streamed_masses"]


def streamed_masses(
    chunks: Callable[[], Iterable[tuple[Tensor, Tensor | None]]], lam: float, start: Tensor
) -> Tensor:
    """The node masses of `tree_traverse`, solved over chunks of the samples.

    Each Newton step is one pass over the chunks; a good start saves passes and does not change the result beyond
    rounding.

    Parameters
    ----------
    chunks : callable
        Gives a fresh iterable of (scores of shape (m, 2**depth - 1), weights of shape (m,) or None) at each call.
    lam : float
        Pruning strength for the sum over all samples. 0 prunes nothing.
    start : Tensor of shape (2**(depth + 1) - 1,)
        A guess of the masses, for example those of a part of the samples.

    Examples
    --------
    >>> s = torch.tensor([[0.25], [0.75]])
    >>> streamed_masses(lambda: [(s[:1], None), (s[1:], None)], 0.5, torch.ones(3))
    tensor([1.0000, 0.1667, 0.8333])
    """
    if lam == 0:
        return torch.ones_like(start)
    a = _step(chunks, lam, start.double())  # from any start the first step lands left of the roots
    while bool(((proposed := _step(chunks, lam, a)) > a + 1e-9).any()):
        a = torch.maximum(a, proposed)
    return a.to(start.dtype)


def _step(chunks: Callable[[], Iterable[tuple[Tensor, Tensor | None]]], lam: float, a: Tensor) -> Tensor:
    total, held = torch.zeros_like(a), torch.zeros_like(a)
    for s, weight in chunks():
        column = s.new_ones(1, 1) if weight is None else weight.unsqueeze(1)
        more_total, more_held = reference.sums_above(reference.path_rewards(s) + 0.5, column, a.to(s.dtype))
        total += more_total
        held += more_held
    return (total / (lam + held)).clamp(max=1.0)
