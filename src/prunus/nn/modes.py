"""Modules in eval mode for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["evaluating"]


@contextmanager
def evaluating(*modules: object) -> Iterator[None]:
    """In eval mode dropout is off and normalization learns nothing; then each part is in the mode it was in.

    What is no module is left alone.

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
