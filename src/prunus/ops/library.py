"""How an operator of prunus becomes one of torch's: dispatched, traceable by the compiler, differentiable, autocast."""

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
        Allocates outputs of the right shape and dtype, for tracing.
    backward, setup_context : callable, optional
        As in `torch.library.register_autograd`. Without them the operator refuses to be differentiated.
    """
    name = schema.partition("(")[0]
    qualified = f"prunus::{name}"
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(qualified, fake, lib=_LIBRARY)
    operator = getattr(torch.ops.prunus, name).default
    _LIBRARY.impl(name, _autograd_kernel(operator, backward or _refusal(name), setup_context), "Autograd")
    for device in ("cpu", "cuda"):
        torch.library.register_autocast(qualified, device, torch.float32, lib=_LIBRARY)
    return operator


def solve_dtype(x: Tensor) -> torch.dtype:
    """The dtype a problem is solved in: float64 stays, all shorter ones become float32."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def to_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    """``x.to(dtype)``, without the time that takes where there is nothing to do."""
    return x if x.dtype == dtype else x.to(dtype)


def to_result_dtype(result: Tensor, x: Tensor) -> Tensor:
    """Results come in the dtype of the input, except that autocast keeps its float32 operators' results."""
    if result.dtype == x.dtype or (not x.is_meta and torch.is_autocast_enabled(x.device.type)):
        return result
    return result.to(x.dtype)


def _autograd_kernel(
    operator: Any, backward: Callable[..., Any], setup_context: Callable[..., None]
) -> Callable[..., Any]:
    """What `torch.library.register_autograd` would make, but quicker: for small trees the calls are the larger part."""

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
