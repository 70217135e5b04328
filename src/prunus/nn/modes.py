"""A context in which modules are in eval mode."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["evaluating"]


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
