"""The start of training: splits that spread samples evenly over the leaves."""

from typing import Protocol, TypeGuard

import torch
from torch import Tensor, nn

from prunus.errors import InputTypeError, InputValueError
from prunus.nn.checks import evaluating
from prunus.ops.library import shape

__all__ = ["can_spread", "spread_splits"]

BENT_SAMPLES, BENT_FEATURES = 4_096, 256
"""This many samples determine where the root starts; with more features than this it would take too long."""
SAMPLES_OF_OTHERS = 256
"""About this many samples place the splits that none reach."""


class AffineSplit(Protocol):
    """A split whose scores are a linear layer of features, perhaps followed by a function that keeps their signs."""

    scores: nn.Linear

    def features(self, x: Tensor) -> Tensor: ...


@torch.no_grad()
def spread_splits(
    split: nn.Module,
    x: Tensor,
    *,
    wanted: Tensor | None = None,
    spread: float = 1.0,
    generator: torch.Generator | None = None,
) -> None:
    """Set splits so that each sends half of the samples that reach it to the left and half to the right.

    Directions are drawn at random, but for that of the root if it is known what is wanted. From the root down, each
    split is then shifted to the median of the samples that reach it, and scaled so that their scores have the standard
    deviation `spread`. A sample whose score lies between -1/2 and 1/2 is undecided, that is, routed to both sides.

    Parameters
    ----------
    split : LinearSplit, ELUSplit, MLPSplit or SparseMLPSplit
        The splits to set; or another module with the attribute `scores`, a linear layer, and the method `features`.
    x : Tensor of shape (n, d)
        Samples; a few thousand are enough.
    wanted : Tensor of shape (n, k), optional
        What is wanted of the samples. The root then starts in the direction in which it bends most, that is, has the
        largest second derivative on average: with other random numbers a tree then often begins with the same columns.
    spread : float, default=1.0
        Standard deviation of the scores among the samples that reach a split.
    generator : torch.Generator, optional
        Source of the random numbers.

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
            "split must have `scores`, an nn.Linear with a bias, and a method `features` for spread_splits, "
            f"got {type(split).__name__}"
        )
    if not len(x):
        raise InputValueError(f"x must have at least one sample for spread_splits, got x.shape={shape(x)}")
    if wanted is not None and (wanted.ndim != 2 or len(wanted) != len(x)):
        raise InputValueError(f"wanted must have shape ({len(x)}, k) for spread_splits, got {shape(wanted)}")
    with evaluating(split):
        features = split.features(x)
    weight, bias = split.scores.weight, split.scores.bias
    weight.copy_(torch.randn(weight.shape, generator=generator).to(weight))
    weight *= features.any(0)  # what is always zero has no weight, so that splits of few columns do not choose it
    if wanted is not None and len(weight):
        direction = _bending_direction(features[:BENT_SAMPLES], wanted[:BENT_SAMPLES])
        weight[0] = weight[0] if direction is None else direction.to(weight)
    _place_splits(features, weight, bias, spread)


def can_spread(split: nn.Module) -> bool:
    """Whether `spread_splits` can set a split: it has `scores`, a linear layer with a bias, and `features`."""
    # isinstance would not do: since Python 3.12 it misses attributes that a module does not store in its __dict__.
    scores = getattr(split, "scores", None)
    return isinstance(scores, nn.Linear) and scores.bias is not None and callable(getattr(split, "features", None))


def _is_affine(split: nn.Module) -> TypeGuard[AffineSplit]:
    return can_spread(split)


def _bending_direction(features: Tensor, wanted: Tensor) -> Tensor | None:
    """The direction, (d,), in which what is wanted, (n, k), bends most; None if it cannot be determined.

    What a linear function does not explain is averaged with products of features, (d, d): if features were normal, that
    would be the mean of all second derivatives.
    """
    n, d = features.shape
    if n <= 2 * d or d > BENT_FEATURES or wanted.shape[1] > BENT_FEATURES:
        return None
    x, y = (part.double() - part.double().mean(0) for part in (features, wanted))
    covariance = x.T @ x / n
    covariance.diagonal().add_(1e-3 * covariance.diagonal().mean() + 1e-30)
    rest = y - x @ torch.linalg.solve(covariance, x.T @ y / n)
    if not rest.isfinite().all():
        return None
    try:
        main = rest @ torch.linalg.eigh(rest.T @ rest).eigenvectors[:, -1]  # the mix of outputs that varies most
        bend, directions = torch.linalg.eigh((x * main.unsqueeze(1)).T @ x / n)
    except RuntimeError:  # with many equal eigenvalues the solver sometimes does not converge
        return None
    most = bend.abs().argmax()
    direction = directions[:, most]
    return direction * direction[direction.abs().argmax()].sign() if bend[most] != 0 else None


def _place_splits(features: Tensor, weight: Tensor, bias: Tensor, spread: float) -> None:
    """Scale the directions, (S, d), and set the biases, (S,), in place, by the samples that reach each split."""
    arrived = {0: features} if len(features) > 1 else {}
    everywhere = _deviations(features, weight)
    alone = torch.ones(len(weight), dtype=torch.bool, device=weight.device)
    for t in range(len(weight)):
        rows = arrived.pop(t, None)
        if rows is None:
            continue
        alone[t] = False
        projected = rows @ weight[t]
        scale = _scale(projected, everywhere[t], spread)
        weight[t] *= scale
        bias[t] = -_median(projected) * scale
        if 2 * t + 1 < len(weight):
            right = rows @ weight[t] + bias[t] >= 0
            children = {2 * t + 1: rows[~right], 2 * t + 2: rows[right]}
            arrived |= {child: own for child, own in children.items() if len(own) > 1}
    if alone.any():
        _place_others(features, weight, bias, spread, alone, everywhere)


def _place_others(
    features: Tensor, weight: Tensor, bias: Tensor, spread: float, others: Tensor, everywhere: Tensor
) -> None:
    """Place splits that one sample reaches, or none, by samples of all others."""
    projected = features[:: -(-len(features) // SAMPLES_OF_OTHERS)] @ weight[others].T
    scale = _scale(projected, everywhere[others], spread)
    weight[others] *= scale.unsqueeze(1)
    bias[others] = -_median(projected) * scale


def _scale(projected: Tensor, everywhere: Tensor, spread: float) -> Tensor:
    """The factor on directions, given the samples in these directions, (n, ...), and the deviations of all samples."""
    # If samples are nearly equal, the direction must not become very large.
    scale = spread / torch.maximum(projected.std(0, correction=0), 1e-3 * everywhere)
    return scale.nan_to_num(nan=1.0, posinf=1.0)  # if all samples are equal


def _deviations(features: Tensor, weight: Tensor) -> Tensor:
    """Standard deviations, (S,), of the samples in some directions, (S, d)."""
    centered = (features - features.mean(0)).double()
    if features.shape[1] > len(features) and len(weight):  # products of features would take more time and memory
        return (centered @ weight.double().T).std(0, correction=0).to(weight.dtype)
    covariance = centered.T @ centered / len(centered)
    return (weight.double() @ covariance * weight).sum(1).clamp(min=0).sqrt().to(weight.dtype)


def _median(values: Tensor) -> Tensor:
    """The middle value along the first dimension, or the middle of the two middle values.

    It is found without sorting, unlike a quantile of torch.
    """
    n = len(values)
    low = values.kthvalue((n + 1) // 2, dim=0).values
    return low if n % 2 else torch.lerp(low, values.kthvalue(n // 2 + 1, dim=0).values, 0.5)
