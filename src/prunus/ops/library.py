"""What all operators share: registration with torch, their dtypes, checks of arguments, rows in chunks.

Registered operators can be dispatched, compiled, differentiated and autocast.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from prunus.errors import InputTypeError, InputValueError

__all__ = [
    "check_lam",
    "check_matrix",
    "check_values",
    "check_weight",
    "chunked",
    "register",
    "shape",
    "solve_dtype",
    "to_dtype",
    "to_result_dtype",
]


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


_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_matrix(x: object, name: str) -> None:
    """Check that x is a dense two-dimensional floating point tensor. The caller checks the number of columns."""
    if not isinstance(x, Tensor):
        raise InputTypeError(f"{name} must be a torch.Tensor, got {type(x).__name__}")
    _check_dense(x, name)
    if x.dtype not in _DTYPES:
        raise InputTypeError(
            f"{name} must have a floating point dtype, one of {', '.join(map(str, _DTYPES))}, "
            f"got {name}.dtype={x.dtype}"
        )
    if x.ndim != 2:
        raise InputValueError(f"{name} must have two dimensions, samples by nodes, got {name}.shape={shape(x)}")


def check_lam(lam: float | Tensor, x: Tensor, dtype: torch.dtype) -> Tensor:
    """lam as a 0-dim tensor of this dtype on the device of x. `check_values` checks the sign of a tensor."""
    if isinstance(lam, Tensor):
        _check_dense(lam, "lam")
        if lam.ndim != 0:
            raise InputValueError(f"lam must be a float or a tensor with no dimension, got lam.shape={shape(lam)}")
        if lam.is_complex():
            raise InputTypeError(f"lam must be real, got lam.dtype={lam.dtype}")
        _check_device(lam, "lam", x)
        return to_dtype(lam, dtype)
    if not isinstance(lam, (float, Real, torch.SymFloat)):
        raise InputTypeError(f"lam must be a float or a 0-dim tensor, got {lam!r}")
    number = float(lam)
    if not number >= 0:
        raise InputValueError(f"lam must be at least 0, got lam={number}")
    return x.new_full((), number, dtype=dtype)


def check_weight(weight: Tensor | None, x: Tensor, dtype: torch.dtype) -> Tensor | None:
    """sample_weight in this dtype. `check_values` checks the signs."""
    if weight is None:
        return None
    if not isinstance(weight, Tensor):
        raise InputTypeError(f"sample_weight must be a torch.Tensor or None, got {type(weight).__name__}")
    _check_dense(weight, "sample_weight")
    if weight.is_complex():
        raise InputTypeError(f"sample_weight must be real, got sample_weight.dtype={weight.dtype}")
    if weight.ndim != 1 or weight.shape[0] != x.shape[0]:
        raise InputValueError(
            f"sample_weight must have one entry for each of the {x.shape[0]} samples, "
            f"got sample_weight.shape={shape(weight)}"
        )
    _check_device(weight, "sample_weight", x)
    return to_dtype(weight, dtype)


def check_values(lam: Tensor, weight: Tensor | None) -> None:
    """Check that lam and the weights are not negative.

    Values are read on the CPU only, because reading them on an accelerator would make the host wait for the device.
    There the kernels return NaN instead: for all samples if lam is negative, for one sample if its weight is.
    """
    if lam.device.type != "cpu":
        return
    if not lam.item() >= 0:
        raise InputValueError(f"lam must be at least 0, got lam={lam.item()}")
    if weight is not None and bool((weight < 0).any()):
        worst = int(torch.where(weight < 0, weight, 0.0).argmin())  # skips NaN
        raise InputValueError(f"sample_weight must not be negative, got sample_weight[{worst}]={weight[worst].item()}")


def shape(x: Tensor) -> tuple[int, ...]:
    """A tensor's shape as a plain tuple, for messages."""
    return tuple(x.shape)


def _check_dense(x: Tensor, name: str) -> None:
    if x.layout != torch.strided or x.is_nested:
        raise InputTypeError(f"{name} must be dense, got {name}.layout={x.layout}, {name}.is_nested={x.is_nested}")


def _check_device(x: Tensor, name: str, other: Tensor) -> None:
    if x.device != other.device:
        raise InputValueError(
            f"{name} must be on the same device as the scores, "
            f"got {name}.device={x.device} and scores on {other.device}"
        )


@torch.no_grad()
def chunked(function: Callable[[Tensor], Tensor], x: Tensor, size: int = 2048) -> Tensor:
    """``function(x)``, where no row's result depends on which other rows there are, not even in its last bit.

    Matrix products of another shape may round differently. So the function is always called with `size` rows; the last
    chunk is filled up with zeros.

    Parameters
    ----------
    function : callable
        Maps a tensor of shape (size, ...) to one of shape (size, ...), on any device, each row by itself.
    x : Tensor of shape (n, ...)
        The rows; there may be none.
    size : int
        Rows of a chunk.

    Returns
    -------
    Tensor of shape (n, ...), on the CPU and without a gradient

    Examples
    --------
    >>> chunked(lambda rows: 2 * rows, torch.tensor([[1.0], [2.0]]))
    tensor([[2.],
            [4.]])
    """
    results = []
    for begin in range(0, max(len(x), 1), size):  # without rows one chunk shows the shape of the result
        rows = x[begin : begin + size]
        count = len(rows)
        if count < size:
            rows = torch.cat((rows, rows.new_zeros(size - count, *rows.shape[1:])))
        results.append(function(rows)[:count].cpu())
    return torch.cat(results)
