"""Losses: the functions that training minimizes, and what the native and the fused engine know of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from prunus.errors import InputTypeError, InputValueError

__all__ = ["LOSSES", "Compared", "Loss", "NamedLoss", "compared", "find_loss", "mean_loss", "native_name"]

Loss = Callable[[Tensor, Tensor], Tensor]
"""``loss(output, target)``: outputs of shape (n, k) and targets to the loss of each sample, of shape (n,) or (n, k).

A loss may also return the mean over the samples, a scalar; it then cannot be used with sample weights."""


@dataclass(frozen=True)
class NamedLoss:
    """A loss that is known by its name, so that programs without torch can compute it, too.

    Two such losses are equal if they have the same name and the same parameter.

    Examples
    --------
    >>> loss = find_loss("quantile", quantile=0.9)
    >>> loss.name, loss.parameter, str(loss)
    ('quantile', 0.9, 'quantile(0.9)')
    """

    name: str
    formula: Loss = field(repr=False, compare=False)
    """Computes the loss of each sample, (n,), from outputs, (n, k), and targets."""
    parameter: float = 0.0
    """The quantile, or the power of the Tweedie loss; 0 for losses without a parameter."""

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss of each sample, (n,)."""
        return self.formula(output, target)

    def __str__(self) -> str:
        return f"{self.name}({self.parameter:g})" if self.parameter else self.name


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


def quantile_loss(output: Tensor, target: Tensor, quantile: float) -> Tensor:
    """Absolute difference, times `quantile` if the target is larger and times ``1 - quantile`` otherwise.

    It is averaged over the k outputs of each sample. It is least if this share of the targets is below the output.
    """
    _check_same_shape(output, target)
    difference = target - output
    return torch.maximum(quantile * difference, (quantile - 1) * difference).mean(1)


def poisson(output: Tensor, target: Tensor) -> Tensor:
    """Half the Poisson deviance of targets that are not negative, up to a constant; outputs are logarithms of means."""
    _check_same_shape(output, target)
    return (output.exp() - target * output).mean(1)


def gamma(output: Tensor, target: Tensor) -> Tensor:
    """Half the gamma deviance of positive targets, up to a constant; outputs are logarithms of means."""
    _check_same_shape(output, target)
    return (output + target * (-output).exp()).mean(1)


def tweedie(output: Tensor, target: Tensor, power: float) -> Tensor:
    """Half the Tweedie deviance of targets that are not negative, up to a constant; outputs are logarithms of means."""
    _check_same_shape(output, target)
    above, below = 2 - power, 1 - power
    return ((above * output).exp() / above - target * (below * output).exp() / below).mean(1)


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Minus the logarithm of the probability of the true class; outputs are logits.

    Targets are class numbers, (n,), or probabilities of the classes, (n, k).
    """
    return functional.cross_entropy(output, target, reduction="none")


def binary_cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Minus the logarithm of the probability of the true one of two classes; the output is the logit of the second.

    Targets have the shape of the outputs, (n, 1), and their dtype: 0 for the first class, 1 for the second, or the
    probability of the second.
    """
    _check_same_shape(output, target)
    return functional.binary_cross_entropy_with_logits(output, target, reduction="none").mean(1)


def _with_quantile(quantile: float) -> NamedLoss:
    return NamedLoss("quantile", partial(quantile_loss, quantile=quantile), quantile)


def _with_power(power: float) -> NamedLoss:
    return NamedLoss("tweedie", partial(tweedie, power=power), power)


LOSSES: dict[str, NamedLoss] = {
    loss.name: loss
    for loss in (
        NamedLoss("squared_error", squared_error),
        NamedLoss("absolute_error", absolute_error),
        NamedLoss("huber", huber),
        _with_quantile(0.5),
        NamedLoss("poisson", poisson),
        NamedLoss("gamma", gamma),
        _with_power(1.5),
        NamedLoss("cross_entropy", cross_entropy),
        NamedLoss("binary_cross_entropy", binary_cross_entropy),
    )
}
"""The losses by name; those with a parameter have its default here."""


def find_loss(loss: str | Loss, *, quantile: float = 0.5, tweedie_power: float = 1.5) -> Loss:
    """Look up a loss by its name; a callable is returned as it is.

    Parameters
    ----------
    loss : str or callable
        A name in `LOSSES`: "squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie",
        "cross_entropy" or "binary_cross_entropy".
    quantile : float, default=0.5
        The quantile that the loss "quantile" estimates, between 0 and 1.
    tweedie_power : float, default=1.5
        The power of the variance in the loss "tweedie", between 1 and 2.

    Returns
    -------
    NamedLoss or callable
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
    for name, value, low, high in (("quantile", quantile, 0, 1), ("tweedie_power", tweedie_power, 1, 2)):
        if not low < value < high:
            raise InputValueError(f"{name} must be between {low} and {high}, got {value!r}")
    with_parameter = {"quantile": _with_quantile(float(quantile)), "tweedie": _with_power(float(tweedie_power))}
    return with_parameter.get(loss, LOSSES[loss])


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


class Compared(NamedTuple):
    """What the outputs of a tree are compared with."""

    target: Tensor
    """(n, k), or the numbers of the classes, (n, 1)."""
    offset: Tensor | None = None
    """(n, k), which is added to the outputs first."""


def _numbers(y: Tensor) -> Compared:
    return Compared(y)


def _labels(y: Tensor) -> Compared:
    return Compared(y.unsqueeze(1))


def _imitated(wanted: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Compared]:
    def found(y: Tensor) -> Compared:
        shared, outputs = y.chunk(2, 1)
        return Compared(wanted(outputs), shared)

    return found


_NATIVE_LOSSES: dict[str, tuple[str, Callable[[Tensor], Compared]]] = {
    "squared_error": ("squared", _numbers),
    "absolute_error": ("absolute", _numbers),
    "huber": ("huber", _numbers),
    "quantile": ("quantile", _numbers),
    "poisson": ("poisson", _numbers),
    "gamma": ("gamma", _numbers),
    "tweedie": ("tweedie", _numbers),
    "cross_entropy": ("label", _labels),
    "binary_cross_entropy": ("chance", _numbers),
    "imitated_numbers": ("squared", _imitated(lambda outputs: outputs)),
    "imitated_classes": ("shares", _imitated(lambda outputs: outputs.softmax(1))),
    "imitated_chance": ("chance", _imitated(torch.sigmoid)),
}
"""For each loss its name in the engine, and how it reads targets."""


def native_name(loss: Loss) -> str | None:
    """The name that the native engine has for a loss; None if it does not know it."""
    return _NATIVE_LOSSES.get(loss.name, (None, None))[0] if isinstance(loss, NamedLoss) else None


def compared(loss: NamedLoss, y: Tensor) -> Compared:
    """What outputs are compared with, given targets for a loss that the engine knows."""
    return _NATIVE_LOSSES[loss.name][1](y)
