"""Losses: the functions that training minimizes."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from prunus.errors import InputTypeError, InputValueError

__all__ = ["LOSSES", "Loss", "find_loss", "mean_loss"]

Loss = Callable[[Tensor, Tensor], Tensor]
"""``loss(output, target)``: outputs of shape (n, k) and targets to the loss of each sample, of shape (n,) or (n, k).

A loss may also return the mean over the samples, a scalar; it then cannot be used with sample weights."""


def squared_error(output: Tensor, target: Tensor) -> Tensor:
    """Squared difference, averaged over the k outputs of each sample."""
    _check_same_shape(output, target)
    return (output - target).square().mean(1)


def absolute_error(output: Tensor, target: Tensor) -> Tensor:
    """Absolute difference, averaged over the k outputs of each sample."""
    _check_same_shape(output, target)
    return (output - target).abs().mean(1)


def huber(output: Tensor, target: Tensor) -> Tensor:
    """Half the squared difference up to 1, and linear beyond, averaged over the k outputs of each sample."""
    _check_same_shape(output, target)
    return functional.huber_loss(output, target, reduction="none").mean(1)


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Minus the logarithm of the probability of the true class; outputs are logits."""
    return functional.cross_entropy(output, target, reduction="none")


LOSSES: dict[str, Loss] = {
    "squared_error": squared_error,
    "absolute_error": absolute_error,
    "huber": huber,
    "cross_entropy": cross_entropy,
}


def find_loss(loss: str | Loss) -> Loss:
    """Look up a loss by its name; a callable is returned as it is.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "cross_entropy"} or callable

    Returns
    -------
    callable
        ``loss(output, target)``.

    Examples
    --------
    >>> find_loss("squared_error")(torch.ones(2, 1), torch.zeros(2, 1))
    tensor([1., 1.])
    """
    if callable(loss):
        return loss
    if not isinstance(loss, str):
        raise InputTypeError(f"loss must be a name or a callable loss(output, target), got {loss!r}")
    if loss not in LOSSES:
        raise InputValueError(f"loss must be one of {list(LOSSES)} or a callable, got {loss!r}")
    return LOSSES[loss]


def mean_loss(loss: Loss, output: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """Average a loss over samples whose weights are 1 on average.

    Parameters
    ----------
    loss : callable
        ``loss(output, target)``.
    output : Tensor of shape (n, k)
    target : Tensor of shape (n, ...)
    weight : Tensor of shape (n,) or None

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> mean_loss(squared_error, torch.ones(2, 1), torch.tensor([[1.0], [3.0]]), torch.tensor([1.5, 0.5]))
    tensor(1.)
    """
    losses = loss(output, target)
    if not isinstance(losses, Tensor):
        raise InputTypeError(f"a loss must return a torch.Tensor, got {type(losses).__name__}")
    if not losses.is_floating_point():
        raise InputTypeError(f"a loss must return real floating point numbers, got {losses.dtype}")
    if weight is None:
        return losses.mean()
    if losses.shape[:1] != weight.shape:
        raise InputValueError(
            f"with sample weights a loss must return one value for each of the {len(weight)} samples "
            f"(reduction='none'), got shape {tuple(losses.shape)}"
        )
    per_sample = losses.flatten(1).mean(1) if losses.ndim > 1 else losses
    return torch.dot(per_sample, weight.to(per_sample.dtype)) / len(weight)


def _check_same_shape(output: Tensor, target: Tensor) -> None:
    """Without this check, shapes (n, 1) and (n,) would broadcast to the differences of all pairs, (n, n)."""
    if output.shape != target.shape:
        raise InputValueError(
            f"targets must have the shape of the outputs, {tuple(output.shape)}, got {tuple(target.shape)}"
        )
