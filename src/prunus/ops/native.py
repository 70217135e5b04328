"""The classes of the native training engine, where the compiled extension is there."""

from typing import Any

import torch

try:
    from prunus import _core
except ImportError:  # a source tree that was not built
    _core = None  # type: ignore[assignment]

__all__ = ["PRECISIONS", "has_native", "native_class"]

PRECISIONS = {torch.float32: "32", torch.float64: "64"}


def has_native() -> bool:
    """Whether the compiled extension is there."""
    return _core is not None


def native_class(name: str, dtype: torch.dtype) -> Any:
    """A class of the engine, such as "Examples", for numbers of this precision."""
    return getattr(_core, name + PRECISIONS[dtype])
