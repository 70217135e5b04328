"""Checks of the options of modules, and the modes in which they compute: eval mode, and full precision."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from prunus.errors import InputTypeError, InputValueError

__all__ = ["check_batch_size", "check_depth", "check_pruning_strength", "evaluating", "without_autocast"]

Result = TypeVar("Result")
MAX_DEPTH = 16
"""A deeper tree would have more nodes than most data sets have samples for."""


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


def check_depth(depth: object) -> int:
    """The depth as an int; an error unless it is an integer, of Python or numpy, from 0 to MAX_DEPTH."""
    if isinstance(depth, bool) or not isinstance(depth, Integral):
        raise InputTypeError(f"depth must be an int, got {depth!r}")
    if not 0 <= int(depth) <= MAX_DEPTH:
        raise InputValueError(f"depth must be from 0 to {MAX_DEPTH}, got {depth}")
    return int(depth)


def check_pruning_strength(strength: object) -> float:
    """The strength as a float; an error unless it is a finite number of at least 0."""
    if not isinstance(strength, Real):
        raise InputTypeError(f"pruning_strength must be a number, got {strength!r}")
    if not 0 <= float(strength) < float("inf"):
        raise InputValueError(f"pruning_strength must be finite and at least 0, got {strength}")
    return float(strength)


def check_batch_size(batch_size: object) -> int | None:
    """The batch size as an int or None; an error unless it is None or an integer of at least 1."""
    if batch_size is None:
        return None
    if isinstance(batch_size, bool) or not isinstance(batch_size, Integral):
        raise InputTypeError(f"batch_size must be an int or None, got {batch_size!r}")
    if not int(batch_size) >= 1:
        raise InputValueError(f"batch_size must be at least 1, got {batch_size}")
    return int(batch_size)
