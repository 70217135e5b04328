"""The losses of the native engine, and the targets that it compares outputs with."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from prunus.training.losses import Loss, NamedLoss

__all__ = ["Compared", "compared", "native_name"]


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
    def compared(y: Tensor) -> Compared:
        shared, outputs = y.chunk(2, 1)
        return Compared(wanted(outputs), shared)

    return compared


_LOSSES: dict[str, tuple[str, Callable[[Tensor], Compared]]] = {
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
    return _LOSSES.get(loss.name, (None, None))[0] if isinstance(loss, NamedLoss) else None


def compared(loss: NamedLoss, y: Tensor) -> Compared:
    """What outputs are compared with, given targets for a loss that the engine knows."""
    return _LOSSES[loss.name][1](y)
