"""Checks of the arguments of the public operators."""

from numbers import Real

import torch
from torch import Tensor

from prunus.errors import InputTypeError, InputValueError
from prunus.ops.library import to_dtype

__all__ = ["check_lam", "check_matrix", "check_values", "check_weight"]


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
