"""Node masses of a tree from more samples than fit in memory at once."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from prunus.ops import reference
from prunus.ops.backends import choose_backend, kernels
from prunus.ops.checks import check_lam, check_values, check_weight
from prunus.ops.library import solve_dtype, to_dtype

__all__ = ["streamed_masses"]


Chunks = Callable[[], Iterable[tuple[Tensor, Tensor | None]]]


def streamed_masses(chunks: Chunks, lam: float, start: Tensor) -> Tensor:
    """The node masses of `tree_traverse`, solved over chunks of the samples.

    Each Newton step is one pass over the chunks; a good start saves passes and does not change the result beyond
    rounding.

    Parameters
    ----------
    chunks : callable
        Gives a fresh iterable of (scores of shape (m, 2**depth - 1), weights of shape (m,) or None) at each call.
    lam : float
        Pruning strength for the sum over all samples, at least 0. 0 prunes nothing.
    start : Tensor of shape (2**(depth + 1) - 1,)
        A guess of the masses, for example those of a part of the samples.

    Examples
    --------
    >>> s = torch.tensor([[0.25], [0.75]])
    >>> streamed_masses(lambda: [(s[:1], None), (s[1:], None)], 0.5, torch.ones(3))
    tensor([1.0000, 0.1667, 0.8333])
    """
    strength = check_lam(lam, start, torch.float64)
    if lam == 0:
        return torch.ones_like(start)
    a = _step(chunks, strength, start.double())  # from any start the first step lands left of the roots
    while bool(((proposed := _step(chunks, strength, a)) > a + 1e-9).any()):
        a = torch.maximum(a, proposed)
    return a.to(start.dtype)


def _step(chunks: Chunks, lam: Tensor, a: Tensor) -> Tensor:
    total, held = torch.zeros_like(a), torch.zeros_like(a)
    for s, weight in chunks():
        solved = to_dtype(s, solve_dtype(s))  # sums of thousands do not fit in half precision
        checked = check_weight(weight, solved, solved.dtype)
        check_values(lam, checked)
        more_total, more_held = _sums(solved, checked, a.to(solved.dtype))
        total += more_total
        held += more_held
    return (total / (lam + held)).clamp(max=1.0)


def _sums(s: Tensor, weight: Tensor | None, a: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of a chunk; a sample whose weight is no number takes no part, as in `tree_traverse`."""
    name = choose_backend("auto", s.device.type, s.dtype)
    if name == "cpp":
        sums: tuple[Tensor, Tensor] = kernels(name).sums_above(s, weight, a)  # type: ignore[attr-defined]
        return sums
    valid = s.new_ones(1, 1) if weight is None else weight.where((weight >= 0) & (weight < torch.inf), 0.0).unsqueeze(1)
    return reference.sums_above(reference.path_rewards(s) + 0.5, valid, a)
