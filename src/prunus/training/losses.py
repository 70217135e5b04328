"""Losses: what training makes small."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from prunus.errors import InputTypeError, InputValueError

__all__ = ["LOSSES", "Loss", "find_loss", "mean_loss"]

Loss = Callable[[Tensor, Tensor], Tensor]
"""From outputs, (n, k), and targets to a loss of each sample, or to their mean (then weights cannot be used)."""


def squared_error(output: Tensor, target: Tensor) -> Tensor:
    """(output - target)^2, a mean over the outputs."""
    _check_same_shape(output, target)
    return (output - target).square().mean(1)


def absolute_error(output: Tensor, target: Tensor) -> Tensor:
    """|output - target|, a mean over the outputs."""
    _check_same_shape(output, target)
    return (output - target).abs().mean(1)


def huber(output: Tensor, target: Tensor) -> Tensor:
    """Squared error near zero, absolute error beyond 1."""
    _check_same_shape(output, target)
    return functional.huber_loss(output, target, reduction="none").mean(1)


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Minus the logarithm of the probability given to the class."""
    return functional.cross_entropy(output, target, reduction="none")


LOSSES: dict[str, Loss] = {
    "squared_error": squared_error,
    "absolute_error": absolute_error,
    "huber": huber,
    "cross_entropy": cross_entropy,
}


def find_loss(loss: str | Loss) -> Loss:
    """A loss by name, or the callable itself.

    >>> find_loss("squared_error")(torch.ones(2, 1), torch.zeros(2, 1))
    tensor([1., 1.])
    """
    if callable(loss):
        return loss
    if not isinstance(loss, str):
        raise InputTypeError(f"loss must be a name or a callable loss(output, target), however: {loss!r}")
    if loss not in LOSSES:
        raise InputValueError(f"loss must be one of {list(LOSSES)} or a callable, however: {loss!r}")
    return LOSSES[loss]


def mean_loss(loss: Loss, output: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """Weighted mean of a loss over samples whose weights are 1 on average.

    >>> mean_loss(squared_error, torch.ones(2, 1), torch.tensor([[1.0], [3.0]]), torch.tensor([1.5, 0.5]))
    tensor(1.)
    """
    losses = loss(output, target)
    if not isinstance(losses, Tensor):
        raise InputTypeError(f"a loss must return a torch.Tensor, however: {type(losses).__name__}")
    if weight is None:
        return losses.mean()
    if losses.shape[:1] != weight.shape:
        raise InputValueError(
            f"with sample weights a loss must return one value for each of the {len(weight)} samples "
            f"(reduction='none'), however: it returned shape {tuple(losses.shape)}"
        )
    of_samples = losses.flatten(1).mean(1) if losses.ndim > 1 else losses
    return torch.dot(of_samples, weight.to(of_samples.dtype)) / len(weight)


def _check_same_shape(output: Tensor, target: Tensor) -> None:
    """Or else (n, 1) and (n,) would broadcast to the differences of all pairs, (n, n)."""
    if output.shape != target.shape:
        raise InputValueError(
            f"targets must have the shape of the outputs, {tuple(output.shape)}, however: {tuple(target.shape)}"
        )
