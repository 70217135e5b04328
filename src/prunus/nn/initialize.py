"""Where training starts: splits that spread samples evenly over the leaves."""

from typing import Protocol, TypeGuard

import torch
from torch import Tensor, nn

from prunus.errors import InputTypeError, InputValueError
from prunus.nn.modes import evaluating
from prunus.ops.checks import shape

__all__ = ["can_spread", "spread_splits"]


class AffineSplit(Protocol):
    """A split whose scores, up to a function that keeps their signs, are an affine map of features."""

    scores: nn.Linear

    def features(self, x: Tensor) -> Tensor: ...


@torch.no_grad()
def spread_splits(
    split: nn.Module, x: Tensor, *, spread: float = 1.0, generator: torch.Generator | None = None
) -> None:
    """Set splits so that half of the samples that reach each of them goes either way.

    Directions are drawn at random, then, from the root down, each is shifted to the median of the samples that
    arrive and scaled so that their scores have the standard deviation `spread`: a sample is undecided, that is routed
    to both sides, where its score lies within 1/2 of zero.

    Parameters
    ----------
    split : LinearSplit, ELUSplit, MLPSplit or a module with their `scores` and `features`
    x : Tensor of shape (n, d)
        Samples, at best some thousands.
    spread : float
        Standard deviation of the scores among the samples that reach a split.
    generator : torch.Generator, optional
        Where random numbers come from.

    Examples
    --------
    >>> from prunus.nn import LinearSplit
    >>> from prunus.ops.routes import tree_leaves
    >>> split, x = LinearSplit(5, depth=3), torch.randn(800, 5)
    >>> spread_splits(split, x)
    >>> tree_leaves(split(x)).bincount()[7:]
    tensor([100, 100, 100, 100, 100, 100, 100, 100])
    """
    if not _is_affine(split):
        raise InputTypeError(
            f"spread_splits needs a split with `scores`, an nn.Linear with a bias, and `features`, "
            f"got {type(split).__name__}"
        )
    if not len(x):
        raise InputValueError(f"spread_splits needs a sample at least, got x.shape={shape(x)}")
    with evaluating(split):
        features = split.features(x)
    weight, bias = split.scores.weight, split.scores.bias
    weight.copy_(torch.randn(weight.shape, generator=generator).to(weight))
    _place_splits(features, weight, bias, spread)


def can_spread(split: nn.Module) -> bool:
    """Whether `spread_splits` can set a split: it has `scores`, a linear layer with a bias, and `features`."""
    # Not by isinstance: since Python 3.12 that overlooks what a module keeps out of its __dict__.
    scores = getattr(split, "scores", None)
    return isinstance(scores, nn.Linear) and scores.bias is not None and callable(getattr(split, "features", None))


def _is_affine(split: nn.Module) -> TypeGuard[AffineSplit]:
    return can_spread(split)


def _place_splits(features: Tensor, weight: Tensor, bias: Tensor, spread: float) -> None:
    """Shift and scale directions, (S, d), in place, by the samples that arrive; set thresholds, (S,)."""
    arrived = {0: torch.arange(len(features), device=features.device)}
    for t in range(weight.shape[0]):
        rows = arrived.pop(t)
        everywhere = features @ weight[t]
        projected = everywhere[rows] if len(rows) > 1 else everywhere  # an empty split takes all samples
        bias[t] = -projected.quantile(0.5, interpolation="midpoint")
        # Samples that are all but equal do not make a giant of a direction.
        scale = spread / torch.maximum(projected.std(correction=0), 1e-3 * everywhere.std(correction=0))
        scale = scale.nan_to_num(nan=1.0, posinf=1.0)  # where all samples are equal
        weight[t] *= scale
        bias[t] *= scale
        right = features[rows] @ weight[t] + bias[t] >= 0
        arrived[2 * t + 1], arrived[2 * t + 2] = rows[~right], rows[right]
