"""Registers operators with torch, so that they can be dispatched, compiled, differentiated and autocast."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["register", "solve_dtype", "to_dtype", "to_result_dtype"]

_LIBRARY: Any = torch.library.Library("prunus", "DEF")  # type: ignore[no-untyped-call]


def register(
    schema: str,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    *,
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., None] = lambda *_: None,
) -> Any:
    """Define ``torch.ops.prunus.NAME`` and return it.

    Parameters
    ----------
    schema : str
        Name and signature in torch's schema language.
    kernel : callable
        Computes on real tensors of any device.
    fake : callable
        Returns empty outputs of the right shape and dtype, for tracing.
    backward, setup_context : callable, optional
        As in `torch.library.register_autograd`. Without them, differentiating the operator raises an error.
    """
    name = schema.partition("(")[0]
    qualified = f"prunus::{name}"
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, kernel, "CompositeExplicitAutograd")
    _LIBRARY.impl(name, fake, "Meta")
    operator = getattr(torch.ops.prunus, name).default
    _LIBRARY.impl(name, _autograd_kernel(operator, backward or _refusal(name), setup_context), "Autograd")
    for device in ("cpu", "cuda"):
        torch.library.register_autocast(qualified, device, torch.float32, lib=_LIBRARY)
    return operator


def solve_dtype(x: Tensor) -> torch.dtype:
    """The dtype that a problem is solved in: float64 for float64, and float32 for all shorter dtypes."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def to_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    """``x.to(dtype)``, but faster if x has this dtype already."""
    return x if x.dtype == dtype else x.to(dtype)


def to_result_dtype(result: Tensor, x: Tensor) -> Tensor:
    """The result in the dtype of the input x; under autocast it stays as it is, as for torch's float32 operators."""
    if result.dtype == x.dtype or (not x.is_meta and torch.is_autocast_enabled(x.device.type)):
        return result
    return result.to(x.dtype)


def _autograd_kernel(
    operator: Any, backward: Callable[..., Any], setup_context: Callable[..., None]
) -> Callable[..., Any]:
    """Like `torch.library.register_autograd`, but with cheaper calls, which take most of the time for small trees."""

    def forward(ctx: Any, *inputs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            output = operator(*inputs)
        setup_context(ctx, inputs, output)
        return output

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function: Any = type(operator.name(), (torch.autograd.Function,), methods)

    def call(*inputs: Any) -> Any:
        if torch.is_grad_enabled():
            return function.apply(*inputs)
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*inputs)

    return call


def _refusal(name: str) -> Callable[..., Any]:
    def backward(*_: Any) -> Any:
        once = name.removesuffix("_backward")
        raise RuntimeError(f"prunus::{once} can be differentiated once only: its gradients have no derivatives")

    return backward
