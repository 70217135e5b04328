"""Modes in which modules compute: a context for eval mode, and full precision under autocast."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

__all__ = ["evaluating", "without_autocast"]

Result = TypeVar("Result")


@contextmanager
def evaluating(*modules: object) -> Iterator[None]:
    """Put modules in eval mode, in which dropout is off; afterwards each part is in its former mode again.

    Arguments that are not modules are ignored.

    >>> dropout = torch.nn.Dropout()
    >>> with evaluating(dropout):
    ...     print(dropout.training)
    False
    >>> dropout.training
    True
    """
    parts = [part for module in modules if isinstance(module, nn.Module) for part in module.modules()]
    modes = [part.training for part in parts]
    for part in parts:
        part.training = False
    try:
        yield
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode


def without_autocast(function: Callable[..., Result], x: Tensor, *args: Any, dtype: torch.dtype) -> Result:
    """``function(x, *args)``; under autocast, x is converted to this dtype and autocast is off meanwhile.

    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     without_autocast(lambda x: x @ x, torch.ones(2, 2), dtype=torch.float32).dtype
    torch.float32
    """
    if x.is_meta or not torch.is_autocast_enabled(x.device.type):
        return function(x, *args)
    with torch.autocast(x.device.type, enabled=False):
        return function(x.to(dtype), *args)
