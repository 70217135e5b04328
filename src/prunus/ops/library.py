"""How an operator of prunus becomes one of torch's: dispatched, traceable by the compiler, differentiable, autocast."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["register", "solve_dtype", "to_result_dtype"]

_LIBRARY = torch.library.Library("prunus", "DEF")


def register(
    schema: str,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    *,
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., None] | None = None,
) -> Any:
    """Define ``torch.ops.prunus.NAME`` and return it.

    Parameters
    ----------
    schema : str
        Name and signature in torch's schema language.
    kernel : callable
        Computes on real tensors of any device.
    fake : callable
        Allocates outputs of the right shape and dtype, for tracing.
    backward, setup_context : callable, optional
        As in `torch.library.register_autograd`.
    """
    name = schema.partition("(")[0]
    qualified = f"prunus::{name}"
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(qualified, fake, lib=_LIBRARY)
    if backward is not None:
        torch.library.register_autograd(qualified, backward, setup_context=setup_context, lib=_LIBRARY)
    for device in ("cpu", "cuda"):
        torch.library.register_autocast(qualified, device, torch.float32, lib=_LIBRARY)
    return getattr(torch.ops.prunus, name).default


def solve_dtype(x: Tensor) -> torch.dtype:
    """The dtype a problem is solved in: float64 stays, all shorter ones become float32."""
    return torch.promote_types(x.dtype, torch.float32)


def to_result_dtype(result: Tensor, x: Tensor) -> Tensor:
    """Results come in the dtype of the input, except that autocast keeps its float32 operators' results."""
    return result if torch.is_autocast_enabled(x.device.type) else result.to(x.dtype)
